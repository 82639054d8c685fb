"""Alignment of vectors with directions."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


def alignment(
    vectors: Float[Array, "*batch h d"], directions: Float[Array, "*#batch #h d"]
) -> Float[Array, "*batch h"]:
    """Return the cosine of each vector with its direction; 0 where a vector vanishes.

    >>> alignment(jnp.array([[3.0, 4.0], [0.0, 0.0]]), jnp.array([[1.0, 0.0], [1.0, 0.0]])).round(6).tolist()
    [0.6, 0.0]
    """
    sizes = jnp.linalg.norm(vectors, axis=-1) * jnp.linalg.norm(directions, axis=-1)
    products = jnp.sum(vectors * directions, axis=-1)
    return jnp.where(sizes > 0, products / jnp.where(sizes > 0, sizes, 1.0), 0.0)


def upper_pairs(matrices: Float[Array, "*batch h h"]) -> Float[Array, "*batch pairs"]:
    """Return the entries above the diagonal: one number a pair, such as the cosines between class means.

    >>> upper_pairs(jnp.arange(9.0).reshape(3, 3)).tolist()
    [1.0, 2.0, 5.0]
    """
    return matrices[(..., *np.triu_indices(matrices.shape[-1], 1))]


def settled(
    values: Float[np.ndarray, "*batch records"], target: float = 0.0
) -> Int[np.ndarray, "*batch"]:
    """Return the first record from which on a recorded quantity equals its target, or the last record.

    >>> settled(np.array([0.5, 0.0, 0.2, 0.0, 0.0])).item()
    3
    """
    values = np.asarray(values)
    later = np.logical_and.accumulate(values[..., ::-1] == target, axis=-1).sum(-1)
    return values.shape[-1] - np.maximum(later, 1)
