"""The margins that first directions allow, by linear programs, and edges of single directions."""

import numpy as np
from scipy.optimize import brentq, linprog
from scipy.stats import norm

from steepest.claims.features.low_rotation_margin.setting import signed_features
from steepest.programs import hard_margin


def largest_margin(features: np.ndarray, signs: np.ndarray | None = None) -> float:
    """Return ``max min_i Σ_j c_j F_ij`` over ``Σ|c_j| ≤ 1``, by a linear program; with signs, c_j of these only."""
    # without signs c_j is the difference of two nonnegative coefficients
    columns = np.hstack([features, -features]) if signs is None else features * signs
    n, m = columns.shape
    # unknowns (c, γ) ≥ 0: maximize γ with γ ≤ Σ_j F_ij c_j at all i, and Σ_j c_j ≤ 1
    gain = np.append(np.zeros(m), -1.0)
    apart = np.hstack([-columns, np.ones((n, 1))])
    size = np.append(np.ones(m), 0.0)[None]
    limits = [(0, None)] * (m + 1)  # nothing at all has margin zero
    best = linprog(gain, apart, np.zeros(n), size, [1.0], limits, method="highs")
    if best.status == 2:  # no combination has a margin of zero or more
        return 0.0
    return float(-best.fun)


def euclidean_margin(features: np.ndarray) -> float:
    """Return the margin of the separator of least ℓ2 norm, over its ℓ1 norm; 0 where there is none."""
    program = hard_margin(features, np.ones(len(features)), "l2")
    size = np.abs(program.direction).sum()
    return float((features @ program.direction).min() / size) if size else 0.0


def edges(u: np.ndarray) -> np.ndarray:
    """Return ``|E y relu(⟨u, x⟩)|`` over the cube, for each direction."""
    size = 2 ** u.shape[1]
    return np.concatenate(
        [np.abs(signed_features(part).sum(0)) / size for part in np.array_split(u, 20)]
    )


def least_share() -> float:
    """Return ρ², what of a direction must lie in the two bits for half of the best edge, as d grows.

    With all of it along e₁ + e₂ the edge over the best is E(√2 ρ − σ|z|)_+ / √2, σ² = 1 − ρ², z ~ N(0, 1).
    """

    def above(share: float) -> float:
        top = np.sqrt(2 * share)
        spread = np.sqrt(1 - share)
        z = top / spread
        # E(t − σ|z|)₊ over |z| < t/σ, as z φ(z) has the integral φ(0) − φ(t/σ) on either side
        mean = top * (2 * norm.cdf(z) - 1) - spread * 2 * (norm.pdf(0) - norm.pdf(z))
        return mean / np.sqrt(2) - 0.5

    return float(np.asarray(brentq(above, 0.1, 0.99)))
