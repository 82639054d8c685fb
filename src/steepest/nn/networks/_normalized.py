"""Two-layer ReLU networks whose input weights are divided by their norms."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from steepest.core.errors import UserError
from steepest.core.fields import Count
from steepest.core.signatures import checked
from steepest.nn.networks._two_layer import two_layer
from steepest.nn.types import Key, Network


class NormalizedNeurons(NamedTuple):
    """Parameters of a normalized two-layer network.

    Attributes:
        a: outer output weights, shape ``(h,)``.
        b: inner output weights, shape ``(h,)``.
        v: input weights, of which only the direction counts, one neuron a row, shape ``(h, d)``.
    """

    a: Float[Array, " h"]
    b: Float[Array, " h"]
    v: Float[Array, "h d"]


@checked
def normalized_two_layer(
    dimension: Count, width: Count, *, scale: ArrayLike = 1.0, norm: ArrayLike = 1.0
) -> Network:
    """Build f(x) = Σ_j a_j b_j ReLU(⟨v_j, x⟩) / ‖v_j‖, an idealized batch normalization of the inner layer.

    From one key it starts as the same function as ``two_layer``, with the same neurons: v_j has the direction of w_j
    and the norm ``norm``, b_j = ‖w_j‖ and a_j = ±b_j. Gradient flow keeps ‖v_j‖ and a_j² − b_j²; with u = v/‖v‖ and G
    the pull on a neuron, ``u' = (ab/‖v‖²) (G − ⟨G, u⟩ u)``. A step of descent along ∇ turns v at right angles, so that
    ‖v‖² grows by ‖step ∇‖².

    Args:
        dimension: d.
        width: h, the number of neurons.
        scale: ε of ``two_layer``; a traced number is fine.
        norm: ‖v_j‖ at the start; a traced number is fine.

    Raises:
        UserError: for fewer than one input or neuron, or a norm that is not above zero.

    Source: Telgarsky's talk on feature learning.

    >>> import jax
    >>> start = normalized_two_layer(3, 8, norm=0.5).init(jax.random.key(0))
    >>> bool(jnp.allclose(start.a**2, start.b**2)), jnp.linalg.norm(start.v, axis=1).round(6).tolist()[:2]
    (True, [0.5, 0.5])
    """
    for name, count in (("dimension", dimension), ("width", width)):
        if count < 1:
            raise UserError(f"normalized_two_layer: expected a {name} of at least 1, got {count}")
    if isinstance(norm, (int, float)) and not norm > 0:
        raise UserError(f"normalized_two_layer: expected a norm above zero, got {norm:g}; try 1")
    plain = two_layer(dimension, width, scale=scale)

    def init(key: Key) -> NormalizedNeurons:
        w, v = plain.init(key)
        size = jnp.linalg.norm(w, axis=1)
        # a_j b_j σ(⟨w_j, x⟩)/‖w_j‖ = ±‖w_j‖ σ(⟨w_j, x⟩), the neuron of two_layer
        return NormalizedNeurons(v, size, norm * w / size[:, None])

    def apply(params: NormalizedNeurons, x: Float[Array, "... d"]) -> Float[Array, "..."]:
        unit = params.v / jnp.linalg.norm(params.v, axis=1, keepdims=True)
        return jnp.maximum(x @ unit.T, 0) @ (params.a * params.b)

    return Network(init, apply, f"normalized two-layer ReLU network of width {width}")
