"""Least-squares risk peaks where features are as many as examples, and the best ridge has no peak.

The fit sees n examples, and p of D Gaussian features. The other features act as noise, and s² is the variance of this
noise together with the noise of the labels. For p below n the risk is s²(1 + p/(n − p − 1)). For p above n the fit has
the least norm of all fits that interpolate. Its risk is then ‖β_p‖²(1 − n/p) + s²(1 + n/(p − n − 1)), where β_p are the
weights of the p features.
"""

from collections.abc import Callable, Mapping

import numpy as np
import xarray

from steepest import kit
from steepest.claims.training.double_descent import experiment, theory
from steepest.claims.training.double_descent.point import DoubleDescentPoint

Law = Callable[[kit.Values, int, float, int], float]


@kit.claim
class DoubleDescent(kit.Claim[kit.Values]):
    """Regression on Gaussian features; the fit sees the first features, which matter most."""

    examples: tuple[kit.Count, ...] = kit.param(
        (16, 32), "n", unit="examples", scope=kit.choices((16, 32), (15, 31), (17, 33))
    )
    features: tuple[kit.Count, ...] = kit.param(
        (3, 9, 25, 40, 64, 128),
        "p, that a fit sees; the last is D",
        unit="features",
        scope=kit.choices((3, 9, 25, 40, 64, 128), (2, 8, 24, 42, 80, 160), (4, 9, 24, 48, 96)),
    )
    decay: kit.NonNegative = kit.param(
        1.0, "power of k by which squares of weights fall", scope=kit.between(0.5, 1.5)
    )
    noise: kit.Positive = kit.param(0.3, "σ, of labels", scope=kit.between(0.2, 0.6))
    runs: kit.Count = kit.param(400, "runs of each kind, a seed", unit="runs")
    seeds: kit.Seeds = kit.param(16, "groups of runs")

    kind = "theorem"
    says = {
        "peaks where features are as many as examples": "risk",
        "the best ridge has no peak": "ridge",
    }
    tiny = {"examples": (12,), "features": (2, 6, 18, 24), "runs": 20, "seeds": 3}
    full = {"runs": 5000}
    out_of_scope = {"features": (4, 30, 64), "runs": 10, "seeds": 3}
    point = DoubleDescentPoint

    @property
    def weights(self) -> kit.Values:
        """Return β, of length one, ``(D,)``."""
        squares = np.arange(1.0, max(self.features) + 1) ** -self.decay
        return np.sqrt(squares / squares.sum())

    def axes(self):
        return {"n": self.examples, "p": self.features}

    def setting(self, key):
        return self.weights

    def hypotheses(self, setting):
        apart = np.abs(np.subtract.outer(self.examples, self.features))
        yield kit.assume(
            "least |n − p|",
            int(apart.min()),
            ">=",
            4,
            "risks need a finite spread: choose other --features",
        )

    def predict(self, setting):
        return kit.law(
            risk=("n p", self.over_sizes(setting, theory.least_norm)),
            ridge=("n p", self.over_sizes(setting, theory.ridge)),
        )

    def over_sizes(self, weights: kit.Values, risk: Law) -> kit.Values:
        """Return a law's risk at each number of examples and of features, ``(n, p)``."""
        return np.array(
            [[risk(weights, p, self.noise, n) for p in self.features] for n in self.examples]
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        risk, ridge = self.measured(setting, rng, self.runs, unequal=False)
        # these are far off, and need not be known as well
        unequal, unequal_ridge = self.measured(setting, rng, max(1, self.runs // 4), unequal=True)
        return kit.seen(
            risk=("seed n p", risk),
            ridge=("seed n p", ridge),
            unequal=("seed n p", unequal),
            unequal_ridge=("seed n p", unequal_ridge),
        )

    def measured(
        self, weights: kit.Values, rng: np.random.Generator, runs: int, *, unequal: bool
    ) -> tuple[kit.Values, kit.Values]:
        """Return risks without and with a ridge, each ``(seeds, n, p)``."""
        shape = (self.seeds, len(self.examples), len(self.features))
        plain = np.empty(shape)
        ridge = np.empty(shape)
        for seed, row in np.ndindex(shape[:2]):
            n = self.examples[row]
            sample = experiment.draw(rng, weights, self.noise, n, runs, unequal=unequal)
            for place, penalized in ((plain, False), (ridge, True)):
                place[seed, row] = experiment.risks(
                    sample, weights, self.noise, self.features, penalized=penalized
                )
        return plain, ridge

    def judge(self, law, seen):
        yield kit.follows(
            "risk",
            law.risk,
            seen.risk,
            0.06,  # exact in the mean; the interval takes 3 to 4 % near the peak
            label="risk of the fit of least norm",
        )
        yield kit.follows(
            "ridge",
            law.ridge,
            seen.ridge,
            0.03,  # to the next order; the interval takes 1 %
            label="risk with the best ridge",
        )

    def rivals(self, setting, law):
        def limit(weights: kit.Values, p: int, noise: float, n: int) -> float:
            signal, variance = theory.split(weights, p, noise)
            if p < n:
                return variance * (1 + p / (n - p))
            return signal * (1 - n / p) + variance * (1 + n / (p - n))

        def classical(weights: kit.Values, p: int, noise: float, n: int) -> float:
            return theory.split(weights, p, noise)[1] * (1 + p / n)

        def missing_is_bias(weights: kit.Values, p: int, noise: float, n: int) -> float:
            signal, variance = theory.split(weights, p, noise)
            if p < n:
                return variance + noise**2 * p / (n - p - 1)
            return signal * (1 - n / p) + variance + noise**2 * n / (p - n - 1)

        yield kit.rival(
            "γ/(1 − γ) and 1/(γ − 1), γ = p/n",
            "n and p are large",
            risk=("n p", self.over_sizes(setting, limit)),
        )
        yield kit.rival(
            "s²(1 + p/n)",
            "each feature adds as much variance",
            id="classical",
            risk=("n p", self.over_sizes(setting, classical)),
        )
        yield kit.rival(
            "the variance comes only from σ²",
            "what a fit cannot see does not disturb it",
            risk=("n p", self.over_sizes(setting, missing_is_bias)),
        )
        yield kit.rival("the same with a ridge", "least norm is ridge enough", ridge=law.risk)

    def controls(self, seen):
        yield kit.control(
            "examples of two lengths, the same on average",
            "the law is of Gaussian inputs",
            risk=seen.unequal,
            ridge=seen.unequal_ridge,
        )

    def figure(self, law, seen, rivals):
        wrong = {}
        if rivals:
            classical = rivals["classical"].risk.isel(n=-1, drop=True)
            wrong = {f"s²(1 + p/n), n = {self.examples[-1]}": classical}
        yield self.panel(
            "A peak where features are as many as examples",
            seen.risk,
            theory.least_norm,
            wrong,
            gap=2,
        )
        yield self.panel("With the best ridge: none", seen.ridge, theory.ridge, {}, gap=0)

    def panel(
        self,
        title: str,
        seen: xarray.DataArray,
        risk: Law,
        rivals: Mapping[str, xarray.DataArray],
        *,
        gap: int,
    ) -> kit.Panel:
        """Return measured risks over features, with a law between them too but for a gap around n."""
        curves = []
        for place, n in enumerate(self.examples):
            shade = place / max(1, len(self.examples) - 1)
            means = seen.isel(n=place).mean("seed").values
            curves.append(
                kit.observed_curve(
                    self.features, means, f"n = {n}", kind="points", shade=0.7 * shade
                )
            )
            for numbers in (range(2, n - gap + 1), range(n + gap, max(self.features) + 1)):
                between = [risk(self.weights, p, self.noise, n) for p in numbers]
                curves.append(kit.predicted_curve(np.array(numbers), between, shade=0.7 * shade))
        for label, wrong in rivals.items():
            curves.append(kit.rival_curve(self.features, wrong.values, label))
        return kit.panel(title, "features p of the fit", "risk", *curves, log="xy")
