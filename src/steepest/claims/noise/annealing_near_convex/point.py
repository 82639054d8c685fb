"""One point of the diagram of annealing-near-convex: walkers on the worst bumps at one temperature."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.noise._rippled_bowl import Bumps, walk
from steepest.claims.noise.annealing_near_convex.theory import worst_mean
from steepest.kit.points import equal


@dataclass(frozen=True)
class AnnealingPoint(kit.Point):
    """The mean of f under the worst function within δ, at one temperature in one dimension."""

    ratios: kit.Positive
    dimensions: kit.Count
    walkers: kit.Seeds
    hold: kit.Count

    batched = ("ratios",)
    diagram = {"ratios": "linear:0.25:3:12", "dimensions": "1,2,4,8,16"}
    base = {"walkers": 100, "hold": 600}
    labels = {"excess": "E f / (dT/2)"}
    contours = {"excess_predicted": (1.5, "predicted: 1.5 times the mean without bumps")}
    diagram_remarks = (
        "F = f ± δ with the sign that makes the mean of f largest, which the general bound limits to "
        "e^{2δ/T}: 20 at δ/T = 1.5, 400 at 3.",
    )

    def setting(self, key):
        return jnp.asarray(worst_mean(self.dimensions, self.ratios) * self.dimensions / 2)

    def predict(self, setting):
        return kit.Prediction(excess=worst_mean(self.dimensions, self.ratios))

    def observe(self, setting, key):
        # in units of T: f, F and δ over T
        d = self.dimensions
        bumps = Bumps(d, 0.0, 0.0, self.ratios, setting, 0.0)
        steps = 2 * self.hold
        marks = np.arange(self.hold, steps + 1, 5)
        for_start, for_walk = jax.random.split(key)
        # starts of the law without bumps
        starts = jax.random.normal(for_start, (self.walkers, d))
        from_start = lambda start, key: walk(bumps, start, jnp.ones(steps), marks, key)
        heights = jax.vmap(from_start)(starts, kit.keys(for_walk, self.walkers))
        return {"excess": heights.mean(1) / (d / 2)}

    def run_conditions(self, observed):
        yield kit.assume("walkers", len(observed["excess"]), ">=", 3)

    def judge(self, predicted, observed):
        # the interval is 2 to 8 %
        yield equal("excess", predicted["excess"], observed["excess"], 0.1)
