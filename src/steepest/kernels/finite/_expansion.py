"""Networks expanded in their parameters: to first order, where the tangent kernel is all there is, and to second."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array

from steepest.nn.types import Network, Params

Apply = Callable[[Params, Array], Array]


def linearize(network: Network | Apply, center: Params) -> Apply:
    """Expand the network to first order, f(θ₀, x) + ∇f(θ₀, x)·(θ − θ₀), as a function of θ and x.

    Its tangent kernel does not move, and descent on it with the squared loss is a linear recursion.

    Args:
        network: a network, or its ``apply``.
        center: θ₀.

    Source: ORF 543, lecture "Pathologies of the NTK/GP regime".

    >>> square = lambda w, x: x * w**2
    >>> float(linearize(square, jnp.array(1.0))(jnp.array(3.0), jnp.array(1.0)))  # 1 + 2·2
    5.0
    """
    apply = network.apply if isinstance(network, Network) else network

    def linear(params: Params, x: Array) -> Array:
        value, slope = jax.jvp(lambda p: apply(p, x), (center,), (_difference(params, center),))
        return value + slope

    return linear


def quadratize(network: Network | Apply, center: Params) -> Apply:
    """Expand the network to second order, f + ∇f·δ + ½ δᵀ∇²f δ at θ₀ with δ = θ − θ₀, as a function of θ and x.

    The smallest model in which a kernel moves: it has the catapult of large steps.

    Args:
        network: a network, or its ``apply``.
        center: θ₀.

    Source: Zhu et al. 2022, "Quadratic models for understanding neural network dynamics".

    >>> square = lambda w, x: x * w**2
    >>> float(quadratize(square, jnp.array(1.0))(jnp.array(3.0), jnp.array(1.0)))  # 1 + 2·2 + 2²
    9.0
    """
    apply = network.apply if isinstance(network, Network) else network

    def quadratic(params: Params, x: Array) -> Array:
        step = _difference(params, center)
        outputs = lambda p: apply(p, x)
        along = lambda p: jax.jvp(outputs, (p,), (step,))
        # the derivative of (f, ∇f·δ) along δ once more: ∇f·δ and δᵀ∇²f δ
        (value, slope), (_, bend) = jax.jvp(along, (center,), (step,))
        return value + slope + bend / 2

    return quadratic


def _difference(params: Params, center: Params) -> Params:
    return jax.tree.map(lambda a, b: jnp.asarray(a - b, jnp.result_type(b)), params, center)
