"""Three images, and what claims on wide random networks say of outputs at them: covariances, characteristic functions.

A covariance has six entries, of which the first three are variances.
"""

from itertools import product

import jax.numpy as jnp
import numpy as np

from steepest.nn.data import digits

ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))  # of a symmetric matrix
NAMES = tuple(f"{a + 1}{b + 1}" for a, b in ENTRIES)
COMBINATIONS = np.array([u for u in product((1, 0, -1), repeat=3) if u > (0, 0, 0)], float)
"""Frequencies of the characteristic function, up to scale: each output, sums and differences of two and of three."""
FREQUENCIES = tuple(f"u{i + 1}" for i in range(len(COMBINATIONS)))  # their names


def three_images() -> np.ndarray:
    """Return the first image of each of three digits, ``(3, 64)``."""
    data = digits((0, 1, 4))
    return np.asarray(data.x[jnp.argmax(data.y, axis=0)], float)


def entries_of(matrix: np.ndarray) -> np.ndarray:
    """Return the six entries of a symmetric matrix."""
    return np.array([matrix[pair] for pair in ENTRIES])


def matrix_of(entries: np.ndarray) -> np.ndarray:
    """Return the symmetric matrix of six entries."""
    matrix = np.empty((3, 3))
    for (a, b), entry in zip(ENTRIES, entries, strict=True):
        matrix[a, b] = matrix[b, a] = entry
    return matrix


def frequencies(kernel: np.ndarray) -> np.ndarray:
    """Return frequencies u at which uᵀKu is of order one, ``(13, 3)``: 2 for a single output."""
    units = np.sqrt(2) * COMBINATIONS / np.linalg.norm(COMBINATIONS, axis=1, keepdims=True)
    return units / np.sqrt(kernel[:3])


def on_entries(u: np.ndarray) -> np.ndarray:
    """Return the weights with which uᵀΣu is a sum over six entries, ``(13, 6)``."""
    # entries off the diagonal stand twice
    return np.stack([u[:, a] * u[:, b] * (1 if a == b else 2) for a, b in ENTRIES], -1)


def characteristic(kernel: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return E cos(u·z) = exp(−uᵀKu/2) of Gaussian outputs, ``(13,)``."""
    return np.exp(-on_entries(u) @ kernel / 2)
