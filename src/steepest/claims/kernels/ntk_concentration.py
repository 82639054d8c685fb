"""A wide network's hidden-feature kernel is within C √(m/n) of its mean, as matrix Bernstein says.

For |σ| ≤ 1 the kernel K_n of n random neurons on m inputs is a mean of n independent matrices of norm at most m. Its
distance from E K falls like n^{-1/2}. Matrix Bernstein bounds the probability of large distances; without the
dimension or the ½ in the exponent, as printed in the notes, it is false. The rate √(m/n) is that of inputs with
‖E K‖ = O(1), such as orthonormal ones; in general it is √(m‖E K‖/n), which on digits is near m/√n.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import binomtest

from steepest.activations import activation, gaussian_mean
from steepest.arrays import Observation, Prediction
from steepest.claims._claim import Claim, Count, Positive, Seeds, keys
from steepest.data import digits
from steepest.intervals import Interval
from steepest.judging import Check, Hypothesis, Rival, bound, decide, exponent, require
from steepest.kernels import bernstein_tail, hidden_kernel, sampled_hidden_kernel
from steepest.panels import Panel, panel, rival, seen, theory
from steepest.types import Key

SETS = ("orthonormal inputs", "digits")


class Setting(NamedTuple):
    """Unit inputs of each set and their expected kernels, as many as the largest size; smaller sizes are corners."""

    inputs: tuple[jax.Array, ...]  # (m, d) each
    expected: tuple[jax.Array, ...]  # (m, m) each


@dataclass(frozen=True)
class NtkConcentration(Claim):
    """Random hidden layers on orthonormal inputs and on digits of unit length."""

    activation: str = "erf"  # σ with |σ| ≤ 1 [name]
    inputs: Count = 16  # m where the width varies [1]
    widths: tuple[Count, ...] = (256, 512, 1024, 2048, 4096)  # n [neurons]
    sizes: tuple[Count, ...] = (16, 32, 64, 128)  # m where the inputs vary [1]
    size_width: Count = 8192  # n there [neurons]
    seeds: Seeds = 100  # networks where the width varies [1]
    size_seeds: Seeds = 20  # networks where the inputs vary [1]
    tail_width: Count = 512  # n of the failure rates [neurons]
    trials: Count = 2000  # networks for the failure rate on m orthonormal inputs [1]
    trials_one: Count = 20000  # networks for the failure rate on one input [1]
    deviations: tuple[Positive, ...] = (1.0, 1.5, 2.0, 3.0, 4.0)  # t in units of √U [1]

    statement = (
        r"\mathbb{P}\big(\|K_n-\mathbb{E}K\|>t\big)\le 2m\,\exp\!\Big(-\frac{t^2/2}{U+Lt/3}\Big),\quad"
        r" L=\frac{m}{n},\quad U\le\frac{m}{n}\|\mathbb{E}K\|\;\Longrightarrow\;\|K_n-\mathbb{E}K\|=O(n^{-1/2})"
    )
    source = "ORF 543, lecture 10/10; Tropp 2015, theorem 6.1.1"
    corrections = (
        "The notes print P(‖Z‖ > t) ≤ exp(−t²/(U + Lt/3)). The dimension 2m in front and the ½ in the exponent are "
        "missing, and neither can be left out: the failure rates here exceed the bound without either.",
        "The notes' U ≤ C m/n holds where ‖E K‖ = O(1) (nearly orthogonal inputs and E σ = 0). In general "
        "U ≤ (m/n) ‖E K‖, and ‖E K‖ may be of order m: on digits the distance grows like m/√n, not √(m/n).",
        "‖S_j‖ ≤ ‖K_j‖/n is not true for centred S_j; ‖S_j‖ ≤ max(‖K_j‖, ‖E K‖)/n ≤ m/n is (both are positive).",
        "With t = √(m/n) the notes' last bound is a constant below one: for high probability t must grow by a factor "
        "√log m, by the dimension that was left out.",
    )
    remarks = (
        "On orthonormal inputs the entries of one neuron's features are independent, and for odd σ "
        "U = (μ₄ + (m − 2) μ₂²)/n exactly, with μ_k the moments of σ(z); the failure rates are taken there.",
        "On orthonormal inputs the distance is near 2√(m/n) + m/n times μ₂ for large m; at these sizes its exponents "
        "lie a little above ½ in m (0.56) and below −½ in n (−0.51), inside the margins.",
        "Matrix Bernstein is far from tight: at moderate t it exceeds one and says nothing, at large t no failure is "
        "seen and the check rests on the upper end of the binomial interval.",
    )
    full = {
        "seeds": 400,
        "size_seeds": 60,
        "trials": 20_000,
        "trials_one": 200_000,
        "widths": (256, 512, 1024, 2048, 4096, 8192),
    }
    beyond = {"activation": "relu"}

    def setting(self, key: Key) -> Setting:
        largest, sigma = max(*self.sizes, self.inputs), activation(self.activation)
        raw = digits(n=largest, key=key).x
        inputs = (jnp.eye(largest), raw / jnp.linalg.norm(raw, axis=1, keepdims=True))
        return Setting(inputs, tuple(hidden_kernel(sigma, x).value for x in inputs))

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        sigma, grid = activation(self.activation), jnp.linspace(-50, 50, 20_001)
        size, even = (float(jnp.abs(f).max()) for f in (sigma(grid), sigma(grid) + sigma(-grid)))
        return [
            require("largest |σ|", size, "<=", 1, "choose a bounded --activation, such as erf"),
            require("largest |σ(z) + σ(−z)|", even, "<=", 1e-12, "the exact U is that of an odd σ"),
        ]

    def variance(self, inputs: int) -> float:
        """The variance U on orthonormal inputs, times n."""
        sigma = activation(self.activation)
        second, fourth = (float(gaussian_mean(lambda z, p=p: sigma(z) ** p, 1.0, sigma.kinks).value) for p in (2, 4))
        return fourth + (inputs - 2) * second**2

    def predict(self, setting: Setting) -> Prediction:
        sizes, found = np.array(self.sizes), []
        for kernel in setting.expected:
            norms = np.array([np.linalg.norm(kernel[:m, :m], 2) for m in (self.inputs, *sizes)])
            found.append(norms)
        n, norms = self.tail_width, np.array(found)
        spread = np.array([np.sqrt(self.variance(m) / n) for m in (self.inputs, 1)])
        t = np.outer(spread, self.deviations)
        tails = [bernstein_tail(t[i], m, spread[i] ** 2, m / n) for i, m in enumerate((self.inputs, 1))]
        scale = np.sqrt(sizes * norms[:, 1:])
        widths = np.array(self.widths)
        log = np.log(2 * self.inputs)
        mean = np.sqrt(2 * self.inputs * norms[:, :1] / widths * log) + self.inputs * log / (3 * widths)
        return Prediction(
            width_exponent=-0.5,
            size_exponent=("set", [np.polyfit(np.log(sizes), np.log(one), 1)[0] for one in scale]),
            mean=("set width", mean),  # of the distance, at most: Tropp (6.1.5) for both signs
            spread=("case", spread),
            tail=("case deviation", np.minimum(1, tails)),
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        for_widths, for_sizes, for_tail, for_one = jax.random.split(key, 4)
        sets, m, n = zip(setting.inputs, setting.expected, strict=True), self.inputs, self.tail_width
        by_width, by_size = [], []
        for x, mean in sets:
            by_width.append(self.distances(for_widths, self.seeds, x[:m], mean, self.widths, (m,)))
            by_size.append(self.distances(for_sizes, self.size_seeds, x, mean, (self.size_width,), self.sizes))
        x, mean = setting.inputs[0], setting.expected[0]
        return Observation(
            by_width=("set seed width", jnp.stack(by_width)),
            by_size=("set seed size", jnp.stack(by_size)),
            many=("trial", self.distances(for_tail, self.trials, x[:m], mean, (n,), (m,))[:, 0]),
            one=("trial_one", self.distances(for_one, self.trials_one, x[:1], mean, (n,), (1,))[:, 0]),
        )

    def distances(
        self, key: Key, count: int, x: jax.Array, mean: jax.Array, widths: tuple[int, ...], sizes: tuple[int, ...]
    ) -> jax.Array:
        """‖K_n − E K‖ for the first n neurons and the first m inputs of each network, (networks, widths × sizes)."""
        x = jnp.linalg.qr(x.T, mode="r").T  # Gaussian weights see no more than the angles between the inputs
        sigma = activation(self.activation)

        def one(key: Key) -> jax.Array:
            weights = jax.random.normal(key, (max(widths), x.shape[1]))
            kernels = [sampled_hidden_kernel(sigma, x, weights[:n]) for n in widths]
            corners = [(kernel - mean[: len(x), : len(x)])[:m, :m] for kernel in kernels for m in sizes]
            return jnp.array([jnp.abs(jnp.linalg.eigvalsh(corner)).max() for corner in corners])

        return jax.jit(lambda each: jax.lax.map(one, each))(keys(key, count))

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        checks = []
        for i, name in enumerate(SETS):
            by_width, by_size = observed["by_width"][i], observed["by_size"][i]
            goal = float(predicted["size_exponent"][i])
            checks += [
                exponent(f"distance against n, {name}", float(predicted["width_exponent"]), self.widths, by_width, 0.1),
                exponent(f"distance against m, {name}", goal, self.sizes, by_size, 0.15),
                bound(f"mean distance / Bernstein's, {name}", (by_width / predicted["mean"][i]).max(1), at_most=1.0),
            ]
        for i, (m, trials) in enumerate(((self.inputs, observed["many"]), (1, observed["one"]))):
            for j, s in enumerate(self.deviations):
                failures = int((trials > s * predicted["spread"][i]).sum())
                name = f"failure rate at t = {s:g} √U, m = {m}"
                checks.append(_rate(name, failures, len(trials), float(predicted["tail"][i, j])))
        return checks

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        n, sizes, spread = self.tail_width, np.array([[self.inputs], [1]]), predicted["spread"][:, None]
        t, u, largest = spread * np.array(self.deviations), spread**2, sizes / n
        fall = t**2 / (u + largest * t / 3)
        tail = lambda values: predicted.replace(tail=("case deviation", np.minimum(1, values)))
        return [
            Rival("exponent −1 in n", predicted.replace(width_exponent=-1.0), "each neuron contributes 1/n"),
            Rival("√(m/n) for any inputs", predicted.replace(size_exponent=("set", [0.5, 0.5])), "as in the notes"),
            Rival("Bernstein as printed", tail(np.exp(-fall)), "neither dimension nor ½"),
            Rival("Bernstein without the dimension", tail(np.exp(-fall / 2)), "true for one-sided numbers"),
            Rival("Bernstein without the ½", tail(2 * sizes * np.exp(-fall)), "as in the notes' exponent"),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        widths, sizes, s = np.array(self.widths), np.array(self.sizes), np.array(self.deviations)
        falls, grows, tails = [], [], []
        for i, name in enumerate(SETS):
            mean, size, shade = observed["by_width"][i].mean(0), observed["by_size"][i].mean(0), float(i)
            falls += [seen(widths, mean, name, shade=shade), theory(widths, predicted["mean"][i], shade=shade)]
            law = size[0] * (sizes / sizes[0]) ** predicted["size_exponent"][i]
            grows += [seen(sizes, size, name, shade=shade), theory(sizes, law, shade=shade)]
        grows.append(rival(sizes, observed["by_size"][1, :, 0].mean() * np.sqrt(sizes / sizes[0]), "√m"))
        for i, trials in enumerate((observed["many"], observed["one"])):
            rate = np.array([(trials > x * predicted["spread"][i]).mean() for x in s])
            tails += [seen(s, np.where(rate > 0, rate, np.nan), f"m = {(self.inputs, 1)[i]}", shade=float(i)),
                theory(s, predicted["tail"][i], shade=float(i))]  # fmt: skip
        tails.append(rival(s, np.exp(-(s**2)), "as printed"))
        return (
            panel("The distance falls like n^{-1/2}", "width n", "‖K − E K‖", *falls, log="xy"),
            panel("On digits it grows like m", "inputs m", "‖K − E K‖", *grows, log="xy"),
            panel("Failure rates stay below the bound", "t / √U", "probability", *tails, log="y", ylim=(1e-5, 2)),
        )


def _rate(name: str, failures: int, trials: int, at_most: float) -> Check:
    """Check that a probability, known by its binomial interval, stays below a bound."""
    exact = binomtest(failures, trials).proportion_ci(method="exact")
    interval = Interval(float(exact.low), float(exact.high), f"95% of {failures} in {trials} (Clopper and Pearson)")
    margin, note = Interval(-np.inf, at_most), "the bound says nothing here" if at_most >= 1 else ""
    return Check(name, "bound", at_most, failures / trials, interval, margin, decide(interval, margin), note)
