"""Tangent kernels of finite networks: as matrices, by the cheapest of three ways."""

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from steepest.core.errors import UserError, nearest
from steepest.kernels.finite._jacobian import jacobian_ntk
from steepest.kernels.finite._layerwise import layerwise_ntk
from steepest.kernels.finite._products import product_ntk
from steepest.nn.networks import Mlp
from steepest.nn.types import Network, Params

Method = Literal["auto", "jacobian", "layerwise", "vectors"]
Outputs = Literal["scalar", "trace", "all"]
METHODS = ("auto", "jacobian", "layerwise", "vectors")
OUTPUTS = ("scalar", "trace", "all")


def empirical_ntk(
    network: Network | Callable[[Params, Array], Array],
    params: Params,
    x: Float[Array, "n d"],
    other: Float[Array, "m d"] | None = None,
    *,
    method: Method = "auto",
    outputs: Outputs = "scalar",
) -> Array:
    """Compute the tangent kernel Θ_ij = ⟨∇f(x_i), ∇f(x'_j)⟩ of a network at these parameters.

    Args:
        network: a network, or its ``apply``, which maps parameters and inputs ``(n, d)`` to outputs ``(n,)`` or
            ``(n, k)``.
        params: any pytree.
        x: inputs.
        other: the inputs x', by default x again.
        method: ``"layerwise"`` sums over the layers of an ``Mlp`` and never holds a Jacobian; ``"jacobian"``
            contracts the Jacobian leaf by leaf, in blocks of examples, so that memory stays bounded; ``"vectors"``
            multiplies Θ with every unit vector, which needs least memory, and is the only way that allows examples
            to interact, as in batch normalization. ``"auto"`` takes layerwise for an ``Mlp``, else jacobian.
        outputs: ``"scalar"`` for one output; with k outputs, ``"all"`` gives ⟨∇f_a(x_i), ∇f_b(x'_j)⟩ and
            ``"trace"`` its sum (not its mean) over a = b.

    Returns:
        Shape ``(n, m)``, or ``(n, k, m, k)`` for all outputs.

    Raises:
        UserError: an unknown method or outputs; layerwise without an ``Mlp``; several outputs where one is expected.

    Source: Jacot, Gabriel and Hongler 2018; ORF 543, lecture 10/10.

    >>> linear = lambda w, x: x @ w
    >>> empirical_ntk(linear, jnp.ones(2), jnp.array([[3.0, 4.0]])).tolist()
    [[25.0]]
    """
    for value, choices, what in (
        (method, METHODS, "method"),
        (outputs, OUTPUTS, "choice of outputs"),
    ):
        if value not in choices:
            raise UserError(f"there is no {what} {value!r}; {nearest(str(value), choices)}")
    apply = network.apply if isinstance(network, Network) else network
    x = jnp.asarray(x)
    other = None if other is None else jnp.asarray(other)
    shape = jax.eval_shape(apply, params, x).shape
    if outputs == "scalar" and shape not in ((len(x),), (len(x), 1)):
        raise UserError(
            f"a scalar kernel needs outputs of shape {(len(x),)}, got {shape}; try outputs='trace' or outputs='all'"
        )
    if method == "layerwise" and not isinstance(network, Mlp):
        raise UserError(
            "the layerwise kernel needs a network of mlp(), not its apply; try method='jacobian'"
        )
    traced = outputs != "all"
    if isinstance(network, Mlp) and method in ("auto", "layerwise"):
        return layerwise_ntk(network, params, x, other, traced)
    return (product_ntk if method == "vectors" else jacobian_ntk)(apply, params, x, other, traced)


def ntk_top(
    network: Network | Callable[[Params, Array], Array], params: Params, x: Float[Array, "n d"]
) -> Float[Array, ""]:
    """Compute the largest eigenvalue of Θ/n of a network with one scalar output.

    With the mean of ½(f − y)², descent on the linearized network is stable up to the step size 2 over it.
    """
    return jnp.linalg.eigvalsh(empirical_ntk(network, params, x) / x.shape[0])[-1]
