"""Follow neurons that grow but do not turn, and search for widths whose directions have a wanted margin."""

import numpy as np
from scipy.integrate import Radau
from scipy.special import softmax

from steepest.claims.features.low_rotation_margin.setting import signed_features
from steepest.claims.features.low_rotation_margin.theory import largest_margin

MOST_STEPS = 1500  # of the integrator: a few hundred suffice
RTOL = 1e-5
ATOL = 1e-7
READINGS = 60  # of each flow


def follow(
    features: np.ndarray, signs: np.ndarray | None, start: float, horizon: float
) -> np.ndarray:
    r"""Return ``log ‖c‖₁`` and ``min_i Σ_j c_j F_ij / ‖c‖₁`` along the flow of c_j = a_j b_j, shape ``(2, readings)``.

    On the risk clock of the exponential loss, a_j' = b_j g_j and b_j' = a_j g_j with ``g = Fᵀq`` and the examples'
    weights ``q = softmax(-F c)``. So a_j² − b_j² never changes, and with ``G_j = ∫ g_j`` the flow is solved by

        balanced, a_j = ±b_j:          c_j = ± start · exp(±2 G_j),  the sign is kept;
        off balance, a_j² = 2 start, b_j = 0:   c_j = start · sinh(2 G_j),  of either sign.

    What is left is an equation for ``Q = ∫ q`` in as many unknowns as examples, stiff once ‖c‖ is large: solved by an
    implicit method until ``log ‖c‖₁`` reaches the horizon.

    Args:
        features: F, one row an example, with the labels' signs.
        signs: of c_j, for the balanced start; None for that off balance.
        start: scale.
        horizon: ``log ‖c‖₁`` at the end; outputs of e^20 and more lose the differences of examples to rounding.
    """
    slope = np.ones(features.shape[1]) if signs is None else signs

    def weights(potential: np.ndarray) -> np.ndarray:
        grown = 2 * (features.T @ potential)
        return start * (np.sinh(grown) if signs is None else signs * np.exp(signs * grown))

    def velocity(clock: float, potential: np.ndarray) -> np.ndarray:
        return softmax(-features @ weights(potential))

    def jacobian(clock: float, potential: np.ndarray) -> np.ndarray:
        grown = 2 * slope * (features.T @ potential)
        # ∂c_j/∂Q_i = 2 start cosh(2G_j) F_ij, or 2 start e^(±2G_j) F_ij: diag(growth) in F diag Fᵀ
        growth = 2 * start * (np.cosh(grown) if signs is None else np.exp(grown))
        outputs = (features * growth) @ features.T
        q = velocity(clock, potential)
        # the softmax has the derivative diag(q) − q qᵀ
        return -q[:, None] * (outputs - q @ outputs)

    begin = np.zeros(len(features))
    solver = Radau(velocity, 0.0, begin, 1e6, rtol=RTOL, atol=ATOL, jac=jacobian)
    path = []
    for _ in range(MOST_STEPS):
        solver.step()
        c = weights(solver.y)
        size = np.abs(c).sum()
        path.append((np.log(size), (features @ c).min() / size))
        if solver.status != "running" or path[-1][0] >= horizon:
            break
    return np.array(path).T


def read(path: np.ndarray) -> np.ndarray:
    """Return a path at a fixed number of readings, the last at its end, ``(2, readings)``."""
    at = np.linspace(0, path.shape[1] - 1, READINGS).round().astype(int)
    return path[:, at]


def width_needed(u: np.ndarray, wanted: float, grid: np.ndarray) -> float:
    """Return how many of the directions, in their order, have the wanted margin; infinite if all have less.

    The margin grows with the number of directions, so that bisection over a grid finds the two widths between which
    the wanted margin lies; between them the margin is interpolated in the logarithm of the width.
    """
    features = signed_features(u)
    margins = {len(grid): np.inf, -1: 0.0}
    low = -1
    high = len(grid)
    while high - low > 1:
        middle = (low + high) // 2
        margins[middle] = largest_margin(features[:, : grid[middle]])
        if margins[middle] >= wanted:
            high = middle
        else:
            low = middle
    if high == len(grid):
        return np.inf
    if low < 0:
        return float(grid[0])
    part = (wanted - margins[low]) / (margins[high] - margins[low])
    return float(grid[low] * (grid[high] / grid[low]) ** part)
