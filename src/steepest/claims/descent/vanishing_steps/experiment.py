"""Descents on a quadratic with noisy gradients."""

import numpy as np

from steepest.nn.types import Values


def noisy_descents(
    eigenvalues: Values,
    schedules: Values,
    noise: float,
    groups: int,
    size: int,
    rng: np.random.Generator,
) -> Values:
    """Descend with noisy gradients from θ_0 − θ* = (1, …, 1), and return the mean of ‖θ_t − θ*‖² over each group.

    Args:
        eigenvalues: of the Hessian, shape ``(d,)``.
        schedules: step sizes, shape ``(schedules, T)``.
        noise: standard deviation of each coordinate of the gradient.
        groups: of independent runs, for each schedule.
        size: runs in a group.
        rng: of the noise.

    Returns:
        mean squares, shape ``(schedules, groups, T + 1)``.
    """
    count, last = schedules.shape
    theta = np.ones((count, groups, size, len(eigenvalues)))
    squares = np.empty((last + 1, count, groups))
    for t in range(last + 1):
        squares[t] = (theta**2).sum(-1).mean(-1)
        if t < last:
            slope = theta * eigenvalues + noise * rng.standard_normal(theta.shape)
            theta = theta - schedules[:, t, None, None, None] * slope
    return np.moveaxis(squares, 0, -1)
