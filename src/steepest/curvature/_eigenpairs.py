"""Several eigenpairs of a symmetric operator over flat vectors, with their residuals."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from steepest.curvature._threads import sequential
from steepest.errors import UserError, nearest

Products = Callable[[Float[np.ndarray, "*k p"]], Float[np.ndarray, "*k p"]]
"""A symmetric matrix by its products with one vector ``(p,)`` or with several ``(k, p)``."""

ORDER = {"largest": lambda values: -values, "smallest": lambda values: values, "magnitude": lambda values: -abs(values)}


class Eigenpairs(NamedTuple):
    """Approximate eigenpairs that carry their own errors, the most extreme one first.

    Attributes:
        values: eigenvalues θ, shape ``(k,)``.
        vectors: unit eigenvectors, one a row, shape ``(k, p)``.
        residuals: ‖A v − θ v‖, shape ``(k,)``: an eigenvalue of A lies this close to θ.
        converged: whether the residual is below the tolerance times the largest |θ|, or as small as rounding allows.
        products: products with vectors that it took.
    """

    values: Float[np.ndarray, " k"]
    vectors: Float[np.ndarray, "k p"]
    residuals: Float[np.ndarray, " k"]
    converged: Bool[np.ndarray, " k"]
    products: int


@sequential
def top_eigenpairs(
    products: Products,
    start: Float[np.ndarray, " p"],
    count: int = 1,
    *,
    which: Literal["largest", "smallest", "magnitude"] = "largest",
    tolerance: float = 1e-3,
    limit: int = 1000,
) -> Eigenpairs:
    """The most extreme eigenpairs, by Lanczos with thick restarts (Wu and Simon 2000).

    Of an eigenvalue that occurs several times, a Krylov space has one copy; the others come only with rounding, so that
    fewer than there are may be found.

    Args:
        products: of the matrix with vectors.
        start: where the Krylov space starts, ``(p,)``: a random vector; or, when the matrix has changed a little, the
            sum of the eigenvectors found last.
        count: how many eigenpairs.
        which: largest or smallest algebraic, or largest magnitude.
        tolerance: of the residuals, relative to the largest |θ|.
        limit: products with vectors, at least ``count``, after which what has been found is returned.

    Raises:
        UserError: an unknown ``which``; more eigenpairs than the matrix has; products that are not finite.

    >>> A = np.diag([-9.0, 1.0, 4.0, 2.0])
    >>> top_eigenpairs(lambda v: v @ A, np.ones(4), 2).values.round(6).tolist()
    [4.0, 2.0]
    """
    size, spent = len(start), 0
    if which not in ORDER:
        raise UserError(f"there are no {which!r} eigenpairs; {nearest(str(which), ORDER)}")
    if not 1 <= count <= size:
        raise UserError(f"a matrix of size {size} has 1 to {size} eigenpairs, got {count}")

    def counted(vectors: np.ndarray) -> np.ndarray:
        nonlocal spent
        spent += vectors.size // size
        images = products(vectors)
        if not np.isfinite(images).all():
            raise UserError("a product of the matrix with a vector is not finite, so that it has no eigenpairs")
        return images

    start = start.astype(np.result_type(start, np.float32))
    rows, images, floor = _ritz(counted, start, count, ORDER[which], tolerance, max(limit, count))
    values = np.einsum("kp,kp->k", rows, images)
    residuals = np.linalg.norm(images - values[:, None] * rows, axis=1)
    converged = residuals <= max(tolerance * np.abs(values).max(), floor)
    order = np.argsort(ORDER[which](values))
    return Eigenpairs(values[order], rows[order], residuals[order], converged[order], spent)


def row_by_row(product: Callable[[Any], Any]) -> Products:
    """Products with one vector as products with one or several.

    >>> row_by_row(lambda v: 2 * v)(np.eye(2)).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    return lambda v: np.stack([np.asarray(product(row)) for row in np.atleast_2d(v)]).reshape(np.shape(v))


def _ritz(
    product: Products, start: np.ndarray, count: int, order: Callable, tolerance: float, limit: int
) -> tuple[Float[np.ndarray, "k p"], Float[np.ndarray, "k p"], float]:
    """Unit Ritz vectors of a Krylov space and their images, and the residual of rounding.

    The space is cut back to its best part whenever it is full. The images are kept beside it, so that residuals cost
    no further products, and are those of true products whatever rounding did to the recurrence.
    """
    size, tiny = len(start), 100 * float(np.finfo(start.dtype).eps)
    rng = np.random.default_rng([size, 0x4B52])  # a seed that no caller's start comes from: a fresh direction is new
    room = min(size, max(2 * count + 1, 20))
    basis, images = np.zeros((room, size), start.dtype), np.zeros((room, size), start.dtype)
    small, pause = np.zeros((room, room), start.dtype), max(1, room // 20)
    new, k = start if start.any() else rng.standard_normal(size), 0
    for spent in range(1, limit + 1):
        basis[k] = _orthogonal(new, basis[:k])
        images[k], k = product(basis[k]), k + 1
        small[k - 1, :k] = small[:k, k - 1] = basis[:k] @ images[k - 1]
        rest = images[k - 1] - small[k - 1, :k] @ basis[:k]
        link = np.linalg.norm(rest)
        # an invariant space ends where nothing is left; a random direction goes on
        new = rest if link > tiny * np.linalg.norm(images[k - 1]) else rng.standard_normal(size)
        if k < room and spent < limit and (k <= 2 * count or k % pause):
            continue  # twice as many steps as pairs at least: fewer could miss a pair of which the start has little
        values, turn = np.linalg.eigh(small[:k, :k])
        best = np.argsort(order(values))
        values, turn = values[best], turn[:, best]
        floor = tiny * float(np.abs(values).max())
        errors = link * np.abs(turn[-1, :count])  # ‖A v − θ v‖, as A V = V T + rest eᵀ
        found = errors <= max(0.9 * tolerance * np.abs(values[:count]).max(), floor / 10)
        if found.all() or spent == limit or k == size:
            break
        if k == room:
            k = max(count + min(found.sum(), (room - count) // 2), room // 3)
            basis[:k], images[:k] = turn[:, :k].T @ basis, turn[:, :k].T @ images
            small[:] = np.diag(np.where(np.arange(room) < k, values, 0))
    rows, images = (turn[:, :count].T @ each[: len(turn)] for each in (basis, images))
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / sizes, images / sizes, floor


def _orthogonal(new: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """The unit vector along what a basis lacks of a new vector."""
    for _ in range(2):  # twice is enough (Giraud, Langou and Rozložník 2005)
        new = new - (basis @ new) @ basis
    return new / np.linalg.norm(new)
