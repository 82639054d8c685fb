"""Keys of repetitions, and NumPy's random numbers for what is drawn once and needs no program of JAX's."""

import jax
import numpy as np

from steepest.core.fields import Count
from steepest.core.signatures import checked
from steepest.nn.types import Key


@checked
def numpy_generator(key: Key) -> np.random.Generator:
    """Return NumPy's generator seeded by all words of a key.

    Drawing in NumPy compiles nothing, where JAX compiles 20 ms and more for each shape. The stream is another one than
    JAX's from the same key.

    >>> draw = lambda seed: numpy_generator(jax.random.key(seed)).random()
    >>> draw(1) == draw(1), draw(1) == draw(2)
    (True, False)
    """
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())


@checked
def keys(key: Key, seeds: Count) -> Key:
    """Return one key a seed, shape ``(seeds,)``."""
    return jax.random.split(key, seeds)
