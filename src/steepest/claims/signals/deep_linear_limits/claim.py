"""Depth and width do not commute: the size of a deep linear network depends on Σ 1/n_l, at one width L/n.

A vector that passes L Gaussian n × n matrices has length (Π χ²_n/n)^{1/2} in law: one when n → ∞ first, zero when
L → ∞ first, and lognormal in between. Where widths differ the narrow layers count: Σ 1/n_l takes the place of L/n, and
no mean width does. Data and dimension do not commute either: the spectrum of XXᵀ/n_0 is the
Marchenko–Pastur law of P/n_0.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import polygamma, psi
from scipy.stats import chi2, kstest, norm

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    assume,
    bound,
    compiled,
    equal,
    exponent,
    keys,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.kernels import marchenko_pastur_cdf, marchenko_pastur_edges

POINTS = 9  # of a curve in the figure
BAND = "95 % band of an empirical distribution"


@dataclass(frozen=True)
class DeepLinearLimits(Claim):
    """Unit vectors through products of Gaussian matrices; spectra of sample covariances."""

    widths: tuple[Count, ...] = (8, 16, 32)  # width n of all layers [neurons]
    alternating: tuple[Count, Count] = (
        8,
        64,
    )  # widths of layers in turn, of a network of its own [neurons]
    aspect: Positive = 2.0  # largest Σ 1/n_l, at which the law is judged for every network [1]
    shallow: Count = 4  # layers at which the limit of width is judged [layers]
    # layers at which the limit of depth is judged, for the smallest width [layers]
    deep: Count = 256
    networks: Count = 200  # random networks in each group [1]
    groups: Seeds = 20  # groups, over which intervals are taken [1]
    alpha: Positive = 0.5  # P/n_0 [1]
    dimension: Count = 512  # input dimension n_0 [1]
    spectra: Seeds = 10  # sample covariances [1]

    kind = "limit"
    statement = (
        r"\|\theta\|\overset{d}{=}\Big(\prod_{l=1}^{L}\frac{\chi^2_{n}}{n}\Big)^{1/2},\quad "
        r"\mathbb{E}\log\|\theta\|=\frac{L}{2}\Big(\psi\big(\tfrac n2\big)-\log\tfrac n2\Big)\approx-\frac{L}{2n},"
        r"\quad "
        r"\operatorname{Var}\log\|\theta\|=\frac{L}{4}\psi_1\big(\tfrac n2\big)\approx\frac{L}{2n}"
    )
    headline = (
        *(f"{moment}_{i}" for i in range(3) for moment in ("mean", "variance")),
        "alternating_mean",
        "alternating_variance",
        "rate_deep",
    )
    source = "Lecture of 7 December in [@hanin2022]; [@hanin2023]"
    corrections = (
        "The notes print log‖θ‖ ≈ N(−L/4n, L/4n), from a variance 1/n of χ²_n/n; that variance is 2/n, and both "
        "numbers are L/2n.",
        "The notes' product runs over l = 1, …, L. With variance one over fan-in there is one factor for each weight "
        "matrix: a network with L hidden layers has L + 1, the input's χ²_{n_0}/n_0 among them. Here L counts "
        "matrices.",
        "The notes print the Marchenko–Pastur density over 2π · 2x; it is over 2παx. As printed its mass is α/2.",
    )
    remarks = (
        "Vectors are multiplied by explicit matrices and rescaled to length one after each, and the logarithms of the "
        "lengths added, so that nothing underflows.",
        "Distances are Kolmogorov's, with the band of Dvoretzky, Kiefer, Wolfowitz and Massart for independent "
        "networks. At width 8 the exact law is itself at a few hundredths from the normal one.",
        "The network of alternating widths has (L/2)(1/8 + 1/64) where others have L/n. With the mean width, 36, its "
        "L/n would be 2.5 times smaller, with the geometric mean 1.6 times.",
        "The exponent −1/2 is that of large widths; between widths 8 and 32 the exact spread √(L ψ₁(n/2))/2 falls with "
        "exponent −0.534.",
        "Version 1 had equal widths only. Version 2 adds alternating widths and changes nothing else.",
    )
    version = 2
    tiny = {
        "widths": (8, 12, 16),
        "deep": 80,
        "networks": 20,
        "groups": 4,
        "dimension": 256,
        "spectra": 3,
    }
    out_of_scope = {"alpha": 1.5}
    full = {"widths": (8, 16, 32, 64), "networks": 400, "deep": 1024, "dimension": 2048}

    def hypotheses(self, setting: None) -> list[Hypothesis]:
        return [
            assume(
                "α = P/n_0", self.alpha, "<", 1, "the theorem is for fewer data than dimensions"
            ),
            assume("number of data P", self.rows, ">=", 100, "the law is for large P and n_0"),
            assume(
                "smallest width",
                min(self.widths),
                ">=",
                8,
                "the logarithm is nearly normal for large widths",
            ),
            assume(
                "L/n of the limit of depth",
                self.deep / min(self.widths),
                ">=",
                10,
                "choose a larger --deep",
            ),
            assume("widths", len(set(self.widths)), ">=", 3, "an exponent is fitted over them"),
            assume(
                "ratio of alternating widths",
                max(self.alternating) / min(self.alternating),
                ">=",
                4,
                "means of widths must differ",
            ),
        ]

    @property
    def rows(self) -> int:
        """Return P, the number of data."""
        return max(1, round(self.alpha * self.dimension))

    def layers(self, width: int) -> int:
        """Return L at the judged ratio L/n."""
        return max(2, round(self.aspect * width))

    @property
    def pairs(self) -> int:
        """Return how many times two layers of alternating widths follow each other at the judged Σ 1/n_l."""
        return max(1, round(self.aspect / sum(1 / n for n in self.alternating)))

    def predict(self, setting: None) -> Prediction:
        n = np.array(self.widths)
        depths = np.array([self.layers(width) for width in self.widths])
        turns = np.array(self.alternating)
        grid = np.linspace(0, 1.5 * marchenko_pastur_edges(self.alpha)[1], 4001)
        return Prediction(
            mean=("width", depths / 2 * (psi(n / 2) - np.log(n / 2))),
            variance=("width", depths / 4 * polygamma(1, n / 2)),
            limit=("moment width", [-depths / (2 * n), depths / (2 * n)]),
            factors=("width", 2 / n),
            alternating_mean=self.pairs / 2 * (psi(turns / 2) - np.log(turns / 2)).sum(),
            alternating_variance=self.pairs / 4 * polygamma(1, turns / 2).sum(),
            rate=(psi(min(n) / 2) - np.log(min(n) / 2)) / 2,
            spread_exponent=-0.5,
            grid=("grid", grid),
            cdf=("grid", marchenko_pastur_cdf(grid, self.alpha)),
        )

    def observe(self, setting: None, key: Key) -> Observation:
        for_spectra, for_turns, *seeds = keys(key, len(self.widths) + 2)
        runs = []
        for n, k in zip(self.widths, seeds, strict=True):
            layers = self.layers(n)
            steps = self.lengths(
                k, (n,), max(layers, self.shallow, self.deep if n == min(self.widths) else 0)
            )
            steps = np.asarray(steps, float)  # (group, network, layer)
            ends = [steps[..., :depth].sum(-1) for depth in (1, self.shallow, layers // 2, layers)]
            factors = np.exp(2 * steps[..., :layers]).var((1, 2), ddof=1)
            path = np.cumsum(steps[..., :layers].mean((0, 1)))[
                np.linspace(0, layers - 1, POINTS).astype(int)
            ]
            runs.append((np.stack(ends), factors, path, steps[..., : self.deep].mean((1, 2))))
        logs, factors, paths, rates = zip(*runs, strict=True)

        def spectrum(key: Key) -> jax.Array:
            x = jax.random.normal(key, (self.rows, self.dimension))
            return jnp.linalg.eigvalsh(x @ x.T / self.dimension)

        spectra = lambda key: jax.lax.map(spectrum, keys(key, self.spectra))
        return Observation(
            # log‖θ‖ after one layer, a few, half of them and all
            logs=("width end group network", logs),
            factors=("width group", factors),
            paths=("width point", paths),
            rate=("group", rates[int(np.argmin(self.widths))]),
            alternating=("group network", self.alternating_logs(for_turns)),
            eigenvalues=("seed eigenvalue", compiled(spectra)(for_spectra)),
        )

    def alternating_logs(self, key: Key) -> np.ndarray:
        """Return log‖θ‖ of the networks whose layers have two widths in turn, ``(groups, networks)``."""
        return np.asarray(self.lengths(key, self.alternating, self.pairs), float).sum(-1)

    def lengths(self, key: Key, turns: tuple[int, ...], rounds: int) -> jax.Array:
        """Return the logarithms of the factors by which a round of layers changes the length of a vector.

        A round has a layer of each width, and the vector starts with the first. Variances are one over a layer's own
        width, so that a factor is (χ²_{n_l}/n_l)^½; one over fan-in does the same to the root mean square.
        The shape is ``(groups, networks, rounds)``.
        """

        def layer(v: jax.Array, key: Key) -> tuple[jax.Array, jax.Array]:
            total = jnp.float32(0)
            for n, seed in zip(
                turns[1:] + turns[:1], jax.random.split(key, len(turns)), strict=True
            ):
                matrix = jax.random.normal(seed, (n, len(v)), jnp.float32)
                v = matrix @ v / np.float32(n**0.5)
                length = jnp.linalg.norm(v)
                v = v / length
                total = total + jnp.log(length)
            return v, total

        start = jnp.zeros(turns[0], jnp.float32).at[0].set(1)
        one = lambda key: jax.lax.scan(layer, start, jax.random.split(key, rounds))[1]

        def every(key: Key) -> jax.Array:
            seeds = keys(key, self.groups * self.networks).reshape(self.groups, self.networks)
            return jax.lax.map(jax.vmap(one), seeds)

        return compiled(every)(key)

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        checks = []
        radius = np.sqrt(np.log(40) / (2 * self.groups * self.networks))
        for i, n in enumerate(self.widths):
            first, _, half, logs = observed["logs"][i]
            mean, variance = predicted["limit"][:, i]
            distance = kstest(logs.ravel(), norm(mean, np.sqrt(variance)).cdf).statistic
            one = kstest(n * np.exp(2 * first.ravel()), chi2(n).cdf).statistic
            at = f"n = {n}, L = {self.layers(n)}"
            checks += [
                equal(
                    f"mean_{i}",
                    predicted["mean"][i],
                    logs.mean(1),
                    0.1,
                    label=f"mean of log‖θ‖, {at}",
                ),
                equal(
                    f"variance_{i}",
                    predicted["variance"][i],
                    logs.var(1, ddof=1),
                    0.15,
                    label=f"variance of log‖θ‖, {at}",
                ),
                bound(
                    f"law_distance_{i}",
                    _ends(distance, radius),
                    at_most=0.1,
                    aggregate="all",
                    note=BAND,
                    label=f"distance of log‖θ‖ to the law of L/n, {at}",
                ),
                bound(
                    f"factor_distance_{i}",
                    _ends(one, radius),
                    at_most=0.1,
                    aggregate="all",
                    note=BAND,
                    label=f"distance of a layer's factor to χ²/n, n = {n}",
                ),
                equal(
                    f"factor_variance_{i}",
                    predicted["factors"][i],
                    observed["factors"][i],
                    0.1,
                    label=f"variance of a layer's factor, n = {n}",
                ),
                equal(
                    f"half_correlation_{i}",
                    0.0,
                    _correlation(half, logs - half),
                    0.1,
                    absolute=True,
                    label=f"correlation of first and second half, {at}",
                ),
            ]
        spread = observed["logs"][:, 1].std(-1, ddof=1).T  # (group, width)
        cdf = lambda x: np.interp(x, predicted["grid"], predicted["cdf"])
        distances = [kstest(values, cdf).statistic for values in observed["eigenvalues"]]
        turns = observed["alternating"]
        shape = " and ".join(map(str, self.alternating))
        return [
            *checks,
            equal(
                "alternating_mean",
                float(predicted["alternating_mean"]),
                turns.mean(1),
                0.1,
                label=f"mean of log‖θ‖, widths {shape} in turn",
            ),
            equal(
                "alternating_variance",
                float(predicted["alternating_variance"]),
                turns.var(1, ddof=1),
                0.15,
                label=f"variance of log‖θ‖, widths {shape} in turn",
            ),
            equal(
                "rate_deep",
                predicted["rate"],
                observed["rate"],
                0.1,
                label=f"log‖θ‖/L at L = {self.deep}, n = {min(self.widths)}",
            ),
            exponent(
                "spread_exponent",
                float(predicted["spread_exponent"]),
                self.widths,
                spread,
                0.1,
                label=f"spread of log‖θ‖ against width, L = {self.shallow}",
            ),
            bound(
                "spectrum_distance",
                distances,
                at_most=0.02,
                label="distance of the spectrum to Marchenko–Pastur",
            ),
        ]

    def rivals(self, setting: None, predicted: Prediction) -> list[Rival]:
        halves = {name: ("width", predicted[name] / 2) for name in ("mean", "variance", "factors")}
        still = ("width", 0 * predicted["mean"])
        layers = 2 * self.pairs

        def of_one_width(identifier: str, width: float, why: str, label: str) -> Rival:
            """Return what a network of one width and as many layers would do."""
            other = predicted.replace(
                alternating_mean=layers / 2 * (psi(width / 2) - np.log(width / 2)),
                alternating_variance=layers / 4 * polygamma(1, width / 2),
            )
            return Rival(identifier, other, why, label=label)

        return [
            Rival(
                "printed_normal",
                predicted.replace(**halves, limit=("moment width", predicted["limit"] / 2)),
                "as printed",
                label="log‖θ‖ is N(−L/4n, L/4n)",
            ),
            of_one_width(
                "mean_width",
                float(np.mean(self.alternating)),
                "the ratio of depth to width, with the mean of the widths",
                "L over the mean width, in place of Σ 1/n_l",
            ),
            of_one_width(
                "geometric_width",
                float(np.exp(np.mean(np.log(self.alternating)))),
                "lengths multiply, and so do widths",
                "L over the geometric mean width",
            ),
            Rival(
                "width_first",
                predicted.replace(mean=still, rate=0.0),
                "n → ∞ first",
                label="‖θ‖ is near one at every depth",
            ),
            Rival(
                "inverse_width",
                predicted.replace(spread_exponent=-1.0),
                "so falls the variance",
                label="the spread falls like 1/n",
            ),
            Rival(
                "printed_density",
                predicted.replace(cdf=("grid", predicted["cdf"] * self.alpha / 2)),
                "as printed",
                label="the printed density, over 4πx",
            ),
            Rival(
                "dimension_first",
                predicted.replace(cdf=("grid", (predicted["grid"] >= 1).astype(float))),
                "n_0 → ∞ first",
                label="the sample covariance is the identity",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        logs = observed["logs"]
        few = logs.copy()
        few[:, 0] = logs[:, 1]
        same = logs.copy()
        same[:, 2] = logs[:, 3] / 2
        dims = "width end group network"
        return [
            Control(
                "few_layers",
                observed.replace(logs=(dims, few)),
                "a product of χ² is no χ²",
                label=f"{self.shallow} layers in place of one",
            ),
            Control(
                "same_half",
                observed.replace(logs=(dims, same)),
                "the halves would be one and the same",
                label="half of the logarithm in place of half of the layers",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        curves = []
        values = np.sort(observed["eigenvalues"].ravel())
        for i, n in enumerate(self.widths):
            shade = i / max(1, len(self.widths) - 1)
            path = observed["paths"][i]
            depths = np.linspace(0, self.layers(n) - 1, len(path)).astype(int) + 1
            curves.append(observed_curve(depths / n, path, f"n = {n}", shade=shade))
        ratio = np.array([0, self.aspect])
        return (
            panel(
                "Only L/n matters",
                "L/n",
                "mean of log‖θ‖",
                *curves,
                predicted_curve(ratio, -ratio / 2, "−L/2n"),
                rival_curve(ratio, -ratio / 4, "−L/4n"),
            ),
            panel(
                f"Spectrum of XXᵀ/n_0, α = {self.alpha:g}",
                "eigenvalue",
                "share below",
                observed_curve(
                    values, np.arange(1, len(values) + 1) / len(values), "observed", kind="steps"
                ),
                predicted_curve(predicted["grid"], predicted["cdf"], "Marchenko–Pastur"),
                rival_curve(
                    predicted["grid"], predicted["cdf"] * self.alpha / 2, "density as printed"
                ),
            ),
        )


def _ends(distance: float, radius: float) -> np.ndarray:
    """Return the ends of a band around a Kolmogorov distance, and the distance."""
    return np.array([max(0.0, distance - radius), distance, distance + radius])


def _correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the correlation within each group of networks, ``(groups, networks)`` to ``(groups,)``."""
    return np.array([np.corrcoef(x, y)[0, 1] for x, y in zip(a, b, strict=True)])
