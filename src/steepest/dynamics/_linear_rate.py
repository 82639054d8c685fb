"""How fast gradient flow on a product of two matrices must converge: imbalance and margin at its start."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.types import Values

ROUNDING = 1e-12  # a margin this small beside one and the imbalance is none


class LinearRate(NamedTuple):
    """A lower bound on the rate of ``½‖Y − UVᵀ‖²`` along gradient flow.

    Attributes:
        imbalance: ``D = UᵀU − VᵀV``, which the flow conserves, ``(h, h)``.
        margin: ``(σ_min(Y) − ‖Y − UVᵀ‖_F)_+``, below which no singular value of UVᵀ ever falls.
        left: a, which ``σ_n²(U_t)`` never falls below.
        right: b, which ``σ_m²(V_t)`` never falls below.
        bound: c = a + b, with ``R_t ≤ R_0 e^{−2ct}``.
    """

    imbalance: Float[np.ndarray, "h h"]
    margin: float
    left: float
    right: float
    bound: float


@checked
def linear_network_rate(
    U: Float[Values, "n h"],
    V: Float[Values, "m h"],
    Y: Float[Values, "n m"],
    *,
    margin: float | None = None,
) -> LinearRate:
    """Bound the rate at which gradient flow on ``R = ½‖Y − UVᵀ‖_F²`` converges, from its start alone.

    With E = Y − UVᵀ, ``Ṙ = −‖EV‖² − ‖EᵀU‖² ≤ −2(σ_n²(U) + σ_m²(V)) R``. The flow conserves D = UᵀU − VᵀV, and
    ``(UUᵀ)² = WWᵀ + UDUᵀ`` with W = UVᵀ, so that

        ``σ_n²(U) ≥ a = max(λ_n(D)_+, ½(d_- + √(d_-² + 4σ_n(W)²)))``,
        ``σ_m²(V) ≥ b = max(λ_m(−D)_+, ½(−d_+ + √(d_+² + 4σ_m(W)²)))``,

    where ``d_-`` and ``d_+`` are the smallest and the largest eigenvalue of D on the span of the rows of U and V, which
    the flow never leaves, and λ_n is the n-th largest; the square roots count where the σ in them is positive. The
    singular values of W stay above the margin (σ_n(W) = 0 if n > m).

    Args:
        U: the later layer, n outputs by h hidden neurons.
        V: the transpose of the earlier layer, m inputs by h.
        Y: the target; with whitened inputs the regression's own coefficients.
        margin: what no singular value of the product falls below, where more is known than the start.

    Raises:
        UserError: shapes that do not fit.

    Source: derived here, after Min, Tarmoun, Vidal and Mallada 2021 and 2023; Vidal's talk. For n = m = 1
    the bound is ``√(δ² + 4σ²)``, and where σ is y itself it is the rate at the end.

    >>> rate = linear_network_rate(np.array([[2.0]]), np.array([[1.0]]), np.array([[2.0]]))
    >>> rate.imbalance.item(), rate.margin, round(rate.bound, 6)  # the product is there already: U² + V²
    (3.0, 2.0, 5.0)
    """
    U = np.asarray(U, float)
    V = np.asarray(V, float)
    Y = np.asarray(Y, float)
    if U.ndim != 2 or V.ndim != 2 or U.shape[1] != V.shape[1] or Y.shape != (len(U), len(V)):
        raise UserError(
            "linear_network_rate: expected U (n, h), V (m, h) and Y (n, m), got "
            f"{U.shape}, {V.shape} and {Y.shape}"
        )
    n, m = Y.shape
    imbalance = U.T @ U - V.T @ V
    if margin is None:
        least = np.linalg.svd(Y, compute_uv=False)[-1]
        # Weyl: σ_min(UVᵀ) ≥ σ_min(Y) − ‖E‖_F, and the flow never increases ‖E‖_F
        margin = max(float(least - np.linalg.norm(Y - U @ V.T)), 0.0)
    _, levels, rows = np.linalg.svd(np.concatenate([U, V]), full_matrices=False)
    # an orthonormal basis of the span of the rows of U and V
    rows = rows[levels > 1e-12 * max(levels[0], 1e-300)]
    inside = np.linalg.eigvalsh(rows @ imbalance @ rows.T)  # D as a quadratic form on that span
    lowest = inside[0] if inside.size else 0.0
    highest = inside[-1] if inside.size else 0.0
    spectrum = np.linalg.eigvalsh(imbalance)
    # UᵀU = D + VᵀV ⪰ D gives λ_n(D)_+. For u the lowest eigenvector of UUᵀ, x its eigenvalue:
    # x² = uᵀWWᵀu + uᵀUDUᵀu ≥ σ_n(W)² + d_- x, so that x is at least the root
    left = max(_largest(spectrum, n), _root(lowest, margin if n <= m else 0.0))
    # the same for V, where −D takes the place of D
    right = max(_largest(-spectrum[::-1], m), _root(-highest, margin if m <= n else 0.0))
    return LinearRate(imbalance, float(margin), float(left), float(right), float(left + right))


def _largest(spectrum: np.ndarray, k: int) -> float:
    """Return the positive part of the k-th largest of increasing eigenvalues, zero where there are fewer."""
    return max(spectrum[-k], 0.0) if k <= spectrum.size else 0.0


def _root(slope: float, margin: float) -> float:
    """Return the positive root of ``x² − slope x − margin²``, without cancellation; zero without a margin.

    ``x² − slope x − margin² ≥ 0`` gives ``x ≥ root`` for positive x only, and x = σ_n²(U) may be zero where the margin
    is, as with fewer than n hidden neurons.
    """
    if margin <= ROUNDING * (1 + abs(slope)):
        return 0.0
    size = np.hypot(slope, 2 * margin)
    if slope >= 0:
        return (slope + size) / 2
    return 2 * margin**2 / (size - slope)  # the two roots have product −margin²
