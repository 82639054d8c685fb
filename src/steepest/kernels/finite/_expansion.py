"""Networks expanded in their parameters: to first order, where the tangent kernel is all there is, and beyond."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from steepest.core.given import whole
from steepest.core.signatures import checked
from steepest.nn.types import Network, Params

Apply = Callable[[Params, Any], Any]
"""Maps parameters and inputs to an array, or to a pytree of arrays."""


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
    return taylor_expand(network, center, 1)


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
    return taylor_expand(network, center, 2)


@checked
def taylor_expand(network: Network | Apply, center: Params, order: int) -> Apply:
    """Expand the network to any order, ``Σ_{k ≤ order} (1/k!) (δ·∇)^k f`` at θ₀ with δ = θ − θ₀.

    Time doubles with each order.

    Args:
        network: a network, or its ``apply``, which may also return a pytree of arrays.
        center: θ₀.
        order: of the last term, from 0 on.

    Raises:
        UserError: another order.

    >>> cube = lambda w, x: x * w**3
    >>> float(taylor_expand(cube, jnp.array(1.0), 3)(jnp.array(3.0), jnp.array(1.0)))
    27.0
    """
    order = whole("order", order)
    apply = network.apply if isinstance(network, Network) else network

    def expanded(params: Params, x: Any) -> Any:
        step = _difference(params, center)
        terms = _derivatives(lambda p: apply(p, x), step, order)(center)
        return jax.tree.map(_taylor_sum, *terms)

    return expanded


def _taylor_sum(*terms: Array) -> Array:
    """Return ``Σ_k terms_k / k!``."""
    return sum((term / math.factorial(k) for k, term in enumerate(terms[1:], 1)), terms[0])


def _derivatives(
    f: Callable[[Params], Array], step: Params, order: int
) -> Callable[[Params], tuple[Array, ...]]:
    """Return ``(δ·∇)^k f`` for all k up to the order, as a function of parameters."""
    if order == 0:
        return lambda p: (f(p),)
    lower = _derivatives(f, step, order - 1)

    def derivatives(p: Params) -> tuple[Array, ...]:
        # the tangents of all orders below along δ are these orders, each one higher
        values, slopes = jax.jvp(lower, (p,), (step,))
        return (*values, slopes[-1])

    return derivatives


def _difference(params: Params, center: Params) -> Params:
    return jax.tree.map(lambda a, b: jnp.asarray(a - b, jnp.result_type(b)), params, center)
