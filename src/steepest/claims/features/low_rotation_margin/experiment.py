"""Follow neurons that grow but do not turn, and find the margins that their directions allow."""

import numpy as np
from scipy.integrate import Radau
from scipy.optimize import linprog
from scipy.special import softmax

from steepest.nn.data import hypercube

MOST_STEPS = 1500  # of the integrator: a few hundred suffice
RTOL = 1e-5
ATOL = 1e-7


def units(rng: np.random.Generator, count: int, d: int) -> np.ndarray:
    """Return random unit vectors, ``(count, d)``."""
    u = rng.normal(size=(count, d))
    return u / np.linalg.norm(u, axis=1, keepdims=True)


def signed_features(u: np.ndarray) -> np.ndarray:
    """Return y relu(⟨u_j, x⟩) of XOR on the whole cube, ``(2^d, neurons)``."""
    signs = hypercube(u.shape[1])
    y = signs[:, 0] * signs[:, 1]
    return y[:, None] * np.maximum(signs @ u.T, 0) / np.sqrt(u.shape[1])


def largest_margin(features: np.ndarray, signs: np.ndarray | None = None) -> float:
    """Return ``max min_i Σ_j c_j F_ij`` over ``Σ|c_j| ≤ 1``, by a linear program; with signs, c_j of these only."""
    columns = np.hstack([features, -features]) if signs is None else features * signs
    n, m = columns.shape
    gain = np.append(np.zeros(m), -1.0)
    apart = np.hstack([-columns, np.ones((n, 1))])
    size = np.append(np.ones(m), 0.0)[None]
    limits = [(0, None)] * (m + 1)  # nothing at all has margin zero
    best = linprog(gain, apart, np.zeros(n), size, [1.0], limits, method="highs")
    if best.status == 2:  # no combination has a margin of zero or more
        return 0.0
    return float(-best.fun)


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
        growth = 2 * start * (np.cosh(grown) if signs is None else np.exp(grown))
        outputs = (features * growth) @ features.T
        q = velocity(clock, potential)
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


def edges(u: np.ndarray) -> np.ndarray:
    """Return ``|E y relu(⟨u, x⟩)|`` over the cube, for each direction."""
    size = 2 ** u.shape[1]
    return np.concatenate(
        [np.abs(signed_features(part).sum(0)) / size for part in np.array_split(u, 20)]
    )
