"""Exact regions of a piecewise linear network in a polygon of a plane: every region a polygon with its affine map."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.geometry._layers import Layer, check_layers
from steepest.linalg import sequential

ROUNDING = 1e-12  # a pre-activation below this share of its terms is zero
MERGE = 1e-12  # vertices nearer than this share of the polygon's size are one


@dataclass(frozen=True)
class PlanarRegions:
    """The regions of a network inside a convex polygon of a plane of inputs.

    A point of the plane is ``origin + u frame[0] + v frame[1]`` with orthonormal rows of ``frame``, so that lengths
    and areas in (u, v) are those of the input space.

    Attributes:
        vertices: (u, v) of the corners of each region in order, shape ``(count, k, 2)``; a region of fewer than k
            corners repeats its last one.
        sides: number of corners of each region, shape ``(count,)``.
        patterns: which units with a corner are above zero in each region, in the order of the layers, shape
            ``(count, units)``; no two rows are equal.
        maps: the network in each region as ``maps[:, :, 0] u + maps[:, :, 1] v + maps[:, :, 2]``, shape
            ``(count, out, 3)``.
        frame: two orthonormal directions of the plane, shape ``(2, d)``.
        origin: where u = v = 0, shape ``(d,)``.
        domain: (u, v) of the corners of the polygon that was cut up, shape ``(corners, 2)``.
    """

    vertices: Float[ndarray, "count k 2"]
    sides: Int[ndarray, " count"]
    patterns: Bool[ndarray, "count units"]
    maps: Float[ndarray, "count out 3"]
    frame: Float[ndarray, "2 d"]
    origin: Float[ndarray, " d"]
    domain: Float[ndarray, "corners 2"]

    @property
    def count(self) -> int:
        """Return the number of regions: of activation patterns that occur inside the polygon."""
        return len(self.sides)

    @property
    def areas(self) -> Float[ndarray, " count"]:
        """Return the area of each region."""
        return _areas(self.vertices)

    @property
    def boundary_length(self) -> float:
        """Return the total length of the borders between regions."""
        # a border belongs to two regions, the domain's edge to one
        around = _perimeters(self.vertices).sum() - _perimeters(self.domain[None])[0]
        return float(around / 2)

    @functools.cached_property
    def _incidences(self) -> tuple[int, int]:
        """Count corners of regions strictly inside the domain, and on its edges without its own corners."""
        used = np.arange(self.vertices.shape[1]) < self.sides[:, None]
        points = self.vertices[used]
        near = _near(self.domain)
        on_edge = _distances_to_edges(points, self.domain).min(1) < near
        gaps = np.linalg.norm(points[:, None] - self.domain, axis=-1).min(1)
        return int((~on_edge).sum()), int((on_edge & (gaps >= near)).sum())

    @property
    def inner_vertices(self) -> float:
        """Return how many points two borders meet in, for networks in general position: four regions share each."""
        return self._incidences[0] / 4

    @property
    def boundary_vertices(self) -> float:
        """Return how many borders end on the edge of the polygon, in general position: two regions share each end."""
        return self._incidences[1] / 2

    def points(self, uv: Float[ndarray, "*shape 2"]) -> Float[ndarray, "*shape d"]:
        """Return the inputs at these coordinates of the plane."""
        return self.origin + np.asarray(uv, float) @ self.frame

    def values(self) -> Float[ndarray, "count k out"]:
        """Return the network's outputs at the corners of each region, where its extremes in the region lie."""
        homogeneous = np.concatenate(
            [self.vertices, np.ones((*self.vertices.shape[:2], 1))], axis=-1
        )
        return np.einsum("poc,pkc->pko", self.maps, homogeneous)


@checked
@sequential
def planar_regions(
    layers: Sequence[Layer], corners: ArrayLike, most: int = 1_000_000
) -> PlanarRegions:
    """Cut a convex polygon of inputs into the regions in which a piecewise linear network is affine, exactly.

    In a region of the layers below, a unit's pre-activation is affine, so that its zeros are a line, and a line cuts a
    convex polygon in two. All polygons are cut by one unit at a time, in padded arrays: N units and R regions cost
    O(N R) steps of NumPy. Two regions may have the same affine map, if no path above the unit between them is open.

    Args:
        layers: the network, as of :func:`relu_layers`; the last layer's corners count where it has any.
        corners: corners of the polygon in order, shape ``(k, d)`` with k ≥ 3, in one plane.
        most: regions after which it gives up.

    Raises:
        UserError: if the corners are not those of a convex polygon in a plane of the inputs, or there are too many
            regions.

    Source: the lemma that regions are convex, Hanin and Rolnick 2019, Deep ReLU networks have surprisingly few
    activation patterns; subdivision of polytopes as Humayun et al. 2023 (SplineCAM) do it with graphs.

    Three lines in general position cut the plane into seven:

    >>> from steepest.geometry import relu_layers
    >>> lines = relu_layers([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[1.0, 1.0, 1.0]]], [[0, 0, -1], [0]])
    >>> regions = planar_regions(lines, [[-9, -9], [9, -9], [9, 9], [-9, 9]])
    >>> regions.count, regions.inner_vertices, regions.areas.sum()
    (7, 3.0, np.float64(324.0))
    """
    check_layers(layers)
    domain, frame, origin = _flatten(corners, layers[0].matrix.shape[1])
    cut = _Polygons(domain[None], np.array([len(domain)]), np.zeros((1, 0), bool))
    # W (origin + u frame_0 + v frame_1) + b as coefficients of (u, v, 1)
    affine = np.column_stack(
        [layers[0].matrix @ frame.T, layers[0].matrix @ origin + layers[0].bias]
    )
    maps = affine[None]
    for place, layer in enumerate(layers):
        above, cut, parent = _cut_by_layer(cut, maps, layer, most)
        slopes = np.where(above, layer.right, layer.left)
        # diag(slopes) times the map of the region it came from
        maps = slopes[:, :, None] * maps[parent]
        if place + 1 < len(layers):
            following = layers[place + 1]
            maps = following.matrix @ maps
            maps[:, :, 2] += following.bias
    vertices, sides = _without_repeats(cut.vertices, cut.sides, _near(domain))
    return PlanarRegions(vertices, sides, cut.patterns, maps, frame, origin, domain)


@dataclass(frozen=True)
class _Polygons:
    """Convex polygons in padded arrays: vertices ``(P, k, 2)``, sides ``(P,)``, patterns so far ``(P, units)``."""

    vertices: NDArray
    sides: NDArray
    patterns: NDArray


def _cut_by_layer(
    polygons: _Polygons, maps: NDArray, layer: Layer, most: int
) -> tuple[NDArray, _Polygons, NDArray]:
    """Cut by every unit of a layer; return which units are above zero, the polygons, and which each one came from."""
    vertices = polygons.vertices
    sides = polygons.sides
    parent = np.arange(len(sides))
    above = np.zeros((len(sides), len(layer.bias)), bool)
    for unit in range(len(layer.bias)):
        if not layer.kinked[unit]:
            continue
        z, zero = _heights(vertices, maps[parent, unit])
        is_cut = (z.min(1) < -zero) & (z.max(1) > zero)  # beyond rounding on both sides
        above[:, unit] = z.max(1) > -z.min(1)  # the side where it reaches further
        if not is_cut.any():
            continue
        whole = ~is_cut
        halves = _halves(vertices[is_cut], sides[is_cut], z[is_cut] > zero[is_cut, None], z[is_cut])
        pieces = [vertices[whole], halves[0], halves[2]]
        width = max(piece.shape[1] for piece in pieces)
        vertices = np.concatenate([_padded(piece, width) for piece in pieces])
        sides = np.concatenate([sides[whole], halves[1], halves[3]])
        parent = np.concatenate([parent[whole], parent[is_cut], parent[is_cut]])
        upper = above[is_cut].copy()
        upper[:, unit] = True
        lower = above[is_cut].copy()
        lower[:, unit] = False
        above = np.concatenate([above[whole], upper, lower])
        vertices = vertices[:, : sides.max()]
        if len(sides) > most:
            raise UserError(
                f"there are more than {most} regions in this polygon; give a smaller polygon or a larger `most`"
            )
    patterns = np.concatenate([polygons.patterns[parent], above[:, layer.kinked]], axis=1)
    return above, _Polygons(vertices, sides, patterns), parent


def _heights(vertices: NDArray, coefficients: NDArray) -> tuple[NDArray, NDArray]:
    """Return a unit's pre-activation at all vertices, ``(P, k)``, and what rounding leaves of a zero, ``(P,)``."""
    terms = vertices * coefficients[:, None, :2]
    offset = coefficients[:, 2, None]
    size = np.abs(terms).sum(-1).max(1) + np.abs(offset[:, 0])  # size of the terms that may cancel
    return terms.sum(-1) + offset, ROUNDING * size


def _halves(
    vertices: NDArray, sides: NDArray, above: NDArray, z: NDArray
) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Cut convex polygons ``(P, k, 2)`` along z = 0; return vertices and sides of the upper and of the lower halves.

    In a convex polygon the vertices above the line follow one another. The upper half is that run, then the point
    where the border leaves it and the point where it came in; the lower half is the other run and the same two.
    """
    rows = np.arange(len(sides))
    used = np.arange(vertices.shape[1]) < sides[:, None]
    above = above & used
    # whether the vertex before, around the polygon, is above
    before = np.take_along_axis(above, (np.arange(vertices.shape[1]) - 1) % sides[:, None], axis=1)
    first = (above & ~before).argmax(1)  # start of the run above
    run = above.sum(1)
    after = (first + run) % sides
    enter = _crossing(vertices, z, rows, (first - 1) % sides, first)
    leave = _crossing(vertices, z, rows, (after - 1) % sides, after)
    upper = _run(vertices, sides, first, run, leave, enter)
    lower = _run(vertices, sides, after, sides - run, enter, leave)
    return upper, run + 2, lower, sides - run + 2


def _crossing(vertices: NDArray, z: NDArray, rows: NDArray, i: NDArray, j: NDArray) -> NDArray:
    """Return the points ``(P, 2)`` where z is zero between the vertices i and j of each polygon."""
    # linear interpolation: z_i + share (z_j − z_i) = 0
    share = np.clip(z[rows, i] / (z[rows, i] - z[rows, j]), 0.0, 1.0)[:, None]
    return vertices[rows, i] + share * (vertices[rows, j] - vertices[rows, i])


def _run(
    vertices: NDArray, sides: NDArray, first: NDArray, run: NDArray, next_: NDArray, last: NDArray
) -> NDArray:
    """Return ``run`` vertices from ``first`` on, around the polygon, then two more points, the last repeated."""
    width = int(run.max()) + 2
    place = np.arange(width)
    order = (first[:, None] + place) % sides[:, None]
    taken = np.take_along_axis(vertices, order[:, :, None], axis=1)
    taken = np.where((place == run[:, None])[:, :, None], next_[:, None], taken)
    return np.where((place > run[:, None])[:, :, None], last[:, None], taken)


def _padded(vertices: NDArray, width: int) -> NDArray:
    """Repeat the last vertex up to this width."""
    missing = width - vertices.shape[1]
    return np.concatenate([vertices, np.repeat(vertices[:, -1:], missing, axis=1)], axis=1)


def _near(domain: NDArray) -> float:
    """Return the distance below which two points of a polygon are one; far from the origin rounding is larger."""
    rounding = 16 * np.finfo(float).eps * np.abs(domain).max()
    return float(MERGE * np.ptp(domain, axis=0).max() + rounding)


def _without_repeats(vertices: NDArray, sides: NDArray, near: float) -> tuple[NDArray, NDArray]:
    """Drop vertices that coincide with the one before, which lines through one point leave behind."""
    place = np.arange(vertices.shape[1])
    used = place < sides[:, None]
    before = np.take_along_axis(vertices, ((place - 1) % sides[:, None])[:, :, None], axis=1)
    kept = used & (np.linalg.norm(vertices - before, axis=-1) > near)
    if (kept == used).all():
        return vertices, sides
    remaining = np.maximum(kept.sum(1), 1)
    order = np.argsort(~kept, axis=1, kind="stable")
    order = np.where(
        place < remaining[:, None], order, np.take_along_axis(order, remaining[:, None] - 1, 1)
    )
    return np.take_along_axis(vertices, order[:, :, None], axis=1)[:, : remaining.max()], remaining


def _flatten(corners: ArrayLike, d: int) -> tuple[NDArray, NDArray, NDArray]:
    """Return the polygon in coordinates of its plane ``(k, 2)``, the plane's frame ``(2, d)`` and its origin."""
    polygon = np.asarray(corners, float)
    if polygon.ndim != 2 or len(polygon) < 3 or polygon.shape[1] != d or d < 2:
        raise UserError(
            f"corners must be at least three points of the network's {d} inputs in a plane, got shape {polygon.shape}"
        )
    if not np.isfinite(polygon).all():
        raise UserError("corners must be finite numbers")
    if d == 2:
        frame = np.eye(2)
        origin = np.zeros(2)
    else:
        origin = polygon.mean(0)
        # the plane is spanned by the two longest axes
        _, sizes, directions = np.linalg.svd(polygon - origin, full_matrices=False)
        if len(sizes) > 2 and sizes[2] > 1e-9 * sizes[0]:
            raise UserError("corners must lie in one plane, and these do not")
        frame = directions[:2]
    flat = (polygon - origin) @ frame.T
    turns = _turns(flat)
    size = np.ptp(flat, axis=0).max()
    if not ((turns > 1e-12 * size**2).all() or (turns < -1e-12 * size**2).all()) or _winds(flat):
        raise UserError(
            "corners must be those of a convex polygon in order, with no three on a line; give them in order"
        )
    return flat, frame, origin


def _turns(flat: NDArray) -> NDArray:
    edges = np.roll(flat, -1, axis=0) - flat
    following = np.roll(edges, -1, axis=0)
    # cross product of neighbouring edges: its sign is the turn
    return edges[:, 0] * following[:, 1] - edges[:, 1] * following[:, 0]


def _winds(flat: NDArray) -> bool:
    """Return whether a polygon that always turns one way goes round more than once, as a star does."""
    edges = np.roll(flat, -1, axis=0) - flat
    heading = np.unwrap(np.arctan2(edges[:, 1], edges[:, 0]))
    return bool(abs(heading[-1] - heading[0]) > 2 * np.pi)


def _areas(vertices: NDArray) -> NDArray:
    following = np.roll(vertices, -1, axis=1)
    # shoelace formula; repeated corners add nothing
    signed = vertices[..., 0] * following[..., 1] - vertices[..., 1] * following[..., 0]
    return np.abs(signed.sum(1)) / 2


def _perimeters(vertices: NDArray) -> NDArray:
    return np.linalg.norm(np.roll(vertices, -1, axis=1) - vertices, axis=-1).sum(1)


def _distances_to_edges(points: NDArray, domain: NDArray) -> NDArray:
    """Return the distances ``(m, edges)`` of points to the lines through the edges of the domain."""
    edges = np.roll(domain, -1, axis=0) - domain
    normals = np.column_stack([-edges[:, 1], edges[:, 0]]) / np.linalg.norm(edges, axis=1)[:, None]
    return np.abs(((points[:, None] - domain) * normals).sum(-1))
