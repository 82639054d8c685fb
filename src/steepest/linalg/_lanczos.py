"""The Krylov space of a symmetric operator, compiled by JAX; that of :mod:`steepest.krylov` grows on the host."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from matfree.decomp import tridiag_sym

from steepest.krylov import Operator

ROUNDING_COMPILED = 1e3
"""Links below so many units of rounding, relative to the size of T, end a space: no direction replaces a lost one."""


class Krylov(NamedTuple):
    """A compiled Krylov space, closed where it ends.

    Attributes:
        small: T, shape ``(k, k)``; after the end a diagonal below all its eigenvalues.
        basis: orthonormal rows, shape ``(k, p)``; zero after the end.
        dimension: of the part before the end.
    """

    small: Float[Array, "k k"]
    basis: Float[Array, "k p"]
    dimension: Int[Array, ""]


def krylov(operator: Operator, start: Float[Array, " p"], steps: int) -> Krylov:
    """Build the Krylov space of so many products, to be traced by JAX.

    What follows an invariant subspace is cut off: there links are 0/0 or rounding, and so are the basis vectors.
    """
    decomposition = tridiag_sym(steps, custom_vjp=False)(operator, start)
    small = jnp.asarray(decomposition.J_small)
    basis = jnp.asarray(decomposition.Q_tall)
    links = jnp.abs(jnp.diagonal(small, 1))
    size = jnp.abs(small[0, 0]) + jnp.abs(small[:1, 1:2]).sum()  # size of T at its start
    linked = links > ROUNDING_COMPILED * jnp.finfo(small.dtype).eps * size
    # nothing counts after the first link that is rounding
    alive = jnp.append(True, jnp.cumprod(linked).astype(bool))
    inside = jnp.where(alive[:, None] & alive, small, 0.0)
    floor = -4 * jnp.abs(inside).max() - 1  # below every eigenvalue of the part that is kept
    closed = inside + jnp.diag(jnp.where(alive, 0.0, floor))
    return Krylov(closed, jnp.where(alive[:, None], basis, 0.0), alive.sum())
