"""Largest margins of two convolutions, one of which has few taps, by convex programs.

With β = u ⋆ w the output is ⟨β, x⟩ = uᵀ X_k w, where the columns of X_k are the input and its first k − 1 shifts. Given
w the shortest u has |û| = |β̂|/|ŵ|, so that among factors of β

    R_k(β)² = min ‖u‖²‖w‖² = min_p Σ_j |β̂_j|²/p_j,   p_j = |ŵ_j|²/‖w‖² (ŵ not unitary).

By Fejér and Riesz the p of k taps are all trigonometric polynomials of degree k − 1, mean one, that are nowhere
negative: a convex set. |b|²/p is convex in both, so R_k² is convex, and R_k is a norm. Sums of several channels
u_cᵀ X_k w_c, of length Σ‖u_c‖‖w_c‖, are matrices in the nuclear norm; as R_k is convex they gain nothing over one.
"""

import numpy as np

from steepest.nn.types import Values
from steepest.programs import (
    fourier_margin,
    hard_margin,
    nuclear_norm_interpolation,
    nuclear_norm_margin,
)


def shifted(x: Values, taps: int) -> Values:
    """Return the matrices X_k: the shift by b has entries x_{i + b}, ``(…, d, taps)``."""
    return np.stack([np.roll(x, -b, axis=-1) for b in range(taps)], -1)


def largest_margin(x: Values, y: Values, taps: int) -> float:
    """Return the largest margin in R_k: the ℓ2 margin of one tap, √d times that in ℓ1 of the spectrum with all.

    >>> round(largest_margin(np.array([[3.0, 4.0]]), np.array([1.0]), 1), 6)
    5.0
    """
    d = x.shape[1]
    # p is one, and R_1 the ℓ2 norm
    if taps == 1:
        return hard_margin(x, y).margin
    # every p is allowed: min Σ|β̂|²/p over Σp = d is (Σ|β̂|)²/d, so that R_d = ‖β̂‖₁/√d
    if taps == d:
        return float(np.sqrt(d)) * fourier_margin(x, y).margin
    return nuclear_norm_margin(shifted(y[:, None] * x, taps)).margin


def norm(beta: Values, taps: int) -> float:
    """Return R_k(β), the least nuclear norm of a matrix (d, k) whose antidiagonals have the sums β.

    >>> round(norm(np.array([3.0, 4.0, 0.0]), 1), 6)
    5.0
    """
    unit = np.eye(len(beta))
    return nuclear_norm_interpolation(shifted(unit, taps), beta).value


def haar_basis(d: int) -> Values:
    """Return the orthonormal Haar wavelets as rows, of a power of two of coordinates."""
    rows = np.ones((1, 1))
    while len(rows) < d:
        # differences of neighbours, beside the sums that the coarser wavelets are made of
        steps = np.kron(np.eye(len(rows)), [1.0, -1.0])
        rows = np.concatenate([np.kron(rows, [1.0, 1.0]), steps]) / np.sqrt(2)
    return rows


def haar_margin(x: Values, y: Values, taps: int) -> float:
    """Return the margin in R_k of the direction with the largest margin in ℓ1 of its Haar wavelets."""
    basis = haar_basis(x.shape[1])
    # ⟨β, x⟩ = ⟨Bβ, Bx⟩ for orthonormal B
    beta = hard_margin(x @ basis.T, y, "l1").direction @ basis
    return float((y * (x @ beta)).min()) / norm(beta, taps)
