"""Kernels between all positions of nodes: of outputs that keep theirs, and of the layers of a network."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.core.precision import arithmetic
from steepest.kernels.wide._evaluate import at_nodes
from steepest.kernels.wide._positions import Positions, blocks_of
from steepest.kernels.wide._rule import Diagonal, Pairs
from steepest.kernels.wide._survey import error_of
from steepest.nn.layers import WideLimit
from steepest.nn.layers._beside import ALONE, Besides

CELLS = 2**22  # pairs of positions of pairs of inputs that are computed at a time


class BehindNode(NamedTuple):
    """Kernels behind a node.

    Attributes:
        nngp: shape ``(n, m, *space, *space)``.
        ntk: of the same shape; zeros before the first weights.
        error: bound of both, relative to the diagonals.
    """

    nngp: NDArray
    ntk: NDArray
    error: float


def behind_nodes(
    limit: WideLimit,
    nodes: tuple[int, ...],
    x: NDArray,
    other: NDArray | None,
    tolerance: float | None,
    besides: Besides = ALONE,
) -> list[BehindNode]:
    """Compute both kernels behind some nodes, for all pairs of inputs and of positions, in one pass.

    Args:
        limit: of ``network(...).limit()``.
        nodes: their places in the limit.
        x: inputs, shape ``(n, *shape)``.
        other: a second set, ``(m, *shape)``; the first without.
        tolerance: of each activation's expectation.
        besides: which positions exist, and graphs, of both sets.

    Raises:
        UserError: no signal reaches the output; an activation has no known expectation.
    """
    way = Positions.of(limit, x, other, tolerance, positions=True, keep=nodes, besides=besides)
    rows = way.rows(x, besides[0])
    columns = rows if other is None else way.rows(other.astype(x.dtype), besides[1])
    n = len(x)
    m = columns[0].shape[-2]
    spaces = [limit.spaces[node] for node in nodes]
    out = [np.zeros((2, n, m, *space, *space), x.dtype) for space in spaces]
    positions = max(int(np.prod(of_node)) for of_node in limit.spaces)
    size = max(1, int(CELLS**0.5 / positions))
    with arithmetic(double=x.dtype == np.float64):
        for down in blocks_of(n, min(size, n)):
            first = way.firsts(rows, down)
            for across in blocks_of(m, min(size, m)):
                second = way.seconds(columns, across)
                computed = at_nodes(way.plan, way.duals, nodes, first, second)
                for kernels, pairs in zip(out, computed, strict=True):
                    _put(kernels[:, down, across], pairs)
            if other is None and any(rule.draws for rule in way.plan.rules):
                with_itself = at_nodes(way.plan, way.duals, nodes, first, first, itself=1.0)
                for kernels, pairs in zip(out, with_itself, strict=True):
                    _put_itself(kernels, down, pairs)
    assert way.surveyed is not None
    kept = way.surveyed[1].kept
    if other is None:
        for kernels, node in zip(out, nodes, strict=True):
            _put_diagonal(kernels, kept[node])
    return [
        BehindNode(kernels[0], kernels[1], error_of(kept[node]))
        for kernels, node in zip(out, nodes, strict=True)
    ]


def _put(kernels: NDArray, pairs: Pairs) -> None:
    """Put pairs ``(*space, *space, b, b')`` into a block ``(2, b, b', *space, *space)``."""
    kernels[0] = np.moveaxis(np.asarray(pairs.k), (-2, -1), (0, 1))
    if pairs.theta is not None:
        kernels[1] = np.moveaxis(np.asarray(pairs.theta), (-2, -1), (0, 1))


def _put_itself(kernels: NDArray, block: slice, pairs: Pairs) -> None:
    """Put pairs of some inputs with themselves, ``(*space, *space, b, 1)``, into ``(2, n, n, *space, *space)``."""
    input_ = np.arange(block.start, block.stop)
    for kernel, of_pairs in zip(kernels, pairs, strict=True):
        if of_pairs is not None:
            kernel[input_, input_] = np.moveaxis(np.asarray(of_pairs)[..., 0], -1, 0)


def _put_diagonal(kernels: NDArray, diagonal: Diagonal) -> None:
    """Put the exact numbers where an input meets itself at one position; pairs know kinks less well there."""
    n = kernels.shape[1]
    count = diagonal.k.size // n
    square = kernels.reshape(2, n, n, count, count)  # a view, as kernels are contiguous
    input_ = np.arange(n)[:, None]
    position = np.arange(count)
    square[0, input_, input_, position, position] = diagonal.k.reshape(count, n).T
    if diagonal.theta is not None:
        square[1, input_, input_, position, position] = diagonal.theta.reshape(count, n).T
