"""The cells into which hyperplanes cut space: which they are, how many, and which of them are bounded."""

from itertools import combinations, islice
from math import comb
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.linalg import sequential

# Distances and lengths below this, of hyperplanes with normals of length one, count as zero.
_ZERO = 1e-9


class Cells(NamedTuple):
    """The cells of an arrangement of n hyperplanes in d dimensions.

    Attributes:
        signs: on which side of each hyperplane a cell lies, shape ``(cells, n)``: True where w·x + b > 0.
        points: a point inside of each cell, shape ``(cells, d)``, which proves that the cell is there.
    """

    signs: Bool[np.ndarray, "cells n"]
    points: Float[np.ndarray, "cells d"]


@checked
@sequential
def cells(normals: Float[Any, "n d"], offsets: Float[Any, " n"]) -> Cells:
    """Find the cells into which the hyperplanes ``w_j·x + b_j = 0`` cut space, one point in each.

    Hyperplanes are added one after the other. A new one cuts in two the cells that it meets; those are the cells which
    the earlier hyperplanes cut *on it*, one dimension lower (deletion and restriction). General position is not
    needed: hyperplanes may be parallel, coincide or meet in one point. The points prove that cells exist; that none is
    missing is the recurrence that Zaslavsky's formula follows from, so that equal counts alone are no test of it.
    The time grows like the number of cells times n and min(n, d).

    Args:
        normals: w, shape ``(n, d)``, none of them zero.
        offsets: b, shape ``(n,)``.

    Raises:
        UserError: if shapes do not fit, an entry is not finite, or a normal is zero.

    Source: Zaslavsky 1975; ORF 543, lecture 12/5, Example 2.

    >>> lines = cells([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 0.0, -1.0])
    >>> len(lines.signs), cell_count(3, 2)  # three lines in general position
    (7, 7)
    >>> len(cells([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 0.0, 0.0]).signs)  # through one point
    6
    """
    w, b = _read(normals, offsets)
    if len(w) < w.shape[1]:  # nothing changes orthogonally to all normals
        basis = np.linalg.qr(w.T)[0]  # basis of the normals' span, (d, n)
        points = _witnesses(w @ basis, b) @ basis.T
    else:
        points = _witnesses(w, b)
    return Cells(points @ w.T + b > 0, points)


@checked
def bounded_cells(
    normals: Float[Any, "n d"], signs: Bool[Any, "cells n"]
) -> Bool[np.ndarray, " cells"]:
    """Say which cells are bounded, by linear programs: no direction leaves a bounded cell's hyperplanes behind.

    A cell with the signs s is unbounded if some v ≠ 0 has ``s_j w_j·v ≥ 0`` for all j. If the normals span the space
    that is so if ``max Σ_j s_j w_j·v`` over those v in the box [−1, 1]^d is positive. All cells are one sparse program.

    Args:
        normals: w, shape ``(n, d)``.
        signs: of the cells, shape ``(cells, n)``, as :func:`cells` gives them.

    Raises:
        UserError: if shapes do not fit, an entry is not finite, or a normal is zero.

    >>> w = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    >>> int(bounded_cells(w, cells(w, [0.0, 0.0, -1.0]).signs).sum())  # the triangle
    1
    """
    from scipy.optimize import linprog
    from scipy.sparse import block_diag, csr_array

    signs = np.asarray(signs, bool)
    w, _ = _read(normals, np.zeros(len(np.atleast_1d(normals))))
    if signs.ndim != 2 or signs.shape[1] != len(w):
        raise UserError(
            f"bounded_cells: expected signs of shape (cells, {len(w)}), one for each hyperplane, got {signs.shape}"
        )
    d = w.shape[1]
    if np.linalg.matrix_rank(w) < d:
        return np.zeros(len(signs), bool)  # every cell contains a whole line
    # s_j w_j
    inward = np.where(signs, 1.0, -1.0)[..., None] * w  # (cells, n, d)
    rows = csr_array(block_diag(list(-inward)))
    solution = linprog(
        -inward.sum(1).ravel(),
        A_ub=rows,
        b_ub=np.zeros(signs.size),
        bounds=(-1, 1),
        method="highs-ds",
    )
    directions = solution.x.reshape(-1, d)
    # Σ_j s_j w_j·v of the best v: zero if v = 0 alone does
    return (inward.sum(1) * directions).sum(1) < _ZERO


@checked
def cell_count(planes: int, dimension: int) -> int:
    """Count the cells of n hyperplanes in general position, ``Σ_{i≤d} C(n, i)``.

    >>> [cell_count(n, 2) for n in range(5)]
    [1, 2, 4, 7, 11]
    """
    _check_sizes(planes, dimension)
    return sum(comb(planes, i) for i in range(dimension + 1))


@checked
def bounded_cell_count(planes: int, dimension: int) -> int:
    """Count the bounded cells of n hyperplanes in general position, ``C(n − 1, d)``.

    >>> [bounded_cell_count(n, 2) for n in range(1, 6)]
    [0, 0, 1, 3, 6]
    """
    _check_sizes(planes, dimension)
    return comb(planes - 1, dimension) if planes else 0


@checked
def central_cell_count(planes: int, dimension: int) -> int:
    """Count the cells of n hyperplanes through the origin, else in general position, ``2 Σ_{i<d} C(n − 1, i)``.

    So many dichotomies of n points, in general position with the origin, do hyperplanes through the origin make.

    Source: Cover 1965.

    >>> [central_cell_count(n, 2) for n in range(1, 5)]
    [2, 4, 6, 8]
    """
    _check_sizes(planes, dimension)
    return 2 * sum(comb(planes - 1, i) for i in range(dimension)) if planes else 1


@checked
def parallel_cell_count(parallel: tuple[int, ...], dimension: int) -> int:
    """Count the cells of hyperplanes in general directions, of which r_i are parallel in direction i.

    The count is ``Σ_{j≤d} e_j(r)`` with the elementary symmetric polynomials e_j: of each direction a vertex, or any
    other intersection, takes one hyperplane or none.

    >>> parallel_cell_count((3, 3, 3, 3), 3), cell_count(12, 3)
    (175, 299)
    """
    sums = [1] + [0] * dimension
    for number in parallel:
        for order in range(dimension, 0, -1):
            sums[order] += number * sums[order - 1]  # e_j(r, r') = e_j(r) + r' e_{j−1}(r)
    _check_sizes(sum(parallel), dimension)
    return sum(sums)


@checked
def general_position(normals: Float[Any, "n d"], offsets: Float[Any, " n"]) -> float:
    """Measure how far hyperplanes are from not being in general position: zero where they are not.

    In general position any d normals are independent, and no d + 1 hyperplanes meet. The number is the smallest
    singular value of any min(n, d) normals, and of any d + 1 rows ``(w_j, b_j)``, each row scaled to length one.

    Raises:
        UserError: if shapes do not fit, an entry is not finite, or a normal is zero.

    >>> general_position([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 0.0, -1.0]) > 0.1
    True
    >>> general_position([[1.0, 0.0], [1.0, 0.0]], [0.0, 1.0])
    0.0
    """
    w, b = _read(normals, offsets)
    n, d = w.shape
    bordered = np.column_stack([w, b])
    bordered /= np.linalg.norm(bordered, axis=1, keepdims=True)
    least = _least_value(w, min(n, d))
    # parallel or meeting hyperplanes make one of the two zero
    return min(least, _least_value(bordered, d + 1)) if n > d else least


@sequential
def _least_value(rows: NDArray, number: int) -> float:
    """Return the smallest singular value of any so many of the rows, a million entries at a time."""
    choices = combinations(range(len(rows)), number)
    least = np.inf
    while chosen := list(islice(choices, 10**6 // number**2 + 1)):
        values = np.linalg.svd(rows[np.array(chosen)], compute_uv=False)
        least = min(least, float(values[:, -1].min()))
    return least if least > _ZERO else 0.0


def _read(normals: Any, offsets: Any) -> tuple[NDArray, NDArray]:
    """Return normals of length one and the offsets that belong to them."""
    w = np.asarray(normals, float)
    b = np.asarray(offsets, float)
    if w.ndim != 2 or 0 in w.shape or b.shape != w.shape[:1]:
        raise UserError(
            f"an arrangement needs normals of shape (n, d) and offsets of shape (n,), got {w.shape} and {b.shape}"
        )
    if not (np.isfinite(w).all() and np.isfinite(b).all()):
        raise UserError("normals and offsets of hyperplanes must be finite numbers")
    lengths = np.linalg.norm(w, axis=1)
    if not lengths.all():
        raise UserError(
            f"a hyperplane needs a normal that is not zero, and number {int(lengths.argmin())} is; leave it out"
        )
    return w / lengths[:, None], b / lengths


def _check_sizes(planes: int, dimension: int) -> None:
    if planes < 0 or dimension < 0:
        raise UserError(
            f"a count of cells needs numbers that are not negative, got {planes} hyperplanes in dimension {dimension}"
        )


def _witnesses(w: NDArray, b: NDArray) -> NDArray:
    """Return a point in each cell, shape ``(cells, d)``; normals have length one."""
    if w.shape[1] == 1:
        return _intervals(w, b)
    points = np.zeros((1, w.shape[1]))
    for k in range(len(w)):
        points = _cut(points, w[:k], b[:k], w[k], b[k])
    return points


def _intervals(w: NDArray, b: NDArray) -> NDArray:
    """Return a point between any two neighbours on a line, and one beyond each end, shape ``(cells, 1)``."""
    ends = np.sort(-b / w[:, 0]) if len(w) else np.zeros(0)  # zeros of w x + b
    if not len(ends):
        return np.zeros((1, 1))
    ends = ends[np.concatenate([[True], np.diff(ends) > _ZERO])]
    middles = (ends[1:] + ends[:-1]) / 2
    return np.concatenate([[ends[0] - 1], middles, [ends[-1] + 1]])[:, None]


def _beside(normal: NDArray) -> NDArray:
    """Return orthonormal rows ``(d − 1, d)`` orthogonal to a vector of length one, by Householder's reflection."""
    turned = normal.copy()
    turned[0] += np.copysign(1.0, normal[0])  # the sign that does not cancel
    turned /= np.linalg.norm(turned)
    # the reflection takes the normal to ∓e_1, so that its other rows are orthogonal to the normal
    return np.eye(len(normal))[1:] - 2 * np.outer(turned[1:], turned)


def _cut(points: NDArray, w: NDArray, b: NDArray, normal: NDArray, offset: float) -> NDArray:
    """Return a point in each cell after one hyperplane more: two in the cells that it meets."""
    # on the hyperplane, x = foot + y @ along, with orthonormal rows along
    foot = -offset * normal
    along = _beside(normal)  # orthonormal rows, (d − 1, d)
    lower = w @ along.T  # normals within the hyperplane, (k, d − 1)
    shifts = w @ foot + b  # heights at y = 0
    lengths = np.linalg.norm(lower, axis=1)
    parallel = lengths < _ZERO
    if (np.abs(shifts[parallel]) < _ZERO).any():
        return points  # it is there already
    kept = ~parallel
    # unit normals again, one dimension lower
    on_it = _witnesses(lower[kept] / lengths[kept, None], shifts[kept] / lengths[kept])
    meets = foot + on_it @ along  # one in each cell that it cuts
    heights = meets @ w.T + b
    # half the way to the nearest hyperplane on either side
    steps = np.abs(heights).min(1, initial=2.0)[:, None] / 2 * normal
    cut_cells = {row.tobytes() for row in heights > 0}
    whole = [row.tobytes() not in cut_cells for row in points @ w.T + b > 0]
    return np.concatenate([points[whole], meets + steps, meets - steps])
