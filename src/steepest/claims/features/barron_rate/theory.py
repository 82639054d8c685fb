"""The variance of sampled cosines, the rival of sampled steps."""

import numpy as np

from steepest.nn.networks import Barron


def fourier_variance(f: Barron) -> float:
    """Return the variance of cos⟨w, x⟩ − 1 over frequencies, in the mean over the ball: N times the error of N of them.

    E cos² = (1 + E cos⟨2w, x⟩)/2, and E cos is the Gaussian itself.
    """
    nodes, weights = np.polynomial.legendre.leggauss(100)
    rho = (nodes + 1) / 2
    # the radius of a point of the ball has the density d ρ^(d−1) on [0, 1]
    density = weights / 2 * f.dimension * rho ** (f.dimension - 1)
    # w ~ N(0, I/s²): E cos⟨w, x⟩ = e^(−ρ²/2s²), and with 2w its fourth power
    mean = np.exp(-(rho**2) / (2 * f.scale**2))
    square = (1 + mean**4) / 2
    return float((density * (square - mean**2)).sum())
