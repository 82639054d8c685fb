"""Layers that mix positions by given weights: neighbourhoods of graphs, smoothing, images of another size."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from steepest.core.errors import UserError, nearest
from steepest.core.fields import Count
from steepest.core.given import numbers
from steepest.core.signatures import checked
from steepest.nn.layers._beside import NOTHING, Beside, floats_of
from steepest.nn.layers._layer import (
    Layer,
    Part,
    Scheme,
    Signal,
    need_space,
    same,
    without_weights,
)
from steepest.nn.layers._masks import Mask, behind_matrix, in_line
from steepest.nn.layers._nodes import Draft, Mix, MixGiven
from steepest.nn.layers._window import one_or_several, times
from steepest.nn.types import Key, Params

METHODS = ("nearest", "linear", "cubic", "lanczos3", "lanczos5")
Rows = tuple[tuple[float, ...], ...]
"""A matrix, outputs by positions."""


@dataclass(frozen=True)
class Aggregate(Layer):
    """Weighted sums of positions; build it with :func:`aggregate`."""

    matrix: Rows
    axis: int | None = None

    word = "aggregate"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it."""
        need_space("aggregate", signal)
        rank = len(signal.space)
        if self.axis is not None and not -rank <= self.axis < rank:
            raise UserError(
                f"aggregate mixes along dimension {self.axis}, but space has {rank} dimensions; "
                f"take axis from {-rank} to {rank - 1}"
            )
        axis = None if self.axis is None else self.axis % rank
        outputs = len(self.matrix)
        positions = in_line(signal.space, axis)[1]
        if len(self.matrix[0]) != positions:
            raise UserError(
                f"aggregate needs a matrix with one column for each of {positions} positions, "
                f"got {outputs} × {len(self.matrix[0])}"
            )
        return _mixed(signal, self.matrix, axis)


@dataclass(frozen=True)
class AggregateGiven(Layer):
    """Weighted sums of positions by a graph beside each input; build it with :func:`aggregate`."""

    word = "aggregate"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it for graphs of all positions in one line."""
        need_space(self.word, signal)
        positions = math.prod(signal.space)

        def apply(params: Params, x: Array, beside: Beside, key: Key | None) -> Array:
            lines = x.reshape(len(x), positions, -1)
            return (floats_of(beside.graphs, x) @ lines).reshape(x.shape)

        def extend(draft: Draft, source: int) -> int:
            # sums over positions of Gaussian channels are Gaussian, given the graph
            return draft.add(MixGiven((source,)), draft.kinds[source], signal.space)

        return Part(lambda key: {}, apply, signal, extend, same, frozenset({positions}))


@dataclass(frozen=True)
class Resize(Layer):
    """Interpolates between positions; build it with :func:`resize`."""

    space: int | tuple[int, ...]
    method: str

    word = "resize"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it as a matrix along each dimension whose size changes."""
        need_space(self.word, signal)
        rank = len(signal.space)
        space = (self.space,) * rank if isinstance(self.space, int) else self.space
        if len(space) != rank:
            raise UserError(
                f"resize needs one size for each of {rank} dimensions of {times(signal.space)} positions, "
                f"got {space}"
            )
        parts: list[Part] = []
        for axis, (n, m) in enumerate(zip(signal.space, space, strict=True)):
            if n != m:
                parts.append(_mixed(signal, _interpolation(n, m, self.method), axis))
                signal = parts[-1].output
        return _in_turn(parts, signal)


@checked
def aggregate(matrix: Any = None, axis: int | None = None) -> Aggregate | AggregateGiven:
    """Make weighted sums of positions: the neighbourhoods of a graph whose nodes they are.

    With a matrix the sums are the same for all inputs. Without one each input has a graph of its own, which is given
    beside it: ``graphs`` of a network's ``apply``, of ``gram`` and of others, shape ``(n, P, P)``. ``adjacency`` makes
    such graphs of lists of edges. Positions that do not exist by a mask weigh nothing.

    Args:
        matrix: shape ``(outputs, positions)``; entry (p, q) is the weight of position q in output p, positions in one
            line: an adjacency matrix, or one step of a random walk. A sparse matrix of SciPy is taken too; here it
            becomes dense, as all pairs of positions do in the limit. None where graphs differ from input to input.
        axis: the dimension of space along which positions are summed, for each position of the others; None for all
            positions in one line.

    Raises:
        UserError: something else than a matrix of finite numbers; an axis without a matrix.

    Source: Du et al. 2019 (graph neural tangent kernels), for graphs that differ from input to input.

    >>> ring = np.roll(np.eye(4), 1, 0) + np.roll(np.eye(4), -1, 0)
    >>> len(aggregate(ring / 2).matrix)
    4
    """
    if matrix is None:
        return _of_graphs(axis)
    entries = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    dense = np.asarray(numbers("matrix", entries), float)
    if dense.ndim != 2 or not dense.size or not np.isfinite(dense).all():
        raise UserError(
            f"aggregate needs a matrix of finite numbers, outputs by positions, got shape {dense.shape}"
        )
    return Aggregate(_rows(dense), axis)


@checked
def resize(space: Count | Sequence[Count], method: str = "linear") -> Resize:
    """Make images of another size, by interpolation between positions as in ``jax.image.resize``, with antialiasing.

    A position that does not exist by a mask is a zero to the interpolation. Positions of the output exist where they
    read any that does.

    Args:
        space: numbers of positions of the output, one for all dimensions of space or one for each.
        method: ``"nearest"``, ``"linear"``, ``"cubic"``, ``"lanczos3"`` or ``"lanczos5"``.

    Raises:
        UserError: an unknown method.

    >>> resize((4, 6)).method
    'linear'
    """
    if method not in METHODS:
        raise UserError(f"resize has no method {method!r}; {nearest(method, METHODS)}")
    return Resize(one_or_several(space), method)


@checked
def adjacency(edges: Any, positions: Count, weights: Any = None) -> NDArray[np.float64]:
    """Make the matrices of graphs from lists of their edges, for ``graphs`` of networks with ``aggregate()``.

    Args:
        edges: pairs (p, q) of positions in one line, shape ``(n, E, 2)``, or ``(E, 2)`` of one graph: output p reads
            position q. An undirected edge is two pairs. (−1, −1) fills up the lists of graphs with fewer edges.
        positions: P, how many there are.
        weights: of the edges, shape ``(n, E)`` or ``(E,)``; ones by default. Weights of equal pairs add up.

    Returns:
        shape ``(n, P, P)``, or ``(P, P)`` of one graph.

    Raises:
        UserError: pairs that are no whole numbers from −1 to P − 1, or with −1 in one place; other shapes; weights that
            are not finite.

    >>> adjacency([[0, 1], [1, 2], [-1, -1]], 3).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """
    pairs = np.asarray(numbers("edges", edges))
    positions = int(positions)
    if pairs.ndim not in (2, 3) or pairs.shape[-1] != 2:
        raise UserError(
            f"edges are pairs of positions, shape (n, E, 2) or (E, 2), got {pairs.shape}"
        )
    there = (pairs >= 0) & (pairs < positions) & (pairs % 1 == 0)
    if not (there.all(-1) | (pairs == -1).all(-1)).all():
        raise UserError(
            f"edges are pairs of whole numbers from 0 to {positions - 1}, or (-1, -1) where a graph has fewer, got "
            f"numbers from {pairs.min()} to {pairs.max()}"
        )
    factors = _weights_of_edges(weights, pairs.shape[:-1])
    lists = np.atleast_3d(pairs.T).T.astype(int)  # one graph too has an axis of graphs
    matrices = np.zeros((len(lists), positions, positions))
    graph, edge = np.nonzero(lists[..., 0] >= 0)
    p, q = lists[graph, edge].T
    np.add.at(matrices, (graph, p, q), factors.reshape(lists.shape[:2])[graph, edge])
    return matrices.reshape(*pairs.shape[:-2], positions, positions)


def _weights_of_edges(weights: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    if weights is None:
        return np.ones(shape)
    factors = np.asarray(numbers("weights", weights), float)
    if factors.shape != shape or not np.isfinite(factors).all():
        raise UserError(
            f"edges need one finite weight for each, shape {shape}, got shape {factors.shape}"
        )
    return factors


def _of_graphs(axis: int | None) -> AggregateGiven:
    if axis is not None:
        raise UserError(
            f"graphs beside inputs are of all positions in one line, got axis={axis}; leave axis out, or give a matrix"
        )
    return AggregateGiven()


def _rows(matrix: NDArray) -> Rows:
    return tuple(map(tuple, matrix.tolist()))


def _mixed(signal: Signal, matrix: Rows, axis: int | None) -> Part:
    """Return the part that multiplies positions by a matrix, along a dimension of space or all in one line."""
    array = np.array(matrix)
    before, along, behind = in_line(signal.space, axis)
    space = _behind(signal.space, len(array), axis)

    def apply(x: Array, mask: Mask) -> Array:
        lines = x.reshape(len(x) * before, along, behind * x.shape[-1])
        return (floats_of(array, x) @ lines).reshape(len(x), *space, -1)

    def extend(draft: Draft, source: int) -> int:
        # sums over positions of Gaussian channels are Gaussian, of others unknown: what a channel was, it stays
        return draft.add(Mix((source,), matrix, axis), draft.kinds[source], space)

    exists = partial(behind_matrix, matrix=array, axis=axis, space=space, xp=jnp)
    return without_weights(apply, signal._replace(space=space), extend, exists)


def _behind(space: tuple[int, ...], outputs: int, axis: int | None) -> tuple[int, ...]:
    """Return the numbers of positions behind a matrix; all in one line keep their shape where they stay as many."""
    if axis is None:
        return space if outputs == math.prod(space) else (outputs,)
    return (*space[:axis], outputs, *space[axis + 1 :])


def _in_turn(parts: list[Part], output: Signal) -> Part:
    """Return parts without weights, one behind the other."""

    def apply(x: Array, mask: Mask) -> Array:
        for part in parts:
            x = part.apply({}, x, NOTHING, None)
        return x

    def extend(draft: Draft, source: int) -> int:
        for part in parts:
            source = part.extend(draft, source)
        return source

    def exists(mask: Array) -> Mask:
        behind: Mask = mask
        for part in parts:
            behind = None if behind is None else part.exists(behind)
        return behind

    return without_weights(apply, output, extend, exists)


@lru_cache(maxsize=64)
def _interpolation(positions: int, outputs: int, method: str) -> Rows:
    """Return the weights of positions in outputs, in one dimension: what becomes of the rows of the identity."""
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        columns = jax.image.resize(jnp.eye(positions), (outputs, positions), method)
    return _rows(np.asarray(columns))
