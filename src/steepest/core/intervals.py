"""Intervals: of a mean over seeds, of a fitted exponent."""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike


class Basis(StrEnum):
    """What an interval rests on."""

    EXACT = "exact"
    """One number, without repetitions."""
    MEAN = "mean"
    """Student's interval of a mean."""
    RANGE = "range"
    """All repetitions, as each must agree."""
    SHARE = "share"
    """Wilson's interval of a share."""
    FIT = "fit"
    """The residuals of a fit."""
    SEARCH = "search"
    """The nearest of many tries."""
    OTHER = ""
    """What its author says in words."""


@dataclass(frozen=True)
class Interval:
    """A closed interval and where it comes from.

    Attributes:
        low: lower end, possibly ``-inf``.
        high: upper end, possibly ``inf``.
        how: what the interval stands for, such as ``"95% of the mean over 8 seeds"`` or ``"deterministic"``.
        basis: the same for programs.
    """

    low: float
    high: float
    how: str = ""
    basis: Basis = Basis.OTHER

    def inside(self, other: "Interval") -> bool:
        """Whether every point of this interval lies in the other."""
        return other.low <= self.low and self.high <= other.high

    def disjoint(self, other: "Interval") -> bool:
        """Whether the two intervals share no point."""
        return self.high < other.low or other.high < self.low


def mean_interval(samples: ArrayLike, level: float = 0.95) -> Interval:
    """Student's interval for the mean of independent samples, shape ``(seeds,)``.

    Raises:
        ValueError: with fewer than two samples, which carry no information about their own spread.
    """
    values = np.asarray(samples, float)
    if values.ndim != 1 or values.size < 2:
        raise ValueError(
            f"an interval over seeds needs a vector of at least two samples, got shape {values.shape}; use more seeds"
        )
    half = _quantile((1 + level) / 2, values.size - 1) * values.std(ddof=1) / math.sqrt(values.size)
    centre = values.mean()
    how = f"{level:.0%} of the mean over {values.size} seeds"
    return Interval(centre - half, centre + half, how, Basis.MEAN)


def estimate(measured: ArrayLike, aggregate: str) -> tuple[float, Interval, str]:
    """Return the mean, its interval and a note, for a number (deterministic) or a vector over seeds, ``(seeds,)``.

    ``aggregate`` is ``"mean"`` (Student's interval of the mean) or ``"all"`` (the range). Values that are not finite
    make all of it NaN, and the note says how many there are.
    """
    if aggregate not in ("mean", "all"):
        raise ValueError(f"aggregate is 'mean' or 'all', got {aggregate!r}")
    values = np.asarray(measured, float)
    if bad := int(np.count_nonzero(~np.isfinite(values))):
        where = f"not finite in {bad} of {values.size} seeds" if values.ndim else "not finite"
        return float("nan"), Interval(float("nan"), float("nan"), where), where
    if values.ndim == 0:
        alone = float(values)
        return alone, Interval(alone, alone, "deterministic", Basis.EXACT), ""
    if aggregate == "all":
        how = f"range over {values.size} seeds"
        ends = (float(values.min()), float(values.max()))
        return float(values.mean()), Interval(*ends, how, Basis.RANGE), ""
    return float(values.mean()), mean_interval(values), ""


def fit_exponent(x: ArrayLike, y: ArrayLike) -> tuple[float, Interval]:
    """Least-squares slope of log y on log x, shape ``(points,)`` each, with its 95 % interval from the residuals.

    Points that are not positive and finite make the slope NaN: a power law has no other points.
    """
    x = np.asarray(x, float)
    y = np.asarray(y, float)
    if x.shape != y.shape or x.size < 3:
        raise ValueError(
            f"a fitted exponent needs at least three pairs, got shapes {x.shape} and {y.shape}"
        )
    if not (np.all(x > 0) and np.all(y > 0) and np.all(np.isfinite([x, y]))):
        return float("nan"), Interval(float("nan"), float("nan"), "not positive and finite")
    across = np.log(x) - np.log(x).mean()
    up = np.log(y) - np.log(y).mean()
    spread = across @ across
    if spread == 0:
        raise ValueError(f"a fitted exponent needs different x, got {x[0]} alone")
    slope = float(across @ up / spread)
    rest = up - slope * across
    error = math.sqrt(rest @ rest / (x.size - 2) / spread)
    half = _quantile(0.975, x.size - 2) * error
    how = f"95% of the fit to {x.size} points"
    return slope, Interval(slope - half, slope + half, how, Basis.FIT)


def _quantile(level: float, freedom: int) -> float:
    """Quantile of Student's t with this many degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, level))
