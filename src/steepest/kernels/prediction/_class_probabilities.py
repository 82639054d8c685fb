"""Probabilities of classes whose latent values are Gaussian: means of the logistic function and of softmax."""

from typing import NamedTuple

import numpy as np
import scipy.special
from jaxtyping import Float
from scipy.stats import qmc

SHIFTS = 16  # independent scramblings of a sequence, by whose spread the error is known
POINTS = 512  # of each sequence
CHUNK = 2**23  # numbers that are held at once


class ClassProbabilities(NamedTuple):
    """Probabilities of classes at m new inputs, under a Gaussian law of the latent values.

    Attributes:
        mean: of the probability, over latent values: what to predict with. Shape ``(m,)`` for labels ±1, of the label
            +1; ``(m, C)`` of C classes.
        lower: the lower end of the central interval that holds the probability, of the same shape.
        upper: its upper end.
        error: of ``mean`` as an integral: a bound for labels ±1, a standard error for classes.
    """

    mean: Float[np.ndarray, "m *C"]
    lower: Float[np.ndarray, "m *C"]
    upper: Float[np.ndarray, "m *C"]
    error: Float[np.ndarray, "m *C"]


def mean_logistic(
    mean: Float[np.ndarray, " m"], variance: Float[np.ndarray, " m"]
) -> Float[np.ndarray, " m"]:
    r"""Return E σ(f) for f ~ N(mean, variance), to 1e-12.

    The trapezoidal rule converges geometrically for what is analytic near the real line. Up to variance one that is
    ``σ(mean + s z) φ(z)`` with poles at distance π/s; above, the same integral is ``∫ Φ((mean − l)/s) σ'(l) dl``, as
    the logistic function is the distribution of a variable l.

    >>> mean_logistic(np.array([0.0, 3.0]), np.array([100.0, 0.0])).round(6).tolist()
    [0.5, 0.952574]
    """
    deviation = np.sqrt(variance)
    z = np.linspace(-9, 9, 73)[:, None]
    weights = np.exp(-(z**2) / 2)
    narrow = (weights * scipy.special.expit(mean + np.minimum(deviation, 1) * z)).sum(0)
    narrow = narrow / weights.sum()
    levels = np.linspace(-40, 40, 241)[:, None]
    density = scipy.special.expit(levels) * scipy.special.expit(-levels)
    wide = (density * scipy.special.ndtr((mean - levels) / np.maximum(deviation, 1))).sum(0)
    return np.where(deviation <= 1, narrow, wide / density.sum())


def logistic_probabilities(
    mean: Float[np.ndarray, " m"], variance: Float[np.ndarray, " m"], level: float
) -> ClassProbabilities:
    """Return the probability of the label +1, σ of a Gaussian latent value; the interval has its quantiles as ends."""
    away = scipy.special.ndtri((1 + level) / 2) * np.sqrt(variance)
    return ClassProbabilities(
        mean_logistic(mean, variance),
        scipy.special.expit(mean - away),
        scipy.special.expit(mean + away),
        np.full_like(mean, 1e-12),
    )


def softmax_probabilities(
    mean: Float[np.ndarray, "m C"], covariance: Float[np.ndarray, "m C C"], level: float
) -> ClassProbabilities:
    """Return probabilities of C classes, softmax of Gaussian latent values, from quasi-random draws.

    The draws are 16 scrambled Sobol' sequences of 512 points, the same in every call; their spread is the error.
    """
    m, classes = mean.shape
    draws = np.concatenate([_normal(classes, shift) for shift in range(SHIFTS)])
    root = _root(covariance)
    parts = [
        _of_draws(mean[rows], root[rows], draws, level)
        for rows in np.array_split(np.arange(m), -(-m * draws.size // CHUNK))
    ]
    return ClassProbabilities(*map(np.concatenate, zip(*parts, strict=True)))


def _normal(size: int, seed: int) -> Float[np.ndarray, "points size"]:
    """Return scrambled Sobol' points as normal numbers."""
    points = qmc.Sobol(size, rng=np.random.default_rng(seed)).random(POINTS)
    return scipy.special.ndtri(np.clip(points, 1e-16, 1 - 1e-16))


def _root(covariance: Float[np.ndarray, "m C C"]) -> Float[np.ndarray, "m C C"]:
    """Return a matrix square root of what is positive semidefinite up to rounding."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0))[:, None, :]


def _of_draws(
    mean: Float[np.ndarray, "m C"],
    root: Float[np.ndarray, "m C C"],
    draws: Float[np.ndarray, "points C"],
    level: float,
) -> ClassProbabilities:
    latent = mean[:, None] + draws @ root.swapaxes(1, 2)
    share = scipy.special.softmax(latent, axis=-1)
    means = share.reshape(len(mean), SHIFTS, POINTS, -1).mean(2)
    lower, upper = np.quantile(share, [(1 - level) / 2, (1 + level) / 2], axis=1)
    error = means.std(1, ddof=1) / np.sqrt(SHIFTS)
    return ClassProbabilities(means.mean(1), lower, upper, error)
