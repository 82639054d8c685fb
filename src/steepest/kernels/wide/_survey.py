"""Each input with itself, node by node: variances, tangent kernels, and bounds of the errors of all pairs.

How each node changes them stands in ``_walk.py``; here positions that meet others of the same input are computed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.core.precision import arithmetic
from steepest.kernels.wide._evaluate import attention_products, evaluate
from steepest.kernels.wide._plan import Plan
from steepest.kernels.wide._rule import Diagonal, Sides, Values
from steepest.kernels.wide._walk import Walk
from steepest.kernels.wide.duals import Dual
from steepest.nn.layers._beside import NOTHING, Beside

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
    beside: Beside = NOTHING,
) -> Survey:
    """Compute the diagonal of the recursion for inputs ``(n, *shape)``, in float64.

    Args:
        plan: of the limit.
        x: inputs; the precision of their numbers is that in which pairs will be computed.
        tolerance: of the expectations.
        duals: those of a survey of more inputs; chosen here without.
        room: factor by which variances may be larger or smaller at other inputs.
        keep: nodes whose diagonals are wanted.
        beside: which positions exist, for a plan with masks, where the others are zero in x; and graphs of the inputs.

    Raises:
        UserError: of an input that is not zero no signal arrives at the output, other than by its own graph; an
            activation has no known expectation.
    """
    walk = Walk.begin(plan, x, beside, tolerance=tolerance, room=room, duals=duals)
    for index in range(1, len(plan.limit.nodes)):
        itself = partial(_with_itself, plan, walk, index)
        walk.step(index, itself, partial(_products, plan, walk, index))
    output = walk.diagonals[-1]
    arrives = (output.k > 0).reshape(-1, len(x)).any(0)
    lost = ~arrives & x.reshape(len(x), -1).any(1)
    # a graph may lead nowhere, and its kernels are zero
    if lost.any() and (beside.graphs is None or not arrives.any()):
        raise UserError(
            f"a kernel is zero: no signal of input {int(np.argmax(lost))} reaches the output; check c_w and c_b, and "
            "which positions the network reads"
        )
    kept = {index: walk.diagonals[index] for index in keep}
    return Survey(walk.padded_duals(), walk.sides, output, kept)


def _products(plan: Plan, walk: Walk, index: int) -> Values:
    """Compute the products of an attention node for all inputs, some at a time."""
    duals = walk.padded_duals()
    run = lambda part: [np.asarray(attention_products(plan, duals, index, part))]
    (products,) = _some_at_a_time(plan, walk.sides, run)
    return products


def _some_at_a_time(plan: Plan, sides: Sides, run: Callable[[Sides], list[Values]]) -> list[Values]:
    """Compute arrays ``(…, n)`` of inputs, some after the others, in float64.

    Inputs are repeated up to a power of two, so that few programs serve any number of them.
    """
    count = sides[0][0].shape[-2]
    most = 2 ** max(0, (CELLS // plan.cells).bit_length() - 1)
    size = min(most, 2 ** (count - 1).bit_length())
    pieces = []
    for start in range(0, count, size):
        chosen = np.minimum(np.arange(start, start + size), count - 1)
        with arithmetic(double=True):
            part = {
                i: [jnp.asarray(a[..., chosen, :]) for a in arrays] for i, arrays in sides.items()
            }
            pieces.append(run(part))
    joined = (np.concatenate(arrays, axis=-1) for arrays in zip(*pieces, strict=True))
    return [array[..., :count] for array in joined]


def _with_itself(plan: Plan, walk: Walk, index: int) -> tuple[Values, Values | None]:
    """Compute a pooling of each input with itself, some inputs at a time."""
    duals = walk.padded_duals()

    def run(part: Sides) -> list[Values]:
        pairs = evaluate(plan, duals, index, part, part, itself=1.0)
        return [np.asarray(kernel)[..., 0] for kernel in pairs if kernel is not None]

    k, *theta = _some_at_a_time(plan, walk.sides, run)
    # signals that cancel leave a variance of the size and with the sign of what is rounded
    return np.maximum(k, 0.0), theta[0] if theta else None
