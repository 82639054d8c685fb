"""The rate of a descent that was seen, and a point of the diagram of step and momentum."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.dynamics import momentum_factor, quadratic_rates
from steepest.kit.points import equal

POINT_STEPS = 300
POINT_STARTS = 4


def late_rate(path: kit.Values) -> kit.Values:
    """Return the rate at which each distance falls, over the last quarter of what is above 1e-11, ``(problems,)``."""
    rates = []
    for lengths in path:
        end = int((lengths > 1e-11 * lengths[0]).sum())
        steps = np.arange(3 * end // 4, end)
        rates.append(-np.polyfit(steps, np.log(lengths[steps]), 1)[0])
    return np.array(rates)


@dataclass(frozen=True)
class LinearRegressionPoint(kit.Point):
    """Heavy ball at one step size and one momentum: the rate at which the distance falls."""

    step: kit.Positive
    momentum: kit.Fraction
    kappa: kit.Positive
    dimension: kit.Count

    batched = ("step", "momentum")
    diagram = {"step": "linear:0.1:4.1:33", "momentum": "linear:0:0.95:20"}
    base = {"dimension": 10}
    diagram_remarks = (
        "The rate is −log of the factor a step; it is negative where descent diverges. Lines: the triangle "
        "ηλ_max < 2(1 + β), and its best point, at κ = 10.",
    )

    def eigenvalues(self) -> kit.Values:
        """Return the Hessian's eigenvalues, evenly spaced in logarithms."""
        return np.geomspace(1 / self.kappa, 1, self.dimension)

    def predict(self, setting):
        return kit.Prediction(
            rate=-np.log(momentum_factor(self.eigenvalues(), self.step, self.momentum))
        )

    def observe(self, setting, key):
        values = jnp.geomspace(1 / self.kappa, 1, self.dimension)

        def one(
            state: tuple[jax.Array, jax.Array], _: None
        ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
            now, before = state
            after = now - self.step * values * now + self.momentum * (now - before)
            # of both states, as complex roots turn and one state alone passes near zero
            size = jnp.log((after**2).sum(-1) + (now**2).sum(-1)) / 2
            return (after, now), size

        start = jax.random.normal(key, (POINT_STARTS, self.dimension))
        sizes = jax.lax.scan(one, (start, start), None, length=POINT_STEPS)[1]
        half = POINT_STEPS // 2
        return {"rate": (sizes[half - 1] - sizes[-1]) / half}

    def run_conditions(self, observed):
        edge = 2 * (1 + self.momentum)
        advice = "on the edge the distance neither falls nor grows"
        yield kit.assume(
            "distance of ηλ_max from 2(1 + β)", abs(self.step - edge), ">", 1e-6, advice
        )

    def judge(self, predicted, observed):
        # double roots, t ρ^t, cost log(2)/150 = 0.005, complex ones turn
        yield equal(
            "rate",
            float(predicted["rate"]),
            observed["rate"],
            0.02,
            absolute=True,
            label="rate −log(factor)",
        )

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"step", "momentum"}:
            return ()
        beta = np.linspace(0, 1, 50)
        best = quadratic_rates(self.eigenvalues()).heavy_ball
        lines = [
            (2 * (1 + beta), beta, "ηλ_max = 2(1 + β)", "dashed"),
            (np.array([best.step]), np.array([best.momentum]), "best", "points"),
        ]
        curves = []
        for steps, momenta, label, kind in lines:
            across = (steps, momenta) if x == "step" else (momenta, steps)
            curves.append(kit.predicted_curve(*across, label, kind=kind))
        return tuple(curves)
