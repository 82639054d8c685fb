"""Layers that mix positions by fixed weights: neighbourhoods of graphs, smoothing, images of another size."""

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
from steepest.nn.layers._layer import Layer, Part, Scheme, Signal, need_space, without_weights
from steepest.nn.layers._masks import Mask, behind_matrix, in_line
from steepest.nn.layers._nodes import Draft, Mix
from steepest.nn.layers._window import one_or_several, times

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
def aggregate(matrix: Any, axis: int | None = None) -> Aggregate:
    """Make weighted sums of positions, the same for all inputs: the neighbourhoods of a graph whose nodes they are.

    Args:
        matrix: shape ``(outputs, positions)``; entry (p, q) is the weight of position q in output p, positions in one
            line: an adjacency matrix, or one step of a random walk. A sparse matrix of SciPy is taken too; here it
            becomes dense, as all pairs of positions do in the limit.
        axis: the dimension of space along which positions are summed, for each position of the others; None for all
            positions in one line.

    Raises:
        UserError: something else than a matrix of finite numbers.

    >>> ring = np.roll(np.eye(4), 1, 0) + np.roll(np.eye(4), -1, 0)
    >>> len(aggregate(ring / 2).matrix)
    4
    """
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


def _rows(matrix: NDArray) -> Rows:
    return tuple(map(tuple, matrix.tolist()))


def _mixed(signal: Signal, matrix: Rows, axis: int | None) -> Part:
    """Return the part that multiplies positions by a matrix, along a dimension of space or all in one line."""
    array = np.array(matrix)
    before, along, behind = in_line(signal.space, axis)
    space = _behind(signal.space, len(array), axis)

    def apply(x: Array, mask: Mask) -> Array:
        lines = x.reshape(len(x) * before, along, behind * x.shape[-1])
        return (jnp.asarray(array, x.dtype) @ lines).reshape(len(x), *space, -1)

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
            x = part.apply({}, x, None, None)
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
