"""Gradient flow on the squared loss of a diagonal network with weight decay."""

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

RTOL = 1e-6
ATOL = 1e-9  # weights off the support shrink to a hundredth of a unit


def slope(x: NDArray, y: NDArray, weights: NDArray, decay: float) -> NDArray:
    """Return the gradient of ‖Xβ − y‖²/2n + λ‖θ‖²/2 in θ, ``(2d,)``, for β = θ₊² − θ₋²."""
    plus, minus = np.split(weights, 2)
    in_beta = x.T @ (x @ (plus**2 - minus**2) - y) / len(y)
    return np.concatenate([2 * plus * in_beta, -2 * minus * in_beta]) + decay * weights


def curvature(x: NDArray, y: NDArray, weights: NDArray, decay: float) -> NDArray:
    """Return the Hessian there, ``(2d, 2d)``, which the solver's steps need."""
    plus, minus = np.split(weights, 2)
    in_beta = x.T @ (x @ (plus**2 - minus**2) - y) / len(y)
    jacobian = np.concatenate([2 * plus, -2 * minus])
    # J_i J_j (XᵀX/n)_ij with J = ∂β/∂θ = (2θ₊, −2θ₋); the loss in β times ∂²β/∂θ² = ±2 is diagonal
    hessian = np.outer(jacobian, jacobian) * np.tile(x.T @ x / len(y), (2, 2))
    return hessian + np.diag(np.concatenate([2 * in_beta, -2 * in_beta]) + decay)


def path(x: NDArray, y: NDArray, alpha: float, decay: float, times: NDArray) -> NDArray:
    """Return β of the flow from θ = α at some times, ``(times, d)``."""
    solution = solve_ivp(
        lambda _, weights: -slope(x, y, weights, decay),
        (0.0, times[-1]),
        np.full(2 * x.shape[1], alpha),
        method="LSODA",
        t_eval=times,
        rtol=RTOL,
        atol=ATOL,
        jac=lambda _, weights: -curvature(x, y, weights, decay),
    )
    plus, minus = np.split(solution.y, 2)
    return (plus**2 - minus**2).T


def time_of_half(times: NDArray, errors: NDArray) -> float:
    """Return when errors fall below a half for the first time, between two readings; the last time if never."""
    below = np.flatnonzero(errors < 0.5)
    if not len(below):
        return float(times[-1])
    after = max(int(below[0]), 1)
    part = (errors[after - 1] - 0.5) / (errors[after - 1] - errors[after])
    return float(times[after - 1] + part * (times[after] - times[after - 1]))
