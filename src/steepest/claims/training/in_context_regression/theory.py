"""The best layer of linear attention for regressions whose examples stand in the prompt.

A prompt has N examples x_i ~ N(0, Λ), their labels w·x_i with w ~ N(0, I), and a query x. The layer can answer with
xᵀMh, h = (1/N) Σ_i (w·x_i) x_i = Sw, S the second moment of the examples. Its risk, half the mean square of what it
leaves, is

    ½ E ‖Λ^½(MS − I)w‖² = ½ tr[Λ M E[S²] Mᵀ − 2 ΛMΛ + Λ] ,

as E wwᵀ = I and E S = Λ. For Gaussian inputs E[S²] = (1 − 1/N)Λ² + (1/N)(2Λ² + tr(Λ) Λ) = ΛΓ, with
Γ = (1 + 1/N)Λ + (tr Λ/N) I. So M = Γ⁻¹ is best. All is diagonal in the coordinates of Λ.
"""

from steepest.nn.types import Values


def gammas(variances: Values, length: int) -> Values:
    """Return the eigenvalues of Γ for prompts of some length, ``(d,)``.

    >>> import numpy as np
    >>> gammas(np.array([2.0, 1.0]), 3)
    array([3.66666667, 2.33333333])
    """
    return (1 + 1 / length) * variances + variances.sum() / length


def risk(variances: Values, length: int, weights: Values) -> float:
    """Return the risk of M = diag(weights)."""
    gamma = gammas(variances, length)
    # Λ(ΛΓM² − 2ΛM + I) on the diagonal
    lacking = variances * (variances * gamma * weights**2 - 2 * variances * weights + 1)
    return float(lacking.sum() / 2)


def best_scalar(variances: Values, length: int) -> float:
    """Return the best step size of descent without a preconditioner, M = c I."""
    squares = variances**2
    # Σ λ(λγc² − 2λc + 1) is least at c = Σλ²/Σλ²γ
    return float(squares.sum() / (squares * gammas(variances, length)).sum())
