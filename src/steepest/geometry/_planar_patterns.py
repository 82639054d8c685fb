"""Regions of many networks at once: their patterns and numbers, for averages over random networks."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.geometry._layers import Layer, check_layers
from steepest.geometry._planar_regions import _cut_by_layer, _flatten, _Polygons
from steepest.linalg import sequential

CHUNK = 250  # networks whose polygons are in memory at once


class PlanarPatterns(NamedTuple):
    """The regions of many networks.

    Attributes:
        owner: which network each region belongs to, in no order (``np.bincount`` counts), shape ``(regions,)``.
        patterns: which units with a corner are above zero in each, shape ``(regions, units)``.
    """

    owner: Int[ndarray, " regions"]
    patterns: Bool[ndarray, "regions units"]


@checked
def planar_patterns(
    networks: Sequence[Sequence[Layer]], corners: ArrayLike, most: int = 10_000_000
) -> PlanarPatterns:
    """Return the activation patterns of many networks of one shape, each in a convex polygon of a plane.

    The polygons of all networks are cut together, as :func:`planar_regions` cuts those of one: hundreds of small
    networks take the time of ten.

    Args:
        networks: of equal shapes and slopes.
        corners: of one polygon for all, shape ``(k, d)``, or of one for each network, ``(networks, k, d)``.
        most: regions of a chunk of networks after which it gives up.

    Raises:
        UserError: if networks or polygons do not fit one another, and as :func:`planar_regions`.

    >>> from steepest.geometry import relu_layers
    >>> lines = [relu_layers([np.eye(2), np.ones((1, 2))], [[b, b], [0]]) for b in (0.5, -0.5, 3.0)]
    >>> square = [[-1, -1], [1, -1], [1, 1], [-1, 1]]
    >>> np.bincount(planar_patterns(lines, square).owner).tolist()
    [4, 4, 1]
    """
    shapes = [[layer.matrix.shape for layer in layers] for layers in networks]
    if not shapes or shapes.count(shapes[0]) < len(shapes):
        raise UserError("networks must be of one shape, and at least one")
    for layers in networks:
        check_layers(layers)
    for place, first in enumerate(networks[0]):
        for layers in networks:
            if (layers[place].left != first.left).any() or (
                layers[place].right != first.right
            ).any():
                raise UserError("the units of all networks must have the same slopes")
    given = np.asarray(corners, float)
    if given.ndim not in (2, 3) or (given.ndim == 3 and len(given) != len(networks)):
        raise UserError(
            f"corners must be of one polygon, (k, d), or of one for each of {len(networks)} networks, got shape "
            f"{given.shape}"
        )
    d = networks[0][0].matrix.shape[1]
    single = _flatten(given, d) if given.ndim == 2 else None
    planes = [single or _flatten(given[i], d) for i in range(len(networks))]
    owners = []
    patterns = []
    for start in range(0, len(networks), CHUNK):
        owner, pattern = _together(
            networks[start : start + CHUNK], planes[start : start + CHUNK], most
        )
        owners.append(owner + start)
        patterns.append(pattern)
    return PlanarPatterns(np.concatenate(owners), np.concatenate(patterns))


@sequential
def _together(
    networks: Sequence[Sequence[Layer]], planes: list[tuple[NDArray, NDArray, NDArray]], most: int
) -> tuple[NDArray, NDArray]:
    """Cut all polygons by all networks at once; return owner and pattern of each region."""
    domains = np.stack([domain for domain, _, _ in planes])
    owner = np.arange(len(networks))
    cut = _Polygons(
        domains, np.full(len(networks), domains.shape[1]), np.zeros((len(networks), 0), bool)
    )
    maps = np.stack(
        [
            # W (origin + u frame_0 + v frame_1) + b as coefficients of (u, v, 1)
            np.column_stack(
                [layers[0].matrix @ frame.T, layers[0].matrix @ origin + layers[0].bias]
            )
            for layers, (_, frame, origin) in zip(networks, planes, strict=True)
        ]
    )
    for place, layer in enumerate(networks[0]):
        above, cut, parent = _cut_by_layer(cut, maps, layer, most)
        owner = owner[parent]
        if place + 1 < len(networks[0]):
            matrices = np.stack([layers[place + 1].matrix for layers in networks])
            biases = np.stack([layers[place + 1].bias for layers in networks])
            slopes = np.where(above, layer.right, layer.left)
            # chain rule: W diag(slopes) times the map below
            maps = matrices[owner] @ (slopes[:, :, None] * maps[parent])
            maps[:, :, 2] += biases[owner]
    return owner, cut.patterns
