"""The flow of a product uv to y ends at the rate √(δ² + 4y²), where δ = u² − v² is its imbalance.

The flow on (y − uv)²/2 conserves δ. Descent with a small step η loses the share η ∫ e de/√(δ² + 4(y − e)²) of δ, with e
from 0 to the first error.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import quad

from steepest import kit
from steepest.claims.descent.imbalance_of_two_numbers.experiment import (
    ScalarPoint,
    late_rate,
    share_lost,
)

LATE = 5.0  # the last part of log R_0/R, over which the rate is taken


@kit.claim
class ImbalanceOfTwoNumbers(kit.Claim[None]):
    """Products of two numbers from small starts."""

    imbalances: tuple[kit.NonNegative, ...] = kit.param(
        (0.0, 1.0, 3.0, 10.0),
        "δ = u² − v² at the start, the first 0",
        scope=kit.choices((0.0, 1.0, 3.0, 10.0), (0.0, 0.5, 2.0, 6.0)),
    )
    targets: tuple[kit.Positive, ...] = kit.param(
        (1.0,), "y", scope=kit.choices((0.5,), (1.0,), (2.0,))
    )
    product: kit.Positive = kit.param(0.1, "uv at the start", scope=kit.between(0.05, 0.2))
    fall: kit.Positive = kit.param(36.0, "log R_0/R at the end of the flows")
    rates: tuple[kit.Positive, ...] = kit.param(
        (0.004, 0.002, 0.001, 0.0005),
        "η of descents, decreasing",
        scope=kit.choices((0.004, 0.002, 0.001, 0.0005), (0.003, 0.001, 0.0003)),
    )
    time: kit.Positive = kit.param(20.0, "η times the number of steps, of the smallest η")

    kind = "theorem"
    says = {
        "ends at the rate √(δ² + 4y²)": "scalar_rate",
        "loses the share η ∫ e de/√(δ² + 4(y − e)²) of δ": "scalar_loss",
    }
    tiny = {"imbalances": (0.0, 1.0), "rates": (0.004, 0.002, 0.001), "time": 4.0}
    full = {"imbalances": (0.0, 0.3, 1.0, 3.0, 10.0, 20.0)}
    out_of_scope = {"product": 1.5}
    point = ScalarPoint

    @property
    def unbalanced(self) -> tuple[float, ...]:
        """Return the imbalances other than zero."""
        return tuple(delta for delta in self.imbalances if delta > 0)

    @property
    def sharpest_step(self) -> float:
        """Return the largest step times the largest curvature at the end."""
        return max(self.rates) * float(np.hypot(max(self.imbalances), 2 * self.targets[0]))

    def axes(self):
        return {"imbalance": self.imbalances, "unbalanced": self.unbalanced, "rate": self.rates}

    def hypotheses(self, setting):
        short = "choose smaller --rates or --imbalances"
        yield kit.assume("largest step times the curvature", self.sharpest_step, "<", 0.1, short)
        yield kit.assume("uv/y at the start", self.product / self.targets[0], "<", 1)

    def predict(self, setting):
        y = self.targets[0]
        # a step multiplies δ by 1 − η²e², and e falls at the rate u² + v² = √(δ² + 4(uv)²), with uv = y − e
        lost = lambda e, delta: e / np.hypot(delta, 2 * (y - e))
        shares = [quad(lost, 0, y - self.product, d, epsabs=1e-12)[0] for d in self.unbalanced]
        return kit.law(
            scalar_rate=("imbalance", np.hypot(self.imbalances, 2 * y)),
            scalar_loss=("unbalanced rate", np.outer(shares, self.rates)),
        )

    def observe(self, setting, key):
        y = self.targets[0]
        readings = np.array([self.fall - LATE, self.fall])
        late = lambda delta: late_rate(delta, self.product, y, readings)
        flows = kit.compiled(partial(jax.lax.map, late))
        rate, arrived = flows(jnp.asarray(self.imbalances))
        numbers = (self.unbalanced, self.product, y, np.array(self.rates))
        return kit.seen(
            arrived=("flow", arrived),
            scalar_rate=("imbalance", rate),
            scalar_loss=("unbalanced rate", share_lost(*numbers, self.time / min(self.rates))),
            first_loss=("unbalanced rate", share_lost(*numbers, 1)),
        )

    def run_conditions(self, observed):
        yield kit.assume("share of flows that arrived", observed["arrived"].mean(), "==", 1)

    def judge(self, law, seen):
        yield kit.follows(
            "scalar_rate", law.scalar_rate, seen.scalar_rate, 1e-4, label="rate at the end"
        )
        yield kit.follows(
            "scalar_loss",
            law.scalar_loss,
            seen.scalar_loss,
            # half the step times the curvature is the next order
            max(0.01, 0.6 * self.sharpest_step),
            label="share of δ that descent loses",
        )

    def rivals(self, setting, law):
        y = self.targets[0]
        at_end = (y - self.product) ** 2 / (2 * np.hypot(law.unbalanced, 2 * y))
        yield kit.rival(
            "the rate is 2y whatever the start",
            "the rate of the balanced network",
            scalar_rate=0 * law.imbalance + 2 * y,
        )
        yield kit.rival(
            "the rate is δ + 2y",
            "right where one of them is zero",
            scalar_rate=law.imbalance + 2 * y,
        )
        yield kit.rival(
            "descent changes δ like η²",
            "each step changes δ by η²",
            scalar_loss=law.scalar_loss * law.rate / law.rate.max(),
        )
        yield kit.rival(
            "the share lost is η e²/(2√(δ² + 4y²)) of the first error",
            "the path to the end has less of it",
            id="curvature_of_the_end",
            scalar_loss=at_end * law.rate,
        )

    def controls(self, seen):
        yield kit.control(
            "a single step in place of a time",
            "each step by itself changes δ by η²",
            scalar_loss=seen.first_loss,
        )
        yield kit.control(
            "imbalances in reverse order",
            "the rate must be the rate of the imbalance",
            scalar_rate=("imbalance", seen.scalar_rate.values[::-1]),
        )
