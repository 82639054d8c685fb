"""How long policy gradients take to answer a question right in one of two cases, by one integral.

K answers have logits, of which the wrong ones are equal: then z = log(p/(1 − p)), p the chance of the right answer,
follows dz/dt = c(p) K/(K − 1), and the time from p₀ to ½ is ∫ (K − 1)/(K p(1 − p) c(p)) dp.
"""

from collections.abc import Callable

import numpy as np
from scipy.integrate import quad
from scipy.stats import binom

from steepest.nn.types import Values

Drift = Callable[[float], float]
"""c(p) of a rule."""


def mean_of_group(group: float) -> Drift:
    """Return the drift where the advantage is the reward less its mean over the group, p(1 − p)(1 − 1/G).

    >>> mean_of_group(4)(0.5)
    0.1875
    """
    return lambda p: p * (1 - p) * (1 - 1 / group)


def deviation_of_group(group: int) -> Drift:
    """Return the drift where that is divided by the group's deviation, E √(q(1 − q)), q the share of right answers.

    A group that agrees has no deviation, and teaches nothing.

    >>> round(deviation_of_group(2)(0.5), 3)
    0.25
    """
    right = np.arange(group + 1)
    share = right / group
    size = np.sqrt(share * (1 - share))
    # the right logit moves by q(1 − q)/√(q(1 − q)), as advantages add up to zero in a group
    return lambda p: float(binom.pmf(right, group, p) @ size)


def large_group(p: float) -> float:
    """Return the same for groups without end, √(p(1 − p))."""
    return (p * (1 - p)) ** 0.5


def imitation(p: float) -> float:
    """Return the drift of cross-entropy on the right answer, 1 − p."""
    return 1 - p


def time_to_half(drift: Drift, start: float, answers: int) -> float:
    """Return the time from p₀ to ½.

    >>> round(time_to_half(large_group, 0.1, 2), 4)  # 2 sinh(½ log 9)
    2.6667
    """
    # dp = p(1 − p) dz: in z the integral is (K − 1)/K ∫ dz/c
    along = lambda z: 1 / drift(1 / (1 + np.exp(-z)))
    first = float(np.log(start / (1 - start)))
    return quad(along, first, 0, limit=200)[0] * (answers - 1) / answers


def times(drifts: list[Drift], starts: tuple[float, ...], answers: int) -> Values:
    """Return the times of several rules from several starts, ``(rules, starts)``."""
    return np.array([[time_to_half(drift, start, answers) for start in starts] for drift in drifts])


def slope(times: Values, starts: tuple[float, ...]) -> Values:
    """Return d log T/d log p₀ between the two smallest starts, which are last, ``(…)``."""
    step = np.log(starts[-1] / starts[-2])
    return np.log(times[..., -1] / times[..., -2]) / step
