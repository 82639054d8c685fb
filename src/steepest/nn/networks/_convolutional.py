"""Linear convolutional networks of full width: linear functions, parameterized in the Fourier domain."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from steepest.core.errors import UserError
from steepest.core.fields import Count
from steepest.core.signatures import checked
from steepest.nn.types import Key, Network


@checked
def convolutional(dimension: Count, depth: int = 2, scale: ArrayLike = 1.0) -> Network:
    """Build ``f(x) = ⟨β, x⟩`` with β the circular convolution of L filters, each as wide as the input.

    Parameters are the filters, an array of shape ``(L, d)``, with Gaussian entries of variance ``scale²/d`` at the
    start. Convolutions are divided by √d, so that the unitary Fourier transforms multiply, ``β̂_k = Π_l ŵ_{l,k}``.

    Args:
        dimension: ``d``, the number of inputs.
        depth: ``L ≥ 1``, the number of filters.
        scale: norm of a filter at the start, in the mean.

    Raises:
        UserError: a dimension or a depth below one.

    Source: Gunasekar, Lee, Soudry and Srebro 2018, whose layers are cross-correlations: the same functions, up to the
    order of the entries.

    >>> network = convolutional(4)
    >>> delta = jnp.array([2.0, 0.0, 0.0, 0.0])  # √d at zero is the convolution's unit
    >>> network.apply(jnp.stack([delta, jnp.arange(4.0)]), jnp.eye(4)).round(6).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    if dimension < 1 or depth < 1:
        raise UserError(
            f"convolutional network: expected d ≥ 1 and depth ≥ 1, got {dimension} and {depth}"
        )

    def init(key: Key) -> Float[Array, "L d"]:
        return jnp.asarray(scale * jax.random.normal(key, (depth, dimension)) / jnp.sqrt(dimension))

    def apply(params: Float[Array, "L d"], x: Float[Array, "... d"]) -> Float[Array, "..."]:
        return x @ convolved(params)

    return Network(init, apply, f"linear convolutional network of depth {depth}")


@checked
def convolved(filters: Float[Array, "L d"]) -> Float[Array, " d"]:
    """Return the linear weights β of a convolutional network: its filters' circular convolution, over √d for each.

    >>> convolved(jnp.array([[2.0, 0.0, 0.0, 0.0], [0.0, 3.0, 0.0, 0.0]])).round(6).tolist()
    [0.0, 3.0, 0.0, 0.0]
    """
    d = filters.shape[-1]
    # convolution theorem; unitary transforms put 1/√d on each of the L − 1 convolutions
    return jnp.fft.irfft(jnp.prod(jnp.fft.rfft(filters, norm="ortho"), 0), d, norm="ortho")
