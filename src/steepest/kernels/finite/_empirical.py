"""Tangent kernels of finite networks: as matrices, by the cheapest of three ways."""

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from steepest.core.errors import UserError, nearest
from steepest.kernels.finite._blocks import Inputs
from steepest.kernels.finite._jacobian import jacobian_ntk
from steepest.kernels.finite._layerwise import layerwise_ntk
from steepest.kernels.finite._products import product_ntk
from steepest.kernels.finite._structured import structured_ntk
from steepest.nn.layers import LayeredNetwork
from steepest.nn.layers._masks import NO_POSITIONS, NO_SECOND_SET, as_mask
from steepest.nn.networks import Mlp
from steepest.nn.types import Network, Params

Method = Literal["auto", "jacobian", "layerwise", "vectors"]
Outputs = Literal["scalar", "trace", "all"]
METHODS = ("auto", "jacobian", "layerwise", "vectors")
OUTPUTS = ("scalar", "trace", "all")


def empirical_ntk(
    network: Network | Callable[[Params, Array], Array],
    params: Params,
    x: Float[Array, "n ..."],
    other: Float[Array, "m ..."] | None = None,
    *,
    mask: Bool[Array, "n ..."] | None = None,
    other_mask: Bool[Array, "m ..."] | None = None,
    method: Method = "auto",
    outputs: Outputs = "scalar",
) -> Array:
    """Compute the tangent kernel Θ_ij = ⟨∇f(x_i), ∇f(x'_j)⟩ of a network at these parameters.

    Args:
        network: a network, or its ``apply``, which maps parameters and inputs ``(n, …)`` to outputs ``(n,)`` or
            ``(n, k)``.
        params: any pytree.
        x: inputs.
        other: the inputs x', by default x again.
        mask: of a ``network(...)`` of layers: which positions exist, True or False, shape ``(n, *space)``; by default
            all.
        other_mask: that of x'.
        method: ``"layerwise"`` sums over the layers of an ``mlp(...)`` or a ``network(...)`` and never holds the
            Jacobian of all of them; ``"jacobian"`` contracts the Jacobian leaf by leaf, in blocks of examples, so that
            memory stays bounded; ``"vectors"`` multiplies Θ with every unit vector, which needs least memory, and is
            the only way that allows examples to interact, as in batch normalization. ``"auto"`` takes layerwise where
            it can, else jacobian.
        outputs: ``"scalar"`` for one output; with k outputs, ``"all"`` gives ⟨∇f_a(x_i), ∇f_b(x'_j)⟩ and
            ``"trace"`` its sum (not its mean) over a = b.

    Returns:
        Shape ``(n, m)``, or ``(n, k, m, k)`` for all outputs.

    Raises:
        UserError: an unknown method or outputs; layerwise without layers; several outputs where one is expected; a
            mask that is none of these positions, or of a network without positions.

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
    first, second = read_by(network, x, other, mask, other_mask)
    return kernel_of(network, params, first, second, method=method, outputs=outputs)


def kernel_of(
    network: Network | Callable[..., Array],
    params: Params,
    first: Inputs,
    second: Inputs | None,
    *,
    method: Method = "auto",
    outputs: Outputs = "scalar",
) -> Array:
    """Compute the kernel of inputs that were checked, with masks beside them if there are any."""
    apply = network.apply if isinstance(network, Network) else network
    n = len(first[0])
    shape = jax.eval_shape(apply, params, *first).shape
    if outputs == "scalar" and shape not in ((n,), (n, 1)):
        raise UserError(
            f"a scalar kernel needs outputs of shape {(n,)}, got {shape}; try outputs='trace' or outputs='all'"
        )
    layered = isinstance(network, LayeredNetwork) and network.apply is network.watched
    if method == "layerwise" and not (layered or isinstance(network, Mlp)):
        raise UserError(
            "the layerwise kernel needs a network of mlp() or network(), not its apply; try method='jacobian'"
        )
    traced = outputs != "all"
    if method == "vectors":
        return product_ntk(apply, params, first, second, traced)
    if method == "jacobian" or not (layered or isinstance(network, Mlp)):
        return jacobian_ntk(apply, params, first, second, traced)
    if layered:
        return structured_ntk(apply, params, first, second, traced)
    assert isinstance(network, Mlp)
    return layerwise_ntk(network, params, first[0], None if second is None else second[0], traced)


def read_by(
    network: Network | Callable, x: Array, other: Array | None, mask: Any, other_mask: Any
) -> tuple[Inputs, Inputs | None]:
    """Return what a network reads of both sets: inputs, and masks beside them if there are any.

    Raises:
        UserError: a mask of a network without positions, of a second set that is not there, or of another shape.
    """
    x = jnp.asarray(x)
    other = None if other is None else jnp.asarray(other)
    if mask is None and other_mask is None:
        return (x,), None if other is None else (other,)
    if not isinstance(network, LayeredNetwork):
        raise UserError(NO_POSITIONS)
    if other is None and other_mask is not None:
        raise UserError(NO_SECOND_SET)
    space = network.shape[:-1]
    first = (x, as_mask(mask, (len(x), *space), jnp))
    second = None if other is None else (other, as_mask(other_mask, (len(other), *space), jnp))
    return first, second


def ntk_top(
    network: Network | Callable[[Params, Array], Array], params: Params, x: Float[Array, "n d"]
) -> Float[Array, ""]:
    """Compute the largest eigenvalue of Θ/n of a network with one scalar output.

    With the mean of ½(f − y)², descent on the linearized network is stable up to the step size 2 over it.
    """
    return jnp.linalg.eigvalsh(empirical_ntk(network, params, x) / x.shape[0])[-1]
