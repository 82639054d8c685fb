"""The numbers that both libraries are given, in float64: drawn by NumPy from seeds, so that both interpreters agree."""

import numpy as np


def normal(*shape: int, seed: int) -> np.ndarray:
    """Draw standard normal numbers."""
    return np.random.default_rng(seed).normal(size=shape)


VECTORS = normal(4, 3, seed=0)
OTHERS = normal(3, 3, seed=1)
IMAGES = normal(3, 4, 4, 2, seed=2)
OTHER_IMAGES = normal(2, 4, 4, 2, seed=3)
LINES = normal(3, 6, 2, seed=4)
OTHER_LINES = normal(2, 6, 2, seed=5)
CUBES = normal(2, 3, 3, 3, 2, seed=6)

IMAGE_MASK = np.random.default_rng(7).random((3, 4, 4)) < 0.7
LINE_MASK = np.arange(6) < np.array([6, 4, 3])[:, None]
"""True where a position exists."""

GRAPH = (np.random.default_rng(8).random((6, 6)) < 0.5).astype(float)
"""Entry (p, q) is the weight of position q in position p."""
GRAPHS = (np.random.default_rng(9).random((3, 6, 6)) < 0.5).astype(float)
ROWS_GRAPH = (np.random.default_rng(10).random((4, 4)) < 0.5).astype(float)

TRAIN = normal(6, 3, seed=11)
TEST = normal(4, 3, seed=12)
LABELS = normal(6, 2, seed=13)
START = normal(6, 2, seed=14)
TEST_START = normal(4, 2, seed=15)
CLASSES = np.array([0, 1, 2, 1, 0, 2])
TIMES = np.array([0.5, 3.0, 20.0])

HIDDEN = normal(3, 5, seed=16)
READOUT = normal(5, 2, seed=17)
FILTERS = normal(3, 2, 4, seed=18)
"""Weights of one finite network, ``f(x) = tanh(x HIDDEN) READOUT``, and of a filter over lines."""


def spread(kernel: np.ndarray, outputs: int, seed: int = 19) -> np.ndarray:
    """Return a kernel ``(n, n, k, k)`` that couples outputs: a matrix times one of Wishart's."""
    root = normal(outputs, outputs, seed=seed)
    return np.einsum("nm,ab->nmab", kernel, root @ root.T / outputs)


def squared_exponential(x: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return a kernel for what needs any kernel at all."""
    squares = ((x[:, None] - other[None]) ** 2).sum(-1)
    return np.exp(-0.5 * squares)
