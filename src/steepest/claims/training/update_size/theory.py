"""The size of updates from the moments of gradients: Adam's to first order in 1 − β₂, Muon's by a random spectrum."""

from typing import Any, NamedTuple

import numpy as np

from steepest.nn.types import Values

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of x, x³ and x⁵ in a step of Muon
ITERATIONS = 5
ANGLES = 4000  # of the quadrature


class Moments(NamedTuple):
    """Moments of gradients that are independent from step to step, arrays of one shape."""

    mean: Values
    variance: Values
    third: Values  # central
    fourth: Values  # central

    @property
    def spread(self) -> Values:
        """Return the variance of g²."""
        mixed = 4 * self.mean**2 * self.variance + 4 * self.mean * self.third
        return mixed + self.fourth - self.variance**2

    def of_means(self, batch: int) -> "Moments":
        """Return those of the mean over a batch of independent examples."""
        fourth = (self.fourth - 3 * self.variance**2) / batch**3 + 3 * self.variance**2 / batch**2
        return Moments(self.mean, self.variance / batch, self.third / batch**2, fourth)


def gaussian(mean: Any) -> Moments:
    """Return the moments of Gaussian gradients of variance one.

    >>> gaussian(np.array([0.0])).fourth.tolist()
    [3.0]
    """
    mean = np.asarray(mean, float)
    variance = np.ones_like(mean)
    return Moments(mean, variance, 0 * variance, 3 * variance)


def mean_square(moments: Moments, beta1: Any, beta2: Any, step: int) -> Values:
    """Return E[m²/v] of Adam at a step, to first order in how v varies.

    With weights a_k of m and b_k of v (bias-corrected), E m² = μ² + ρσ², ρ = Σ a_k² = (1 − β₁)/(1 + β₁), and
    E v = μ² + σ². Then E[m²/v] = (E m²/E v)(1 − Cov(m², v)/(E m² E v) + Var v/(E v)²).

    Args:
        moments: of the gradients.
        beta1: β₁, of any shape that goes with theirs.
        beta2: β₂.
        step: how many steps were taken, many more than 1/(1 − β₁).
    """
    mu = moments.mean
    square = moments.variance
    of_v = mu**2 + square
    of_m = mu**2 + square * (1 - beta1) / (1 + beta1)
    spread = moments.spread
    with_square = 2 * mu * square + moments.third  # covariance of g and g²
    filled = 1 - beta2**step
    squares = spread_of_v(beta2, step)
    pairs = (1 - beta1) * (1 - beta2) / (1 - beta1 * beta2) / filled
    triples = (1 - beta1) ** 2 * (1 - beta2) / (1 - beta1**2 * beta2) / filled
    together = triples * spread + 2 * mu * with_square * (pairs - triples)
    return of_m / of_v * (1 - together / (of_m * of_v) + squares * spread / of_v**2)


def spread_of_v(beta2: Any, step: int) -> Any:
    """Return Σ b_k², the variance of v over that of g²."""
    gone = beta2**step
    return (1 - beta2) / (1 + beta2) * (1 + gone) / (1 - gone)


def root_mean_square(moments: Moments, beta1: Any, beta2: Any, steps: tuple[int, int]) -> Values:
    """Return √E[m²/v] over a range of steps, by its ends and its middle (Simpson)."""
    first, last = steps
    size = lambda step: mean_square(moments, beta1, beta2, step)
    return np.sqrt((size(first) + 4 * size((first + last) // 2) + size(last)) / 6)


def polynomial(values: Values, iterations: int = ITERATIONS) -> Values:
    """Return what Muon's iteration makes of singular values, ``x ← a x + b x³ + c x⁵``.

    >>> bool(abs(polynomial(np.array([0.5]))[0] - 1) < 0.3)
    True
    """
    a, b, c = COEFFICIENTS
    for _ in range(iterations):
        values = a * values + b * values**3 + c * values**5
    return values


def muon_size(small: int, large: int) -> float:
    """Return √max(m, n) times the root mean square of Muon's update for a Gaussian matrix.

    Its singular values over the Frobenius norm are √(λ/m), m the smaller side, with λ of Marchenko and Pastur's law:
    λ = 1 + r + 2√r cos φ, r = m/n, of density (2/π) sin²φ/λ.

    >>> 0.8 < muon_size(64, 256) < 0.95
    True
    """
    ratio = small / large
    angles = (np.arange(ANGLES) + 0.5) * np.pi / ANGLES
    eigenvalues = 1 + ratio + 2 * ratio**0.5 * np.cos(angles)
    density = 2 * np.sin(angles) ** 2 / eigenvalues / ANGLES
    return float((density * polynomial(np.sqrt(eigenvalues / small)) ** 2).sum() ** 0.5)
