"""Near an interpolating minimum, an SGD step multiplies the mean square error by a spectral radius.

The minimum fits all n examples. The error is the distance of the weights from this minimum. Its second moment is one to
which SGD leads. The radius is the spectral radius of a known matrix, which acts on second moments. Batches hold b of
the n examples, and p = (n − b)/(b(n − 1)) is the share of noise in the matrix. Where the radius exceeds one, SGD leaves
the minimum in the mean square. With single examples this happens at about a third of 2/λ₁, the limit for full
gradients, where λ₁ is the largest curvature.
"""

from typing import NamedTuple

import numpy as np

from steepest import kit
from steepest.claims.training.batch_step import experiment, theory
from steepest.claims.training.batch_step.point import BatchStepPoint


class Setting(NamedTuple):
    """The examples and the step sizes, with the second moment that each leads to."""

    x: kit.Values  # (n, d)
    steps: kit.Values  # (parts,)
    moments: kit.Values  # leading second moments, (batches, parts, d, d)


@kit.claim
class BatchStep(kit.Claim[Setting]):
    """Least squares that can be fitted exactly, with inputs of unequal sizes: one step of many runs."""

    n: kit.Count = kit.param(12, "examples", unit="examples", scope=kit.between(10, 16))
    dimension: kit.Count = kit.param(5, "d", scope=kit.between(4, 6))
    batches: tuple[kit.Count, ...] = kit.param(
        (1, 2, 4, 8), "b", unit="examples", scope=kit.choices((1, 2, 4, 8), (1, 3, 6), (2, 5, 9))
    )
    parts: tuple[kit.Positive, ...] = kit.param(
        (0.1, 0.3, 0.5, 0.7, 0.9, 1.1),
        "step sizes, over 2/λ₁",
        scope=kit.choices((0.1, 0.3, 0.5, 0.7, 0.9, 1.1), (0.15, 0.25, 0.4, 0.6, 0.8, 1.0)),
    )
    runs: kit.Count = kit.param(8000, "runs of each step size", unit="runs")
    seeds: kit.Seeds = kit.param(24, "groups of runs")

    kind = "theorem"
    says = {"multiplies the mean square error by a spectral radius": "growth"}
    tiny = {
        "n": 5,
        "dimension": 2,
        "batches": (1, 2),
        "parts": (0.2, 0.6, 1.1),
        "runs": 200,
        "seeds": 3,
    }
    full = {"runs": 100_000}
    out_of_scope = {"batches": (12, 1)}
    point = BatchStepPoint

    def axes(self):
        return {"batch": self.batches, "part": self.parts}

    def setting(self, key):
        rng = kit.numpy_generator(key)
        sizes = np.linspace(1.6, 0.4, self.dimension)
        x = sizes * rng.standard_normal((self.n, self.dimension))
        limit = 2 / np.linalg.eigvalsh(x.T @ x / self.n)[-1]
        steps = limit * np.array(self.parts)
        moments = [
            [theory.growth(x, step, theory.share(batch, self.n)).moment for step in steps]
            for batch in self.batches
        ]
        return Setting(x, steps, np.array(moments))

    def hypotheses(self, setting):
        yield kit.assume(
            "largest batch", max(self.batches), "<", self.n, "a batch of all examples has no noise"
        )
        yield kit.assume("examples over d", self.n / self.dimension, ">=", 1.5)

    def predict(self, setting):
        shares = [theory.share(batch, self.n) for batch in self.batches]
        return kit.law(growth=("batch part", self.factors(setting, shares)))

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        return kit.seen(
            growth=("seed batch part", self.growths(setting, rng, replaced=False)),
            replaced=("seed batch part", self.growths(setting, rng, replaced=True)),
        )

    def growths(self, setting: Setting, rng: np.random.Generator, *, replaced: bool) -> kit.Values:
        """Return growth over one step, ``(seeds, batches, parts)``."""
        growths = np.empty((self.seeds, len(self.batches), len(self.parts)))
        for seed, row, column in np.ndindex(growths.shape):
            growths[seed, row, column] = experiment.growth(
                rng,
                setting.x,
                setting.moments[row, column],
                setting.steps[column],
                self.batches[row],
                self.runs,
                replaced=replaced,
            )
        return growths

    def judge(self, law, seen):
        yield kit.follows(
            "growth",
            law.growth,
            seen.growth,
            0.06,  # exact in the mean; the interval takes 2 to 3 %
            label="growth of the mean square in a step",
        )

    def rivals(self, setting, law):
        with_replacement = [1 / b for b in self.batches]
        yield kit.rival(
            "2/λ₁ for every batch",
            "batches are right in the mean",
            id="full",
            growth=("batch part", self.factors(setting, [0.0] * len(self.batches))),
        )
        yield kit.rival(
            "p = 1/b",
            "examples are drawn independently",
            id="with_replacement",
            growth=("batch part", self.factors(setting, with_replacement)),
        )

    def factors(self, setting: Setting, shares: list[float]) -> kit.Values:
        """Return growth for some p, ``(shares, parts)``."""
        return np.array(
            [[theory.growth(setting.x, step, p).factor for step in setting.steps] for p in shares]
        )

    def controls(self, seen):
        yield kit.control(
            "batches with replacement",
            "a batch may hold an example twice",
            id="replaced",
            growth=seen.replaced,
        )

    def figure(self, law, seen, rivals):
        parts = np.array(self.parts)
        middle = {"part": parts[len(parts) // 2]}
        in_the_middle = lambda growth: growth.sel(middle, drop=True)
        wrong = (
            {
                name: in_the_middle(rivals[id].growth)
                for name, id in (("p = 1/b", "with_replacement"), ("full gradients", "full"))
            }
            if rivals
            else {}
        )
        yield kit.curves(
            "Smaller batches: the mean square grows from smaller steps on",
            law.growth,
            seen.growth,
            over="part",
            by="batch",
            x="step over 2/λ₁",
            y="growth of the mean square in a step",
            name="b = {}",
            more=(kit.context_curve(parts, np.ones_like(parts), "one"),),
            log="y",
        )
        yield kit.curves(
            f"Batches of {self.n} examples without replacement, at {middle['part']:g} of 2/λ₁",
            in_the_middle(law.growth),
            in_the_middle(seen.growth),
            over="batch",
            x="batch b",
            y="growth of the mean square in a step",
            rivals=wrong,
            log="xy",
        )
