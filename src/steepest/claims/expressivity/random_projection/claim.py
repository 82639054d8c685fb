"""A random map to 32 n ln 2 dimensions keeps the distances of 2ⁿ points up to a factor of two.

This is the lemma of Johnson and Lindenstrauss at ε = ½. Images of unit vectors have nearly independent distances, and
the squared stretch of a pair is a χ² variable over its m degrees of freedom. So the smallest and the largest stretch of
k unit vectors are quantiles at one of the k²/2 pairs.
"""

from math import ceil, log
from typing import Annotated

import jax
import numpy as np

from steepest import kit
from steepest.claims.expressivity.random_projection.experiment import (
    Dimension,
    Points,
    ProjectionPoint,
    stretches,
)
from steepest.geometry import projection_distortion


@kit.claim
class RandomProjection(kit.Claim[None]):
    """Gaussian maps of unit vectors, whose distances are measured before and after."""

    points: tuple[Points, ...] = kit.param(
        (64, 256, 512),
        "k, unit vectors that are projected",
        scope=kit.choices((64, 256, 512), (32, 128, 512)),
    )
    dimensions: tuple[Dimension, ...] = kit.param(
        (128, 512),
        "m, for each k",
        scope=kit.choices((128, 512), (128, 256, 512), (200, 400), why="extremes of fewer spread"),
    )
    bits: Annotated[int, kit.Within(6, 9)] = kit.param(
        9,
        "largest n of the 2ⁿ points that keep half of their distances, from 4 on",
        unit="bits",
        scope=kit.choices(8, 9),
    )
    draws: kit.Seeds = kit.param(20, "random maps of each kind")

    kind = "theorem"
    says = {"keeps the distances of 2ⁿ points up to a factor of two": "half"}
    tiny = {"points": (16, 32), "dimensions": (64, 128), "bits": 6, "draws": 3}
    full = {"draws": 40}
    out_of_scope = {"dimensions": (32, 128)}
    point = ProjectionPoint

    def axes(self):
        return {"points": self.points, "dimension": self.dimensions, "bits": self._counted}

    @property
    def _counted(self) -> tuple[int, ...]:
        return tuple(range(4, self.bits + 1))

    def hypotheses(self, setting):
        least = min(self.dimensions)
        yield kit.assume("smallest m", least, ">=", 64, "extremes of fewer spread")
        yield kit.assume(
            "smallest k", min(self.points), ">=", 16, "the law is of extremes of many pairs"
        )

    def predict(self, setting):
        low, high = np.moveaxis(self._extremes(self.points), -1, 0)
        return kit.law(low=("points dimension", low), high=("points dimension", high), half=0.5)

    def _extremes(self, counts: tuple[int, ...]) -> np.ndarray:
        """Return the law of the smallest and of the largest stretch, ``(counts, dimensions, 2)``."""
        return np.array([[projection_distortion(k, m) for m in self.dimensions] for k in counts])

    def observe(self, setting, key):
        rng = kit.numpy_generator(jax.random.split(key)[0])
        several = lambda x, m: [stretches(x, m, rng) for _ in range(self.draws)]
        projected = np.array([[several(k, m) for m in self.dimensions] for k in self.points])
        enough = np.array([several(2**n, ceil(32 * log(2) * n)) for n in self._counted])
        few = np.array([several(2**n, 4 * n) for n in self._counted])
        return kit.seen(
            low=("points dimension seed", projected[..., 0]),
            high=("points dimension seed", projected[..., 1]),
            kept=("bits seed", enough[..., 0] / enough[..., 1]),
            kept_by_few=("bits seed", few[..., 0] / few[..., 1]),
        )

    def judge(self, law, seen):
        yield kit.follows("low", law.low, seen.low, 0.05, label="smallest stretch of unit vectors")
        yield kit.follows(
            "high", law.high, seen.high, 0.05, label="largest stretch of unit vectors"
        )
        yield kit.at_least(
            "half",
            law.half,
            seen.kept.min(),
            label="2^n points in ⌈32 n ln 2⌉ dimensions: smallest over largest stretch, the least",
        )

    def rivals(self, setting, law):
        leading = (8 * np.log(law.points) / law.dimension) ** 0.5
        # extremes of k pairs, as if each point had one partner
        fewer = self._extremes(tuple(ceil((2 * k) ** 0.5) for k in self.points))
        yield kit.rival(
            "squared stretches 1 ± √(8 ln k/m)",
            "it is the lemma's own constant",
            id="leading_order",
            low=(1 - leading).clip(min=0.01) ** 0.5,
            high=(1 + leading) ** 0.5,
        )
        yield kit.rival(
            "extremes of k numbers, not of k²/2",
            "there are k points",
            low=("points dimension", fewer[..., 0]),
            high=("points dimension", fewer[..., 1]),
        )

    def controls(self, seen):
        yield kit.control(
            "2^n points in 4n dimensions",
            "the constant may be less than 32 ln 2, not 4",
            kept=seen.kept_by_few,
        )

    def figure(self, law, seen, rivals):
        yield kit.curves(
            "The smallest stretch of unit vectors depends on k and m",
            law.low,
            seen.low,
            over="points",
            by="dimension",
            x="points k",
            y="smallest stretch",
            name="m = {}",
            rivals={"leading order": rivals["leading_order"].low},
            log="x",
        )
