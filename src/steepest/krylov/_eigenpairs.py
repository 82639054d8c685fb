"""Extreme eigenpairs of a symmetric operator with their residuals, by Lanczos with thick restarts."""

from collections.abc import Callable
from typing import Literal

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError
from steepest.core.given import vector, whole
from steepest.core.signatures import checked
from steepest.krylov._beyond import NEAR, Beyond
from steepest.krylov._operators import Eigenpairs, Operator
from steepest.krylov._space import ROUNDING, KrylovSpace, multiply
from steepest.krylov._threads import sequential

MISSED = 1e-3
"""How likely an eigenvalue beyond the bound may be."""
ORDER = {
    "largest": lambda values: -values,
    "smallest": lambda values: values,
    "magnitude": lambda values: -abs(values),
}


@checked
@sequential
def top_eigenpairs(
    operator: Operator,
    start: Float[np.ndarray, " p"],
    count: int = 1,
    *,
    which: Literal["largest", "smallest", "magnitude"] = "largest",
    tolerance: float = 1e-3,
    limit: int = 1000,
    missed: float | None = MISSED,
) -> Eigenpairs:
    """Find the most extreme eigenpairs and a bound of the spectrum, by Lanczos with thick restarts (Wu and Simon 2000).

    Small residuals show eigenpairs, and not that they are the most extreme ones: of those the start may have little. So
    the search goes on until a random start would have shown, but with the probability ``missed``, whatever eigenvalue
    lies beyond the wanted ones or between them by more than the tolerance, or a thousandth; or until it has taken twice
    the products of the residuals, and thirty. What is known then is the ``bound``, by van Dorsselaer, Hochstenbach and
    van der Vorst (2001). With several pairs the probability is that of each.

    Of an eigenvalue that occurs several times, a Krylov space has one copy; the others come only with rounding, so that
    fewer than there are may be found.

    Args:
        operator: products of the matrix with vectors, in NumPy.
        start: where the Krylov space starts, ``(p,)``: a random vector; or, when the matrix has changed a little, the
            sum of the eigenvectors found last. As much of a random vector is added, since eigenvectors of before may
            have nothing of a new one.
        count: how many eigenpairs.
        which: largest or smallest algebraic, or largest magnitude.
        tolerance: of the residuals, relative to the largest |θ|.
        limit: products with vectors, at least ``count``, after which what has been found is returned.
        missed: see above, in (0, 1); None to stop with small residuals from the start as it is, without a bound.

    Raises:
        UserError: an unknown ``which``; more eigenpairs than the matrix has; a ``missed`` that is no probability;
            products that are not finite.

    >>> A = np.diag([-9.0, 1.0, 4.0, 2.0])
    >>> pairs = top_eigenpairs(lambda v: v @ A, np.ones(4), 2)
    >>> pairs.values.round(6).tolist(), round(pairs.bound, 6), pairs.missed
    ([4.0, 2.0], 4.0, 0.001)
    """
    start = vector("start", start)
    size = len(start)
    if not 1 <= whole("count", count) <= size:
        raise UserError(f"a matrix of size {size} has 1 to {size} eigenpairs, got {count}")
    if missed is not None and not 0 < missed < 1:
        raise UserError(f"missed is a probability in (0, 1), or None for no bound, got {missed}")
    start = start.astype(np.result_type(start, np.float32))
    # a seed that no caller's start comes from: a fresh direction is new
    rng = np.random.default_rng([size, 0x4B52])
    order = ORDER[which]
    beyond = None if missed is None else Beyond(start, count, which, order, missed, rng)
    first = start if beyond is None else beyond.start
    rows, images, floor, bound, spent = _ritz(
        operator, first, count, order, tolerance, max(limit, count), beyond, rng
    )
    values = np.einsum("kp,kp->k", rows, images)  # Rayleigh quotients
    residuals = np.linalg.norm(images - values[:, None] * rows, axis=1)
    converged = residuals <= max(tolerance * np.abs(values).max(), floor)
    best = np.argsort(order(values))
    return Eigenpairs(
        values[best], rows[best], residuals[best], converged[best], spent, bound, missed
    )


def _ritz(
    operator: Operator,
    start: np.ndarray,
    count: int,
    order: Callable,
    tolerance: float,
    limit: int,
    beyond: Beyond | None,
    rng: np.random.Generator,
) -> tuple[Float[np.ndarray, "k p"], Float[np.ndarray, "k p"], float, float | None, int]:
    """Return unit Ritz vectors of a Krylov space and their images, the residual of rounding, the bound, the products.

    The space is cut back to its best part whenever it is full. The images are kept beside it, so that residuals cost
    no further products, and are those of true products whatever rounding did to the recurrence.
    """
    size = len(start)
    room = min(size, max(2 * count + 1, 20))
    pause = max(1, room // 20)
    first = start if start.any() else rng.standard_normal(size)
    space = KrylovSpace(first, room, start.dtype, images=True)
    for spent in range(1, limit + 1):
        space.grow(multiply(operator, space.direction(), "eigenpairs"))
        if space.ended:
            space.redirect(rng.standard_normal(size))
            if beyond is not None:
                beyond.exhausted = True
        k = space.count
        if k < room and spent < limit and (k <= 2 * count or k % pause):
            continue  # twice as many steps as pairs at least: fewer could miss a pair of which the start has little
        values, turn = np.linalg.eigh(space.small[:k, :k])
        best = np.argsort(order(values))
        values = values[best]
        turn = turn[:, best]
        largest = np.abs(values[:count]).max()
        # residuals below this are rounding
        floor = ROUNDING * float(np.finfo(start.dtype).eps) * float(np.abs(values).max())
        errors = space.link * np.abs(turn[-1, :count])  # ‖A v − θ v‖, as A V = V T + r eᵀ
        settled = errors <= max(0.9 * tolerance * largest, floor / 10)
        if spent == limit or k == size:
            break
        near = max(max(NEAR, tolerance) * largest, floor)
        if settled.all() and (beyond is None or beyond.is_known(space, values, near, spent)):
            break
        if k == room:
            restart = max(count + min(settled.sum(), (room - count) // 2), room // 3)
            space.cut(values, turn, restart)
    # Ritz vectors, and their images A v by linearity
    rows = turn[:, :count].T @ space.basis[: len(turn)]
    images = turn[:, :count].T @ space.images[: len(turn)]
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    bound = None if beyond is None else beyond.bound(space, values, floor)
    return rows / sizes, images / sizes, floor, bound, spent
