"""Power laws: the exponent, and whether a power law it is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from steepest.core.errors import UserError
from steepest.core.intervals import Basis, Interval, mean_interval
from steepest.core.signatures import checked
from steepest.statistics._means import simultaneous_intervals
from steepest.statistics._quantiles import student_quantile


@dataclass(frozen=True)
class PowerFit:
    """A fitted power law y ∝ x^exponent, with its lack of fit.

    Attributes:
        exponent: slope of log y on log x, the mean over repetitions.
        interval: of the exponent.
        residuals: deviation of log y from the line, the mean over repetitions, shape ``(points,)``.
        low: lower ends of intervals of the residuals that hold at all points at once, shape ``(points,)``.
        high: upper ends, shape ``(points,)``.
        refuted: whether some residual's interval excludes zero: no power law has such values.
    """

    exponent: float
    interval: Interval
    residuals: np.ndarray
    low: np.ndarray
    high: np.ndarray
    refuted: bool


@checked
def fit_power(x: ArrayLike, y: ArrayLike, level: float = 0.95) -> PowerFit:
    r"""Fit a power law by least squares of log y on log x, and test it by the residuals.

    For repetitions a line is fitted to each of them. The exponent's interval is Student's for the mean of their slopes;
    the residuals of one law have mean zero at every point, which simultaneous intervals test at the same level:
    straight data are refuted in at most 1 − ``level`` of cases, whatever the noise's scale at each point and its
    dependence between points, for Gaussian log y. As it is the mean of log y that is fitted, noise whose size depends
    on x bends the line by half its variance; take means of groups first (:func:`group_means`) where it is large.

    Without repetitions the interval comes from the residuals themselves, as in
    :func:`steepest.core.intervals.fit_exponent`; these then have no interval, and nothing is refuted.

    Args:
        x: positive, shape ``(points,)``.
        y: positive, shape ``(repetitions, points)``, independent along the first axis, or ``(points,)``.
        level: probability that the exponent's interval holds, and that all intervals of the residuals do.

    Returns:
        The fit; all NaN and not refuted where some x or y is not positive and finite.

    Raises:
        UserError: fewer than three points, shapes that do not fit, x that are all the same, a single repetition.

    Source: Draper and Smith, Applied Regression Analysis (1998), section 2.1, for lack of fit.

    >>> widths = np.array([64, 128, 256, 512])
    >>> noise = np.exp(0.02 * np.random.default_rng(0).normal(size=(8, 4)))
    >>> straight = fit_power(widths, widths**-0.5 * noise)
    >>> round(straight.exponent, 2), straight.refuted
    (-0.5, False)
    >>> bent = fit_power(widths, (widths**-0.5 + 10 / widths) * noise)
    >>> round(bent.exponent, 2), bent.refuted
    (-0.71, True)
    """
    x = np.asarray(x, float)
    y = np.asarray(y)
    _check(x, y)
    if not _positive(x) or not _positive(y):
        return _no_fit(x.size)
    slopes, residuals = _lines(np.log(x), np.log(y.astype(float)))
    if y.ndim == 1:
        interval = _interval_from_residuals(np.log(x), float(slopes), residuals, level)
        return PowerFit(float(slopes), interval, residuals, residuals, residuals, False)
    low, high = simultaneous_intervals(residuals, level)
    rounding = _rounding(y)
    refuted = bool(np.any((low > rounding) | (high < -rounding)))
    interval = mean_interval(slopes, level)
    return PowerFit(float(slopes.mean()), interval, residuals.mean(axis=0), low, high, refuted)


def _lines(log_x: np.ndarray, log_y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return slopes ``(...)`` and residuals ``(..., points)`` of least-squares lines through ``(..., points)``."""
    across = log_x - log_x.mean()  # centred: the intercept drops out
    up = log_y - log_y.mean(axis=-1, keepdims=True)
    slopes = np.asarray(up @ across / (across @ across))  # S_xy/S_xx
    return slopes, up - slopes[..., None] * across


def _interval_from_residuals(
    log_x: np.ndarray, slope: float, residuals: np.ndarray, level: float
) -> Interval:
    """Return the interval of a slope whose only sign of noise is the scatter about the line."""
    across = log_x - log_x.mean()
    freedom = log_x.size - 2  # a line takes two
    error = np.sqrt(residuals @ residuals / freedom / (across @ across))  # s/√S_xx
    half = float(student_quantile(level, freedom) * error)
    how = f"{level:.0%} of the fit to {log_x.size} points"
    return Interval(slope - half, slope + half, how, Basis.FIT)


def _rounding(y: np.ndarray) -> float:
    """Return what rounding may leave of a zero residual: without it equal repetitions of an exact law are refuted."""
    epsilon = np.finfo(np.float32 if y.dtype == np.float32 else np.float64).eps
    return 16 * float(epsilon) * (1 + float(np.abs(np.log(y.astype(float))).max()))


def _positive(values: np.ndarray) -> bool:
    return bool(np.all(values > 0) and np.all(np.isfinite(values)))


def _no_fit(points: int) -> PowerFit:
    nothing = np.full(points, np.nan)
    interval = Interval(float("nan"), float("nan"), "not positive and finite")
    return PowerFit(float("nan"), interval, nothing, nothing, nothing, False)


def _check(x: np.ndarray, y: np.ndarray) -> None:
    """Refuse what no line goes through."""
    if x.ndim != 1 or x.size < 3 or y.ndim not in (1, 2) or y.shape[-1] != x.size:
        raise UserError(
            "a power law needs at least three points: x of shape (points,) and y of shape (repetitions, points) or "
            f"(points,); got shapes {x.shape} and {y.shape}"
        )
    if y.ndim == 2 and len(y) < 2:
        raise UserError(
            "the interval of an exponent needs at least two repetitions; use more seeds, or pass y of shape (points,)"
        )
    if np.ptp(x) == 0:
        raise UserError(f"a power law needs different x, got {x[0]:g} alone")
