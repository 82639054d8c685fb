"""Covariances of what one convolution reads at its positions, and how much the flattened kernel of such varies.

Two claims on convolutional networks predict by these.
"""

import numpy as np

from steepest.nn.types import Values

AT_ONE_POSITION = 3.0  # n Var Θ/(E Θ)² of a network of one position


def relative_variance(mean: float, square: float) -> float:
    """Return Var φ/(E φ)² from the means of φ and φ²."""
    return float(square / mean**2 - 1)


def equal_correlations(positions: int, rho: float) -> Values:
    """Return K of positions of variance one whose correlations are all ρ, ``(P, P)``."""
    return rho + (1 - rho) * np.eye(positions)


def windows(image: Values) -> Values:
    """Return K of the signals of windows of 3 × 3 that close in a circle, ``(P, P)``, up to a factor.

    >>> windows(np.ones((4, 4)))[0, :3].tolist()
    [9.0, 9.0, 9.0]
    """
    reach = (-1, 0, 1)
    moved = [np.roll(image, (down, right), (0, 1)) for down in reach for right in reach]
    read = np.stack(moved, axis=-1, dtype=float).reshape(image.size, -1)
    return read @ read.T


def flattened(covariance: Values) -> float:
    """Return Var φ/(E φ)² of a flattened network at an input whose signals have this covariance, ``(P, P)``.

    >>> round(flattened(np.eye(1)), 6), round(flattened(np.eye(4)), 6)
    (3.0, 0.75)
    """
    positions = len(covariance)
    variances = np.diag(covariance)
    sizes = np.outer(variances, variances) ** 0.5
    cosine = np.divide(covariance, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    cosine = np.clip(cosine, -1, 1)
    sine = np.sqrt(1 - cosine**2)
    angle = np.pi - np.arccos(cosine)  # of the cone in which both signals are positive
    gates = angle / (2 * np.pi)  # E g_p g_q
    mixed = variances[:, None] * (angle + cosine * sine) / (2 * np.pi)  # E σ_p² g_q
    squares = sizes**2 * (3 * sine * cosine + angle * (1 + 2 * cosine**2))  # arc-cosine, degree 2
    squares = squares / (2 * np.pi)  # E σ_p² σ_q²
    # means over a of four factors: pairs of equal positions, in three ways
    filters = (gates * (sizes**2 + 2 * covariance**2)).sum()
    # E φ² = E(Σσ_p²)² + 2 E Σ_pq σ_p² g_q K_qq + (filters), over P², as E a_p a_q = δ_pq
    square = (squares.sum() + 2 * (mixed * variances).sum() + filters) / positions**2
    return relative_variance(variances.mean(), square)  # E φ = Σ_p (K_pp/2 + K_pp/2)/P
