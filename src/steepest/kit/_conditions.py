"""Conditions of a run that several claims need."""

import math

import numpy as np

from steepest.core.hypotheses import Hypothesis, assume
from steepest.statistics import Extrapolation

SHARE = 1 / 3
"""Part of a margin that an extrapolation may be unsure of."""
SHRINKS = 0.5
"""Factor by which each further step must at least shrink what an extrapolation moves by."""


def converged(name: str, found: Extrapolation, within: float) -> list[Hypothesis]:
    """Check that an extrapolation has converged well within the margin in which it is used.

    Args:
        name: what is extrapolated.
        found: value, error and ratio, as :func:`steepest.statistics.extrapolate` gives them; arrays too.
        within: the margin in the units of the value: the last two orders must differ by less than a third of it.
    """
    error = float(np.max(np.abs(found.error)))
    ratio = float(np.max(np.abs(found.ratio)))
    finer = "its steps are too coarse: choose finer ones"
    moved = assume(f"last correction of {name}", error, "<=", SHARE * within, finer)
    if math.isnan(ratio):  # two steps alone say nothing of the order
        return [moved]
    return [moved, assume(f"ratio of the last corrections of {name}", ratio, "<=", SHRINKS, finer)]
