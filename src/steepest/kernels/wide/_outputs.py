"""Kernels between all positions of outputs, for networks that end before they are pooled."""

import numpy as np
from numpy.typing import NDArray

from steepest.core.precision import arithmetic
from steepest.kernels.wide._evaluate import by_all_pairs
from steepest.kernels.wide._positions import Positions, blocks_of
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
    way = Positions.of(limit, x, other, tolerance, positions=True)
    rows = way.rows(x)
    columns = rows if other is None else way.rows(other.astype(x.dtype))
    n = len(x)
    m = columns[0].shape[-2]
    space = limit.spaces[-1]
    out = np.zeros((2, n, m, *space, *space), x.dtype)
    end = len(limit.nodes) - 1
    positions = max(int(np.prod(of_node)) for of_node in limit.spaces)
    size = max(1, int(CELLS**0.5 / positions))
    with arithmetic(double=x.dtype == np.float64):
        for down in blocks_of(n, min(size, n)):
            first = way.firsts(rows, down)
            for across in blocks_of(m, min(size, m)):
                second = way.seconds(columns, across)
                pairs = by_all_pairs(way.plan, way.duals, end, first, second)
                # the last two axes are those of the inputs
                out[0, down, across] = np.moveaxis(pairs.k, (-2, -1), (0, 1))
                if pairs.theta is not None:
                    out[1, down, across] = np.moveaxis(pairs.theta, (-2, -1), (0, 1))
    return out[0], out[1], way.error
