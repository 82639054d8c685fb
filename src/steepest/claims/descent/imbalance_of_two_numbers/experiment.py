"""The flow and the descent of a product of two numbers, uv, to a target y, and a point of the diagram."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.dynamics import flow
from steepest.kit.points import equal


def start(imbalance: kit.Values, product: kit.Values) -> tuple[kit.Values, kit.Values]:
    """Return the positive u and v with u² − v² = δ and uv = p, δ ≥ 0."""
    size = (imbalance**2 + 4 * product**2) ** 0.5  # u² + v²
    u = ((size + imbalance) / 2) ** 0.5
    return u, product / u


def late_rate(
    imbalance: kit.Values, product: kit.Values, target: kit.Values, readings: kit.Values
) -> tuple[jax.Array, jax.Array]:
    """Return the rate of y − uv along the flow between two readings of log R_0/R, and whether the flow arrived."""
    path = flow(
        lambda numbers: (target - numbers[0] * numbers[1]) ** 2 / 2,
        start(imbalance, product),
        readings,
        "log-risk",
        rtol=1e-10,
        atol=1e-14,
        max_steps=20_000,
    )
    # R is the square of the residual: log R falls twice as fast
    return (readings[1] - readings[0]) / 2 / (path.time[1] - path.time[0]), path.ok


def share_lost(
    imbalances: kit.Values, product: float, target: float, rates: kit.Values, steps: float
) -> kit.Values:
    """Return the share of δ = u² − v² that so many steps of descent on (y − uv)²/2 lose, ``(imbalances, rates)``."""
    delta = np.asarray(imbalances)[:, None] + 0 * rates
    u, v = start(delta, product)
    for _ in range(round(steps)):
        move = rates * (target - u * v)
        moved = u + move * v
        v = v + move * u
        u = moved
    return 1 - (u**2 - v**2) / delta


@dataclass(frozen=True)
class ScalarPoint(kit.Point):
    """The rate at the end of the flow of one product u v to y, over imbalance and target."""

    imbalances: kit.NonNegative
    targets: kit.Positive
    product: kit.Positive
    fall: kit.Positive

    batched = ("imbalances", "targets")
    diagram = {"imbalances": "linear:0:5:11", "targets": "linear:0.2:3:11"}
    labels = {"late_rate": "rate of y − uv at the end"}
    diagram_remarks = (
        "The lines are where √(δ² + 4y²) is 1, 2, …, 6. From the same product at the start, a larger δ = u² − v² "
        "makes the flow faster.",
    )

    def predict(self, setting):
        # (y − uv)' = −(u² + v²)(y − uv), and u² + v² = √(δ² + 4y²) at the end
        return kit.Prediction(rate=np.hypot(self.imbalances, 2 * self.targets))

    def observe(self, setting, key):
        readings = jnp.array([0.8, 1.0]) * self.fall
        rate, arrived = late_rate(self.imbalances, self.product, self.targets, readings)
        return {"rate": rate, "arrived": arrived}

    def run_conditions(self, observed):
        yield kit.assume("the flow arrived", float(observed["arrived"]), "==", 1)
        yield kit.assume("|log y/p|", abs(np.log(self.targets / self.product)), ">", 0)

    def judge(self, predicted, observed):
        yield equal("late_rate", predicted["rate"], observed["rate"], 1e-4)

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"imbalances", "targets"}:
            return ()
        curves = []
        order = 1 if x == "imbalances" else -1
        for rate in range(1, 7):
            imbalances = np.linspace(0, min(rate, 5), 60)
            targets = np.sqrt(np.maximum(rate**2 - imbalances**2, 0)) / 2
            inside = (targets >= 0.2) & (targets <= 3)
            across, up = (imbalances[inside], targets[inside])[::order]
            curves.append(kit.predicted_curve(across, up, f"rate {rate}"))
        return tuple(curves)
