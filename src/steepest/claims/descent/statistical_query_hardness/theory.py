"""What random networks tell of a parity: Krawtchouk coefficients of their mean tangent kernel."""

from math import comb

import numpy as np

from steepest import kit

WEIGHTS = 2.0
"""Variance of w·x over random input weights."""
BIASES = 1.0
"""Variance of the biases."""


def kernel(n: int, biases: float = BIASES) -> kit.Values:
    """Return E ∂f(x)·∂f(x') of f = Σ v_i relu(w_i·x + b_i)/√m, by the bits in which x and x' differ, ``(n + 1,)``.

    With z = w·x + b of variance q, z and z' of correlation cos φ, and v² = 1, the derivatives in v give
    (q/2π)(sin φ + (π − φ) cos φ), those in b and w (1 + x·x')(π − φ)/2π (Cho and Saul 2009).
    """
    overlap = 1 - 2 * np.arange(n + 1) / n
    q = WEIGHTS + biases
    angle = np.arccos(np.clip((WEIGHTS * overlap + biases) / q, -1, 1))
    # E σσ', arc-cosine of degree 1
    outer = q / (2 * np.pi) * (np.sin(angle) + (np.pi - angle) * np.cos(angle))
    # ∂z·∂z' E gg', with the arc-cosine kernel of degree 0
    return outer + (1 + n * overlap) * (np.pi - angle) / (2 * np.pi)


def krawtchouk(n: int) -> kit.Values:
    """Return K_k(h) = Σ_j (−1)^j C(h, j) C(n − h, k − j), the sum of χ_S(z) over |S| = k at |z| = h, ``(k, h)``."""
    terms = lambda k, h: sum((-1) ** j * comb(h, j) * comb(n - h, k - j) for j in range(k + 1))
    return np.array([[terms(k, h) for h in range(n + 1)] for k in range(n + 1)], float)


def levels(n: int, of_distance: kit.Values) -> kit.Values:
    """Return E_xx' χ_S(x) χ_S(x') κ(|x − x'|) of parities of k bits, for every k, ``(n + 1,)``."""
    sizes = np.array([comb(n, h) for h in range(n + 1)], float)
    # the sum of χ_S(z) over |z| = h is K_h(k) = K_k(h) C(n, h)/C(n, k)
    return krawtchouk(n) @ (sizes * of_distance) / sizes / 2.0**n


def bump_correlations(bits: int, a: float) -> kit.Values:
    """Return E cos(a Σ_S x) cos(a Σ_S' x) for x ~ N(0, I), |S| = |S'|, by the bits that they share, ``(bits + 1,)``."""
    shared = np.arange(bits + 1)
    # cos cos' = ½ [cos(difference) + cos(sum)], and E cos(ag) = exp(−a² Var(g)/2)
    apart = 2 * (bits - shared)
    together = 2 * bits + 2 * shared
    return (np.exp(-(a**2) * apart / 2) + np.exp(-(a**2) * together / 2)) / 2
