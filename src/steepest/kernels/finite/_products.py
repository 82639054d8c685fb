"""Tangent kernels known only by their products with vectors."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from steepest.core.errors import UserError
from steepest.kernels._arguments import as_count, check_apply, check_key
from steepest.kernels.finite._blocks import Inputs
from steepest.linalg import Eigenpairs, Operator, largest_eigenpairs
from steepest.nn.types import Key, Network, Params

Apply = Callable[[Params, Array], Array]


def ntk_product(
    network: Network | Apply,
    params: Params,
    x: Float[Array, "n d"],
    other: Float[Array, "m d"] | None = None,
) -> Callable[[Array], Array]:
    """Return the product v ↦ Θ v with the tangent kernel of x and x', forward over reverse: no Jacobian is formed.

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
    second = x if other is None else other
    return _product(lambda p: apply(p, x), lambda p: apply(p, second), params)


def product_ntk(
    apply: Callable[..., Array], params: Params, x: Inputs, other: Inputs | None, traced: bool
) -> Array:
    """Compute Θ by its products with all unit vectors in turn: ``(n, m)`` or, not traced, ``(n, k, m, k)``."""
    second = x if other is None else other
    times = _product(lambda p: apply(p, *x), lambda p: apply(p, *second), params)
    out = jax.eval_shape(apply, params, *second)
    units = jnp.eye(out.size, dtype=out.dtype).reshape(out.size, *out.shape)
    columns = jax.lax.map(times, units)  # (m k, n, ...)
    shape = (out.shape[0], -1, len(x[0]), out.size // out.shape[0])
    # column (j, b) is Θ e_{jb}: to (n, k, m, k)
    whole = jnp.moveaxis(columns.reshape(shape), (0, 1), (2, 3))
    return jnp.einsum("iaja->ij", whole) if traced else whole


def output_of(apply: Callable[..., Any], params: Params, *x: Any) -> Any:
    """Return shapes and dtypes of the outputs.

    Raises:
        UserError: the function does not take these parameters and inputs.
    """
    try:
        return jax.eval_shape(apply, params, *x)
    except (TypeError, ValueError, AttributeError, IndexError, KeyError) as trouble:
        raise UserError(
            f"the network does not take these parameters and inputs: {type(trouble).__name__}: {trouble}"
        ) from trouble


def _product(
    first: Callable[[Params], Array], second: Callable[[Params], Array], params: Params
) -> Callable[[Array], Array]:
    """Return v ↦ J J'ᵀ v of the outputs at first and second inputs."""
    # J'ᵀ v by one backward pass, J of that by one forward pass
    back = jax.vjp(second, params)[1]
    forward = jax.linearize(first, params)[1]
    return lambda v: forward(*back(v))


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
    """Find the k largest eigenvalues of Θ/n and their eigenvectors, by Lanczos on products with Θ.

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

    Returns:
        Eigenpairs whose vectors have the shape of the outputs: ``(k, n)`` or ``(k, n, outputs)``.

    Raises:
        UserError: more eigenpairs than Θ has, or than products.

    >>> pairs = ntk_eigenpairs(lambda w, x: x @ w, jnp.ones(2), jnp.eye(2) * 2, 1, jax.random.key(0))
    >>> round(float(pairs.values[0]), 5)
    2.0
    """
    check_apply(network)
    check_key(key)
    k = as_count("k", k, 0)
    apply = network.apply if isinstance(network, Network) else network
    out = output_of(apply, params, x)
    products = min(2 * k + 20, out.size) if products is None else products
    if not 1 <= k <= products <= out.size:
        raise UserError(
            f"k eigenpairs need 1 <= k <= products <= {out.size} (examples times outputs), got k={k} and "
            f"products={products}"
        )
    start = jax.random.normal(key, (out.size,), out.dtype)
    pairs = largest_eigenpairs(
        _ntk_operator(apply, params, x), start / jnp.linalg.norm(start), k, products, tolerance
    )
    return pairs._replace(vectors=pairs.vectors.reshape(k, *out.shape))


def _ntk_operator(apply: Apply, params: Params, x: Float[Array, "n d"]) -> Operator:
    """Return Θ/n as an operator on flat vectors."""
    shape = jax.eval_shape(apply, params, x).shape
    times = ntk_product(apply, params, x)
    return lambda v: times(v.reshape(shape)).reshape(-1) / shape[0]
