"""Extreme eigenpairs of a symmetric operator with their residuals, on the host or compiled."""

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from steepest.core.errors import UserError, nearest
from steepest.linalg._lanczos import ROUNDING, KrylovSpace, krylov, multiply
from steepest.linalg._operators import Eigenpairs, Operator, hessian_product
from steepest.linalg._threads import sequential
from steepest.nn.types import Key, Params, Risk

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
            kept = max(count + min(settled.sum(), (room - count) // 2), room // 3)
            space.cut(values, turn, kept)
    rows = turn[:, :count].T @ space.basis[: len(turn)]
    images = turn[:, :count].T @ space.images[: len(turn)]
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / sizes, images / sizes, floor, spent


def top_eigenpair(
    operator: Operator, start: Float[Array, " p"], products: int = 20, tolerance: float = 1e-2
) -> Eigenpairs:
    """Find the largest *algebraic* eigenvalue of a symmetric operator by Lanczos with full reorthogonalization.

    It is made of JAX alone, and can be compiled and mapped.

    Args:
        operator: v ↦ A v.
        start: where the Krylov space starts; a random vector, or the eigenvector of a nearby operator.
        products: the dimension of the Krylov space, at most p; one more product measures the residual.
        tolerance: relative residual that counts as converged.

    Returns:
        One pair: ``value``, ``vector``, ``residual`` and ``converged``.

    >>> A = jnp.diag(jnp.array([-9.0, 1.0, 4.0]))
    >>> pair = top_eigenpair(lambda v: A @ v, jnp.ones(3), products=3)
    >>> round(float(pair.value), 6), bool(pair.converged)
    (4.0, True)
    """
    if products < 1:
        raise UserError(f"Lanczos needs at least one product, got {products}")
    steps = min(products, start.size)
    space = krylov(operator, start, steps)
    vector = jnp.linalg.eigh(space.small)[1][:, -1] @ space.basis
    vector = vector / jnp.linalg.norm(vector)
    image = operator(vector)  # one more product buys a residual that rounding cannot flatter
    value = vector @ image
    residual = jnp.linalg.norm(image - value * vector)
    converged = residual <= tolerance * jnp.abs(value)
    return Eigenpairs(value, vector, residual, converged, steps + 1)


def largest_eigenpairs(
    operator: Operator, start: Float[Array, " p"], count: int, products: int, tolerance: float
) -> Eigenpairs:
    """Find the largest eigenpairs of a positive semidefinite operator by Lanczos, to be traced by JAX.

    Args:
        operator: v ↦ A v.
        start: where the Krylov space starts.
        count: k, how many pairs.
        products: the dimension of the Krylov space, from k to p; k more products measure the residuals.
        tolerance: relative to the largest eigenvalue, the residual that counts as converged.

    >>> A = jnp.diag(jnp.array([9.0, 1.0, 4.0]))
    >>> largest_eigenpairs(lambda v: A @ v, jnp.ones(3), 2, 3, 1e-3).values.round(5).tolist()
    [9.0, 4.0]
    """
    space = krylov(operator, start, products)
    inside = jnp.arange(count) < space.dimension
    ritz = jnp.linalg.eigh(space.small)[1][:, ::-1][:, :count].T @ space.basis
    vectors = ritz / jnp.where(inside, jnp.linalg.norm(ritz, axis=1), 1)[:, None]
    # more products buy residuals that rounding cannot flatter
    images = jax.lax.map(operator, vectors)
    values = jnp.where(inside, (vectors * images).sum(1), jnp.nan)
    residuals = jnp.linalg.norm(images - values[:, None] * vectors, axis=1)
    converged = residuals <= tolerance * values[0]
    return Eigenpairs(values, vectors, residuals, converged, products + count)


def sharpness(
    risk: Risk, params: Params, key: Key, products: int = 20, tolerance: float = 1e-2
) -> Eigenpairs:
    """Compute the sharpness: the largest algebraic eigenvalue of the Hessian of the risk, with its residual.

    With the squared loss ½‖f − y‖² summed over outputs and averaged over examples this is *not* the sharpness of
    losses that also average over outputs (a factor of outputs/2 apart).

    Source: Cohen et al. 2021.

    >>> pair = sharpness(lambda w: 0.5 * (3 * w[0] ** 2 - 7 * w[1] ** 2), jnp.ones(2), jax.random.key(0), products=2)
    >>> round(float(pair.value), 6)
    3.0
    """
    flat, _ = ravel_pytree(params)
    start = jax.random.normal(key, flat.shape, flat.dtype)
    return top_eigenpair(hessian_product(risk, params), start, products, tolerance)
