"""Tangent-kernel fluctuations of random ReLU networks follow an exact recursion in depth and width.

The recursion gives the second moment of the kernel at one input, for layers of unequal widths too. Let β = Σ 1/n_l, the
sum of the inverse widths of the hidden layers. The recursion is tested up to β = 2 for equal widths and up to β = 3 for
unequal widths. With derivatives with respect to weights of unit variance, E Θ(x, x) = 2(L+1)‖x‖²/n_0 at every width.
For Gaussian weights a recursion on five invariants of a layer gives E Θ²/(E Θ)² exactly. Up to β = ¼, plain means over
networks are compared with this ratio. Beyond β = ¼, networks are sampled with weights that follow the kernel's own
growth. As widths grow at fixed β the recursion tends to exp(5β) times a factor between 1 and 1/3. At the widths here
the logarithm of that limit is too high, by a third at small β and by a sixth at β = 2, and the data show this.

The probability that Θ exceeds its mean by 25 to 100 % is known exactly for one hidden layer. In deeper networks this
probability agrees, to an eighth, with the probability under a lognormal law with the same moments. Chebyshev's bound is
three to seven times as large.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray
from scipy.stats import binom, chi2, norm

from steepest import kit
from steepest.nn.networks import expected_ntk, ntk_growth, ntk_moments, tilted_ntk_moments
from steepest.nn.types import Values

REPEATS = 2  # estimates of each deep mean in a group: of the squares only logarithms are judged
EXCESSES = (0.25, 0.5, 1.0)  # t, where Θ is compared with (1 + t) times its mean
LARGEST = 0.25  # β up to which plain means of Θ² see its tail


@kit.claim
class NtkDepthToWidth(kit.Claim[jax.Array]):
    """Tangent kernels of networks at one input, and the mean kernel of orthogonal inputs."""

    width: kit.Count = kit.param(
        16,
        "width of the input and of all hidden layers",
        unit="neurons",
        scope=kit.between(
            16, 20, "plain means miss the tail of less; more are not deep at 32 layers"
        ),
    )
    depths: tuple[kit.Count, ...] = kit.param(
        (1, 2, 4),
        "hidden layers L of networks whose kernels are averaged plainly",
        unit="layers",
        scope=kit.choices((1, 2, 4), (1, 2, 3), (1, 3, 4)),
    )
    uneven: tuple[kit.Count, ...] = kit.param(
        (8, 32),
        "hidden widths of a network whose widths differ",
        unit="neurons",
        scope=kit.choices((8, 32), (32, 8), (10, 40)),
    )
    networks: kit.Count = kit.param(5000, "random networks in each group")
    deep: tuple[kit.Count, ...] = kit.param(
        (8, 16, 32),
        "hidden layers of networks that are drawn under the tilted law, rising",
        unit="layers",
        scope=kit.choices((8, 16, 32), (8, 16, 24), (6, 12, 30)),
    )
    turns: tuple[kit.Count, ...] = kit.param(
        (8, 16),
        "hidden widths that take turns in as deep networks",
        unit="neurons",
        scope=kit.choices((8, 16), (16, 8), (8, 24)),
    )
    particles: kit.Count = kit.param(3000, "networks in each group under the tilted law")
    groups: kit.Seeds = kit.param(20, "groups, over which intervals are taken")
    inputs: kit.Count = kit.param(
        8,
        "orthogonal inputs, and input dimension, of the mean kernel",
        scope=kit.between(6, 10, "of more the largest eigenvalue of few networks is too large"),
    )
    kernel_width: kit.Count = kit.param(
        128,
        "width of the hidden layers behind the mean kernel",
        unit="neurons",
        scope=kit.between(110, 160, "its formula is for wide networks"),
    )
    kernel_depth: kit.Count = kit.param(
        4, "its hidden layers", unit="layers", scope=kit.between(3, 4)
    )
    kernel_networks: kit.Count = kit.param(
        20, "random networks behind the mean kernel, in each group"
    )

    kind = "theorem"
    says = {
        "Tangent-kernel fluctuations of random ReLU networks follow an exact recursion": (
            "mean",
            "log_ratio",
        ),
        "for layers of unequal widths too": ("log_ratio_uneven", "turns_log_ratio"),
        "tested up to β = 2": "deep_log_ratio",
    }
    tiny = {
        "networks": 200,
        "deep": (4, 6, 8),
        "particles": 50,
        "groups": 4,
        "inputs": 4,
        "kernel_width": 20,
        "kernel_depth": 1,
        "kernel_networks": 3,
    }
    full = {
        "networks": 100_000,
        "depths": (1, 2, 3, 4),
        "deep": (8, 16, 32, 64),
        "particles": 10_000,
        "kernel_width": 256,
        "kernel_networks": 40,
    }
    out_of_scope = {"width": 4}

    @property
    def loads(self) -> Values:
        """Return β = Σ 1/n_l = L/n for each depth."""
        return np.array(self.depths) / self.width

    @property
    def turns_loads(self) -> Values:
        """Return β of the networks whose widths take turns."""
        return np.array([np.sum(1 / np.resize(self.turns, depth)) for depth in self.deep])

    @property
    def deep_widths(self) -> Values:
        """Return the widths n_0, …, n_L of the deepest networks: even ones, and those that take turns."""
        layers = max(self.deep)
        hidden = [np.resize(widths, layers) for widths in ((self.width,), self.turns)]
        return np.insert(hidden, 0, self.width, axis=1)

    def axes(self):
        return {"depth": self.depths, "deep": self.deep, "excess": EXCESSES}

    def setting(self, key):
        return jax.random.normal(key, (self.width,), jnp.float32)

    def hypotheses(self, setting):
        wide = self.kernel_depth / self.kernel_width
        note = "choose a larger --width or smaller --depths"
        yield kit.assume("largest L/n of plain means", self.loads.max(), "<=", LARGEST, note)
        yield kit.assume(
            "depth/width behind the mean kernel", wide, "<=", 0.05, "its formula is for n ≫ L"
        )

    def predict(self, setting):
        even = lambda depth: (self.width,) * depth
        in_turn = lambda depth: np.resize(self.turns, depth).tolist()
        mean, log_ratio = self.moments(setting, map(even, self.depths))
        deep_mean, deep = self.moments(setting, map(even, self.deep))
        turns_mean, turns = self.moments(setting, map(in_turn, self.deep))
        return kit.law(
            mean=("depth", mean),
            log_ratio=("depth", log_ratio),
            uneven=self.moments(setting, [self.uneven])[1][0],
            tail=(
                "depth excess",
                [self.tail(*pair) for pair in zip(self.depths, log_ratio, strict=True)],
            ),
            deep_mean=("deep", deep_mean),
            deep_ratio=("deep", deep),
            turns_mean=("deep", turns_mean),
            turns_ratio=("deep", turns),
            top=self.top(self.kernel_depth),
        )

    def top(self, depth: int) -> Values:
        """Return the largest absolute row sum of the mean kernel of orthogonal inputs, its λ_max."""
        kernel = kit.compiled(lambda x: expected_ntk(x, depth))(np.eye(self.inputs))
        return np.abs(kernel).sum(1).max()

    def moments(self, x: jax.Array, networks: Any) -> tuple[Values, Values]:
        """Return E Θ and log E Θ²/(E Θ)² for several choices of hidden widths, exactly."""
        mean, square = np.transpose([ntk_moments((self.width, *h, 1), x) for h in networks])
        return mean, np.log(square / mean**2)

    def tail(self, depth: int, log_ratio: float) -> Values:
        """Return the chance that Θ ≥ (1 + t)E Θ: exact for one hidden layer, else lognormal, ``(excesses,)``."""
        above = 1 + np.array(EXCESSES)
        if depth > 1:
            # log(Θ/E Θ) ~ N(−s/2, s) has mean one and E Θ²/(E Θ)² = e^s
            return norm.sf((np.log(above) + log_ratio / 2) / log_ratio**0.5)
        active = np.arange(1, self.width + 1)
        # N active neurons each add a square of z and of the last weight: Θ ∝ χ² of 2N degrees
        return binom.pmf(active, self.width, 0.5) @ chi2.sf(self.width * above, 2 * active[:, None])

    def observe(self, setting, key):
        for_plain, for_tilted = jax.random.split(key)
        generator = kit.numpy_generator(for_plain)
        plain = [self.sample(generator, setting, (self.width,) * depth) for depth in self.depths]
        mean, square, typical, *tail = np.stack(plain, 1)
        uneven_mean, uneven_square, *_ = self.sample(generator, setting, self.uneven)
        widths = [self.inputs, *[self.kernel_width] * self.kernel_depth, 1]
        kernel = lambda: tangent_kernels(
            generator, self.kernel_networks, widths, np.eye(self.inputs, dtype=np.float32)
        )
        kernels = [kernel().mean(0) for _ in range(self.groups)]
        tilted = kit.compiled(self.sample_deep)(setting, for_tilted, self.deep_widths)
        logs = np.asarray(tilted).transpose(0, 1, 3, 2)  # (widths, estimates, deep, groups)
        deep_mean, turns_mean = np.exp(logs[:, :REPEATS]).mean(1)
        deep, turns = logs[:, REPEATS]
        return kit.seen(
            mean=("depth draw", mean),
            typical=("depth draw", typical),
            tail=("excess depth draw", tail),
            log_ratio=("depth draw", np.log(square / mean**2)),
            uneven=("draw", np.log(uneven_square / uneven_mean**2)),
            deep_mean=("deep draw", deep_mean),
            turns_mean=("deep draw", turns_mean),
            deep_ratio=("deep draw", deep - 2 * np.log(deep_mean)),
            turns_ratio=("deep draw", turns - 2 * np.log(turns_mean)),
            top=("draw", np.linalg.eigvalsh(kernels)[:, -1]),
        )

    def sample(
        self, generator: np.random.Generator, x: jax.Array, hidden: Sequence[int]
    ) -> tuple[Values, ...]:
        """Return the means of Θ and of Θ², the typical Θ, exp of the mean of its logarithm, and shares of each group.

        These are of networks whose Θ is 1 + t or more times the mean of all, one array for each excess t.
        """
        widths = [self.width, *hidden, 1]
        inputs = np.asarray(x, np.float32)[None]
        draw = lambda: tangent_kernels(generator, self.networks, widths, inputs)[:, 0, 0]
        theta = np.stack([draw() for _ in range(self.groups)]).astype(float)
        alive = np.where(theta > 0, theta, np.nan)  # of the narrowest layers some are dead
        above = [(theta >= (1 + excess) * theta.mean()).mean(1) for excess in EXCESSES]
        return theta.mean(1), (theta**2).mean(1), np.exp(np.nanmean(np.log(alive), 1)), *above

    def sample_deep(self, x: jax.Array, key: kit.Key, widths: jax.Array) -> jax.Array:
        """Return estimates of log E Θ and one of log E Θ², of even widths and of those in turns.

        Shape ``(2, REPEATS + 1, groups, deep)``.
        """
        largest = max(self.width, *self.turns)

        def groups(lane: tuple[jax.Array, ...]) -> jax.Array:
            key, widths, power = lane
            one = lambda k: tilted_ntk_moments(k, self.particles, widths, x, power, largest)
            return jax.vmap(one)(jax.random.split(key, self.groups))

        estimates = REPEATS + 1
        powers = jnp.array([1.0] * REPEATS + [2.0], x.dtype)
        lanes = (
            jax.random.split(key, 2 * estimates),
            jnp.repeat(jnp.asarray(widths), estimates, 0),
            jnp.tile(powers, 2),
        )
        logs = jax.lax.map(groups, lanes)[..., np.array(self.deep) - 1]
        return logs.reshape(2, estimates, self.groups, len(self.deep))

    def judge(self, law, seen):
        uneven = ", ".join(map(str, self.uneven))
        yield kit.follows(
            "mean",
            law["mean"],
            seen["mean"],
            0.02,  # exact at every width; the interval is 0.2 to 1 %
            label="mean of Θ",
        )
        yield kit.follows(
            "log_ratio",
            law.log_ratio,
            seen.log_ratio,
            0.05,  # exact; the interval is 2 %
            label="log E Θ²/(E Θ)²",
        )
        yield kit.follows(
            "log_ratio_uneven",
            law.uneven,
            seen.uneven,
            0.05,
            label=f"log E Θ²/(E Θ)², widths {uneven}",
        )
        yield from self.judge_tilted(law, seen)
        yield kit.follows(
            "top_eigenvalue",
            law.top,
            seen.top,
            0.08,  # depth/width is 3 %, and so is the interval
            label="λ_max of the mean kernel",
        )
        yield kit.follows(
            "tail",
            law["tail"],
            seen["tail"],
            0.2,  # the lognormal law is off by up to 0.12, and the interval is 0.01 to 0.06
            label="share of networks whose Θ is 1 + t times its mean or more",
        )

    def judge_tilted(self, law, seen):
        """Compare moments of deep networks, which are drawn under the tilted law."""
        yield kit.follows(
            "deep_mean",
            law.deep_mean,
            seen.deep_mean,
            0.08,  # exact; the interval is 3 % at 32 layers
            label="mean of Θ, tilted",
        )
        yield kit.follows(
            "turns_mean",
            law.turns_mean,
            seen.turns_mean,
            0.08,  # and 4 % here
            label="mean of Θ, tilted, widths in turn",
        )
        yield kit.follows(
            "deep_log_ratio",
            law.deep_ratio,
            seen.deep_ratio,
            0.05,  # exact; the interval is 2 %
            label="log E Θ²/(E Θ)², tilted",
        )
        yield kit.follows(
            "turns_log_ratio",
            law.turns_ratio,
            seen.turns_ratio,
            0.05,
            label="log E Θ²/(E Θ)², tilted, widths in turn",
        )

    def rivals(self, setting, law):
        depth = law.depth
        deep = law.deep
        square = np.expm1(self.moments(setting, [(self.width,)])[1][0])
        middle = round(np.mean(self.turns))
        even = (round(np.mean(self.uneven)),) * len(self.uneven)
        yield kit.rival(
            "E Θ = 2L‖x‖²/n_0",
            "as printed: the last layer forgotten",
            id="last_layer_forgotten",
            mean=law["mean"] * depth / (depth + 1),
            deep_mean=law.deep_mean * deep / (deep + 1),
            turns_mean=law.turns_mean * deep / (deep + 1),
        )
        yield kit.rival(
            "E Θ is the typical kernel",
            "what is seen of a lognormal kernel in few networks",
            id="typical_kernel",
            mean=law["mean"] * np.exp(-law.log_ratio / 2),
            deep_mean=law.deep_mean * np.exp(-law.deep_ratio / 2),
            turns_mean=law.turns_mean * np.exp(-law.turns_ratio / 2),
        )
        yield kit.rival(
            "relative variance independent of depth",
            "the mean of Θ/(L+1) is",
            log_ratio=law.log_ratio.isel(depth=0, drop=True),
        )
        yield kit.rival(
            "relative variance proportional to depth",
            "independent layers add variances",
            id="linear_growth",
            log_ratio=np.log1p(square * depth),
            deep_ratio=np.log1p(square * deep),
        )
        yield from self.other_tails(law)
        yield from self.other_rates()
        yield kit.rival(
            "the mean width in place of the mean of 1/n",
            "depth over width, where widths differ",
            id="mean_width",
            uneven=self.moments(setting, [even])[1][0],
            turns_ratio=("deep", self.moments(setting, [(middle,) * n for n in self.deep])[1]),
        )
        yield kit.rival(
            "five times the exact logarithm",
            "the letter of the notes' theorem on derivatives",
            log_ratio=5 * law.log_ratio,
        )
        yield from self.rivals_of_top()

    def other_tails(self, law):
        """Return wrong theories of the tail, of the exact variance."""
        variance = np.expm1(law.log_ratio)
        above = law.excess / variance**0.5
        normal = xarray.apply_ufunc(norm.sf, above).transpose(*law["tail"].dims)
        bound = variance / (variance + law.excess**2)
        yield kit.rival("the tail of a normal law", "sums over many paths are normal", tail=normal)
        yield kit.rival(
            "the one-sided bound of Chebyshev, attained",
            "as the notes bound the tail",
            tail=bound.transpose(*law["tail"].dims),
        )

    def other_rates(self) -> list[kit.Rival]:
        """Return theories in which the growth is a function of β alone."""
        load = sum(1 / n for n in self.uneven)
        of_depth = lambda rate: ("depth", [rate(b) for b in self.loads])
        of_deep = lambda rate: ("deep", [rate(depth / self.width) for depth in self.deep])
        of_turns = lambda rate: ("deep", [rate(b) for b in self.turns_loads])
        rates = (
            ("full_rate", "exp(5β)", "the exponent without its bounded factor", lambda b: 5 * b),
            (
                "rate_of_four",
                "exp(4β)",
                "the rate seen in wide networks at β = 1/4",
                lambda b: 4 * b,
            ),
            ("two_thirds", "exp(10/3 β)", "two thirds of the full exponent", lambda b: 10 / 3 * b),
            (
                "wide_limit",
                "exp(5β) with its bounded factor, at every width",
                "the recursion as widths grow at fixed β",
                lambda b: float(np.log(ntk_growth(b))),
            ),
        )
        return [
            kit.rival(
                label,
                why,
                id=id,
                log_ratio=of_depth(rate),
                uneven=rate(load),
                deep_ratio=of_deep(rate),
                turns_ratio=of_turns(rate),
            )
            for id, label, why, rate in rates
        ]

    def rivals_of_top(self):
        """Return wrong theories of the largest eigenvalue of the mean kernel."""
        yield kit.rival(
            "λ_max of the expected kernel is at most 2L‖x‖²/n_0",
            "as printed: gates of two inputs independent of the weights",
            id="printed_bound",
            top=2 * self.kernel_depth / self.inputs,
        )
        yield kit.rival(
            "λ_max with one hidden layer more",
            "L for L + 1 once more",
            top=self.top(self.kernel_depth + 1),
        )

    def controls(self, seen):
        shown = int(np.abs(np.array(self.depths) - len(self.uneven)).argmin())
        yield kit.control(
            "networks of equal widths in place of networks of unequal widths, and the reverse",
            "fluctuations depend on every width",
            id="other_widths",
            log_ratio=seen.uneven,
            uneven=seen.log_ratio.isel(depth=shown, drop=True),
            deep_ratio=seen.turns_ratio,
            turns_ratio=seen.deep_ratio,
        )
        yield kit.control(
            "the typical kernel",
            "few networks do not show the tail that makes the mean",
            mean=seen.typical,
        )
        yield kit.control(
            "networks of each depth in place of networks of the next depth",
            "tails are heavier the deeper a network is",
            tail=(seen["tail"].dims, np.roll(seen["tail"].values, -1, 1)),
        )

    def figure(self, law, seen, rivals):
        far = np.unique(np.geomspace(1, 4 * self.width, 40).astype(int))
        exact = self.moments(jnp.ones(self.width), [(self.width,) * depth for depth in far])[1]
        beta = far / self.width
        grid = np.geomspace(beta[0], beta[-1], 60)
        limit = np.log([ntk_growth(b) for b in grid])
        deep_beta = np.array(self.deep) / self.width
        plain = seen.log_ratio.T.values
        tilted = seen.deep_ratio.T.values
        points = lambda x, values, name, shade=0.0: kit.observed_curve(
            x, values, name, kind="points", shade=shade
        )
        yield kit.panel(
            "Relative second moment of the tangent kernel",
            "β = Σ 1/n",
            "log E Θ²/(E Θ)²",
            kit.predicted_curve(beta, exact, "exact"),
            points(self.loads, plain, "networks"),
            points(deep_beta, tilted, "networks, tilted", 0.6),
            kit.rival_curve(beta, np.log1p(np.expm1(exact[0]) * far), "proportional to depth"),
            log="xy",
        )
        yield kit.panel(
            "Its rate rises, towards 5 in wide networks",
            "β = Σ 1/n",
            "log E Θ²/(E Θ)² / β",
            kit.predicted_curve(beta, exact / beta, f"exact, width {self.width}"),
            kit.predicted_curve(grid, limit / grid, "wide networks", shade=0.6),
            points(self.loads, plain / self.loads, "networks"),
            points(deep_beta, tilted / deep_beta, "networks, tilted", 0.6),
            log="x",
        )


def tangent_kernels(
    generator: np.random.Generator, networks: int, widths: Sequence[int], inputs: Values
) -> Values:
    """Return tangent kernels of random ReLU networks with one output, ``(networks, inputs, inputs)``.

    ``Θ_αβ = Σ_k (2/n_{k−1}) (a_α·a_β) (δ_α·δ_β)`` over the weight matrices, with the signal a before each and the
    derivative δ of the output by what comes after it: derivatives are by Ŵ of unit variance, W = √(2/n) Ŵ.

    Args:
        generator: of all weights.
        networks: how many.
        widths: n_0, …, n_{L+1}.
        inputs: ``(inputs, n_0)``, in single precision.
    """
    draw = lambda m, n: (
        generator.standard_normal((networks, m, n), np.float32) * np.float32(np.sqrt(2 / n))
    )
    signal = np.broadcast_to(inputs.T, (networks, *inputs.T.shape))
    signals = [signal]
    gates = []
    weights = []
    for n, m in pairwise(widths[:-1]):
        weights.append(draw(m, n))
        preactivation = weights[-1] @ signals[-1]
        gates.append(preactivation > 0)
        signals.append(np.maximum(preactivation, 0))
    last = draw(1, widths[-2])
    gram = lambda array: array.swapaxes(1, 2) @ array
    kernel = 2 / widths[-2] * gram(signals[-1])
    slope = gates[-1] * last.swapaxes(1, 2)  # δ at the last hidden layer
    for layer in range(len(weights) - 1, -1, -1):
        kernel += 2 / widths[layer] * gram(signals[layer]) * gram(slope)
        if layer:
            slope = gates[layer - 1] * (weights[layer].swapaxes(1, 2) @ slope)  # δ ← gate ∘ Wᵀδ
    return kernel
