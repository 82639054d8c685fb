"""The mean risk of one-pass SGD on least squares with Gaussian inputs, by one number for each direction.

With inputs of variances λ_i and D_i the mean square error of weight i, a batch of B fresh examples has the mean square
gradient λ_i²D_i + (λ_i²D_i + λ_i(R + σ²))/B, R = Σ λ_jD_j, as E x_i²⟨x, δ⟩² = λ_iR + 2λ_i²D_i for Gaussian x. So

    D_i ← D_i((1 − ηλ_i)² + η²λ_i²/B) + η²λ_i(R + σ²)/B,

in which no product of two weights enters.
"""

from typing import NamedTuple

import numpy as np

from steepest.nn.types import Values


class Problem(NamedTuple):
    """Least squares with inputs and weights of power laws.

    Attributes:
        variances: λ_i of the inputs, ``(d,)``.
        squares: of the weights that are to be learned, ``(d,)``; SGD starts at zero.
        noise: σ², of the labels.
        batch: B.
    """

    variances: Values
    squares: Values
    noise: float
    batch: int


def power_laws(dimension: int, a: float, b: float, noise: float, batch: int) -> Problem:
    """Return the problem with λ_i = i^(−a) and λ_iw_i² = i^(−b)."""
    i = np.arange(1.0, dimension + 1)
    # w_i² = i^(−b)/λ_i
    return Problem(i**-a, i ** (a - b), noise, batch)


def mean_risk(
    problem: Problem, steps: Values, *, fourth: float = 1.0, stochastic: float = 1.0
) -> Values:
    """Return R before the first step and after each, ``(T + 1,)``.

    Args:
        problem: the problem.
        steps: η of each step, ``(T,)``.
        fourth: factor of the term η²λ²/B, which is of the inputs' fourth moments.
        stochastic: factor of all that batches add.
    """
    variances = problem.variances
    errors = problem.squares.copy()
    risks = [variances @ errors]
    for eta in steps:
        risk = risks[-1]
        part = stochastic * eta**2 / problem.batch
        # all directions feel the risk before the step
        errors = errors * ((1 - eta * variances) ** 2 + fourth * part * variances**2)
        errors = errors + part * variances * (risk + problem.noise)
        risks.append(variances @ errors)
    return np.array(risks)
