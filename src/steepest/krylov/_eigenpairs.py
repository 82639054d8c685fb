"""Extreme eigenpairs of a symmetric operator with their residuals, by Lanczos with thick restarts."""

from collections.abc import Callable
from typing import Literal

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError, nearest
from steepest.krylov._operators import Eigenpairs, Operator
from steepest.krylov._space import ROUNDING, KrylovSpace, multiply
from steepest.krylov._threads import sequential

ORDER = {
    "largest": lambda values: -values,
    "smallest": lambda values: values,
    "magnitude": lambda values: -abs(values),
}


@sequential
def top_eigenpairs(
    operator: Operator,
    start: Float[np.ndarray, " p"],
    count: int = 1,
    *,
    which: Literal["largest", "smallest", "magnitude"] = "largest",
    tolerance: float = 1e-3,
    limit: int = 1000,
) -> Eigenpairs:
    """Find the most extreme eigenpairs, by Lanczos with thick restarts (Wu and Simon 2000).

    Of an eigenvalue that occurs several times, a Krylov space has one copy; the others come only with rounding, so that
    fewer than there are may be found.

    Args:
        operator: products of the matrix with vectors, in NumPy.
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
    size = len(start)
    if which not in ORDER:
        raise UserError(f"there are no {which!r} eigenpairs; {nearest(str(which), ORDER)}")
    if not 1 <= count <= size:
        raise UserError(f"a matrix of size {size} has 1 to {size} eigenpairs, got {count}")
    start = start.astype(np.result_type(start, np.float32))
    rows, images, floor, spent = _ritz(
        operator, start, count, ORDER[which], tolerance, max(limit, count)
    )
    values = np.einsum("kp,kp->k", rows, images)
    residuals = np.linalg.norm(images - values[:, None] * rows, axis=1)
    converged = residuals <= max(tolerance * np.abs(values).max(), floor)
    order = np.argsort(ORDER[which](values))
    return Eigenpairs(values[order], rows[order], residuals[order], converged[order], spent)


def _ritz(
    operator: Operator,
    start: np.ndarray,
    count: int,
    order: Callable,
    tolerance: float,
    limit: int,
) -> tuple[Float[np.ndarray, "k p"], Float[np.ndarray, "k p"], float, int]:
    """Return unit Ritz vectors of a Krylov space and their images, the residual of rounding, and the products.

    The space is cut back to its best part whenever it is full. The images are kept beside it, so that residuals cost
    no further products, and are those of true products whatever rounding did to the recurrence.
    """
    size = len(start)
    # a seed that no caller's start comes from: a fresh direction is new
    rng = np.random.default_rng([size, 0x4B52])
    room = min(size, max(2 * count + 1, 20))
    pause = max(1, room // 20)
    first = start if start.any() else rng.standard_normal(size)
    space = KrylovSpace(first, room, start.dtype, images=True)
    for spent in range(1, limit + 1):
        space.grow(multiply(operator, space.direction(), "eigenpairs"))
        if space.ended:
            space.redirect(rng.standard_normal(size))
        k = space.count
        if k < room and spent < limit and (k <= 2 * count or k % pause):
            continue  # twice as many steps as pairs at least: fewer could miss a pair of which the start has little
        values, turn = np.linalg.eigh(space.small[:k, :k])
        best = np.argsort(order(values))
        values = values[best]
        turn = turn[:, best]
        floor = ROUNDING * float(np.finfo(start.dtype).eps) * float(np.abs(values).max())
        errors = space.link * np.abs(turn[-1, :count])  # ‖A v − θ v‖, as A V = V T + r eᵀ
        settled = errors <= max(0.9 * tolerance * np.abs(values[:count]).max(), floor / 10)
        if settled.all() or spent == limit or k == size:
            break
        if k == room:
            restart = max(count + min(settled.sum(), (room - count) // 2), room // 3)
            space.cut(values, turn, restart)
    rows = turn[:, :count].T @ space.basis[: len(turn)]
    images = turn[:, :count].T @ space.images[: len(turn)]
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / sizes, images / sizes, floor, spent
