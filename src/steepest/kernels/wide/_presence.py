"""Which positions exist at each node of a limit, and the numbers by which its kernels are multiplied there.

What does not exist is zero. So behind each node ``K[p, q]`` is multiplied by ``γ_p γ'_q``: γ is 1 or 0, and where
positions are averaged the number of positions over that of existing ones. Θ and means of channels likewise.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.kernels.wide._rule import Presence, present, rule_of
from steepest.nn.layers import WideLimit
from steepest.nn.layers._masks import as_mask

Mask = NDArray[np.bool_]


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
    places = [present(mask, xp)]
    yield places[0]
    for node, space in zip(limit.nodes[1:], limit.spaces[1:], strict=True):
        read = [places[source].exists for source in node.sources]
        masks = [mask for mask in read if mask is not None]
        without = Presence(None, None)  # behind nodes without positions
        places.append(rule_of(node).presence(masks, space, xp) if masks else without)
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
