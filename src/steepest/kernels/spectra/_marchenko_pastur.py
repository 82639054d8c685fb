"""The Marchenko–Pastur law: the limiting spectrum of XXᵀ/n_0 for P × n_0 matrices X of independent entries."""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from steepest.core.errors import UserError


def marchenko_pastur_edges(alpha: float) -> tuple[float, float]:
    """Return the ends ``λ± = (1 ± √α)²`` of the continuous part, where P/n_0 → α > 0.

    >>> marchenko_pastur_edges(0.25)
    (0.25, 2.25)
    """
    if not 0 < alpha < np.inf:
        raise UserError(f"the ratio α = P/n_0 must be positive, got {alpha}")
    return (1 - alpha**0.5) ** 2, (1 + alpha**0.5) ** 2


def marchenko_pastur_density(x: ArrayLike, alpha: float) -> Float[np.ndarray, "..."]:
    """Return the density ``√((λ₊ − x)(x − λ₋)) / (2π α x)`` between the edges; its mass is min(1, 1/α).

    For α > 1 the remaining 1 − 1/α is an atom at zero: XXᵀ has P rows but rank n_0. Source: Marchenko and Pastur 1967;
    ORF 543, lecture 12/7, which prints 2x in place of α x under one more factor 1/2.

    >>> bool(marchenko_pastur_density(1.0, 1.0) == 3**0.5 / (2 * np.pi))
    True
    """
    low, high = marchenko_pastur_edges(alpha)
    x = np.asarray(x, float)
    # outside the edges the density is zero; 1 keeps the quotient finite there
    inside = (x > low) & (x < high)
    safe = np.where(inside, x, 1.0)
    root = np.sqrt(np.where(inside, (high - x) * (x - low), 0.0))
    return root / (2 * np.pi * alpha * safe)


def marchenko_pastur_cdf(x: ArrayLike, alpha: float) -> Float[np.ndarray, "..."]:
    """Return the share of eigenvalues at or below x, in closed form, with the atom at zero for α > 1.

    With ``R = √((λ₊ − x)(x − λ₋))`` the primitive of R/x is ``R + (1 + α) arcsin((x − 1 − α)/(2√α)) − |1 − α|
    arcsin(((1 + α) x − (1 − α)²)/(2√α x))``.

    >>> marchenko_pastur_cdf([0.0, 2.25], 0.25).tolist()
    [0.0, 1.0]
    """
    low, high = marchenko_pastur_edges(alpha)
    x = np.asarray(x, float)
    inside = np.clip(x, max(low, 1e-300), high)
    root = np.sqrt(np.maximum((high - inside) * (inside - low), 0.0))
    width = 2 * alpha**0.5
    gap = abs(1 - alpha)
    outer = np.arcsin(np.clip((inside - 1 - alpha) / width, -1, 1))
    inner = np.arcsin(np.clip(((1 + alpha) - gap**2 / inside) / width, -1, 1)) if gap else 0.0
    # both arcsines go from −π/2 at λ₋ to π/2 at λ₊: total (1 + α − |1 − α|)/2α = min(1, 1/α)
    mass = (root + (1 + alpha) * (outer + np.pi / 2) - gap * (inner + np.pi / 2)) / (
        2 * np.pi * alpha
    )
    # XXᵀ has rank n_0 < P for α > 1: an atom of 1 − 1/α at zero
    return np.where(x < 0, 0.0, np.where(x < low, 0.0, mass) + max(0.0, 1 - 1 / alpha))
