"""The largest eigenpairs of a symmetric operator with their residuals, compiled by JAX."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from steepest.core.errors import UserError
from steepest.core.fields import Count, NonNegative
from steepest.core.given import call, dtype_kind, shape_of, shown
from steepest.core.signatures import checked
from steepest.krylov import Eigenpairs, Operator
from steepest.linalg._lanczos import krylov
from steepest.linalg._operators import hessian_product
from steepest.nn.types import Key, Params, Risk


@checked
def top_eigenpair(
    operator: Operator,
    start: Float[Array, " p"],
    products: Count = 20,
    tolerance: NonNegative = 1e-2,
) -> Eigenpairs:
    """Find the largest *algebraic* eigenvalue of a symmetric operator by Lanczos with full reorthogonalization.

    It is made of JAX alone, and can be compiled and mapped. The number of products is fixed, and with few of them a
    small residual may be that of another eigenvalue: ``top_eigenpairs`` says how likely there is a larger one.

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
    start = jnp.asarray(start)
    if not jnp.issubdtype(start.dtype, jnp.floating):
        raise UserError(f"start must be of floating numbers, got {shown(start)}; try jnp.ones(3)")
    operator = _onto_itself(operator)
    steps = min(products, start.size)
    space = krylov(operator, start, steps)
    vector = jnp.linalg.eigh(space.small)[1][:, -1] @ space.basis  # the largest Ritz vector
    vector = vector / jnp.linalg.norm(vector)
    image = operator(vector)  # one more product buys a residual that rounding cannot flatter
    value = vector @ image  # Rayleigh quotient: its error is quadratic in the residual
    # some eigenvalue lies this near to the value
    residual = jnp.linalg.norm(image - value * vector)
    converged = residual <= tolerance * jnp.abs(value)
    return Eigenpairs(value, vector, residual, converged, steps + 1)


def _onto_itself(operator: Operator) -> Operator:
    """Return an operator that refuses products of another shape or type than the vector's."""

    def multiply(vector: Array) -> Array:
        image = call("operator", operator, vector)
        alike = shape_of(image) == vector.shape and dtype_kind(image) in "fV"
        if not alike or jnp.asarray(image).dtype != vector.dtype:
            raise UserError(
                f"operator must return vectors like its own, {shown(vector)}, got {shown(image)}; try lambda v: A @ v"
            )
        return image

    return multiply


@checked
def largest_eigenpairs(
    operator: Operator,
    start: Float[Array, " p"],
    count: Count,
    products: Count,
    tolerance: NonNegative,
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
    # (count, p), the largest first
    ritz = jnp.linalg.eigh(space.small)[1][:, ::-1][:, :count].T @ space.basis
    vectors = ritz / jnp.where(inside, jnp.linalg.norm(ritz, axis=1), 1)[:, None]
    # more products buy residuals that rounding cannot flatter
    images = jax.lax.map(operator, vectors)
    values = jnp.where(inside, (vectors * images).sum(1), jnp.nan)
    residuals = jnp.linalg.norm(images - values[:, None] * vectors, axis=1)
    converged = residuals <= tolerance * values[0]
    return Eigenpairs(values, vectors, residuals, converged, products + count)


@checked
def sharpness(
    risk: Risk, params: Params, key: Key, products: Count = 20, tolerance: NonNegative = 1e-2
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
    if not jnp.issubdtype(flat.dtype, jnp.floating):
        raise UserError(f"params must be floating numbers, got {flat.dtype}; try jnp.ones(3)")
    start = jax.random.normal(key, flat.shape, flat.dtype)
    return top_eigenpair(hessian_product(risk, params), start, products, tolerance)
