"""SGD and Adam on least squares with fresh examples at every step, started at the best weights."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

EPSILON = 1e-12


class Rule(NamedTuple):
    """Numbers of the rules that are run side by side on the same batches, each ``(rules,)``.

    Attributes:
        adam: 1 for Adam, else 0.
        eta: the step size.
        beta1: β₁; SGD has none.
        beta2: β₂.
    """

    adam: NDArray
    eta: NDArray
    beta1: NDArray
    beta2: NDArray


def gradient(x: NDArray, y: NDArray, weights: NDArray) -> NDArray:
    """Return the gradient of half the mean square on each run's batch, ``(runs, d, rules)``.

    Inputs are ``(runs, b, d)``, labels ``(runs, b)``, weights ``(runs, d, rules)``.
    """
    errors = x @ weights - y[..., None]
    return np.swapaxes(x, 1, 2) @ errors / x.shape[1]


def late_risks(
    rng: np.random.Generator,
    curvatures: NDArray,
    batch: int,
    rule: Rule,
    runs: int,
    steps: int,
    burn_in: int,
) -> NDArray:
    """Return the mean risk after the burn-in, less that of the best weights, ``(runs, rules)``."""
    scales = np.sqrt(curvatures)
    weights = np.zeros((runs, len(curvatures), len(rule.eta)))
    average = np.zeros_like(weights)
    squares = np.zeros_like(weights)
    total = np.zeros((runs, len(rule.eta)))
    for count in range(1, steps + 1):
        x = scales * rng.standard_normal((runs, batch, len(scales)))
        y = rng.standard_normal((runs, batch))  # all noise: the best weights are zero
        slope = gradient(x, y, weights)
        average += (1 - rule.beta1) * (slope - average)
        squares += (1 - rule.beta2) * (slope**2 - squares)
        corrected = average / (1 - rule.beta1**count)
        scale = np.sqrt(squares / (1 - rule.beta2**count)) + EPSILON
        weights -= rule.eta * np.where(rule.adam > 0, corrected / scale, slope)
        if count > burn_in:
            # excess risk ½ Σ h w², as the best weights are zero
            total += 0.5 * np.einsum("i,rik,rik->rk", curvatures, weights, weights)
    return total / (steps - burn_in)
