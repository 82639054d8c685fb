"""The risk of least squares with p of D features, below and above the number of examples.

Labels are β·x + σε, with x ~ N(0, I) in D dimensions. A fit that sees the first p features alone has the labels
β_p·x_p + noise, the noise being what is missing and ε: it is Gaussian, independent of x_p, and has the variance
s² = ‖β_rest‖² + σ². The fit ŵ has the risk s² + E‖ŵ − β_p‖².

Below n, ŵ − β_p = (XᵀX)⁻¹Xᵀ(noise), and E tr (XᵀX)⁻¹ = p/(n − p − 1). Above n the fit of least norm is the projection
of β_p to the n examples, which keeps n/p of its square, and (XXᵀ)⁻¹ of the noise: E tr (XXᵀ)⁻¹ = n/(p − n − 1).

Inputs have no direction, so that of β_p its length alone matters, and it may as well be random. With a penalty k‖w‖²
for k = s²p/‖β_p‖² the fit is then what a Bayesian expects, and its error is that of the posterior,
s² E tr (XᵀX + kI)⁻¹. As n and p grow together the trace tends to γ m(−λ), with γ = p/n, λ = k/n and m the Stieltjes
transform of the law of Marchenko and Pastur: γλm² + (1 − γ + λ)m = 1.

The next order is known for each sum of f over eigenvalues of XᵀX/n (Bai and Silverstein 2004): its mean is larger by
(f(a) + f(b))/4 − (1/2π) ∫ f(x)/√((x − a)(b − x)) dx, with a and b = (1 ∓ √γ)² the ends of the law. For f = 1/(x + λ)
that is ¼(1/√(a + λ) − 1/√(b + λ))², and the trace is larger by one n-th of it.
"""

import numpy as np

from steepest.nn.types import Values


def split(weights: Values, p: int, noise: float) -> tuple[float, float]:
    """Return ‖β_p‖², and s² of a fit to the first p features."""
    squares = weights**2
    return float(squares[:p].sum()), float(squares[p:].sum() + noise**2)


def least_norm(weights: Values, p: int, noise: float, n: int) -> float:
    """Return the risk of the fit of least norm.

    >>> import numpy as np
    >>> least_norm(np.ones(2), 2, 1.0, 5), least_norm(np.ones(5), 5, 1.0, 2)
    (2.0, 5.0)
    """
    signal, variance = split(weights, p, noise)
    if p < n:
        return variance * (1 + p / (n - p - 1))
    return signal * (1 - n / p) + variance * (1 + n / (p - n - 1))


def ridge(weights: Values, p: int, noise: float, n: int) -> float:
    """Return the risk of the best ridge, to the next order in 1/n."""
    signal, variance = split(weights, p, noise)
    gamma = p / n
    penalty = gamma * variance / signal
    middle = 1 - gamma + penalty
    # the positive root of γλm² + (1 − γ + λ)m = 1, in the form that does not cancel
    stieltjes = 2 / (middle + np.sqrt(middle**2 + 4 * gamma * penalty))
    # a and b, the ends of the law of Marchenko and Pastur
    ends = (1 + np.array([-1, 1]) * gamma**0.5) ** 2
    lower, upper = 1 / np.sqrt(ends + penalty)
    return float(variance * (1 + gamma * stieltjes + (lower - upper) ** 2 / (4 * n)))
