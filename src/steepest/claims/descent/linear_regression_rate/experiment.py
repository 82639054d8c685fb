"""Descents on least squares: exact, with momentum and with noisy gradients."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.dynamics import momentum_factor, quadratic_rates
from steepest.kit.points import equal

POINT_STEPS = 300
POINT_STARTS = 4


def follow(
    gram: kit.Values,
    start: kit.Values,
    step: float,
    momentum: float,
    steps: int,
    nesterov: bool = False,
) -> kit.Values:
    """Descend on ½(θ − θ*)ᵀ H (θ − θ*) for several problems at once, and return ‖θ_t − θ*‖.

    Args:
        gram: H of each problem, shape ``(problems, d, d)``.
        start: θ_0 − θ*, shape ``(problems, d)``.
        step: η.
        momentum: β.
        steps: how many.
        nesterov: whether the gradient is taken after the momentum's step.

    Returns:
        distances, shape ``(problems, steps + 1)``.
    """
    state = (start, start)
    lengths = np.empty((steps + 1, len(start)))
    for t in range(steps + 1):
        now, before = state
        lengths[t] = np.sqrt((now**2).sum(1))
        push = momentum * (now - before)
        at = now + push if nesterov else now
        slope = (gram @ at[..., None])[..., 0]
        state = (now + push - step * slope, now)  # θ + β(θ − θ₋) − η∇R
    return lengths.T


def noisy_descents(
    eigenvalues: kit.Values,
    schedules: kit.Values,
    noise: float,
    groups: int,
    size: int,
    rng: np.random.Generator,
) -> kit.Values:
    """Descend with noisy gradients from θ_0 − θ* = (1, …, 1), and return the mean of ‖θ_t − θ*‖² over each group.

    Args:
        eigenvalues: of the Hessian, shape ``(d,)``.
        schedules: step sizes, shape ``(schedules, T)``.
        noise: standard deviation of each coordinate of the gradient.
        groups: of independent runs, for each schedule.
        size: runs in a group.
        rng: of the noise.

    Returns:
        mean squares, shape ``(schedules, groups, T + 1)``.
    """
    count, last = schedules.shape
    theta = np.ones((count, groups, size, len(eigenvalues)))
    squares = np.empty((last + 1, count, groups))
    for t in range(last + 1):
        squares[t] = (theta**2).sum(-1).mean(-1)
        if t < last:
            slope = theta * eigenvalues + noise * rng.standard_normal(theta.shape)
            theta = theta - schedules[:, t, None, None, None] * slope
    return np.moveaxis(squares, 0, -1)


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
