"""Sets of examples with neurons, and what can be read off them: cosines, lengths, which neurons see what."""

from typing import NamedTuple

import numpy as np

from steepest.nn.types import Values


class Sets(NamedTuple):
    """Sets of examples of one size, shorter ones filled up with zeros, and directions of neurons on each."""

    x: Values  # (sets, n, d)
    y: Values  # (sets, n)
    u: Values  # (sets, neurons, d)
    sign: Values  # of the output weights, (sets, neurons)


def separability(sets: Sets) -> np.ndarray:
    """Return μ of every set, ``(sets,)``; rows of zeros are no examples."""
    length = np.linalg.norm(sets.x, axis=-1)
    unit = sets.y[..., None] * sets.x / np.where(length > 0, length, 1.0)[..., None]
    gram = unit @ np.swapaxes(unit, -1, -2)
    # μ = min y_i y_j cos(x_i, x_j): pairs with a row of zeros count as one, the largest cosine
    real = length > 0
    return np.where(real[:, None] & real[:, :, None], gram, 1.0).min((1, 2))


def own_cosines(sets: Sets) -> np.ndarray:
    """Return cosines of neurons with examples of their class, −1 for others, ``(sets, neurons, n)``."""
    length = np.linalg.norm(sets.x, axis=-1)
    products = np.einsum("sjd,snd->sjn", sets.u, sets.x)
    of_class = sets.sign[..., None] * sets.y[:, None] > 0
    return np.where(
        of_class & (length > 0)[:, None], products / np.maximum(length, 1e-300)[:, None], -1
    )


def sees_own(sets: Sets) -> np.ndarray:
    """Return which neurons see an example of their class, ``(sets, neurons)``."""
    return own_cosines(sets).max(-1) > 0


def head_start(sets: Sets) -> np.ndarray:
    """Return artanh p₀ of every neuron, zero for those that see no own example, ``(sets, neurons)``."""
    return np.arctanh(np.maximum(own_cosines(sets).max(-1), 0.0))


def shortest(sets: Sets) -> np.ndarray:
    """Return the length of the shortest example of every set, ``(sets, 1)``."""
    length = np.linalg.norm(sets.x, axis=-1)
    return np.where(length > 0, length, np.inf).min(-1)[:, None]


def unit(vectors: Values) -> np.ndarray:
    """Give every vector length one."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
