"""The tangent kernel of a random ReLU network fluctuates exponentially in the ratio of depth to width.

With derivatives with respect to weights of unit variance, E Θ(x, x) = 2(L+1)‖x‖²/n_0 at every width, and
E Θ²/(E Θ)² grows like exp(5β), β = Σ 1/n_l, up to a factor that falls from 1 to 1/3. Both are exact for Gaussian
weights, by a recursion on five invariants of a layer.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from steepest.arrays import Observation, Prediction
from steepest.claims._claim import Claim, Count, Seeds
from steepest.judging import Check, Hypothesis, Rival, bound, equal, order, require
from steepest.kernels import empirical_ntk
from steepest.networks import expected_ntk, mlp, ntk_growth, ntk_moments, sample_ntk
from steepest.panels import Panel, panel, rival, seen, theory
from steepest.types import Key

LARGEST = 0.25  # β up to which the mean of Θ² can be sampled


@dataclass(frozen=True)
class NtkDepthToWidth(Claim):
    """Tangent kernels of networks at one input, and the mean kernel of orthogonal inputs."""

    width: Count = 16  # width of the input and of all hidden layers [neurons]
    depths: tuple[Count, ...] = (1, 2, 4, 8)  # hidden layers L [layers]
    networks: Count = 20_000  # random networks in each group [1]
    groups: Seeds = 20  # groups, over which intervals are taken [1]
    inputs: Count = 8  # orthogonal inputs, and input dimension, of the mean kernel [1]
    kernel_width: Count = 128  # width of the hidden layers behind the mean kernel [neurons]
    kernel_depth: Count = 4  # its hidden layers [layers]
    kernel_networks: Count = 20  # random networks behind the mean kernel, in each group [1]

    statement = (
        r"\mathbb{E}\,\Theta(x,x)=\frac{2(L+1)\|x\|^2}{n_0},\quad "
        r"\frac{\mathbb{E}\,\Theta^2}{(\mathbb{E}\,\Theta)^2}\to e^{5\beta}\Big(\frac13+\frac43\,"
        r"\frac{e^{-6\beta}-1+6\beta}{(6\beta)^2}\Big),\quad \beta=\sum_{l=1}^{L}\frac{1}{n_l}"
    )
    source = "ORF 543, lecture 11/30; Hanin and Nica 2019, Finite depth and width corrections to the tangent kernel"
    corrections = (
        "The notes print E Θ = 2L‖x‖²/n_0 and ask why the sum ends at L: it does not. There are L + 1 weight matrices, "
        "and each contributes 2‖x‖²/n_0.",
        "The notes use β for two numbers. In exp(5β) here it is Σ 1/n_l; in their theorem on derivatives it is "
        "5 Σ 1/n_l.",
        "Derivatives are with respect to Ŵ of unit variance, W = √(2/n) Ŵ (NTK parameterization). With respect to W "
        "itself the mean is (n_0 + … + n_L)‖x‖²/n_0.",
        "The notes' kernel of two inputs, x_α·x_β times the chances that both turn on a path, and hence their bound on "
        "λ_max of the expected kernel, are wrong: two gates together are not independent of even functions of the "
        "weights. For orthogonal inputs they give 2L‖x‖²/n_0, which is below even the mean eigenvalue. The row sums of "
        "the correct kernel are a bound, and here they are attained.",
    )
    remarks = (
        "The bounded factor is our derivation: two pairs of paths can recombine in three ways between the two layers "
        "whose weights are differentiated, so only a third of the growth is seen when these are far apart.",
        "The mean of Θ² is sampled up to β = 1/4, where Θ² spreads by about ten times its mean (the "
        "lognormal estimate); at β = 1 it would be ten thousand times. Growth at larger β is that of the exact "
        "recursion, shown and not judged.",
        "At width n the exact growth of a layer is 1 + 5/n, the rate n log(1 + 5/n) is below 5: 4.35 at width 16.",
        "Networks behind Θ(x, x) are drawn neuron by neuron from their exact conditional law, with real gates; those "
        "behind the mean kernel of several inputs have explicit weights and automatic derivatives.",
    )
    beyond = {"width": 4}
    full = {"networks": 200_000, "depths": (1, 2, 3, 4, 8, 16), "kernel_width": 256, "kernel_networks": 40}

    def setting(self, key: Key) -> jax.Array:
        return jax.random.normal(key, (self.width,), jnp.float32)

    def hypotheses(self, setting: jax.Array) -> list[Hypothesis]:
        judged, wide = int(np.sum(self.loads <= LARGEST)), self.kernel_depth / self.kernel_width
        note = "choose a larger --width or smaller --depths"
        return [
            require(f"depths with L/n at most {LARGEST:g}", judged, ">=", 2, note),
            require("depth/width behind the mean kernel", wide, "<=", 0.05, "its formula is for n ≫ L"),
        ]

    @property
    def loads(self) -> np.ndarray:
        """β = Σ 1/n_l = L/n for each depth."""
        return np.array(self.depths) / self.width

    def moments(self, x: jax.Array, depth: int) -> tuple[float, float]:
        """E Θ and log E Θ²/(E Θ)², exactly."""
        mean, square = ntk_moments((self.width,) * (depth + 1) + (1,), x)
        return mean, np.log(square / mean**2)

    def predict(self, setting: jax.Array) -> Prediction:
        mean, log_ratio = np.transpose([self.moments(setting, depth) for depth in self.depths])
        kernel = expected_ntk(jnp.eye(self.inputs), self.kernel_depth)
        return Prediction(
            mean=("depth", mean),
            log_ratio=("depth", log_ratio),
            rate=5.0,
            top=jnp.abs(kernel).sum(1).max(),
            far=("depth", [self.moments(setting, depth)[1] for depth in self.far]),
        )

    @property
    def far(self) -> np.ndarray:
        """Depths of the figure, up to β = 4."""
        return np.unique(np.geomspace(1, 4 * self.width, 40).astype(int))

    def observe(self, setting: jax.Array, key: Key) -> Observation:
        for_kernel, *seeds = jax.random.split(key, len(self.depths) + 1)
        total = self.groups * self.networks
        drawn = [
            sample_ntk(k, total, (self.width,) * (depth + 1) + (1,), setting).reshape(self.groups, -1)
            for k, depth in zip(seeds, self.depths, strict=True)
        ]
        widths = (self.inputs, *[self.kernel_width] * self.kernel_depth, 1)
        net = mlp(widths, "relu", parameterized="ntk", c_w=2.0, bias=False)
        kernel = lambda key: empirical_ntk(net.apply, net.init(key), jnp.eye(self.inputs))
        group = lambda key: jax.lax.map(kernel, jax.random.split(key, self.kernel_networks)).mean(0)
        kernels = jax.lax.map(group, jax.random.split(for_kernel, self.groups))
        return Observation(
            mean=("depth group", jnp.stack([theta.astype(float).mean(1) for theta in drawn])),
            square=("depth group", jnp.stack([(theta.astype(float) ** 2).mean(1) for theta in drawn])),
            top=("group", jnp.linalg.eigvalsh(kernels)[:, -1]),
        )

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        log_ratio = np.log(observed["square"] / observed["mean"] ** 2)
        few = [i for i, load in enumerate(self.loads) if load <= LARGEST]
        rates = {f"{self.depths[i]} layers": log_ratio[i] / self.loads[i] for i in few}
        ends = [*rates][:: max(1, len(rates) - 1)]
        checks = [
            *(equal(f"E Θ / (2(L+1)‖x‖²/n_0), L = {depth}", 1.0, observed["mean"][i] / predicted["mean"][i], 0.05)
                for i, depth in enumerate(self.depths)),
            *(equal(f"log E Θ²/(E Θ)², L = {self.depths[i]}", predicted["log_ratio"][i], log_ratio[i], 0.08,
                absolute=True) for i in few),
            *(bound(f"log E Θ²/(E Θ)² over β, {end}", rates[end], at_most=float(predicted["rate"])) for end in ends),
            equal("λ_max of the mean kernel / row-sum bound", 1.0, observed["top"] / predicted["top"], 0.1),
        ]  # fmt: skip
        return checks + ([order("log E Θ²/(E Θ)² over β grows", ends, rates)] if len(ends) > 1 else [])

    def rivals(self, setting: jax.Array, predicted: Prediction) -> list[Rival]:
        depths, log_ratio = np.array(self.depths), predicted["log_ratio"]
        one = np.expm1(self.moments(setting, 1)[1])
        printed = 2 * self.kernel_depth / self.inputs
        return [
            Rival("E Θ = 2L‖x‖²/n_0", predicted.replace(mean=("depth", predicted["mean"] * depths / (depths + 1))),
                "as printed: the last layer forgotten"),
            Rival("relative variance independent of depth", predicted.replace(
                log_ratio=("depth", np.full_like(log_ratio, log_ratio[0]))), "the mean of Θ/(L+1) is"),
            Rival("relative variance proportional to depth",
                predicted.replace(log_ratio=("depth", np.log1p(one * depths))), "independent layers add variances"),
            Rival("exp(5β) with β = 5 Σ 1/n_l", predicted.replace(log_ratio=("depth", 5 * log_ratio)),
                "the letter of the notes' theorem on derivatives"),
            Rival("λ_max of the expected kernel is at most 2L‖x‖²/n_0", predicted.replace(top=printed),
                "as printed: gates of two inputs independent of the weights"),
        ]  # fmt: skip

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        beta, few = self.far / self.width, self.loads <= LARGEST
        log_ratio = np.log(observed["square"] / observed["mean"] ** 2).T
        one, grid = np.expm1(predicted["far"][0]), np.geomspace(beta[0], beta[-1], 60)
        limit = np.log([ntk_growth(b) for b in grid])
        return (
            panel("Relative second moment of the tangent kernel", "β = Σ 1/n", "log E Θ²/(E Θ)²",
                theory(beta, predicted["far"], "exact"), seen(self.loads[few], log_ratio[:, few], "networks",
                    kind="points"), rival(beta, np.log1p(one * self.far), "proportional to depth"), log="xy"),
            panel("Its rate rises, to 5 in wide networks", "β = Σ 1/n", "log E Θ²/(E Θ)² / β",
                theory(beta, predicted["far"] / beta, f"exact, width {self.width}"),
                theory(grid, limit / grid, "wide networks", shade=0.6),
                seen(self.loads[few], (log_ratio / self.loads)[:, few], "networks", kind="points"), log="x"),
        )  # fmt: skip
