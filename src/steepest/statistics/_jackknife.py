"""The jackknife: bias and interval of what is computed from many repetitions together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steepest.core.errors import UserError
from steepest.core.intervals import Interval
from steepest.core.signatures import checked
from steepest.statistics._quantiles import student_quantile


@dataclass(frozen=True)
class Estimate:
    """An estimate with its interval.

    Attributes:
        value: the estimate less its bias, a number, or an array where the estimator returns one.
        interval: of the value; for an array its ends are arrays of the same shape, each point by itself.
        bias: what the jackknife has taken from the plain estimate, of the shape of the value.
    """

    value: Any
    interval: Interval
    bias: Any


@checked
def jackknife(
    estimator: Callable[[np.ndarray], Any], samples: ArrayLike, level: float = 0.95
) -> Estimate:
    r"""Estimate from all repetitions, with bias and interval from leaving each out once.

    For what is no mean over repetitions: a ratio of means, an exponent fitted to a mean. With θ̂ of all R repetitions
    and θ̂₍₋ᵢ₎ without the i-th,

    .. math:: \tilde\theta_i = R\hat\theta - (R-1)\hat\theta_{(-i)},\qquad
        \mathrm{value} = \frac1R\sum_i\tilde\theta_i,\qquad \mathrm{bias} = \hat\theta - \mathrm{value},

    and the interval is Student's for the mean of the pseudo-values θ̃. It removes a bias of first order in 1/R, and
    holds for smooth functions of means; not for medians, maxima or ranks.

    Args:
        estimator: takes repetitions ``(R, ...)`` or ``(R − 1, ...)`` to a number or an array.
        samples: independent along the first axis, shape ``(repetitions, ...)``.
        level: probability that the interval holds.

    Raises:
        UserError: fewer than two repetitions.

    Source: Tukey, Bias and confidence in not quite large samples (1958); Efron and Tibshirani, An Introduction to the
    Bootstrap (1993), chapter 11.

    >>> samples = np.random.default_rng(0).normal(3.0, 1.0, 40)
    >>> estimate = jackknife(lambda rows: rows.mean() ** 2, samples)  # E x̄² = 9 + 1/40
    >>> estimate.interval.low < 9 < estimate.interval.high, round(estimate.bias, 3)
    (True, 0.016)
    """
    values = pseudo_values(estimator, samples)
    repetitions = len(values)
    value = values.mean(axis=0)
    # standard error of a mean of pseudo-values
    error = values.std(axis=0, ddof=1) / np.sqrt(repetitions)
    half = student_quantile(level, repetitions - 1) * error
    # θ̂ less the mean of the pseudo-values
    bias = np.asarray(estimator(np.asarray(samples)), float) - value
    how = f"{level:.0%} by the jackknife over {repetitions} repetitions"
    return Estimate(
        _plain(value), Interval(_plain(value - half), _plain(value + half), how), _plain(bias)
    )


@checked
def pseudo_values(estimator: Callable[[np.ndarray], Any], samples: ArrayLike) -> np.ndarray:
    """Return the jackknife's pseudo-values, whose mean is the estimate less its bias.

    They may be treated as independent repetitions of the estimate, for example by a check over seeds.

    Args:
        estimator: as in :func:`jackknife`.
        samples: shape ``(repetitions, ...)``.

    Returns:
        Shape ``(repetitions, *value)``.

    Raises:
        UserError: fewer than two repetitions.

    >>> pseudo_values(np.mean, [1.0, 2.0, 6.0]).round(9).tolist()  # those of a mean are the samples
    [1.0, 2.0, 6.0]
    """
    rows = np.asarray(samples)
    if rows.ndim == 0 or len(rows) < 2:
        raise UserError(
            f"the jackknife needs at least two repetitions along the first axis, got shape {rows.shape}; "
            "use more seeds"
        )
    repetitions = len(rows)
    whole = np.asarray(estimator(rows), float)
    without = [np.asarray(estimator(np.delete(rows, i, axis=0)), float) for i in range(repetitions)]
    return repetitions * whole - (repetitions - 1) * np.array(without)  # R θ̂ − (R − 1) θ̂₍₋ᵢ₎


def _plain(values: Any) -> Any:
    """Return a number for an array without axes."""
    return float(values) if np.ndim(values) == 0 else values
