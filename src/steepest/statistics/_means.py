"""Means over repetitions: intervals that hold at all points at once, means of groups."""

import math

import numpy as np
from numpy.typing import ArrayLike

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.statistics._quantiles import student_quantile


@checked
def simultaneous_intervals(
    samples: ArrayLike, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the ends of Student's intervals of the mean that hold at all points at once.

    .. math:: \bar x_i \pm t_{R-1,\,1-\alpha/2m}\, s_i / \sqrt R,\qquad \alpha = 1 - \mathrm{level},

    at m points, from R repetitions. By Bonferroni's inequality all m intervals hold at once with probability ``level``
    or more, however the points depend on each other (points of one training curve do). All points count in m,
    also those that are not finite, so that m does not depend on the data. Each interval is exact for Gaussian samples.
    The mean of a few skewed ones is covered less often, the more so the more points there are: from 8 repetitions at
    10 points all are covered in 71 % of cases for exponential samples. Means of groups
    (:func:`group_means`) or logarithms are less skewed.

    Args:
        samples: independent along the first axis, shape ``(repetitions, *points)``.
        level: probability that all intervals hold.

    Returns:
        Lower and upper ends, shape ``(*points,)`` each; NaN at points where some repetition is not finite. Where all
        repetitions are equal the ends coincide; for shares and counts use :func:`wilson`, which has no such points.

    Raises:
        UserError: fewer than two repetitions, which carry no information about their own spread.

    Source: Miller, Simultaneous Statistical Inference (1981), chapter 1.

    >>> samples = np.random.default_rng(0).normal(size=(10, 50))
    >>> low, high = simultaneous_intervals(samples)
    >>> bool(np.all((low < 0) & (0 < high)))  # fifty separate intervals would miss 2.5 times on average
    True
    """
    values = np.asarray(samples, float)
    if values.ndim == 0 or len(values) < 2:
        raise UserError(
            f"intervals of a mean need at least two repetitions along the first axis, got shape {values.shape}; "
            "use more seeds"
        )
    repetitions = len(values)
    points = max(values[0].size, 1)
    finite = np.where(np.isfinite(values).all(0), values, np.nan)
    # Bonferroni: each interval misses with (1 − level)/m
    quantile = student_quantile(1 - (1 - level) / points, repetitions - 1)
    half = quantile * finite.std(axis=0, ddof=1) / math.sqrt(repetitions)
    centre = finite.mean(axis=0)
    return centre - half, centre + half


@checked
def group_means(values: ArrayLike, groups: int) -> np.ndarray:
    """Return the means of equal groups of consecutive repetitions.

    Means of groups are nearly Gaussian where single repetitions are not, so that Student's interval over groups holds;
    and the logarithm of a group's mean is nearer to the logarithm of the expectation than the mean of logarithms.

    Args:
        values: repetitions along the first axis, shape ``(repetitions, ...)``.
        groups: number of groups, a divisor of the number of repetitions.

    Returns:
        One mean per group, shape ``(groups, ...)``.

    Raises:
        UserError: repetitions that cannot be divided into so many groups of the same size.

    >>> group_means([1.0, 3.0, 5.0, 7.0], groups=2).tolist()
    [2.0, 6.0]
    """
    values = np.asarray(values, float)
    repetitions = len(values) if values.ndim else 0
    if groups < 1 or repetitions == 0 or repetitions % groups:
        raise UserError(
            f"groups of the same size: expected a number of repetitions that is a multiple of {groups}, "
            f"got shape {values.shape}"
        )
    return values.reshape(groups, repetitions // groups, *values.shape[1:]).mean(axis=1)
