"""Kernels between all positions of outputs, for networks that end before they are pooled."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from steepest.core.precision import arithmetic
from steepest.kernels.connected._tabulated import TOLERANCE
from steepest.kernels.wide._evaluate import by_all_pairs
from steepest.kernels.wide._plan import plan_of
from steepest.kernels.wide._positions import Positions
from steepest.kernels.wide._survey import survey
from steepest.nn.layers import WideLimit

CELLS = 2**22  # pairs of positions of pairs of inputs that are computed at a time


def between_positions(
    limit: WideLimit, x: NDArray, other: NDArray | None, tolerance: float | None
) -> tuple[NDArray, NDArray, float]:
    """Compute both kernels for all pairs of inputs and of positions, ``(n, m, *space, *space)``, and their error.

    Args:
        limit: of ``network(...).limit()``.
        x: inputs, shape ``(n, *shape)``.
        other: a second set, ``(m, *shape)``; the first without.
        tolerance: of each activation's expectation.

    Raises:
        UserError: no signal reaches the output; an activation has no known expectation.
    """
    plan = plan_of(limit, positions=True)
    columns = x if other is None else other.astype(x.dtype)
    both = x if other is None else np.concatenate([x, columns])
    surveyed = survey(plan, both, tolerance or TOLERANCE[x.dtype.itemsize])
    way = Positions(plan, surveyed.duals, surveyed.error)
    space = limit.spaces[-1]
    out = np.empty((2, len(x), len(columns), *space, *space), x.dtype)
    end = len(limit.nodes) - 1
    positions = max(int(np.prod(nodes)) for nodes in limit.spaces)
    size = max(1, int(CELLS**0.5 / positions))
    first, second = way.rows(x), way.rows(columns)
    with arithmetic(double=x.dtype == np.float64):
        for i in _blocks(len(x), size):
            one = way.firsts(first, i)
            for j in _blocks(len(columns), size):
                pairs = by_all_pairs(plan, way.duals, end, one, way.seconds(second, j))
                out[0, i, j] = _inputs_first(np.asarray(pairs.k))
                out[1, i, j] = (
                    0.0 if pairs.theta is None else _inputs_first(np.asarray(pairs.theta))
                )
    return out[0], out[1], surveyed.error


def _inputs_first(pairs: NDArray) -> NDArray:
    """Move the axes of the inputs, the last two, to the front."""
    return np.moveaxis(pairs, (-2, -1), (0, 1))


def _blocks(count: int, size: int) -> Iterator[slice]:
    """Cut into slices of at most some inputs."""
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))
