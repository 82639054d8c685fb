"""Checks, intervals and verdicts: how a prediction is compared with an observation.

Every check reduces to one rule (:func:`decide`): an *interval* for the measured quantity against a *margin*, the set
of values that agree with the prediction, declared before the run. The check HOLDS when the interval lies inside the
margin, FAILS when the two are disjoint, and is INCONCLUSIVE otherwise. Four kinds of check are built on it:
:func:`equal`, :func:`exponent`, :func:`bound` and :func:`order`. Nothing here imports JAX.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steepest.intervals import Interval, estimate, fit_exponent


class Verdict(StrEnum):
    """What a check, or a whole claim, comes to."""

    HOLDS = "holds"
    FAILS = "fails"
    INCONCLUSIVE = "inconclusive"
    OUT_OF_RANGE = "out-of-range"


@dataclass(frozen=True)
class Check:
    """One comparison of a predicted with a measured number.

    Attributes:
        name: the quantity compared.
        kind: ``"equal"``, ``"exponent"``, ``"bound"`` or ``"order"``.
        predicted: the theory's number.
        measured: the experiment's number (mean over seeds, where there are seeds).
        interval: where the measured quantity lies, in the units of ``measured``.
        margin: the values that count as agreement, in the same units.
        verdict: HOLDS, FAILS or INCONCLUSIVE.
        note: anything a reader needs to know, else empty.
    """

    name: str
    kind: str
    predicted: float
    measured: float
    interval: Interval
    margin: Interval
    verdict: Verdict
    note: str = ""


@dataclass(frozen=True)
class Hypothesis:
    """Something that the theorem assumes, with its measured value.

    Attributes:
        name: what is assumed.
        value: the value found.
        threshold: the value required.
        relation: how they must compare: ``"<"``, ``"<="``, ``">"``, ``">="`` or ``"=="``.
        holds: whether they do.
        note: what to try where it does not hold.
    """

    name: str
    value: float
    threshold: float
    relation: str
    holds: bool
    note: str = ""


@dataclass(frozen=True)
class Rival:
    """A deliberately wrong theory that the same judge must reject on the same observation.

    Attributes:
        name: the wrong statement in a few words.
        prediction: what it predicts, with the names of the claim's own prediction that it replaces.
        why: why one might believe it.
    """

    name: str
    prediction: Mapping[str, Any]
    why: str = ""


@dataclass(frozen=True)
class Rejection:
    """How a rival fared.

    Attributes:
        name: the rival's name.
        rejected: whether a check that the claim itself passes fails under the rival's prediction.
        by: the names of those checks.
        checks: all checks under the rival's prediction.
        why: why one might believe the rival.
    """

    name: str
    rejected: bool
    by: tuple[str, ...]
    checks: tuple[Check, ...]
    why: str = ""


_RELATIONS = {
    "<": float.__lt__,
    "<=": float.__le__,
    ">": float.__gt__,
    ">=": float.__ge__,
    "==": float.__eq__,
}


def require(name: str, value: float, relation: str, threshold: float, note: str = "") -> Hypothesis:
    """State a hypothesis and check it.

    >>> require("maximal margin", 0.3, ">", 0.0).holds
    True
    """
    value, threshold = float(value), float(threshold)
    return Hypothesis(name, value, threshold, relation, _RELATIONS[relation](value, threshold), note)


def decide(interval: Interval, margin: Interval) -> Verdict:
    """Compare an interval with an equivalence margin: the one rule behind every check.

    >>> decide(Interval(0.9, 1.0), Interval(0.8, 1.2)).value
    'holds'
    >>> decide(Interval(0.7, 1.0), Interval(0.8, 1.2)).value
    'inconclusive'
    """
    if not (math.isnan(interval.low) or math.isnan(interval.high)):
        if interval.inside(margin):
            return Verdict.HOLDS
        if not interval.disjoint(margin):
            return Verdict.INCONCLUSIVE
    return Verdict.FAILS


def equal(
    name: str,
    predicted: ArrayLike,
    measured: ArrayLike,
    within: float | tuple[float, float],
    *,
    absolute: bool = False,
    over: str = "mean",
    note: str = "",
) -> Check:
    """Check that a measured quantity equals the predicted one.

    Args:
        name: the quantity.
        predicted: a number, or a vector over seeds (then the ratio measured/predicted is compared with 1).
        measured: a number (deterministic) or a vector over seeds.
        within: relative error allowed, or a pair of factors ``(low, high)``; with ``absolute`` the absolute error.
        absolute: whether ``within`` is absolute.
        over: ``"mean"`` (Student's interval of the mean) or ``"each"`` (every seed must agree: the range).
        note: shown beside the check.

    >>> equal("sharpness", 20.0, [20.5, 20.7, 20.4], within=(0.95, 1.15)).verdict.value
    'holds'
    """
    if np.ndim(predicted):
        measured, predicted = np.asarray(measured, float) / np.asarray(predicted, float), 1.0
    target = float(np.asarray(predicted))
    if absolute:
        low, high = within if isinstance(within, tuple) else (-within, within)
        ends = (target + low, target + high)
    else:
        low, high = within if isinstance(within, tuple) else (1 - within, 1 + within)
        ends = (target * low, target * high)
    return _check(name, "equal", target, measured, Interval(min(ends), max(ends)), over, note)


def bound(
    name: str,
    measured: ArrayLike,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    over: str = "mean",
    note: str = "",
) -> Check:
    """Check that a measured quantity stays at or below, or at or above, a predicted number.

    >>> bound("normalized margin", 0.995, at_least=0.99).verdict.value
    'holds'
    """
    if (at_most is None) == (at_least is None):
        raise ValueError("bound() takes exactly one of at_most and at_least")
    if at_most is not None:
        return _check(name, "bound", at_most, measured, Interval(-math.inf, float(at_most)), over, note)
    assert at_least is not None
    return _check(name, "bound", at_least, measured, Interval(float(at_least), math.inf), over, note)


def exponent(
    name: str,
    predicted: float,
    x: ArrayLike,
    y: ArrayLike,
    within: float,
    *,
    over: str = "mean",
    note: str = "",
) -> Check:
    """Check the exponent of a power law ``y ∝ x^p`` by its slope in logarithms.

    Args:
        name: what scales with what.
        predicted: the exponent p.
        x: abscissae, shape ``(points,)`` or ``(seeds, points)``.
        y: ordinates, shape ``(points,)`` (interval from the residuals of the fit) or ``(seeds, points)`` (interval
            over the seeds' slopes).
        within: absolute error allowed in the exponent.
        over: as in :func:`equal`.
        note: shown beside the check.
    """
    margin = Interval(predicted - within, predicted + within)
    y = np.asarray(y, float)
    if y.ndim == 2:
        x = np.broadcast_to(np.asarray(x, float), y.shape)
        slopes = np.array([fit_exponent(a, b)[0] for a, b in zip(x, y, strict=True)])
        return _check(name, "exponent", predicted, slopes, margin, over, note)
    slope, interval = fit_exponent(x, y)
    note = "; ".join(filter(None, (note, interval.how if math.isnan(slope) else "")))
    return Check(name, "exponent", predicted, slope, interval, margin, decide(interval, margin), note)


def order(name: str, increasing: Sequence[str], values: Mapping[str, ArrayLike], *, note: str = "") -> Check:
    """Check a ranking: the named quantities increase in the predicted order.

    The statistic is the smallest gap between neighbours in the predicted order, paired by seed.

    Args:
        name: what is ranked.
        increasing: names in the predicted order, smallest first.
        values: a vector over seeds, or a number, for each name.
        note: shown beside the check.

    >>> order("distance", ["near", "far"], {"near": [1.0, 1.1], "far": [2.0, 2.2]}).verdict.value
    'holds'
    """
    pairs = itertools.pairwise(increasing)
    gaps = [np.asarray(values[b], float) - np.asarray(values[a], float) for a, b in pairs]
    positive = Interval(float(np.nextafter(0.0, 1.0)), math.inf)
    note = note or "smallest gap of " + " < ".join(increasing)
    found = [_check(name, "order", 0.0, gap, positive, "mean", note) for gap in gaps]
    refuted = [check for check in found if check.verdict is Verdict.FAILS]  # one refuted gap refutes the order
    return min(refuted or found, key=lambda check: np.nan_to_num(check.interval.low, nan=-np.inf))


def _check(name: str, kind: str, predicted: float, measured: Any, margin: Interval, over: str, note: str) -> Check:
    centre, interval, trouble = estimate(measured, over)
    notes = "; ".join(part for part in (note, trouble) if part)
    return Check(name, kind, float(predicted), centre, interval, margin, decide(interval, margin), notes)


def reject(rival: Rival, own: Sequence[Check], against: Sequence[Check]) -> Rejection:
    """Whether a rival is rejected: some check that the claim itself does not fail must fail under the rival.

    A check that fails under both says nothing for the claim, so it does not count.
    """
    passed = {check.name for check in own if check.verdict is not Verdict.FAILS}
    by = tuple(check.name for check in against if check.verdict is Verdict.FAILS and check.name in passed)
    return Rejection(rival.name, bool(by), by, tuple(against), rival.why)


def conclude(hypotheses: Sequence[Hypothesis], checks: Sequence[Check], rivals: Sequence[Rejection]) -> tuple:
    """The verdict of a whole claim, and the reason in one sentence.

    A hypothesis that fails puts the claim out of range whatever the checks say. A claim that agrees with the data but
    whose rival agrees too has no power, which is inconclusive.
    """
    if missing := [h.name for h in hypotheses if not h.holds]:
        return Verdict.OUT_OF_RANGE, f"assumed but not true here: {', '.join(missing)}"
    if not checks:
        return Verdict.INCONCLUSIVE, "nothing was checked"
    for verdict, words in ((Verdict.FAILS, "disagrees"), (Verdict.INCONCLUSIVE, "the interval straddles the margin")):
        if names := [c.name for c in checks if c.verdict is verdict]:
            return verdict, f"{words}: {', '.join(names)}"
    if accepted := [r.name for r in rivals if not r.rejected]:
        return Verdict.INCONCLUSIVE, f"no power: the data do not reject {', '.join(accepted)}"
    return Verdict.HOLDS, f"agrees in {_count(checks, 'check')}, {_count(rivals, 'rival')} rejected"


def _count(things: Sequence[Any], word: str) -> str:
    return f"{len(things)} {word}{'s' * (len(things) != 1)}"
