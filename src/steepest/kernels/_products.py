"""Tangent kernels known only by their products with vectors."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float
from matfree.decomp import tridiag_sym

from steepest.errors import UserError
from steepest.types import Key, Network, Params

Apply = Callable[[Params, Array], Array]


class Eigenpairs(NamedTuple):
    """Approximate eigenpairs, largest first, that carry their own errors.

    Attributes:
        values: eigenvalues of Θ/n, shape ``(k,)``; NaN beyond an invariant subspace in which fewer were found.
        vectors: unit eigenvectors, one a row, of the shape of the outputs: ``(k, n)`` or ``(k, n, outputs)``.
        residuals: ‖Θv/n − θv‖, measured: some eigenvalue lies this close to θ.
        converged: whether the residual is below the tolerance times the largest eigenvalue.
    """

    values: Float[Array, " k"]
    vectors: Float[Array, "k ..."]
    residuals: Float[Array, " k"]
    converged: Bool[Array, " k"]


def ntk_product(
    network: Network | Apply, params: Params, x: Float[Array, "n d"], other: Float[Array, "m d"] | None = None
) -> Callable[[Array], Array]:
    """The product v ↦ Θ v with the tangent kernel of x and x', forward over reverse: no Jacobian is formed.

    A product costs about one pass of training on each set, whatever the numbers of parameters and outputs.

    Args:
        network: a network, or its ``apply``; any shape of outputs, and examples may interact.
        params: any pytree.
        x: inputs of the rows of Θ.
        other: inputs of its columns, by default x.

    Returns:
        A function from vectors of the shape of ``apply(params, other)`` to the shape of ``apply(params, x)``.

    >>> times = ntk_product(lambda w, x: x @ w, jnp.ones(2), jnp.array([[3.0, 4.0], [1.0, 0.0]]))
    >>> times(jnp.array([1.0, 0.0])).tolist()
    [25.0, 3.0]
    """
    apply = network.apply if isinstance(network, Network) else network
    back = jax.vjp(lambda p: apply(p, x if other is None else other), params)[1]
    forward = jax.linearize(lambda p: apply(p, x), params)[1]
    return lambda v: forward(*back(v))


def product_ntk(
    apply: Apply, params: Params, x: Float[Array, "n d"], other: Float[Array, "m d"] | None, traced: bool
) -> Array:
    """Θ by its products with all unit vectors, one after the other: ``(n, m)`` or, not traced, ``(n, k, m, k)``."""
    times = ntk_product(apply, params, x, other)
    out = jax.eval_shape(apply, params, x if other is None else other)
    units = jnp.eye(out.size, dtype=out.dtype).reshape(out.size, *out.shape)
    columns = jax.lax.map(times, units)  # (m k, n, ...)
    whole = jnp.moveaxis(columns.reshape(out.shape[0], -1, len(x), out.size // out.shape[0]), (0, 1), (2, 3))
    return jnp.einsum("iaja->ij", whole) if traced else whole


def ntk_eigenpairs(
    network: Network | Apply,
    params: Params,
    x: Float[Array, "n d"],
    k: int,
    key: Key,
    *,
    products: int | None = None,
    tolerance: float = 1e-3,
) -> Eigenpairs:
    """The k largest eigenvalues of Θ/n and their eigenvectors, by Lanczos on products with Θ.

    Lanczos from one start sees a repeated eigenvalue once: ask for more than one of a nearly degenerate group only
    with many products.

    Args:
        network: as for :func:`ntk_product`.
        params: any pytree.
        x: inputs.
        k: how many eigenpairs, at most the number of examples times outputs.
        key: random key of the start.
        products: the dimension of the Krylov space, by default 2k + 20 or the size of Θ; k more products measure the
            residuals.
        tolerance: relative to the largest eigenvalue, the residual that counts as converged.

    Raises:
        UserError: more eigenpairs than Θ has, or than products.

    >>> found = ntk_eigenpairs(lambda w, x: x @ w, jnp.ones(2), jnp.eye(2) * 2, 1, jax.random.key(0))
    >>> round(float(found.values[0]), 5)
    2.0
    """
    apply = network.apply if isinstance(network, Network) else network
    out = jax.eval_shape(apply, params, x)
    products = min(2 * k + 20, out.size) if products is None else products
    if not 1 <= k <= products <= out.size:
        raise UserError(
            f"k eigenpairs need 1 <= k <= products <= {out.size} (examples times outputs), got k={k} and "
            f"products={products}"
        )
    times = ntk_product(apply, params, x)
    matvec = lambda v: times(v.reshape(out.shape)).reshape(-1) / len(x)
    start = jax.random.normal(key, (out.size,), out.dtype)
    found = tridiag_sym(products, custom_vjp=False)(matvec, start / jnp.linalg.norm(start))
    small, basis, alive = _closed(jnp.asarray(found.J_small), jnp.asarray(found.Q_tall))
    inside = jnp.arange(k) < alive
    ritz = jnp.linalg.eigh(small)[1][:, ::-1][:, :k].T @ basis
    vectors = ritz / jnp.where(inside, jnp.linalg.norm(ritz, axis=1), 1)[:, None]
    images = jax.lax.map(matvec, vectors)  # k more products buy residuals that rounding cannot flatter
    values = jnp.where(inside, (vectors * images).sum(1), jnp.nan)
    residuals = jnp.linalg.norm(images - values[:, None] * vectors, axis=1)
    return Eigenpairs(values, vectors.reshape(k, *out.shape), residuals, residuals <= tolerance * values[0])


def _closed(small: Float[Array, "k k"], basis: Float[Array, "k p"]) -> tuple[Array, Array, Array]:
    """Cut off what follows an invariant subspace, where links are 0/0 or rounding; and its dimension.

    Θ has no negative eigenvalues, so that −1 stands below everything that is kept.
    """
    links = jnp.abs(jnp.diagonal(small, 1))
    size = jnp.abs(small[0, 0]) + jnp.abs(small[:1, 1:2]).sum()
    alive = jnp.append(True, jnp.cumprod(links > 1e3 * jnp.finfo(small.dtype).eps * size).astype(bool))
    inside = jnp.where(alive[:, None] & alive, small, 0.0) - jnp.diag(jnp.where(alive, 0.0, 1.0).astype(small.dtype))
    return inside, jnp.where(alive[:, None], basis, 0.0), alive.sum()
