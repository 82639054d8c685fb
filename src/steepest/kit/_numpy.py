"""Experiments in NumPy at a point of a diagram, where a sweep runs compiled computations."""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from steepest.krylov import sequential
from steepest.nn.types import Key, Values


def run_in_numpy(
    run: Callable[..., Mapping[str, Values]],
    shapes: Mapping[str, tuple[int, ...]],
    key: Key,
    *values: object,
) -> Mapping[str, jax.Array]:
    """Return what an experiment in NumPy measures.

    Args:
        run: the experiment, of a generator and the values; it must not call JAX.
        shapes: of the arrays that it returns, by name.
        key: of the generator, which is that of :func:`steepest.kit.numpy_generator`.
        *values: fields that a sweep may trace, and arrays of the setting; the experiment gets numbers and NumPy arrays.
    """
    dtype = jnp.zeros(()).dtype

    @sequential
    def measured(words: Values, *arrays: Values) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(np.asarray(words).ravel())
        given = [np.asarray(array) for array in arrays]
        of_run = run(rng, *(array if array.ndim else array.item() for array in given))
        return {name: np.asarray(of_run[name], dtype) for name in shapes}

    return jax.pure_callback(
        measured,
        {name: jax.ShapeDtypeStruct(shape, dtype) for name, shape in shapes.items()},
        jax.random.key_data(key),
        *(jnp.asarray(value) for value in values),
        vmap_method="sequential",
    )
