"""How much random projections stretch the distances of many points."""

from typing import NamedTuple

import numpy as np

from steepest.core.errors import UserError
from steepest.core.signatures import checked


class Distortion(NamedTuple):
    """Distances after a projection over distances before.

    Attributes:
        low: the smallest ratio.
        high: the largest ratio.
    """

    low: float
    high: float


@checked
def projection_distortion(points: int, dimension: int) -> Distortion:
    """Return typical extremes of ‖Ax − Ay‖/‖x − y‖ over all pairs of k points, A Gaussian into R^m.

    With entries of variance 1/m every squared ratio is χ²_m/m. Of N = k(k − 1)/2 of them, if they were independent,
    the logarithm of the probability beyond the extreme one is −log N − γ on average, γ = 0.5772 (Euler), so that the
    extremes lie at the quantiles ``e^(−γ)/N`` and ``1 − e^(−γ)/N``. To leading order ``ratio² = 1 ± √(8 ln k/m)``: the
    8 of the lemma of Johnson and Lindenstrauss is the constant of squared distances. Points that depend on one another,
    such as data near a subspace, are stretched less.

    Args:
        points: k, at least two.
        dimension: m.

    Raises:
        UserError: for fewer than two points, or no dimension.

    Source: derived here; Johnson and Lindenstrauss 1984, Dasgupta and Gupta 2003.

    >>> low, high = projection_distortion(256, 512)
    >>> round(low, 3), round(high, 3)
    (0.873, 1.131)
    """
    if points < 2 or dimension < 1:
        raise UserError(
            f"projection_distortion: expected at least 2 points and 1 dimension, got {points} and {dimension}"
        )
    from scipy.special import chdtri, gammaincinv

    pairs = points * (points - 1) / 2
    beyond = np.exp(-np.euler_gamma) / pairs  # e^(−γ)/N
    low = 2 * gammaincinv(dimension / 2, beyond)  # lower quantile of χ²_m
    high = chdtri(dimension, beyond)  # upper quantile of χ²_m
    return Distortion(float(np.sqrt(low / dimension)), float(np.sqrt(high / dimension)))
