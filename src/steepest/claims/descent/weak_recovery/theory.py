"""Overlap of the leading eigenvectors of Σ T(y)xxᵀ with a teacher of k squares, for many inputs in high dimension.

Inputs are Gaussian and labels y = Σ_j ⟨θ_j, x⟩²/k, so that ky is a chi-squared variable and the second moment of the
inputs along the teacher, where the label is y, is y. Write r = T/(λ − T). With n = δd examples

    ψ(λ) = λ(1/δ + E r),    φ(λ) = λ E[y r],    λ above all of T.

Eigenvectors see the teacher if ψ = φ at a λ where ψ' > 0, and their overlap is then ψ'/(ψ' − φ'): Lu and Li, Mondelli
and Montanari, for k = 1. For more neurons E[xxᵀ | y] is y times the identity on the teacher's span, so that
the same equation stands for each of its directions.

No function T does with fewer than kd/2 examples: ψ = φ says E[(y − 1)r] = 1/δ, and ψ' > 0 says E r² < 1/δ; by Cauchy
and Schwarz 1/δ² < Var(y)/δ, and Var(y) = 2/k. At equality r is a multiple of y − 1, as at λ = 1 for T = 1 − 1/y.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2

NODES = 20_000
FARTHEST = 1e6  # no λ is sought beyond it

Weight = Callable[[float, np.ndarray], np.ndarray]
"""r as a function of λ and the labels."""


def best(level: float, labels: np.ndarray) -> np.ndarray:
    """Return r of T = 1 − 1/y."""
    return (labels - 1) / ((level - 1) * labels + 1)  # T/(λ − T), times y above and below


def step(cut: float) -> Weight:
    """Return r of T = 1 above a label and 0 below it."""
    return lambda level, labels: np.where(labels > cut, 1 / (level - 1), 0.0)


def clipped(cap: float) -> Weight:
    """Return r of T = min(y, cap)."""
    return lambda level, labels: np.minimum(labels, cap) / (level - np.minimum(labels, cap))


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function crosses zero between two numbers."""
    place: Any = brentq(function, low, high)
    return float(place)


@cache
def quantiles(neurons: int) -> np.ndarray:
    """Return labels of equal probability."""
    return chi2.ppf((np.arange(NODES) + 0.5) / NODES, neurons) / neurons


def overlap(weight: Weight, largest: float, ratio: float, neurons: int) -> float:
    """Return the squared overlap of an eigenvector with the teacher's span.

    Args:
        weight: r.
        largest: supremum of T, which λ exceeds.
        ratio: δ = n/d.
        neurons: k.
    """
    labels = quantiles(neurons)

    def slope(level: float) -> float:
        """Return ψ'."""
        # d(λr)/dλ = −r², as r = T/(λ − T)
        return float(1 / ratio - (weight(level, labels) ** 2).mean())

    def excess(level: float) -> float:
        """Return (φ − ψ)/λ."""
        return float(((labels - 1) * weight(level, labels)).mean() - 1 / ratio)  # E (y − 1)r − 1/δ

    edge = largest * (1 + 1e-9)
    # ψ'' > 0: beyond the λ where ψ' is zero it stays positive
    if slope(edge) < 0:
        edge = root(slope, edge, FARTHEST)
    if excess(edge) <= 0:
        return 0.0
    level = root(excess, edge, FARTHEST)
    fall = (labels * weight(level, labels) ** 2).mean()  # −φ'
    return float(slope(level) / (slope(level) + fall))


def best_overlap(ratio: float, neurons: int) -> float:
    """Return the squared overlap with T = 1 − 1/y at n/d, as ``overlap``."""
    return overlap(best, 1.0, ratio, neurons)


def half_seen(neurons: int) -> float:
    """Return n/d at which the spectrum of T = 1 − 1/y sees half of the teacher."""
    return root(
        lambda ratio: best_overlap(ratio, neurons) - 0.5,
        least_examples(neurons),
        10 * least_examples(neurons),
    )


def least_examples(neurons: int) -> float:
    """Return n/d from which the best T sees the teacher: 1/Var(y).

    >>> least_examples(1)
    0.5
    """
    return neurons / 2
