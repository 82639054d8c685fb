"""The function of least penalized risk from the kernel matrix alone."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit


def ridge_function(kernel: NDArray, y: NDArray, ridge: float) -> NDArray:
    """Return ``K(x, X)(K + λ)⁻¹ y`` at all points, by the eigenvectors of K.

    Args:
        kernel: between all points, those of training first, and the training points, ``(m + k, m)``.
        y: labels of the training points, ``(m,)``.
        ridge: λ.
    """
    values, vectors = np.linalg.eigh(kernel[: len(y)])
    # Σ_k K(x, X) v_k (v_k·y)/(λ_k + λ)
    return kernel @ vectors @ (vectors.T @ y / (values + ridge))


def ridge_norm(kernel: NDArray, y: NDArray, ridge: float) -> float:
    """Return ``‖f‖²_H = αᵀKα`` of the same function, with ``α = (K + λ)⁻¹ y``."""
    inside = kernel[: len(y)]
    alpha = np.linalg.solve(inside + ridge * np.eye(len(y)), y)
    return float(alpha @ inside @ alpha)


def logistic_function(kernel: NDArray, y: NDArray, ridge: float) -> NDArray:
    """Return ``K(x, X) α`` of least ``Σ log(1 + exp(−y f)) + λ/2 αᵀKα`` at all points.

    A trust-region method minimizes over α, and Newton's steps polish what it found on the equation of the minimum,
    ``λ α = y s(−y f)``, s the logistic function.
    """
    inside = kernel[: len(y)]
    risk = lambda a: np.logaddexp(0, -y * (inside @ a)).sum() + ridge / 2 * a @ inside @ a
    residual = lambda a: ridge * a - y * expit(-y * (inside @ a))
    slope = lambda a: inside @ residual(a)  # the gradient in α is K(λα − y s)

    def jacobian(a: NDArray) -> NDArray:
        share = expit(-y * (inside @ a))
        # as y² = 1; s' = s(1 − s)
        return ridge * np.eye(len(y)) + (share * (1 - share))[:, None] * inside

    curvature = lambda a: inside @ jacobian(a)
    alpha = minimize(risk, np.zeros(len(y)), method="trust-exact", jac=slope, hess=curvature).x
    for _ in range(5):
        alpha = alpha - np.linalg.solve(jacobian(alpha), residual(alpha))
    return kernel @ alpha
