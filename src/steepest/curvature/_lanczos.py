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
        products: how many products A v, at most p are used.
        tolerance: relative residual that counts as converged.

    >>> A = jnp.diag(jnp.array([-9.0, 1.0, 4.0]))
    >>> pair = top_eigenpair(lambda v: A @ v, jnp.ones(3), products=3)
    >>> round(float(pair.value), 6), bool(pair.converged)
    (4.0, True)
    """
    if products < 1:
        raise UserError(f"Lanczos needs at least one product, got {products}")
    basis, small, rest, _ = tridiag_sym(min(products, start.size), custom_vjp=False)(matvec, start)
    values, vectors = jnp.linalg.eigh(small)
    # basis is (k, p) with A Qᵀ = Qᵀ T + rest e_kᵀ, so A v − θ v = rest · (last entry of T's eigenvector)
    residual = jnp.linalg.norm(rest) * jnp.abs(vectors[-1, -1])
    vector = vectors[:, -1] @ basis
    return Eigenpair(values[-1], vector, residual, residual <= tolerance * jnp.abs(values[-1]))


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
