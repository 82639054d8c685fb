"""Leading eigenvectors of labelled second moments of Gaussian inputs."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse.linalg import eigsh

Rule = Callable[[np.ndarray], np.ndarray]
"""Weights of examples as a function of their labels."""

STEPS = 8  # of a random rule
TOLERANCE = 1e-6  # of eigenvalues of the inverse
BEYOND = 1.2  # so much above Gaussian second moments no eigenvalue is


def inverse(labels: np.ndarray) -> np.ndarray:
    """Return 1 − 1/y."""
    return 1 - 1 / labels


def teacher(rng: np.random.Generator, dimension: int, neurons: int) -> np.ndarray:
    """Draw orthonormal directions, ``(d, k)``."""
    return np.linalg.qr(rng.standard_normal((dimension, neurons)))[0]


def examples(
    rng: np.random.Generator, directions: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw Gaussian inputs ``(n, d)`` and the labels that a teacher's directions ``(d, k)`` give them."""
    inputs = rng.standard_normal((count, len(directions)))
    labels = ((inputs @ directions) ** 2).mean(1)
    return inputs, labels


def seen_part(moment: np.ndarray, above: float, directions: np.ndarray) -> float:
    """Return the mean squared length of the k leading eigenvectors' projections on the teacher's span.

    Eigenvectors are those of the inverse of ``above`` less the moment: −1/y of few small labels makes the other end
    of the spectrum so long that ascent by powers of the moment itself does not end.
    """
    dimension, neurons = directions.shape
    start = np.ones(dimension)
    solver: Any = eigsh
    vectors = solver(moment, neurons, sigma=above, tol=TOLERANCE, v0=start)[1]
    return float(((directions.T @ vectors) ** 2).sum() / neurons)


def overlaps(
    inputs: np.ndarray, weights: np.ndarray, directions: np.ndarray, counts: tuple[int, ...]
) -> list[float]:
    """Return how much of the teacher the spectrum of the first so many examples sees, for rising numbers of them."""
    dimension = inputs.shape[1]
    moment = np.zeros((dimension, dimension))
    result = []
    for first, last in zip((0, *counts[:-1]), counts, strict=True):
        part = inputs[first:last]
        moment += part.T @ (weights[first:last, None] * part)
        # (1 + √(d/n))² is the upper edge of the spectrum of Gaussian second moments
        above = BEYOND * max(0.1, weights.max()) * (1 + np.sqrt(dimension / last)) ** 2
        result.append(seen_part(moment / last, float(above), directions))
    return result


def random_rule(rng: np.random.Generator, neurons: int, smooth: bool) -> Rule:
    """Draw a function of the label: steps of random heights, or the smooth (y − 1)/(y − 1 + c) with c of 1 to 10."""
    if smooth:
        constant = 10 ** rng.random()
        return lambda labels: (labels - 1) / (labels - 1 + constant)
    edges = np.quantile(rng.chisquare(neurons, 4000) / neurons, np.arange(1, STEPS) / STEPS)
    heights = rng.standard_normal(STEPS)
    return lambda labels: heights[np.searchsorted(edges, labels)]


def half_seen(ratios: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return at which ratio a share is ½, between the ratios where it was measured; their axis is the last one."""
    rising = np.maximum.accumulate(shares, -1)
    crossing = lambda row: np.exp(np.interp(0.5, row, np.log(ratios)))
    return np.apply_along_axis(crossing, -1, rising)
