"""Two reports beside each other: what changed, and whether the change is beyond the errors of both."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from steepest.core.errors import UserError
from steepest.core.records import plain
from steepest.measurement._report import (
    BRIEF,
    Finding,
    FindingId,
    Reading,
    Report,
    read_report,
)

MOST = 5
FACTOR = 1.25  # by which a number that is neither good nor bad changes before it is worth a line
SMALL = 0.01  # share by which a risk or an error rate changes before it is worth a line
ROUNDING = 1e-5  # relative: what single precision may change of a mean
BETTER_LOWER = (
    "error rate on held-out examples",
    "risk on held-out examples",
    "error rate",
    "risk",
)
"""Readings of which less is better, those that matter most first."""
NEUTRAL_FIRST = ("preconditioned sharpness", "sharpness", "batch sharpness", "gradient-noise scale")
"""Readings of which neither is better, those that matter most first."""
WEIGHTS_ALONE = (
    "norm of the weights",
    "product of spectral norms",
    "largest stable rank",
    "largest (2,1) norm",
    "ℓ1 path norm",
    "ℓ2 path norm",
    "spectral complexity",
    "alignment of layers",
    "distance from the checkpoint",
)
"""Readings that no example changes."""
RANK = {"!": 0, "?": 1, "✓": 2}
LEGEND = (
    "here: on these examples, where a number without an error is exact, and so is one whose interval is about others. "
    "Numbers of the same examples move together: where their intervals for others overlap, a change may be real"
)
"""What the interpretations of changes mean."""


@dataclass(frozen=True)
class Change:
    """One reading in both reports.

    Attributes:
        name: of the reading.
        id: of its quantity.
        before: its value in the first report.
        after: its value in the second.
        difference: after − before.
        ratio: after / before where both are positive, else None.
        beyond: whether it changed by more than the errors of both numbers on these examples; None where the reports
            are of other examples.
        over_examples: whether the intervals for other examples like these share no point; None where one is not known.
            It is no test of no change: of the same examples the two numbers move together, and a change much smaller
            than both intervals may be real.
        limits: what theory compares it with, before and after, such as 2/η; None where it gives no number.
        interpretation: what can be said, in a sentence.
    """

    name: str
    id: str
    before: float
    after: float
    difference: float
    ratio: float | None
    beyond: bool | None
    over_examples: bool | None
    limits: tuple[float | None, float | None] = (None, None)
    interpretation: str = ""

    @property
    def size(self) -> str:
        """Return the change as text: a factor, or a difference where a factor makes no sense.

        >>> Change("risk", "risk", 2.0, 1.0, -1.0, 0.5, True, None).size
        '0.5 times'
        """
        return f"{self.difference:+.3g}" if self.ratio is None else f"{self.ratio:.3g} times"


@dataclass(frozen=True)
class Comparison:
    """The result of ``steepest.compare``; a table in the terminal and in a notebook.

    Attributes:
        before: name, weights and examples of the first report.
        after: those of the second.
        notes: what makes the reports differ besides: other examples, other models, readings that only one has.
        findings: at most five changes that matter, those to act on first.
        new: findings of the second report that the first does not have.
        gone: findings of the first report that the second does not have, though it measured what they rest on.
        changes: every reading that both have, in the order of the second.
    """

    before: dict[str, Any]
    after: dict[str, Any]
    notes: tuple[str, ...]
    findings: tuple[Finding, ...]
    new: tuple[Finding, ...]
    gone: tuple[Finding, ...]
    changes: tuple[Change, ...] = field(default=())

    def __getitem__(self, name: str) -> Change:
        """Return the change of a reading by its name, or of the first of a quantity by its id."""
        for change in self.changes:
            if name in (change.name, change.id):
                return change
        names = ", ".join(change.name for change in self.changes)
        raise KeyError(f"{name!r} is not in both reports; in both are: {names}")

    def others(self) -> list[tuple[str, Finding]]:
        """Return the new and gone findings that the changes that matter do not name, each with which it is."""
        named = {finding.evidence for finding in self.findings}
        pairs = [("new", finding) for finding in self.new]
        pairs += [("gone", finding) for finding in self.gone]
        return [pair for pair in pairs if pair[1].evidence not in named]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready object; numbers that are not finite become null."""
        return plain(asdict(self))

    def _repr_html_(self) -> str:
        from html import escape

        listed = "".join(
            f"<li>{finding.sign} {escape(finding.text)}</li>" for finding in self.findings
        )
        noted = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        rows = "".join(
            f"<tr><td>{escape(change.name)}</td><td>{change.before:.4g}</td><td>{change.after:.4g}</td>"
            f"<td>{change.size}</td><td>{escape(change.interpretation)}</td></tr>"
            for change in self.changes
        )
        title = escape(f"{self.before['model']} before, {self.after['model']} after")
        return f"<ul>{listed}</ul>{noted}<table><caption>{title}</caption>{rows}</table>"


def compare(
    before: Report | str | Path | Mapping[str, Any],
    after: Report | str | Path | Mapping[str, Any],
) -> Comparison:
    """Compare two reports of ``steepest.measure``: reading by reading, and their findings.

    What is said of a change depends on what the errors are about. A number without an interval, and one whose interval
    is about other examples, is exact for its own examples: on the same examples every change beyond rounding is one.
    Residuals, probes and random batches are errors on the same examples too: a change counts when the two intervals
    share no point, which holds for independent errors and for dependent ones. For other examples like these nothing
    better is known from two reports: intervals that share no point are a change, those that overlap tell nothing,
    since both are of the same examples and move together.

    Args:
        before: a report, its JSON, or a file of it.
        after: the same.

    Raises:
        UserError: a file that is no report; reports that have no reading in common.

    >>> one = Report("Net", 3, 5, (Reading("risk", 0.5, id="risk"),), 1, 0.1, data="a")
    >>> two = Report("Net", 3, 5, (Reading("risk", 0.1, id="risk"),), 1, 0.1, data="a")
    >>> compare(one, two).findings[0].text
    'risk fell from 0.5 to 0.1, 0.2 times: changed here; for other examples no interval is known'
    """
    first = _report(before)
    second = _report(after)
    same = {False: _same_examples(first, second), True: _same(first.held_out, second.held_out)}
    olds = _measured(first)
    news = _measured(second)
    common = [name for name in news if name in olds]
    if not common:
        raise UserError(
            f"these reports have no reading in common: {_some(olds)} before, {_some(news)} after; "
            "measure the same quantities with --what"
        )
    changes = tuple(
        _change(olds[name], news[name], None if name in WEIGHTS_ALONE else same["held-out" in name])
        for name in common
    )
    new = tuple(finding for finding in second.findings if _counterpart(finding, first) is None)
    gone = tuple(finding for finding in first.findings if _is_gone(finding, second, news))
    return Comparison(
        _summary(first),
        _summary(second),
        tuple(_notes(first, second, same[False], olds, news)),
        _headlines(first, second, changes, gone),
        new,
        gone,
        changes,
    )


def _report(given: Any) -> Report:
    if isinstance(given, Report):
        return given
    if isinstance(given, Mapping):
        return Report.from_json(given)
    if isinstance(given, str | Path):
        return read_report(given)
    raise UserError(
        f"compare takes two reports, their JSON or files of it, got {type(given).__name__}"
    )


def _summary(report: Report) -> dict[str, Any]:
    return {name: getattr(report, name) for name in ("model", "weights", "examples")}


def _measured(report: Report) -> dict[str, Reading]:
    """Return the readings that have a number, by name."""
    return {reading.name: reading for reading in report.quantities if math.isfinite(reading.value)}


def _same(first: str, second: str) -> bool | None:
    """Return whether two digests are of the same examples; None where one is not known."""
    return None if not first or not second else first == second


def _same_examples(first: Report, second: Report) -> bool | None:
    return False if first.examples != second.examples else _same(first.data, second.data)


# ---------------------------------------------------------------------------------------- one reading


def _change(old: Reading, new: Reading, same: bool | None) -> Change:
    """Compare one reading; ``same`` says whether the examples are, and None counts as yes."""
    difference = new.value - old.value
    ratio = new.value / old.value if old.value > 0 and new.value > 0 else None
    beyond = None if same is False else _is_beyond(old, new)
    ends = (_for_others(old), _for_others(new))
    over = None if ends[0] is None or ends[1] is None else _apart(ends[0], ends[1])
    return Change(
        new.name,
        new.id,
        old.value,
        new.value,
        difference,
        ratio,
        beyond,
        over,
        (old.compared, new.compared),
        _said(old, new, beyond, over),
    )


def _is_beyond(old: Reading, new: Reading) -> bool:
    """Return whether two numbers of the same examples differ by more than their errors."""
    if abs(new.value - old.value) <= ROUNDING * max(abs(old.value), abs(new.value)):
        return False
    return _apart(_for_these(old), _for_these(new))


def _for_these(reading: Reading) -> tuple[float, float]:
    """Return where the number lies for its own examples: itself, where its interval is about others."""
    if reading.interval is None or reading.source_of_error in ("examples", "rounding"):
        return reading.value, reading.value
    return reading.interval


def _for_others(reading: Reading) -> tuple[float, float] | None:
    """Return where the number would lie for other examples like these, if that is known."""
    ends = reading.interval if reading.source_of_error == "examples" else reading.over_examples
    return None if ends is None or not all(map(math.isfinite, ends)) else ends


def _apart(first: tuple[float, float], second: tuple[float, float]) -> bool:
    """Return whether two intervals share no point.

    Whatever the dependence of two errors, the deviation of their difference is at most the sum of the two: intervals of
    95 % that share no point are a difference at 95 % at least, of normal errors.
    """
    return first[1] < second[0] or second[1] < first[0]


def _said(old: Reading, new: Reading, beyond: bool | None, over: bool | None) -> str:
    """Say what follows from two numbers with their errors."""
    if beyond is None:
        return {
            True: "other examples; beyond both intervals over examples",
            False: "other examples; the intervals over examples overlap",
            None: "other examples, and no interval over examples is known: nothing follows",
        }[over]
    if not beyond:
        exact = _for_these(old)[0] == old.value and _for_these(new)[0] == new.value
        near = abs(new.value - old.value) <= ROUNDING * max(abs(old.value), abs(new.value))
        if exact or near:
            return "the same, to rounding"
        return f"within the errors of both ({BRIEF[new.source_of_error]})"
    if new.name in WEIGHTS_ALONE:
        return "changed; it depends on no example"
    return {
        True: "changed here, and beyond both intervals for other examples",
        False: "changed here; the intervals for other examples overlap, which decides nothing",
        None: "changed here; for other examples no interval is known",
    }[over]


# ------------------------------------------------------------------------------------------- findings


def _counterpart(finding: Finding, report: Report) -> Finding | None:
    """Return the finding of another report that rests on the same reading and has the same sign."""
    for other in report.findings:
        if (other.evidence, other.sign) == (finding.evidence, finding.sign):
            return other
    return None


def _is_gone(finding: Finding, after: Report, measured: Mapping[str, Reading]) -> bool:
    """Return whether a finding does not hold any more, and was not just left out.

    A report has at most five findings, the gravest first: one that is no graver than the last may have found no room.
    """
    if _counterpart(finding, after) is not None or finding.evidence not in measured:
        return False
    if any(other.evidence == finding.evidence for other in after.findings):
        return True
    crowded = len(after.findings) >= MOST
    return not (crowded and RANK[finding.sign] >= RANK[after.findings[-1].sign])


def _headlines(
    first: Report, second: Report, changes: tuple[Change, ...], gone: tuple[Finding, ...]
) -> tuple[Finding, ...]:
    """Draw the changes that matter, at most five, one for each reading, those to act on first."""
    by_name = {change.name: change for change in changes}
    drawn: list[Finding] = []
    for finding in second.findings:
        if finding.sign == "!" and _counterpart(finding, first) is None:
            since = _since(finding, first)
            drawn.append(replace(finding, text=f"new{since}: {finding.text}"))
    valued = [_valued(by_name[name]) for name in BETTER_LOWER if name in by_name]
    drawn += [finding for finding in valued if finding is not None and finding.sign == "!"]
    for finding in gone:
        if finding.sign == "!":
            now = next(
                (
                    f"; now: {new.text}"
                    for new in second.findings
                    if new.evidence == finding.evidence
                ),
                "",
            )
            drawn.append(replace(finding, sign="✓", text=f"no longer so: {finding.text}{now}"))
    drawn += [finding for finding in valued if finding is not None and finding.sign != "!"]
    drawn += _neutral(changes)
    chosen: dict[str, Finding] = {}
    for finding in drawn:
        chosen.setdefault(finding.evidence, finding)
    if not chosen:
        text = "nothing that both reports measured changed by more than its errors, or by a factor of 1.25"
        return (Finding("?", text, changes[0].name, FindingId.UNCHANGED),)
    kept = list(chosen.values())[:MOST]
    return tuple(sorted(kept, key=lambda finding: RANK[finding.sign]))


def _since(finding: Finding, first: Report) -> str:
    """Say why a finding of the second report is not among the first's, where it may have been so already."""
    measured = _measured(first)
    if finding.evidence not in measured:
        return " (not measured before)"
    if len(first.findings) >= MOST and first.findings[-1].sign == "!":
        return " (or left out before, among more than five)"
    return ""


def _valued(change: Change) -> Finding | None:
    """Say whether a number of which less is better fell or rose; None where nothing follows."""
    if not (change.beyond or (change.beyond is None and change.over_examples)):
        return None
    if abs(change.difference) <= SMALL * abs(change.before):
        return None
    rose = change.difference > 0
    sign = "!" if rose else "✓"
    # held-out examples stand for all others, those given for themselves
    if change.over_examples is False and "held-out" in change.name:
        sign = "?"
    return Finding(sign, _moved(change), change.name, FindingId.CHANGED)


def _neutral(changes: tuple[Change, ...]) -> list[Finding]:
    """Say which other numbers changed most: one for each quantity, by a factor worth a line."""
    candidates = [
        change
        for change in changes
        if change.name not in BETTER_LOWER
        and change.ratio is not None
        and max(change.ratio, 1 / change.ratio) >= FACTOR
        and (change.beyond or (change.beyond is None and change.over_examples))
    ]

    def weight(change: Change) -> tuple[int, float]:
        assert change.ratio is not None
        place = len(NEUTRAL_FIRST)
        if change.name in NEUTRAL_FIRST:
            place = NEUTRAL_FIRST.index(change.name)
        return place, -abs(math.log(change.ratio))

    chosen: dict[str, Change] = {}
    for change in sorted(candidates, key=weight):
        chosen.setdefault(change.id or change.name, change)
    return [
        Finding("?", _moved(change), change.name, FindingId.CHANGED) for change in chosen.values()
    ]


def _moved(change: Change) -> str:
    way = "rose" if change.difference > 0 else "fell"
    return (
        f"{change.name} {way} from {change.before:.4g} to {change.after:.4g}, {change.size}: "
        f"{change.interpretation}"
    )


# ---------------------------------------------------------------------------------------------- notes


def _notes(
    first: Report,
    second: Report,
    same: bool | None,
    olds: Mapping[str, Reading],
    news: Mapping[str, Reading],
) -> list[str]:
    """Say what else differs between two reports."""
    notes = []
    if (first.model, first.weights) != (second.model, second.weights):
        notes.append(
            f"these are different models: {first.model} of {first.weights} weights before, "
            f"{second.model} of {second.weights} after"
        )
    if same is False:
        notes.append(
            f"the examples are not the same ({first.examples} before, {second.examples} after): a number without an "
            "interval for other examples cannot be compared"
        )
    elif same is None:
        notes.append(
            "whether the examples are the same is not known, as a report does not say which they were; here they "
            "are taken to be"
        )
    if _same(first.held_out, second.held_out) is False:
        notes.append("the held-out examples are not the same")
    limits = [
        f"{name} {olds[name].compared:.4g} before, {news[name].compared:.4g} after"
        for name in news
        if name in olds and _limits_differ(olds[name], news[name])
    ]
    if limits:
        notes.append(f"the limit that your step sets differs: {'; '.join(limits)}")
    for where, one, other in (("before", olds, news), ("after", news, olds)):
        alone = [name for name in one if name not in other]
        if alone:
            notes.append(f"only measured {where}: {', '.join(alone)}")
    return notes


def _limits_differ(old: Reading, new: Reading) -> bool:
    """Return whether a limit of the user's step size differs; other predictions follow the numbers themselves."""
    if old.compared is None or new.compared is None or "η" not in new.theory:
        return False
    return abs(old.compared - new.compared) > ROUNDING * abs(old.compared)


def _some(readings: Mapping[str, Reading]) -> str:
    names = list(readings)
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "") if names else "none"
