"""Experiments in NumPy inside of a computation that JAX compiles, as sweeps observe points."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from steepest.nn.types import Key


def of_numpy(
    experiment: Callable[..., ArrayLike], shape: tuple[int, ...], key: Key, *arrays: ArrayLike
) -> jax.Array:
    """Return what an experiment in NumPy gives, ``shape``, from inside of a compiled observation.

    Points that are observed together are run one after the other.

    Args:
        experiment: of NumPy's generator, and of the arrays in NumPy.
        shape: of what it gives.
        key: seeds the generator, as in :func:`steepest.nn.draws.numpy_generator`.
        arrays: batched fields, or what the setting has.
    """
    out = jax.ShapeDtypeStruct(shape, jnp.zeros(()).dtype)

    def run(words: np.ndarray, *given: np.ndarray) -> np.ndarray:
        rng = np.random.default_rng(np.asarray(words).ravel())
        measured = experiment(rng, *(np.asarray(array) for array in given))
        return np.asarray(measured, out.dtype).reshape(shape)

    words = jax.random.key_data(key)
    return jax.pure_callback(run, out, words, *map(jnp.asarray, arrays), vmap_method="sequential")
