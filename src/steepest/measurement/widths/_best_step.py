"""Where the risk is least over step sizes, and with which power of the width that goes."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steepest.core.checks import exponent
from steepest.measurement.widths._findings import HALFWAY, Power

Place = Literal["inside", "below", "above", "nowhere"]


class Minimum(NamedTuple):
    """Where one network's risk is least, over the logarithm of the step.

    Attributes:
        at: logarithm of the step; NaN unless the least risk lies inside of the grid.
        log_risk: logarithm of the risk there; NaN as well.
        within: how far off it may be, as a training beside it diverged; 0 where a parabola says it.
        place: inside of the grid; at its lower end, where the best step may lie below, or at its upper one; nowhere if
            all trainings diverged.
    """

    at: float
    log_risk: float
    within: float
    place: Place


def minimum(log_steps: ArrayLike, log_risks: ArrayLike) -> Minimum:
    """Return the minimum of the parabola through the least risk and those on its two sides.

    These are the three lowest where risks have one valley. Beside a training that diverged there is no parabola: the
    step of the least risk is taken as it is, known to a step of the grid.

    Args:
        log_steps: logarithms of the steps, increasing, ``(steps,)``.
        log_risks: logarithms of the risks, ``(steps,)``; infinite where training diverged.

    >>> minimum([0, 1, 2, 3], [4.0, 1.0, 0.0, 1.0])
    Minimum(at=2.0, log_risk=0.0, within=0.0, place='inside')
    >>> minimum([0, 1, 2], [3.0, 2.0, 1.0]).place
    'above'
    """
    x = np.asarray(log_steps, float)
    y = np.asarray(log_risks, float)
    if not np.isfinite(y).any():
        return Minimum(math.nan, math.nan, 0.0, "nowhere")
    lowest = int(np.argmin(y))
    if lowest in (0, len(y) - 1):
        return Minimum(math.nan, math.nan, 0.0, "below" if lowest == 0 else "above")
    left = float(x[lowest - 1] - x[lowest])
    right = float(x[lowest + 1] - x[lowest])
    rises = y[[lowest - 1, lowest + 1]] - y[lowest]
    if not np.isfinite(rises).all():
        return Minimum(float(x[lowest]), float(y[lowest]), max(-left, right), "inside")
    if not rises.any():
        return Minimum(float(x[lowest]), float(y[lowest]), 0.0, "inside")
    bend = float(rises[1] / right - rises[0] / left) / (right - left)
    slope = float(rises[0]) / left - bend * left
    return Minimum(
        float(x[lowest]) - slope / (2 * bend),
        float(y[lowest]) - slope**2 / (4 * bend),
        0.0,
        "inside",
    )


def power_of_width(widths: ArrayLike, minima: Sequence[Sequence[Minimum]]) -> Power:
    """Fit the power of the width of the best step, by each seed's line through all widths.

    Args:
        widths: multipliers, ``(widths,)``.
        minima: by seed and width.

    Returns:
        the power with Student's interval over the seeds, or of the fit where there is one seed. It is wider by what
        minima beside a divergence can move it. NaN where some network has no minimum inside of the grid.
    """
    steps = np.exp([_steps_of(row) for row in minima])
    within = np.array([_errors_of(row) for row in minima])
    fitted = exponent(
        "power", 0.0, np.asarray(widths, float), steps if len(steps) > 1 else steps[0], HALFWAY
    )
    across = np.log(np.asarray(widths, float))
    across = across - across.mean()
    pulls = np.abs(across) / (across @ across)
    unsure = float(np.mean(within @ pulls))
    interval = (float(fitted.interval.low) - unsure, float(fitted.interval.high) + unsure)
    return Power("best step", float(fitted.measured), interval, steps)


def _steps_of(minima: Sequence[Minimum]) -> list[float]:
    return [network.at for network in minima]


def _errors_of(minima: Sequence[Minimum]) -> list[float]:
    return [network.within for network in minima]


class Carried(NamedTuple):
    """The risk at the widest network with a step that is carried over, and with its own best one.

    Attributes:
        risk: with the narrowest network's best step, ``(seeds,)``; infinite where training diverged.
        at_best: with its own, ``(seeds,)``.
        by_others: whether both steps were chosen on the networks of other seeds.
    """

    risk: NDArray
    at_best: NDArray
    by_others: bool


def carried(narrow: NDArray, wide: NDArray) -> Carried:
    """Return what the widest network makes of the narrowest one's best step of the grid.

    Both steps are chosen by the mean log risk of the other seeds' networks: a step that is best on the very network
    on which it is judged has a risk that is low by luck too. With one seed it is chosen on that.

    Args:
        narrow: log risks of the narrowest networks, ``(seeds, steps)``.
        wide: those of the widest, ``(seeds, steps)``.

    >>> carried(np.log([[1.0, 2.0], [1.0, 2.0]]), np.log([[3.0, 2.0], [3.0, 2.0]]))
    Carried(risk=array([3., 3.]), at_best=array([2., 2.]), by_others=True)
    """
    seeds = np.arange(len(narrow))
    risks = np.exp(wide)
    return Carried(risks[seeds, _chosen(narrow)], risks[seeds, _chosen(wide)], len(narrow) > 1)


def _chosen(log_risks: NDArray) -> NDArray:
    """Return for each seed the place of the step that is best on the others, ``(seeds,)``."""
    seeds = len(log_risks)
    if seeds == 1:
        return log_risks.argmin(1)
    return np.array([np.delete(log_risks, seed, 0).mean(0).argmin() for seed in range(seeds)])
