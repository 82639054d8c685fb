"""Least squares with the first p of D features, with and without a ridge."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LENGTHS = (0.1, 1.9)  # squares of examples' lengths where these are unequal, one on average


class Sample(NamedTuple):
    """Examples of many runs.

    Attributes:
        x: ``(runs, n, D)``.
        y: ``(runs, n)``.
    """

    x: NDArray
    y: NDArray


def draw(
    rng: np.random.Generator, weights: NDArray, noise: float, n: int, runs: int, *, unequal: bool
) -> Sample:
    """Draw examples with all features, and their labels."""
    x = rng.standard_normal((runs, n, len(weights)))
    if unequal:
        x *= np.sqrt(rng.choice(LENGTHS, (runs, n, 1)))
    return Sample(x, x @ weights + noise * rng.standard_normal((runs, n)))


def fit(sample: Sample, p: int, penalty: float) -> NDArray:
    """Return weights of the first p features that fit best, ``(runs, p)``; those of least norm without a penalty."""
    x = sample.x[..., :p]
    across = x.swapaxes(1, 2)
    y = sample.y[..., None]
    if p < x.shape[1]:
        return np.linalg.solve(across @ x + penalty * np.eye(p), across @ y)[..., 0]
    # (XᵀX + kI)⁻¹Xᵀ = Xᵀ(XXᵀ + kI)⁻¹, which at k = 0 gives the least norm
    gram = x @ across + penalty * np.eye(x.shape[1])
    return (across @ np.linalg.solve(gram, y))[..., 0]


def risk(fitted: NDArray, weights: NDArray, noise: float) -> NDArray:
    """Return the mean square error on new examples of length one, ``(runs,)``.

    New inputs have independent features of variance one, so that it is the square of what weights lack, and the noise.
    """
    lacking = np.broadcast_to(weights, (len(fitted), len(weights))).copy()
    lacking[:, : fitted.shape[1]] -= fitted
    return (lacking**2).sum(1) + noise**2


def penalty(weights: NDArray, p: int, noise: float) -> float:
    """Return the penalty of a Bayesian who knows how large weights and noise are."""
    # k = s²p/‖β_p‖², the variance of the noise over the variance of a weight
    size = (weights[:p] ** 2).mean()
    return float(((weights[p:] ** 2).sum() + noise**2) / size)


def risks(
    sample: Sample, weights: NDArray, noise: float, features: tuple[int, ...], *, penalized: bool
) -> NDArray:
    """Return risks of fits with several numbers of features, in the mean over runs, ``(features,)``."""
    means = []
    for p in features:
        size = penalty(weights, p, noise) if penalized else 0.0
        means.append(risk(fit(sample, p, size), weights, noise).mean())
    return np.array(means)
