"""How directions agree."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def alignment(vectors: Float[Array, "*batch h d"], directions: Float[Array, "*#batch #h d"]) -> Float[Array, "*batch h"]:
    """The cosine of each vector with its direction; 0 where a vector vanishes.

    >>> alignment(jnp.array([[3.0, 4.0], [0.0, 0.0]]), jnp.array([[1.0, 0.0], [1.0, 0.0]])).round(6).tolist()
    [0.6, 0.0]
    """
    sizes = jnp.linalg.norm(vectors, axis=-1) * jnp.linalg.norm(directions, axis=-1)
    products = jnp.sum(vectors * directions, axis=-1)
    return jnp.where(sizes > 0, products / jnp.where(sizes > 0, sizes, 1.0), 0.0)
