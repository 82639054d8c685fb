"""Checks, intervals and verdicts: how a prediction is compared with an observation.

Every check reduces to one rule (:func:`decide`): an *interval* for the measured quantity against a *margin*, the set
of values that agree with the prediction, declared before the run. The check HOLDS when the interval lies inside the
margin, FAILS when the two are disjoint, and is INCONCLUSIVE otherwise. Four kinds of check are built on it:
:func:`equal`, :func:`exponent`, :func:`bound` and :func:`order`; :func:`agreement` is the bound on a numerical error.
Every check has an *id*, which rivals, tables and JSON use, and a label, which people read.

A check says something only if it can fail: every one is confronted with wrong theories (:class:`Rival`) and with other
objects (:class:`Control`). One that none of them fails is *idle*: it is shown apart and never counted. Nothing here
imports JAX.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steepest.core.hypotheses import Hypothesis
from steepest.core.intervals import Basis, Interval, estimate, fit_exponent
from steepest.core.records import number, plain
from steepest.core.words import Verdict


@dataclass(frozen=True)
class Check:
    """One comparison of a predicted with a measured number.

    Attributes:
        id: what rivals, tables and JSON call it: the same at every setting and in every version.
        name: the quantity compared, for people.
        kind: ``"equal"``, ``"exponent"``, ``"bound"``, ``"order"`` or ``"agreement"``.
        predicted: the theory's number.
        measured: the experiment's number (mean over seeds, where there are seeds).
        interval: where the measured quantity lies, in the units of ``measured``.
        margin: the values that count as agreement, in the same units.
        verdict: HOLDS, FAILS or INCONCLUSIVE.
        note: anything a reader needs to know, else empty.
        idle: why the claim says that nothing can fail it; empty where something should.
        challenged_by: ids of the rivals and controls that fail it.
    """

    id: str
    name: str
    kind: str
    predicted: float
    measured: float
    interval: Interval
    margin: Interval
    verdict: Verdict
    note: str = ""
    idle: str = ""
    challenged_by: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether it counts towards HOLDS: something that was tried fails it, and the claim does not call it idle."""
        return bool(self.challenged_by) and not self.idle

    @property
    def decides(self) -> bool:
        """Whether the verdict rests on it: it counts, or it failed, which no idleness excuses."""
        return self.counts or self.verdict is Verdict.FAILS

    @property
    def notices(self) -> float:
        """The smallest error of the prediction that these data would refute; NaN for an order, and if it is infinite.

        With two ends that is half the width of the margin and half that of the interval; with one end the distance from
        it to the far end of the interval, zero where the prediction is refuted already.
        :attr:`notices_in` says whether it is relative to the prediction.
        """
        if self.kind == "order" or math.isinf(self.predicted):
            return math.nan
        low = self.interval.high - self.margin.low
        high = self.margin.high - self.interval.low
        if math.isinf(low):
            error = high
        elif math.isinf(high):
            error = low
        else:
            error = (low + high) / 2
        error = max(error, 0.0)
        return error / abs(self.predicted) if self.notices_in == "relative" else error

    @property
    def notices_in(self) -> str:
        """``"relative"`` to the prediction, or ``"absolute"``: of exponents, and where zero is predicted."""
        return "absolute" if self.kind == "exponent" or self.predicted == 0 else "relative"

    @property
    def would_notice(self) -> str:
        """The smallest error that would be refuted, in words; a dash where the check has failed.

        >>> equal("sharpness", 20.0, 20.4, within=0.1).would_notice
        '10 %'
        """
        if self.verdict is Verdict.FAILS:
            return "–"
        if self.kind == "order":
            return "another order"
        if not math.isfinite(self.notices):
            return "nothing"
        if self.notices_in == "absolute":
            return _two_digits(self.notices)
        if self.notices < 10:
            return f"{_two_digits(100 * self.notices)} %"
        return f"a factor {_two_digits(self.notices)}"

    def to_json(self) -> dict[str, Any]:
        """Return the one form that a check has in JSON; ends that are not finite are null."""
        notices = {"notices": self.notices, "notices_in": self.notices_in}
        return plain(asdict(self) | notices)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Check":
        """Return the inverse of :meth:`to_json`."""
        interval = record["interval"]
        margin = record["margin"]
        verdict = Verdict(record["verdict"])
        # an end that is no number fails, so that one without an end is what an undecided check has
        end = math.inf if verdict is Verdict.INCONCLUSIVE else math.nan
        read = {
            "predicted": number(record["predicted"]),
            "measured": number(record["measured"]),
            "interval": Interval(
                number(interval["low"], -end),
                number(interval["high"], end),
                interval["how"],
                Basis(interval.get("basis", Basis.OTHER)),
            ),
            "margin": Interval(
                number(margin["low"], -math.inf), number(margin["high"], math.inf), margin["how"]
            ),
            "verdict": verdict,
            "challenged_by": tuple(record["challenged_by"]),
        }
        derived = ("notices", "notices_in")
        return cls(**{name: record[name] for name in record if name not in derived} | read)


@dataclass(frozen=True)
class Rival:
    """A deliberately wrong theory that the same judge must reject on the same observation.

    Attributes:
        id: what tables and JSON call it.
        prediction: what it predicts, with the names of the claim's own prediction that it replaces.
        why: why one might believe it.
        label: the wrong statement in a few words, for people; the id without underscores where it is left out.
        accepted: what these data cannot tell, for a rival that they are known not to reject; it is shown, and costs
            no power.
    """

    id: str
    prediction: Mapping[str, Any]
    why: str = ""
    label: str = ""
    accepted: str = ""


@dataclass(frozen=True)
class Control:
    """The same measurement on an object for which the law must not hold: shuffled labels, an untrained network.

    Attributes:
        id: what tables and JSON call it.
        observation: what was measured there, with the names of the claim's own observation that it replaces.
        why: why the law must not hold for it.
        label: the object in a few words, for people; the id without underscores where it is left out.
    """

    id: str
    observation: Mapping[str, Any]
    why: str = ""
    label: str = ""


@dataclass(frozen=True)
class Rejection:
    """How a rival or a control fared.

    Attributes:
        id: its id.
        name: its name.
        rejected: whether a check that the claim itself passes fails under the rival's prediction, or on the control.
        by: the ids of those checks.
        checks: all checks under the rival's prediction, or on the control.
        why: why one might believe the rival, or why the law must not hold for the control.
        accepted: what the data cannot tell, where the claim says that they do not reject it.
    """

    id: str
    name: str
    rejected: bool
    by: tuple[str, ...]
    checks: tuple[Check, ...]
    why: str = ""
    accepted: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return its form in JSON."""
        return {**plain(asdict(self)), "checks": [check.to_json() for check in self.checks]}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Rejection":
        """Return the inverse of :meth:`to_json`."""
        checks = tuple(Check.from_json(check) for check in record["checks"])
        return cls(**{**record, "by": tuple(record["by"]), "checks": checks})


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
    id: str,
    predicted: ArrayLike,
    measured: ArrayLike,
    within: float | tuple[float, float],
    *,
    absolute: bool = False,
    label: str = "",
    aggregate: str = "mean",
    note: str = "",
) -> Check:
    """Check that a measured quantity equals the predicted one.

    Args:
        id: of the check.
        predicted: a number, or a vector over seeds (then the ratio measured/predicted is compared with 1).
        measured: a number (deterministic) or a vector over seeds.
        within: relative error allowed, or a pair of factors ``(low, high)``; with ``absolute`` the absolute error.
        absolute: whether ``within`` is absolute.
        label: the quantity in words; the id without underscores where it is left out.
        aggregate: ``"mean"`` (Student's interval of the mean) or ``"all"`` (every seed must agree: the range).
        note: shown beside the check.

    Raises:
        ValueError: a margin that does not contain its own prediction.

    >>> equal("sharpness", 20.0, [20.5, 20.7, 20.4], within=(0.95, 1.15)).verdict.value
    'holds'
    """
    if np.ndim(predicted):
        measured = np.asarray(measured, float) / np.asarray(predicted, float)
        predicted = 1.0
    target = float(np.asarray(predicted))
    if absolute:
        low, high = within if isinstance(within, tuple) else (-within, within)
        ends = (target + low, target + high)
    else:
        low, high = within if isinstance(within, tuple) else (1 - within, 1 + within)
        ends = (target * low, target * high)
    margin = Interval(min(ends), max(ends))
    if not margin.low <= target <= margin.high:
        raise ValueError(
            f"check {id!r}: the margin {within} leaves out the prediction itself; factors go around 1, such as "
            "(0.95, 1.15), and absolute errors around 0, such as (-0.1, 0.2)"
        )
    return _check(id, label, "equal", target, measured, margin, aggregate, note)


def bound(
    id: str,
    measured: ArrayLike,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    label: str = "",
    aggregate: str = "mean",
    note: str = "",
) -> Check:
    """Check that a measured quantity stays at or below, or at or above, a predicted number.

    >>> bound("normalized margin", 0.995, at_least=0.99).verdict.value
    'holds'
    """
    if (at_most is None) == (at_least is None):
        raise ValueError("bound() takes exactly one of at_most and at_least")
    if at_most is not None:
        limit = float(at_most)
        margin = Interval(-math.inf, limit)
    else:
        assert at_least is not None
        limit = float(at_least)
        margin = Interval(limit, math.inf)
    return _check(id, label, "bound", limit, measured, margin, aggregate, note)


def agreement(
    id: str,
    deviation: ArrayLike,
    tolerance: float,
    *,
    label: str = "",
    aggregate: str = "all",
    note: str = "",
) -> Check:
    """Check that two ways to one quantity agree to a numerical tolerance: their deviation is predicted to be zero.

    Args:
        id: of the check.
        deviation: absolute or relative, not negative: a number or a vector over seeds.
        tolerance: the largest deviation that counts as none.
        label: what deviates from what, in words.
        aggregate: as in :func:`equal`.
        note: shown beside the check.

    >>> agreement("recursion", 3e-12, 1e-9).predicted
    0.0
    """
    margin = Interval(-math.inf, float(tolerance))
    return _check(id, label, "agreement", 0.0, deviation, margin, aggregate, note)


def exponent(
    id: str,
    predicted: float,
    x: ArrayLike,
    y: ArrayLike,
    within: float,
    *,
    label: str = "",
    aggregate: str = "mean",
    note: str = "",
) -> Check:
    """Check the exponent of a power law ``y ∝ x^p`` by its slope in logarithms.

    Args:
        id: of the check.
        predicted: the exponent p.
        x: abscissae, shape ``(points,)`` or ``(seeds, points)``.
        y: ordinates, shape ``(points,)`` (interval from the residuals of the fit) or ``(seeds, points)`` (interval
            over the seeds' slopes).
        within: absolute error allowed in the exponent.
        label: what scales with what, in words.
        aggregate: as in :func:`equal`.
        note: shown beside the check.

    Fewer than three points along a curve leave the check inconclusive: they hold for no exponent and against none.
    """
    margin = Interval(predicted - within, predicted + within)
    y = np.asarray(y, float)
    if y.ndim == 2 and y.shape[1] > 2:
        x = np.broadcast_to(np.asarray(x, float), y.shape)
        slopes = np.array([fit_exponent(a, b)[0] for a, b in zip(x, y, strict=True)])
        return _check(id, label, "exponent", predicted, slopes, margin, aggregate, note)
    if y.ndim == 2 or y.size < 3:
        slope = math.nan
        interval = Interval(
            -math.inf, math.inf, f"{y.shape[-1]} points, of which a fit needs three"
        )
    else:
        slope, interval = fit_exponent(x, y)
    note = "; ".join(filter(None, (note, interval.how if math.isnan(slope) else "")))
    return Check(
        id,
        label or _worded(id),
        "exponent",
        predicted,
        slope,
        interval,
        margin,
        decide(interval, margin),
        note,
    )


def order(
    id: str,
    increasing: Sequence[str],
    values: Mapping[str, ArrayLike],
    *,
    label: str = "",
    note: str = "",
) -> Check:
    """Check a ranking: the named quantities increase in the predicted order.

    The statistic is the smallest gap between neighbours in the predicted order, paired by seed.

    Args:
        id: of the check.
        increasing: names in the predicted order, smallest first.
        values: a vector over seeds, or a number, for each name.
        label: what is ranked, in words.
        note: shown beside the check.

    >>> order("distance", ["near", "far"], {"near": [1.0, 1.1], "far": [2.0, 2.2]}).verdict.value
    'holds'
    """
    pairs = itertools.pairwise(increasing)
    gaps = [np.asarray(values[b], float) - np.asarray(values[a], float) for a, b in pairs]
    positive = Interval(float(np.nextafter(0.0, 1.0)), math.inf)
    note = note or "smallest gap of " + " < ".join(increasing)
    checks = [_check(id, label, "order", 0.0, gap, positive, "mean", note) for gap in gaps]
    refuted = [
        check for check in checks if check.verdict is Verdict.FAILS
    ]  # one refuted gap refutes the order
    return min(refuted or checks, key=lambda check: np.nan_to_num(check.interval.low, nan=-np.inf))


def _check(
    id: str,
    label: str,
    kind: str,
    predicted: float,
    measured: Any,
    margin: Interval,
    aggregate: str,
    note: str,
) -> Check:
    centre, interval, trouble = estimate(measured, aggregate)
    notes = "; ".join(part for part in (note, trouble) if part)
    return Check(
        id,
        label or _worded(id),
        kind,
        float(predicted),
        centre,
        interval,
        margin,
        decide(interval, margin),
        notes,
    )


def _worded(id: str) -> str:
    return id.replace("_", " ")


def idle(check: Check, why: str) -> Check:
    """Declare that nothing can fail a check: an identity, or a consistency of the program with itself.

    It is shown in a table of its own and does not count. Should it fail all the same, so does the claim.

    Args:
        check: the check.
        why: why it cannot fail, in a sentence.

    >>> idle(agreement("recursion", 3e-12, 1e-9), "an identity of the two forms").idle
    'an identity of the two forms'
    """
    return replace(check, idle=why)


def reject(wrong: Rival | Control, own: Sequence[Check], against: Sequence[Check]) -> Rejection:
    """Whether a rival or a control is rejected: some check that the claim itself does not fail must fail for it.

    A check that fails under both says nothing for the claim, so it does not count.
    """
    passed = {check.id for check in own if check.verdict is not Verdict.FAILS}
    by = tuple(
        check.id for check in against if check.verdict is Verdict.FAILS and check.id in passed
    )
    return Rejection(
        id=wrong.id,
        name=wrong.label or _worded(wrong.id),
        rejected=bool(by),
        by=by,
        checks=tuple(against),
        why=wrong.why,
        accepted=wrong.accepted if isinstance(wrong, Rival) else "",
    )


def challenge(checks: Sequence[Check], tried: Sequence[Rejection]) -> tuple[Check, ...]:
    """Return the checks with the ids of the rivals and controls that fail each."""
    return tuple(
        replace(check, challenged_by=tuple(one.id for one in tried if check.id in one.by))
        for check in checks
    )


def judge_numbers(
    hypotheses: Sequence[Hypothesis], checks: Sequence[Check]
) -> tuple[Verdict, str] | None:
    """Return the verdict where assumptions or numbers decide it, with the reason; None where all agrees."""
    if missing := [h.name for h in hypotheses if not h.holds]:
        return Verdict.OUT_OF_RANGE, f"assumed but not true here: {', '.join(missing)}"
    if not checks:
        return Verdict.INCONCLUSIVE, "nothing was checked"
    for verdict, words in (
        (Verdict.FAILS, "disagrees"),
        (Verdict.INCONCLUSIVE, "the interval straddles the margin"),
    ):
        if names := [c.name for c in checks if c.verdict is verdict]:
            return verdict, f"{words}: {', '.join(names)}"
    return None


def conclude_point(
    hypotheses: Sequence[Hypothesis], checks: Sequence[Check]
) -> tuple[Verdict, str]:
    """Return the verdict of one point of a sweep, where no rival is tried, and the reason in one sentence."""
    decided = judge_numbers(hypotheses, checks)
    return decided or (Verdict.HOLDS, f"agrees in {_count(len(checks), 'check')}")


def conclude(
    hypotheses: Sequence[Hypothesis],
    checks: Sequence[Check],
    rivals: Sequence[Rejection],
    controls: Sequence[Rejection],
    headline: Sequence[str] = (),
) -> tuple[Verdict, str]:
    """Return the verdict of a whole claim, and the reason in one sentence.

    A hypothesis that fails puts the claim out of range whatever the checks say. A claim that agrees with the data has
    no power, which is inconclusive, if a rival agrees too (and the claim does not say so itself), if a control passes,
    or if nothing fails its headline, or tests it with these fields. Where some of it is left out the reason says so.

    Args:
        hypotheses: what was assumed of the setting and of the run.
        checks: with what challenges them (:func:`challenge`).
        rivals: how the wrong theories fared.
        controls: how the other objects fared.
        headline: ids of the checks that state the claim's first sentence; the first check where there are none.
    """
    decided = judge_numbers(hypotheses, checks)
    if decided:
        return decided
    if accepted := [r.name for r in rivals if not r.rejected and not r.accepted]:
        return Verdict.INCONCLUSIVE, f"no power: the data do not reject {', '.join(accepted)}"
    if passing := [c.name for c in controls if not c.rejected]:
        return Verdict.INCONCLUSIVE, f"no power: the judge passes {', '.join(passing)} too"
    first = headline or (checks[0].id,)
    left_out = set(first) - {check.id for check in checks}
    if left_out == set(first):
        return (
            Verdict.INCONCLUSIVE,
            "no power: with these fields no check tests its first sentence",
        )
    if unchallenged := [c.name for c in checks if c.id in first and not c.counts]:
        return (
            Verdict.INCONCLUSIVE,
            f"no power: nothing that was tried fails {', '.join(unchallenged)}",
        )
    counted = sum(check.counts for check in checks)
    refuted = sum(rival.rejected for rival in rivals)
    parts = [
        f"agrees in {_count(counted, 'challenged check')}",
        f"{_count(refuted, 'rival')} rejected",
        *([f"{_count(len(controls), 'control')} told apart"] if controls else []),
        *([f"with these fields {len(left_out)} of its headline left out"] if left_out else []),
    ]
    return Verdict.HOLDS, ", ".join(parts)


def _two_digits(number: float) -> str:
    """Return a number to two digits, 180 and not 1.8e+02."""
    return f"{float(f'{number:.2g}'):g}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"
