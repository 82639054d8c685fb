"""What a point of a diagram measures, where its experiment is one of a claim's in NumPy."""

from typing import Any

import jax
import numpy as np

from steepest import kit

KEY = jax.random.key(3)


def observed_at(point: kit.Point, setting: Any = None) -> dict[str, np.ndarray]:
    """Return the observation of one point in a compiled computation, as in a sweep."""
    with jax.enable_x64(point.precision == "float64"):
        arrays = jax.jit(lambda key: dict(point.observe(setting, key)))(KEY)
        return {name: np.asarray(array) for name, array in arrays.items()}


def generator() -> np.random.Generator:
    """Return the generator from which the point draws, at its start."""
    return kit.numpy_generator(KEY)
