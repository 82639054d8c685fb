"""The size of Adam's updates to first order in 1 − β₂, from four moments of gradients."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steepest.core.signatures import checked


class Moments(NamedTuple):
    """Moments of gradients that are independent from step to step, arrays of one shape."""

    mean: NDArray
    variance: NDArray
    third: NDArray  # central
    fourth: NDArray  # central

    @property
    def spread(self) -> NDArray:
        """Return the variance of g²."""
        # g² = μ² + 2μx + x²: Var(2μx) + 2 Cov(2μx, x²)
        mixed = 4 * self.mean**2 * self.variance + 4 * self.mean * self.third
        return mixed + self.fourth - self.variance**2  # Var x²

    def of_means(self, batch: int) -> "Moments":
        """Return those of the mean over a batch of independent examples."""
        # κ₄/b³ + 3 (σ²/b)²: the fourth cumulant of a mean falls like 1/b³
        fourth = (self.fourth - 3 * self.variance**2) / batch**3 + 3 * self.variance**2 / batch**2
        return Moments(self.mean, self.variance / batch, self.third / batch**2, fourth)


@checked
def gaussian_moments(mean: Any) -> Moments:
    """Return the moments of Gaussian gradients of variance one.

    >>> gaussian_moments(np.array([0.0])).fourth.tolist()
    [3.0]
    """
    mean = np.asarray(mean, float)
    variance = np.ones_like(mean)
    return Moments(mean, variance, 0 * variance, 3 * variance)


@checked
def mean_square_of_adam(moments: Moments, beta1: Any, beta2: Any, step: int) -> NDArray:
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
    squares = spread_of_second_moment(beta2, step)
    pairs = (1 - beta1) * (1 - beta2) / (1 - beta1 * beta2) / filled  # Σ a_k b_k
    triples = (1 - beta1) ** 2 * (1 - beta2) / (1 - beta1**2 * beta2) / filled  # Σ a_k² b_k
    # Cov(m², v) = Σ a_k² b_k Var g² + 2μ Cov(g, g²) Σ a_k b_k (1 − a_k), as Σ a_k = 1
    together = triples * spread + 2 * mu * with_square * (pairs - triples)
    return of_m / of_v * (1 - together / (of_m * of_v) + squares * spread / of_v**2)


@checked
def spread_of_second_moment(beta2: ArrayLike, step: int) -> Any:
    """Return Σ b_k², the variance of v over that of g²."""
    # (1 − β₂)²/(1 − β₂^t)² · (1 − β₂^{2t})/(1 − β₂²)
    gone = beta2**step  # pyright: ignore
    return (1 - beta2) / (1 + beta2) * (1 + gone) / (1 - gone)  # pyright: ignore


@checked
def update_size_of_adam(
    moments: Moments, beta1: Any, beta2: Any, steps: tuple[int, int]
) -> NDArray:
    """Return √E[m²/v] over a range of steps, by its ends and its middle (Simpson)."""
    first, last = steps
    size = lambda step: mean_square_of_adam(moments, beta1, beta2, step)
    return np.sqrt((size(first) + 4 * size((first + last) // 2) + size(last)) / 6)
