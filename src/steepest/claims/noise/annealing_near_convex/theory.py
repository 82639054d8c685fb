"""What the worst bumps cost walkers, and how fast Metropolis falls in many dimensions."""

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import gammainc, gammaincc
from scipy.stats import norm

from steepest.claims.noise._rippled_bowl import NEAR, PROPOSAL


def worst_mean(dimension: int, ratio: float) -> float:
    """Return the largest mean of f = ‖x‖²/2 under exp(−F/T) over all F within δ of f, in units of dT/2.

    The mean is E[f w]/E[w] under exp(−f/T) with a weight w between e^{−δ/T} and e^{δ/T}, where δ/T is the ratio. The
    mean is largest if w is largest exactly where f exceeds this mean, R; f/T has the Gamma law of shape d/2, and R is
    the fixed point. The general bound e^{2δ/T} is far above it: R tends to one with growing dimension.

    >>> round(worst_mean(2, 1.0), 3), round(worst_mean(1024, 1.0), 3), round(float(np.exp(2.0)), 3)
    (1.929, 1.035, 7.389)
    """
    half = dimension / 2
    weight = np.exp(-2 * ratio)  # of heights below R, over the weight of heights above

    def excess(threshold: float) -> float:
        # f/T = s ~ Γ(d/2): E[s; s < t] = (d/2) P(d/2 + 1, t), P regularized incomplete Γ
        mean = weight * gammainc(half + 1, threshold) + gammaincc(half + 1, threshold)
        mass = weight * gammainc(half, threshold) + gammaincc(half, threshold)
        return half * mean / mass - threshold

    return float(np.asarray(brentq(excess, 0.0, half * np.exp(2 * ratio) + 1))) / half


def drift(v: float) -> float:
    """Return d dv/dt = −2 E[G min(1, e^G)], G ~ N(−ℓ²/2, ℓ²v), v = ‖x‖²/(dT): zero at v = 1."""
    mean = -(PROPOSAL**2) / 2
    width = PROPOSAL * np.sqrt(v)
    above = mean * norm.cdf(mean / width) + width * norm.pdf(mean / width)
    tilted = mean + width**2  # e^G moves the mean there
    log_mass = mean + width**2 / 2
    below = tilted * np.exp(log_mass + norm.logcdf(-tilted / width)) - width * np.exp(
        log_mass + norm.logpdf(tilted / width)
    )
    return float(-2 * (above + below))


def steps_over_dimension(start: float, end: float = NEAR) -> float:
    """Return the limit of (steps from one height to another)/d, heights in units of dT/2."""
    return quad(lambda v: -1 / drift(v), end, start)[0]
