"""Mean errors of staircases and of broken lines on [0, 1]."""

from collections.abc import Callable, Mapping

import numpy as np
from scipy.special import xlogy

from steepest.nn.types import Values

INTEGRALS: Mapping[str, Callable[[Values], Values]] = {
    "x²": lambda x: x**3 / 3,
    "sin 4πx": lambda x: -np.cos(4 * np.pi * x) / (4 * np.pi),
    "log 1/x": lambda x: x - xlogy(x, x),
}
SLOPES: Mapping[str, Callable[[Values], Values]] = {
    "x²": lambda x: 2 * x,
    "sin 4πx": lambda x: 4 * np.pi * np.cos(4 * np.pi * x),
    "log 1/x": lambda x: -1 / x,
}


def staircase_error(target: str, steps: int) -> float:
    """Return the mean error of M equal steps that have a function's values at their middles.

    With an integral F of it, which is monotone on each step from a to b of middle m, the error there is
    ``|F(a) − 2F(m) + F(b)|``: what is above on one half and below on the other. No other levels have a smaller one.
    """
    # F at ends and middles in turn, 2M + 1 places
    edges = INTEGRALS[target](np.linspace(0, 1, 2 * steps + 1))
    return float(np.abs(edges[:-1:2] - 2 * edges[1::2] + edges[2::2]).sum())


def leading_error(target: str, steps: int) -> float:
    """Return what straight lines in place of the function on each step leave of it, ``Σ |f'(m)|/(4M²)``."""
    middles = (np.arange(steps) + 0.5) / steps
    # ∫|f' t| dt = |f'| w²/4 over a step of the length w = 1/M about its middle
    return float(np.abs(SLOPES[target](middles)).sum() / (4 * steps**2))


def line_error(breaks: int) -> float:
    """Return the least mean distance from x² of any function of K breaks on [0, 1], ``1/(16(K + 1)²)``.

    On a piece of length w a line is w²/16 away at least, as the best one meets x² a quarter of w from both ends; and
    equal pieces are best, as Σ w³ is convex.
    """
    return 1 / (16 * (breaks + 1) ** 2)
