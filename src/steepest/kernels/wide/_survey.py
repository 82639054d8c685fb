"""Each input with itself, node by node: variances, tangent kernels, and bounds of the errors of all pairs.

How each node changes them stands in ``_walk.py``; here positions that meet others of the same input are computed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.core.precision import arithmetic
from steepest.kernels.wide._evaluate import attention_products, evaluate
from steepest.kernels.wide._plan import Plan
from steepest.kernels.wide._presence import Mask
from steepest.kernels.wide._rule import Diagonal, Sides, Values
from steepest.kernels.wide._walk import Walk
from steepest.kernels.wide.duals import Dual

EMPTY = "a kernel is zero: no signal reaches the output; check c_w and c_b, and which positions the network reads"
CELLS = 2**21  # pairs of positions of an input with itself that are computed at a time


@dataclass(frozen=True)
class Survey:
    """What is known of the inputs one by one.

    Attributes:
        duals: the expectations of each node; None without activation.
        sides: numbers at single positions that pairs are computed from, by node.
        output: the last node.
        kept: other nodes that were asked for.
    """

    duals: tuple[Dual | None, ...]
    sides: dict[int, list[Values]]
    output: Diagonal
    kept: dict[int, Diagonal]

    @property
    def error(self) -> float:
        """Bound the error of both kernels, relative to the root of the product of the diagonals."""
        return error_of(self.output)


def error_of(diagonal: Diagonal) -> float:
    """Bound the error of both kernels of a node, relative to the root of the product of the diagonals."""
    live = diagonal.k > 0
    bounds = [diagonal.g[live] / diagonal.k[live]]
    if diagonal.theta is not None and diagonal.h is not None:
        trained = live & (diagonal.theta > 0)
        bounds.append(diagonal.h[trained] / diagonal.theta[trained])
    return float(np.max(np.concatenate(bounds), initial=0.0))


def survey(
    plan: Plan,
    x: NDArray,
    tolerance: float,
    duals: tuple[Dual | None, ...] | None = None,
    room: float = 1.05,
    keep: tuple[int, ...] = (),
    mask: Mask | None = None,
) -> Survey:
    """Compute the diagonal of the recursion for inputs ``(n, *shape)``, in float64.

    Args:
        plan: of the limit.
        x: inputs; the precision of their numbers is that in which pairs will be computed.
        tolerance: of the expectations.
        duals: those of a survey of more inputs; chosen here without.
        room: factor by which variances may be larger or smaller at other inputs.
        keep: nodes whose diagonals are wanted.
        mask: which positions exist, ``(n, *space)``, for a plan with masks; the others are zero in x.

    Raises:
        UserError: of an input that is not zero no signal arrives at the output, or an activation has no known
            expectation.
    """
    walk = Walk.begin(plan, x, mask, tolerance=tolerance, room=room, duals=duals)
    for index in range(1, len(plan.limit.nodes)):
        itself = partial(_with_itself, plan, walk, index)
        walk.step(index, itself, partial(_products, plan, walk, index))
    output = walk.diagonals[-1]
    arrives = (output.k > 0).reshape(-1, len(x)).any(0)
    if not (arrives | ~x.reshape(len(x), -1).any(1)).all():
        raise UserError(EMPTY)
    kept = {index: walk.diagonals[index] for index in keep}
    return Survey(walk.padded_duals(), walk.sides, output, kept)


def _products(plan: Plan, walk: Walk, index: int) -> Values:
    """Compute the products of an attention node for all inputs, some at a time."""
    duals = walk.padded_duals()
    run = lambda part: np.asarray(attention_products(plan, duals, index, part))
    return np.concatenate(_some_at_a_time(plan, walk.sides, run), axis=-1)


def _some_at_a_time(plan: Plan, sides: Sides, run: Callable[[Sides], Any]) -> list[Any]:
    """Do something with some inputs after the other, in float64."""
    count = sides[0][0].shape[-2]
    step = max(1, CELLS // plan.cells)
    with arithmetic(double=True):
        return [
            run(
                {
                    i: [jnp.asarray(a[..., start : start + step, :]) for a in arrays]
                    for i, arrays in sides.items()
                }
            )
            for start in range(0, count, step)
        ]


def _with_itself(plan: Plan, walk: Walk, index: int) -> tuple[Values, Values | None]:
    """Compute a pooling of each input with itself, some inputs at a time."""
    duals = walk.padded_duals()

    def run(part: Sides) -> list[Values | None]:
        pairs = evaluate(plan, duals, index, part, part, itself=1.0)
        return [None if a is None else np.asarray(a)[..., 0] for a in pairs]

    pieces: list[Any] = _some_at_a_time(plan, walk.sides, run)
    k = np.concatenate([piece[0] for piece in pieces], axis=-1)
    theta = None
    if pieces[0][1] is not None:
        theta = np.concatenate([piece[1] for piece in pieces], axis=-1)
    return k, theta
