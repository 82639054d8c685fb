"""Which positions exist at each node of a limit, and the numbers by which its kernels are multiplied there.

What does not exist is zero. So behind each node ``K[p, q]`` is multiplied by ``γ_p γ'_q``: γ is 1 or 0, and where
positions are averaged the number of positions over that of existing ones. Θ and means of channels likewise.
"""

from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.nn.layers import WideLimit
from steepest.nn.layers._masks import as_mask, behind_convolution, behind_matrix, counted
from steepest.nn.layers._nodes import (
    AllPositions,
    Average,
    EqualPositions,
    Linear,
    Mix,
    Node,
)

Mask = NDArray[np.bool_]


class Presence(NamedTuple):
    """What a node knows of positions.

    Attributes:
        exists: of its output, shape ``(n, *space)``; None where it has no positions.
        gain: γ, shape ``(*space, n)``; None where it is one.
    """

    exists: Any
    gain: Any


def presence(limit: WideLimit, mask: Mask) -> list[Presence]:
    """Follow a mask of the inputs, ``(n, *space)``, through the nodes.

    Raises:
        UserError: an input without any position, at the start or behind a window that does not fit.
    """
    places = []
    for index, at in enumerate(followed(limit, mask, np)):
        _need_positions(at.exists, index)
        places.append(at)
    return places


def followed(limit: WideLimit, mask: Any, xp: Any) -> Iterator[Presence]:
    """Follow a mask in JAX or NumPy, node by node; the gain is infinite where a pooling finds no position at all."""
    places = [_at(mask, xp)]
    yield places[0]
    for node, space in zip(limit.nodes[1:], limit.spaces[1:], strict=True):
        read = [places[source].exists for source in node.sources]
        places.append(_behind(node, [m for m in read if m is not None], space, xp))
        yield places[-1]


def check_mask(limit: WideLimit, x: NDArray, mask: Mask | None) -> Mask:
    """Return a checked mask of these inputs; all positions exist without one.

    Raises:
        UserError: other numbers than True and False, another shape, an input without positions.
    """
    checked = as_mask(mask, (len(x), *limit.spaces[0]), np)
    _need_positions(checked, 0)
    return checked


def _need_positions(mask: Mask | None, index: int) -> None:
    if mask is None:
        return
    empty = ~mask.reshape(len(mask), -1).any(1)
    if empty.any():
        which = int(np.argmax(empty))
        where = "in its mask" if index == 0 else f"behind node {index} of the network"
        raise UserError(
            f"input {which} has no position left {where}; drop this input, or take padding='zero'"
        )


def _at(mask: Any, xp: Any) -> Presence:
    """Return what a node knows whose numbers are zero where nothing exists."""
    return Presence(mask, xp.moveaxis(mask, 0, -1).astype(float))


def _behind(node: Node, read: list[Any], space: tuple[int, ...], xp: Any) -> Presence:
    """Follow one node; ``read`` has no entry behind nodes without positions."""
    if not read or isinstance(node, EqualPositions):
        return Presence(None, None)
    first = read[0]
    if isinstance(node, AllPositions):
        count = first.reshape(len(first), -1).sum(1)
        return Presence(None, first[0].size / count)
    if isinstance(node, Average):
        counts = counted(first, node.window, xp)
        # windows are averaged over volume positions, existing ones over count: γ is the ratio
        gain = xp.where(counts > 0, node.window.volume / xp.maximum(counts, 1), 0.0)
        return Presence(counts > 0, xp.moveaxis(gain, 0, -1))
    if isinstance(node, Linear) and node.window is not None:
        return _at(behind_convolution(first, node.window, xp), xp)
    if isinstance(node, Mix):
        return _at(behind_matrix(first, node.array, space, xp), xp)
    return _at(reduce(xp.logical_and, read), xp)
