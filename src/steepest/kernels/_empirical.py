"""Tangent kernels of finite networks."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from steepest.types import Params


def empirical_ntk(
    apply: Callable[[Params, Array], Array], params: Params, x: Float[Array, "n d"]
) -> Float[Array, "n n"]:
    """The tangent kernel Θ_ij = ⟨∇f(x_i), ∇f(x_j)⟩ of a network with one scalar output, by its Jacobian.

    Args:
        apply: maps parameters and inputs ``(n, d)`` to outputs ``(n,)``.
        params: any pytree.
        x: inputs.

    >>> linear = lambda w, x: x @ w
    >>> empirical_ntk(linear, jnp.ones(2), jnp.array([[3.0, 4.0]])).tolist()
    [[25.0]]
    """
    jacobian = jax.jacrev(apply)(params, x)
    rows = jnp.concatenate([leaf.reshape(x.shape[0], -1) for leaf in jax.tree.leaves(jacobian)], axis=1)
    return rows @ rows.T


def ntk_top(apply: Callable[[Params, Array], Array], params: Params, x: Float[Array, "n d"]) -> Float[Array, ""]:
    """The largest eigenvalue of Θ/n.

    With the mean of ½(f − y)², descent on the linearized network is stable up to the step size 2 over it.
    """
    return jnp.linalg.eigvalsh(empirical_ntk(apply, params, x) / x.shape[0])[-1]
