"""How much the tangent kernel of one convolution varies between initializations, exactly.

At one input the kernel is the mean over n channels of independent φ, so that Var Θ/(E Θ)² = Var φ/(n (E φ)²). With
z_p = w·x_p the signal of a channel at position p, K_pq its covariance over filters w, σ_p = relu(z_p), g_p its slope
and a the weights behind it,

    pooled      φ = (Σ σ_p)²/P² + a² Σ_pq g_p g_q K_pq/P²
    flattened   φ = Σ σ_p²/P   + Σ_pq a_p a_q g_p g_q K_pq/P

up to one factor. Of the flattened one, the mean of φ² needs two positions at a time, of which ReLU has closed forms:
exact for any image. Of the pooled one it needs four. Where all positions have one correlation ρ, they are independent
given what they share, and one integral is left. For other images channels are drawn.
"""

import math

import numpy as np
from scipy.stats import norm

from steepest.claims.kernels._convolution_covariances import relative_variance, windows
from steepest.nn.types import Values

NODES = 160  # of the integral over what positions share; twice as many change the fifth digit at ρ = 0.95
ORDER = 4  # moments up to the fourth


def directions(images: Values) -> list[float]:
    """Return (tr K)²/tr K² of each image: as many directions as its windows have, if all are equal.

    Args:
        images: ``(images, 8, 8, 1)``.

    >>> directions(np.ones((1, 4, 4, 1)))
    [1.0]
    """
    covariances = [windows(image[..., 0]) for image in images]
    return [float(np.trace(K) ** 2 / (K**2).sum()) for K in covariances]


def half_moments(mean: Values, deviation: float) -> list[Values]:
    """Return E z₊^k of normals for k = 0, …, 4, where z₊⁰ is one if z > 0.

    >>> [round(float(m), 4) for m in half_moments(np.array(0.0), 1.0)]
    [0.5, 0.3989, 0.5, 0.7979, 1.5]
    """
    ratio = mean / deviation
    # E z₊⁰ = Φ(μ/s), E z₊ = μ Φ(μ/s) + s φ(μ/s)
    moments = [norm.cdf(ratio), mean * norm.cdf(ratio) + deviation * norm.pdf(ratio)]
    for k in range(2, ORDER + 1):
        # integration by parts: E (z − μ) z₊^(k−1) = (k − 1) s² E z₊^(k−2)
        moments.append(mean * moments[-1] + (k - 1) * deviation**2 * moments[-2])
    return moments


def power_of_series(series: Values, exponent: int) -> Values:
    """Return a power of series in two variables, cut at the fourth power of each, ``(5, 5, nodes)``."""
    result = np.zeros_like(series)
    result[0, 0] = 1.0
    for _ in range(exponent):
        product = np.zeros_like(series)
        for i in range(ORDER + 1):
            for j in range(ORDER + 1):
                # Cauchy product
                product[i:, j:] += series[i, j] * result[: ORDER + 1 - i, : ORDER + 1 - j]
        result = product
    return result


def pooled(positions: int, rho: float) -> float:
    """Return Var φ/(E φ)² of a pooled network where all positions have correlation ρ.

    Given the part √ρ u that positions share, the pairs (σ_p, g_p) are independent, and the generating function of
    (Σ σ_p, Σ g_p) is the power P of that of one pair.

    >>> round(pooled(1, 0.3), 6)
    3.0
    """
    u, weight = np.polynomial.hermite_e.hermegauss(NODES)  # nodes of the weight exp(−u²/2)
    half = half_moments(rho**0.5 * u, (1 - rho) ** 0.5)  # z_p = √ρ u + √(1 − ρ) ξ_p
    series = np.empty((ORDER + 1, ORDER + 1, NODES))
    for i in range(ORDER + 1):
        for j in range(ORDER + 1):
            moment = np.ones(NODES) if i == j == 0 else half[i]  # a gate is 0 or 1, as its powers
            # coefficients of E exp(sσ + tg) given u
            series[i, j] = moment / (math.factorial(i) * math.factorial(j))
    sums = power_of_series(series, positions) @ (weight / weight.sum())

    def expected(i: int, j: int) -> float:
        """Return E (Σσ)^i (Σg)^j."""
        return math.factorial(i) * math.factorial(j) * float(sums[i, j])

    # Σ_pq g_p g_q K_pq = ρ (Σ g)² + (1 − ρ) Σ g
    gates = rho * expected(0, 2) + (1 - rho) * expected(0, 1)
    with_gates = rho * expected(2, 2) + (1 - rho) * expected(2, 1)
    squares = (
        rho**2 * expected(0, 4)
        + 2 * rho * (1 - rho) * expected(0, 3)
        + (1 - rho) ** 2 * expected(0, 2)
    )
    # E φ² with S = Σσ: E S⁴ + 2 E a² E S²(gates) + E a⁴ E (gates)², E a² = 1 and E a⁴ = 3
    return relative_variance(expected(2, 0) + gates, expected(4, 0) + 2 * with_gates + 3 * squares)


def pooled_by_draws(covariance: Values, channels: int) -> float:
    """Return Var φ/(E φ)² of a pooled network at any input, from channels that are always the same.

    Args:
        covariance: K of the signals, ``(P, P)``.
        channels: how many are drawn.
    """
    rng = np.random.default_rng(0)
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-9 * values[-1]
    root = vectors[:, kept] * values[kept] ** 0.5  # K = RRᵀ, (P, rank)
    z = rng.standard_normal((channels, root.shape[1])) @ root.T
    read = np.maximum(z, 0).sum(1) ** 2
    filters = (((z > 0) @ root) ** 2).sum(1)  # Σ_pq g_p g_q K_pq = ‖Σ_p g_p R_p‖²
    last = rng.standard_normal(channels) ** 2
    phi = read + last * filters
    return relative_variance(phi.mean(), (phi**2).mean())
