"""Descents on XOR from many starts, and the law of coupons."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.dynamics import descend, log_risk_steps
from steepest.kit.points import Arrays, equal
from steepest.nn.data import hypercube
from steepest.nn.losses import exponential, log_margin_risk
from steepest.nn.networks import Neurons, two_layer

KINDS = 4
REACHED = 0.9  # of the largest margin: what counts as reached
LR = 0.5  # step of the descent on log R
Dimension = Annotated[int, kit.Within(2, 8)]


def coupons(width: int, kinds: int = KINDS, wanted: int = KINDS) -> float:
    """Return the probability that so many draws hold at least ``wanted`` of equally likely kinds."""
    # choose the k kinds; by inclusion and exclusion, draws of these alone that miss none of them
    exactly = lambda k: (
        math.comb(kinds, k)
        * sum((-1) ** i * math.comb(k, i) * ((k - i) / kinds) ** width for i in range(k + 1))
    )
    return sum(exactly(k) for k in range(wanted, kinds + 1))


def xor(dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all points of the cube, of length one, and the products of their first two signs."""
    signs = hypercube(dimension)
    return signs / math.sqrt(dimension), signs[:, 0] * signs[:, 1]


def largest_margin(dimension: int) -> float:
    """Return γ₁/2 = 1/√(32 d), the largest margin of a network whose weights have norm one."""
    return 1 / math.sqrt(32 * dimension)


def kinds_drawn(w: kit.Values, v: kit.Values) -> kit.Values:
    """Return which kinds a start holds, ``(…, 4)``: output sign, and side of the diagonal of its class.

    Args:
        w: input weights, shape ``(…, neurons, d)``.
        v: output weights, shape ``(…, neurons)``; zero for neurons that are absent.
    """
    # x₁x₂ = 1 on the diagonal e₁ + e₂, −1 on e₁ − e₂
    along = w[..., 0] + w[..., 1]
    across = w[..., 0] - w[..., 1]
    positive = v > 0
    negative = v < 0
    kinds = (positive & (along > 0), positive & (along < 0), negative & (across > 0))
    return np.any(np.stack([*kinds, negative & (across < 0)], -1), axis=-2)


def waiting(w: kit.Values, v: kit.Values) -> kit.Values:
    """Return which neurons have no gradient while all examples weigh alike, shape of ``v``."""
    x, y = xor(w.shape[-1])
    gates = w @ x.T > 0
    # E y x 1[⟨w, x⟩ > 0], the slope in w_j over v_j at equal weights
    pull = (gates * (y / y.size)) @ x
    return (np.linalg.norm(pull, axis=-1) < 1e-12) & (v != 0)


def start_of(key: kit.Key, dimension: int, width: int, scale: Any, balance: Any) -> Neurons:
    """Draw a start with ``|v_j| = balance ‖w_j‖``."""
    start = two_layer(dimension, width, scale=scale).init(key)
    return start._replace(v=start.v * balance)


def reached_margin(start: Neurons, present: Any, steps: int) -> jax.Array:
    """Descend on log R with the first neurons; return the margin over ‖θ‖² at the end."""
    width, dimension = start.w.shape
    net = two_layer(dimension, width)
    x, y = map(jnp.asarray, xor(dimension))
    mask = jnp.arange(width) < present
    # a neuron of zeros stays zero
    masked = Neurons(start.w * mask[:, None], start.v * mask)
    risk = log_margin_risk(exponential, net.apply, x, y)
    end = descend(risk, masked, log_risk_steps(LR), steps, record=max(steps, 1)).params
    norm = (end.w**2).sum() + (end.v**2).sum()
    return (y * net.apply(end, x)).min() / norm


def margins_of(starts: Neurons, widths: Sequence[int], steps: int) -> np.ndarray:
    """Return the margins at the end from all starts at each width, shape ``(widths, starts)``."""

    def at_widths(starts: Neurons, widths: jax.Array) -> jax.Array:
        return jax.lax.map(partial(at_width, starts), widths)

    def at_width(starts: Neurons, width: jax.Array) -> jax.Array:
        return jax.vmap(lambda start: reached_margin(start, width, steps))(starts)

    return np.asarray(kit.compiled(at_widths)(starts, np.array(widths)))


def balanced(balance: float) -> list[kit.Hypothesis]:
    """Return what keeps the signs of output weights: v_j² − ‖w_j‖² is conserved."""
    advice = "choose --balance at least 1: output weights below it may change their sign"
    note = "choose --balance at most 5: steps of finite length end before more is made up for"
    return [
        kit.assume("|v|/‖w‖ of the start", balance, ">=", 1, advice),
        kit.assume("|v|/‖w‖ of the start, at most", balance, "<=", 5, note),
    ]


@dataclass(frozen=True)
class WidthPoint(kit.Point):
    """The share of starts that reach the largest margin, over width and dimension."""

    widths: kit.Count
    dimension: Dimension
    room: kit.Count
    scale: kit.Positive
    balance: kit.Positive
    steps: kit.Count
    starts: kit.Seeds

    batched = ("widths",)
    diagram = {"widths": "3,4,5,6,8,10,12,16", "dimension": "2,3,4,5,6"}
    base = {"starts": 250, "steps": 300}
    labels = {"success_measured": "share of starts that reach the largest margin"}
    diagram_remarks = (
        "The law of coupons holds in the plane. In more dimensions some neurons have no gradient at first and fill in "
        "the kinds that are missing, so that more starts succeed.",
    )

    def check_fields(self) -> None:
        """Refuse more neurons than the arrays hold."""
        if self.widths > self.room:
            raise kit.UserError(f"widths must be at most --room {self.room}, got {self.widths}")

    def hypotheses(self, setting):
        return balanced(self.balance)

    def predict(self, setting):
        return kit.Prediction(success=coupons(self.widths))

    def observe(self, setting, key):
        def one(key: kit.Key) -> jax.Array:
            start = start_of(key, self.dimension, self.room, self.scale, self.balance)
            return reached_margin(start, self.widths, self.steps)

        return {"margins": jax.vmap(one)(jax.random.split(key, self.starts))}

    def judge(self, predicted, observed):
        reached = observed["margins"] > REACHED * largest_margin(self.dimension)
        # 250 starts: the interval takes 0.07
        yield equal("success", predicted["success"], reached, 0.1, absolute=True)

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        reached = observed["margins"] > REACHED * largest_margin(self.dimension)
        return {"excess": float(reached.mean() - predicted["success"])}
