"""The rugged parabola x²/2 − (a/k) cos k(x − 0.3): how far the mean of f under exp(−βf) lies above its minimum."""

import numpy as np
from scipy.optimize import brentq

from steepest import kit
from steepest.noise import gibbs

AMPLITUDE = 2.0  # a
WAVES = 4.0  # k
PHASE = 0.3


def rugged_bound(betas: kit.Values) -> kit.Values:
    """Return (1/2β) log[(eM/m)(bβ + 1)] for the rugged parabola, with M = 1 + ak, m = ½ and b = a²/2."""
    factor = np.e * (1 + AMPLITUDE * WAVES) / 0.5
    return np.log(factor * (AMPLITUDE**2 / 2 * betas + 1)) / (2 * betas)


def rugged_second() -> float:
    """Return the coefficient of 1/β² in E f − min f, by Laplace's method: 5f‴²/24f″³ − f⁗/8f″² at the minimum."""
    slope = lambda x: x + AMPLITUDE * np.sin(WAVES * (x - PHASE))
    turn = WAVES * (float(np.asarray(brentq(slope, 0.0, 0.5))) - PHASE)
    second = 1 + AMPLITUDE * WAVES * np.cos(turn)
    third = -AMPLITUDE * WAVES**2 * np.sin(turn)
    fourth = -AMPLITUDE * WAVES**3 * np.cos(turn)
    # E f = −∂_β log Z, and the next term of log Z is this coefficient over β
    return float(5 * third**2 / (24 * second**3) - fourth / (8 * second**2))


def rugged_excess(beta: float, amplitude: float = AMPLITUDE) -> float:
    """Return E f − min f under exp(−βf) for the rugged parabola, or one of smaller ripples."""
    x = np.linspace(-9, 9, 72001)
    potential = lambda x: x**2 / 2 - amplitude / WAVES * np.cos(WAVES * (x - PHASE))
    lowest = int(potential(x).argmin())
    least = potential(np.linspace(x[lowest - 1], x[lowest + 1], 10001)).min()
    return float(gibbs(potential, beta, x) @ potential(x) - least)
