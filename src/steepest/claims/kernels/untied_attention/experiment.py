"""Heads of softmax attention with random queries and keys."""

import numpy as np
from numpy.typing import NDArray

from steepest.nn.data import digits

SIDE = 8  # rows of a digit, and pixels in each


def rows_of_digits(rng: np.random.Generator, count: int) -> NDArray:
    """Return digits as sequences of their rows, ``(count, 8, 8)``."""
    images = np.asarray(digits().x, float)
    return images[rng.choice(len(images), count, replace=False)].reshape(count, SIDE, SIDE)


def weights(
    rng: np.random.Generator, z: NDArray, heads: int, width: int, scale: float, *, tied: bool
) -> NDArray:
    """Return attention weights of random heads, ``(heads, P, P)``, rows those of the queries.

    Args:
        rng: of the matrices.
        z: the input, ``(P, C)``.
        heads: how many.
        width: d of the keys.
        scale: by what products of queries and keys are multiplied.
        tied: whether queries and keys have the same matrix.
    """
    matrices = lambda: rng.standard_normal((heads, width, z.shape[1])) / z.shape[1] ** 0.5
    query = z @ matrices().swapaxes(1, 2)
    key = query if tied else z @ matrices().swapaxes(1, 2)
    logits = scale * query @ key.swapaxes(1, 2)
    powers = np.exp(logits - logits.max(-1, keepdims=True))  # no overflow
    return powers / powers.sum(-1, keepdims=True)


def distance(weights: NDArray, values: NDArray) -> float:
    """Return the mean square distance of what positions read from the mean over positions.

    Values have many channels, independent given the input, so that a channel's covariance stands for them.

    Args:
        weights: of heads, ``(heads, P, P)``.
        values: covariance of a channel of the values at two positions, ``(P, P)``.
    """
    away = weights - 1 / weights.shape[-1]
    return float(((away @ values) * away).sum(-1).mean())  # diagonal of (A − 1/P) V (A − 1/P)ᵀ
