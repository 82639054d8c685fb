"""Two-layer networks with a scalar output, ReLU or its powers, from a balanced start."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float

from steepest.core.errors import UserError
from steepest.core.fields import Count
from steepest.core.signatures import checked
from steepest.nn.types import Key, Network


class Neurons(NamedTuple):
    """Parameters of a two-layer network.

    Attributes:
        w: input weights, one neuron a row, shape ``(h, d)``.
        v: output weights, shape ``(h,)``.
    """

    w: Float[Array, "h d"]
    v: Float[Array, " h"]


@checked
def two_layer(
    dimension: Count, width: Count, *, scale: ArrayLike = 1.0, power: float | Array = 1.0
) -> Network:
    """Build f(x) = Σ_j v_j σ(⟨w_j, x⟩)^p / ‖w_j‖^(p−1) with σ = ReLU: homogeneous of degree two for every p.

    It starts balanced: w_j = ε g_j with g_j ~ N(0, I/d), and v_j = ±‖w_j‖ with random signs, so that gradient flow
    keeps v_j² = ‖w_j‖² for all time.

    Args:
        dimension: d.
        width: h, the number of neurons.
        scale: ε; a traced number is fine.
        power: p ≥ 1; one is the ReLU network. A traced number is fine too, and is not checked.

    Raises:
        UserError: for a power below one.

    Source: Vidal's talk; Min, Mallada and Vidal 2024 (p = 1).

    >>> net = two_layer(3, 8, scale=0.1)
    >>> start = net.init(jax.random.key(0))
    >>> bool(jnp.allclose(start.v**2, (start.w**2).sum(1)))
    True
    """
    traced = isinstance(power, Tracer)
    if not traced and not power >= 1:
        raise UserError(f"the power of a p-ReLU must be at least 1, got {power}")

    def init(key: Key) -> Neurons:
        for_w, for_sign = jax.random.split(key)
        w = jnp.asarray(scale * jax.random.normal(for_w, (width, dimension)) / jnp.sqrt(dimension))
        return Neurons(
            w, jax.random.rademacher(for_sign, (width,), w.dtype) * jnp.linalg.norm(w, axis=1)
        )

    def apply(params: Neurons, x: Float[Array, "... d"]) -> Float[Array, "..."]:
        products = x @ params.w.T
        if not traced and power == 1:
            return jnp.maximum(products, 0) @ params.v
        active = _traced_power(products, power) if traced else jnp.maximum(products, 0) ** power
        # ‖w‖^{1−p} makes σ(⟨w, x⟩)^p homogeneous of degree one in w
        return (active * jnp.linalg.norm(params.w, axis=1) ** (1 - power)) @ params.v

    kind = "p-ReLU" if traced else "ReLU" if power == 1 else f"{float(power):g}-ReLU"
    return Network(init, apply, f"two-layer {kind} network of width {width}")


def _traced_power(z: Array, power: ArrayLike) -> Array:
    """Return ``relu(z)^p`` by exp and log, which costs a quarter of ``**`` where the exponent is not known."""
    # what lies below is zero; its square is still a normal number, so that no derivative overflows
    least = np.sqrt(np.finfo(z.dtype).tiny)
    return jnp.where(z > least, jnp.exp(power * jnp.log(jnp.maximum(z, least))), 0)
