"""Which positions exist: inputs of different length, and images with missing pixels.

A mask is an array of booleans ``(batch, *space)``. A position that does not exist is a zero to whatever reads it, does
not count in means and has no weight in attention. Where a layer's positions exist follows from those that it reads as
if the input ended there: an input that is filled up at its end is the shorter input, layer by layer.
"""

import math
from typing import Any

import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.nn.layers._window import Window

NO_POSITIONS = "a mask says which positions exist, and mlp() has none; take network(...), or fill in what is missing"


def as_mask(mask: Any, shape: tuple[int, ...], xp: Any) -> Any:
    """Return a checked mask, in JAX or NumPy; all positions exist without one.

    Args:
        mask: as it was given.
        shape: numbers of inputs and of positions.
        xp: ``jax.numpy`` or ``numpy``.

    Raises:
        UserError: other numbers than True and False, another shape.
    """
    if mask is None:
        return xp.ones(shape, bool)
    mask = xp.asarray(mask)
    if mask.dtype != bool or mask.shape != shape or not shape:
        raise UserError(
            f"a mask has one True or False for each position of each input, shape {shape}, "
            f"got {mask.dtype} of shape {mask.shape}"
        )
    return mask


def blanked(x: Any, mask: Any, xp: Any) -> Any:
    """Return signals ``(batch, *space, channels)`` with zeros where no position exists, in JAX or NumPy."""
    return xp.where(mask[..., None], x, 0)


def behind_convolution(mask: Any, window: Window, xp: Any) -> Any:
    """Return which outputs of a convolution exist.

    Without padding those whose whole window does; else those that stand at an existing input, one of ``stride`` many.
    Of a transposed one those that stand at an existing input, and without padding all that it reaches.
    """
    for d, (size, stride) in enumerate(zip(window.size, window.stride, strict=True)):
        n = mask.shape[1 + d]
        alone = Window((size,), (stride,), window.padding, window.transposed)
        (outputs,) = alone.outputs((n,))
        if window.transposed:
            reach = max(size, stride) if window.padding == "none" else stride
            # input q writes to q r, …, q r + reach − 1
            reads = np.arange(outputs)[:, None] - np.arange(reach)
            inside = (reads >= 0) & (reads % stride == 0) & (reads // stride < n)
            mask = _taken(mask, reads // stride, inside, d, xp).any(d + 2)
        elif window.padding == "none":
            reads = np.arange(outputs)[:, None] * stride + np.arange(size)
            mask = _taken(mask, reads, reads < n, d, xp).all(d + 2)
        else:
            reads = np.arange(outputs)[:, None] * stride + np.arange(stride)
            mask = _taken(mask, reads, reads < n, d, xp).any(d + 2)
    return mask


def counted(mask: Any, window: Window, xp: Any) -> Any:
    """Count the existing positions in each window of a pooling, ``(batch, *outputs)``."""
    counts = xp.asarray(mask, int)
    for d, taps in enumerate(window.taps(mask.shape[1:])):
        counts = _taken(counts, taps, taps >= 0, d, xp).sum(d + 2)
    return counts


def behind_pool(mask: Any, window: Window, xp: Any) -> Any:
    """Return which outputs of a pooling exist.

    Without padding windows with any existing position; else also the output must stand at one, as of a convolution.
    """
    reads_any = counted(mask, window, xp) > 0
    if window.padding == "none":
        return reads_any
    return reads_any & behind_convolution(mask, window, xp)


def behind_matrix(
    mask: Any, matrix: NDArray, axis: int | None, space: tuple[int, ...], xp: Any
) -> Any:
    """Return which weighted sums of positions exist: the positions themselves, or sums that read any that exists.

    Args:
        mask: which positions are read.
        matrix: outputs by positions.
        axis: the dimension of space along which positions are summed; None for all in one line.
        space: of the sums.
        xp: ``jax.numpy`` or ``numpy``.
    """
    if len(matrix) == matrix.shape[1]:
        return mask
    lines = xp.asarray(mask.reshape(len(mask), *in_line(mask.shape[1:], axis)), int)
    reads = xp.einsum("pa,nbac->nbpc", (matrix != 0).astype(int), lines)
    return (reads > 0).reshape(len(mask), *space)


def in_line(space: tuple[int, ...], axis: int | None) -> tuple[int, int, int]:
    """Count positions before, along and behind a dimension of space; all along without one."""
    if axis is None:
        return 1, math.prod(space), 1
    return math.prod(space[:axis]), space[axis], math.prod(space[axis + 1 :])


def taken(values: Any, positions: tuple[int | tuple[int, ...], ...], xp: Any, start: int) -> Any:
    """Take positions in each dimension of space, axes from ``start`` on; a number leaves its axis out."""
    for d in reversed(range(len(positions))):
        values = xp.take(values, np.array(positions[d]), axis=start + d)
    return values


def _taken(values: Any, reads: NDArray, inside: NDArray, d: int, xp: Any) -> Any:
    """Read ``(outputs, taps)`` in a dimension of space; what is outside reads as zero, or False."""
    taken = xp.take(values, np.where(inside, reads, 0), axis=d + 1)
    return taken * inside.reshape(inside.shape + (1,) * (taken.ndim - d - 3)).astype(taken.dtype)


Mask = Array | None
"""Which positions exist, ``(batch, *space)``; None where all do, and behind layers that leave no positions."""
