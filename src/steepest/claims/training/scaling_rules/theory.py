"""Stationary risk of SGD and of Adam on least squares, in units of the variance of the labels' noise.

Inputs are Gaussian with variances h, so that a batch of b examples has a gradient of mean Hw and covariance
((1 + r)H + HwwᵀH)/b, with r = Σ h V and V the variances of the weights' errors: all coordinates go by themselves but
for r. A linear rule with momentum, w ← w − em, on noise of variance N has V = eN/(h(2 − ehρ)), ρ = (1 − β)/(1 + β).
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from steepest.nn.types import Values

ROUNDS = 25  # of the fixed point of Adam's variances; an error of the noise shrinks like the risk each time
HALVINGS = 45  # of the interval that holds Adam's step, to double precision


def sgd_risk(curvatures: Values, batch: int, eta: float) -> float:
    """Return ½Σ hV of SGD, exact: V = (η/b)(1 + r)/(2 − ηh(1 + 1/b)), so that r = A/(1 − A).

    >>> round(sgd_risk(np.array([1.0]), 1000, 0.5), 5)
    0.00017
    """
    part = float((eta * curvatures / batch / (2 - eta * curvatures * (1 + 1 / batch))).sum())
    # r = Σ hV = A(1 + r)
    return part / (1 - part) / 2


def adam_risk(curvatures: Values, batch: int, eta: float, beta1: float) -> float:
    """Return ½Σ hV of Adam for β₂ → 1, where it divides by √v with v = h²V + N, as a fixed point."""
    memory = (1 - beta1) / (1 + beta1)
    variances = np.zeros_like(curvatures)
    for _ in range(ROUNDS):
        total = (curvatures * variances).sum()
        # the diagonal of ((1 + r)H + HwwᵀH)/b, with V for the mean of w²
        noise = curvatures / batch * (1 + total + curvatures * variances)
        step = adam_step(curvatures, noise, eta, memory)
        variances = step * noise / (curvatures * (2 - step * curvatures * memory))
    return float((curvatures * variances).sum()) / 2


def adam_step(curvatures: Values, noise: Values, eta: float, memory: float) -> Values:
    """Return e = η/√v for noise of some variances N, ``(d,)``.

    As v = N(1 + he/(2 − ehρ)), it is the root of e√v = η. The left side grows from zero without bound as e goes to
    2/hρ, and halving the interval finds it.
    """
    low = np.zeros_like(curvatures)
    high = 2 / (curvatures * memory)
    for _ in range(HALVINGS):
        step = (low + high) / 2
        pull = curvatures * step
        # e√v with v = h²V + N
        size = step * np.sqrt(noise * (1 + pull / (2 - pull * memory)))
        low = np.where(size < eta, step, low)
        high = np.where(size < eta, high, step)
    return (low + high) / 2


def small_step_risks(curvatures: Values, batch: int, eta: float) -> tuple[float, float]:
    """Return what both risks tend to for small steps: η Σh/(4b) of SGD, η Σ√h/(4√b) of Adam."""
    sgd = eta * curvatures.sum() / (4 * batch)
    adam = eta * np.sqrt(curvatures).sum() / (4 * np.sqrt(batch))
    return float(sgd), float(adam)


def keeping_exponent(risk: Callable[[float], float], wanted: float) -> float:
    """Return the exponent a at which a risk, which grows with a, is what is wanted; it lies between 0 and 1."""

    def excess(exponent: float) -> float:
        return risk(exponent) - wanted

    return float(np.asarray(brentq(excess, 0.0, 1.0, xtol=1e-7)))
