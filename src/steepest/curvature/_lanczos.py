"""The top of the spectrum of a symmetric operator that is only known by its products with vectors."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float
from matfree.decomp import tridiag_sym

from steepest.errors import UserError
from steepest.types import Key, Params, Risk

Matvec = Callable[[Float[Array, " p"]], Float[Array, " p"]]


class Eigenpair(NamedTuple):
    """An approximate eigenpair that carries its own error.

    Attributes:
        value: the eigenvalue θ.
        vector: the unit eigenvector v, shape ``(p,)``.
        residual: ‖A v − θ v‖: some eigenvalue of A lies this close to θ.
        converged: whether the residual is below the tolerance times |θ|.
    """

    value: Float[Array, ""]
    vector: Float[Array, " p"]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def top_eigenpair(matvec: Matvec, start: Float[Array, " p"], products: int = 20, tolerance: float = 1e-2) -> Eigenpair:
    """The largest *algebraic* eigenvalue of a symmetric operator by Lanczos with full reorthogonalization.

    Args:
        matvec: v ↦ A v.
        start: where the Krylov space starts; a random vector, or the eigenvector of a nearby operator.
        products: the dimension of the Krylov space, at most p; one more product measures the residual.
        tolerance: relative residual that counts as converged.

    >>> A = jnp.diag(jnp.array([-9.0, 1.0, 4.0]))
    >>> pair = top_eigenpair(lambda v: A @ v, jnp.ones(3), products=3)
    >>> round(float(pair.value), 6), bool(pair.converged)
    (4.0, True)
    """
    if products < 1:
        raise UserError(f"Lanczos needs at least one product, got {products}")
    found = tridiag_sym(min(products, start.size), custom_vjp=False)(matvec, start)
    small, basis = _closed(jnp.asarray(found.J_small), jnp.asarray(found.Q_tall))
    vector = jnp.linalg.eigh(small)[1][:, -1] @ basis
    vector = vector / jnp.linalg.norm(vector)
    image = matvec(vector)  # one more product buys a residual that rounding cannot flatter
    value = vector @ image
    residual = jnp.linalg.norm(image - value * vector)
    return Eigenpair(value, vector, residual, residual <= tolerance * jnp.abs(value))


def _closed(small: Float[Array, "k k"], basis: Float[Array, "k p"]) -> tuple[Array, Array]:
    """Cut off what follows an invariant subspace: there links are 0/0 or rounding, and so are the basis vectors."""
    links, size = jnp.abs(jnp.diagonal(small, 1)), jnp.abs(small[0, 0]) + jnp.abs(small[:1, 1:2]).sum()
    alive = jnp.append(True, jnp.cumprod(links > 1e3 * jnp.finfo(small.dtype).eps * size).astype(bool))
    inside = jnp.where(alive[:, None] & alive, small, 0.0)
    floor = -4 * jnp.abs(inside).max() - 1  # below every eigenvalue of the part that is kept
    return inside + jnp.diag(jnp.where(alive, 0.0, floor)), jnp.where(alive[:, None], basis, 0.0)


def hessian_product(risk: Risk, params: Params) -> Matvec:
    """The product v ↦ H v with the Hessian of a risk, forward over reverse, on flat vectors of shape ``(p,)``."""
    flat, unflatten = ravel_pytree(params)
    gradient = jax.grad(lambda w: risk(unflatten(w)))
    return lambda v: jax.jvp(gradient, (flat,), (v,))[1]


def sharpness(risk: Risk, params: Params, key: Key, products: int = 20, tolerance: float = 1e-2) -> Eigenpair:
    """The sharpness: the largest algebraic eigenvalue of the Hessian of the risk, with its residual.

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
