"""Tangent kernels of fully connected networks layer by layer, without a Jacobian."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from steepest.nn.networks import Mlp
from steepest.nn.types import Params


@partial(jax.jit, static_argnames=("net", "traced"))
def layerwise_ntk(
    net: Mlp,
    params: Params,
    x: Float[Array, "n d"],
    other: Float[Array, "m d"] | None,
    traced: bool,
) -> Array:
    """Compute Θ = Σ_l (m_l² A_l A'_lᵀ + 1) ∘ Δ_l Δ'_lᵀ, with the 1 where layer l has biases.

    A_l are the inputs of layer l, shape ``(n, n_l)``; m_l its multiplier; Δ_l = ∂f/∂z^(l+1), shape
    ``(n, k, n_{l+1})``. A weight's derivative is the product m_l Δ A of the two ends of the weight, so that the inner
    product over weights is a product of inner products. Skips and normalization only change how Δ_l comes about.

    Returns:
        Shape ``(n, m)``, summed over outputs, if ``traced``, else ``(n, k, m, k)``.
    """
    left = _ends(net, params, x)
    right = left if other is None else _ends(net, params, other)
    pattern = "iap,jap->ij" if traced else "iap,jbp->iajb"
    total = jnp.zeros(())
    for layer, (a, delta), (b, delta_b) in zip(params, left, right, strict=True):
        # ⟨∂z/∂w, ∂z'/∂w⟩ = m² A·A' for each neuron, and 1 from its bias
        inputs = a @ b.T + ("b" in layer)
        through = jnp.einsum(pattern, delta, delta_b)
        total += (inputs if traced else inputs[:, None, :, None]) * through
    return total


def _ends(net: Mlp, params: Params, x: Float[Array, "n d"]) -> list[tuple[Array, Array]]:
    """Return m_l A_l and Δ_l of every layer."""
    biases = [
        layer.get("b", 0.0) + jnp.zeros((len(x), len(layer["w"])), x.dtype) for layer in params
    ]

    def outputs(biases: list[Array]) -> Array:
        moved = tuple({**layer, "b": b} for layer, b in zip(params, biases, strict=True))
        return net.preactivations(moved, x)[-1]

    # a bias of its own for every example: its derivative is that with respect to the pre-activation
    out, back = jax.vjp(outputs, biases)
    units = jnp.eye(out.shape[1], dtype=out.dtype)
    deltas = jax.vmap(lambda unit: back(jnp.broadcast_to(unit, out.shape))[0], out_axes=1)(units)
    inputs = [
        _scaled_inputs(net, params[:i], layer["w"].dtype, x) for i, layer in enumerate(params)
    ]
    return list(zip(inputs, deltas, strict=True))


def _scaled_inputs(
    net: Mlp, below: Params, dtype: jnp.dtype, x: Float[Array, "n d"]
) -> Float[Array, "n n_l"]:
    """Return m_l A_l of the layer above these; the compiler merges the pass through the layers below."""
    if not below:
        features = x
    else:
        features = net.features((*below, {"w": jnp.zeros((1, len(below[-1]["w"])), dtype)}), x)
    # the multiplier is what a layer makes of a direction v, m A v, over A v; v is the longest row of A, so that ‖v‖ > 0
    longest = jnp.argmax((features**2).sum(1))
    v = features[longest]
    through = lambda w: net.preactivations((*below, {"w": w[None]}), x[longest])[-1][0]
    moved = jax.jvp(through, (jnp.zeros_like(v),), (v,))[1]
    square = (v**2).sum()
    return features * jnp.where(square > 0, moved / jnp.where(square > 0, square, 1), 0)
