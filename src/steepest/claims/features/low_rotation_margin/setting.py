"""Directions that never turn, and their features of XOR on the whole cube."""

from typing import NamedTuple

import numpy as np

from steepest import kit
from steepest.nn.data import hypercube


class Setting(NamedTuple):
    """The first directions at each width, their features with the labels' signs, and the signs of output weights."""

    directions: list[kit.Values]  # (seeds, h, d) each
    features: list[kit.Values]  # (seeds, 2^d, h)
    signs: list[kit.Values]  # (seeds, h)
    best: kit.Values  # γ₁ at the d of the flows, then at those where widths are sought


def units(rng: np.random.Generator, count: int, d: int) -> np.ndarray:
    """Return random unit vectors, ``(count, d)``."""
    u = rng.normal(size=(count, d))
    return u / np.linalg.norm(u, axis=1, keepdims=True)


def signed_features(u: np.ndarray) -> np.ndarray:
    """Return y relu(⟨u_j, x⟩) of XOR on the whole cube, ``(2^d, neurons)``."""
    signs = hypercube(u.shape[1])
    y = signs[:, 0] * signs[:, 1]
    return y[:, None] * np.maximum(signs @ u.T, 0) / np.sqrt(u.shape[1])
