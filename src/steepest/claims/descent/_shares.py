"""Checks of shares, such as that of students that get stuck, by Wilson's interval."""

from dataclasses import replace

import numpy as np

from steepest import kit
from steepest.core.intervals import Interval
from steepest.kit.points import bound, equal

BAND = "95 % interval of a share, Wilson's"


def equal_share(
    id: str, predicted: float, hits: np.ndarray, within: float, *, label: str
) -> kit.Check:
    """Check that the probability of a hit equals the predicted one, to an absolute error.

    Args:
        id: of the check.
        predicted: the share.
        hits: independent outcomes, true or false, of any shape.
        within: absolute error allowed.
        label: what the share is of, in words.
    """
    ends = [wilson(hits).low, wilson(hits).high]
    check = equal(
        id, predicted, ends, within, absolute=True, aggregate="all", label=label, note=BAND
    )
    return replace(check, measured=float(np.mean(hits)), interval=wilson(hits))


def share_at_most(id: str, hits: np.ndarray, most: float, *, label: str) -> kit.Check:
    """Check that the probability of a hit is at most the predicted one; arguments as in :func:`equal_share`."""
    ends = [wilson(hits).low, wilson(hits).high]
    check = bound(id, ends, at_most=most, aggregate="all", label=label, note=BAND)
    return replace(check, measured=float(np.mean(hits)), interval=wilson(hits))


def wilson(hits: np.ndarray) -> Interval:
    """Return Wilson's 95 % interval of the probability of a hit, from independent outcomes.

    Unlike Student's it does not shrink to a point where all outcomes are alike.

    >>> round(wilson(np.zeros(28, bool)).high, 2)
    0.12
    """
    z = 1.96
    count = hits.size
    # the ends solve (p̂ − p)² = z² p(1 − p)/n
    centre = (hits.sum() + z**2 / 2) / (count + z**2)
    half = z / (count + z**2) * np.sqrt(hits.sum() * (1 - hits.mean()) + z**2 / 4)
    return Interval(float(max(centre - half, 0.0)), float(min(centre + half, 1.0)), BAND)
