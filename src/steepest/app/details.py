"""One result on the terminal: verdict, assumptions, checks, rivals and controls."""

import math
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from steepest.app.console import styled
from steepest.core.checks import Check
from steepest.core.hypotheses import Hypothesis
from steepest.core.intervals import Basis
from steepest.core.laws import LawCheck, noticed
from steepest.core.words import Verdict
from steepest.engine.results import Result

HOW = {"stored": ", stored earlier: --force runs it again", "judged anew": ", judged anew"}
NOT_REJECTED = "not rejected: this run cannot tell the claim from this wrong theory"
PASSES = "passes: the judge does not see that the law must not hold for it"
SHRINKING = (Basis.MEAN, Basis.SHARE)
"""Bases of intervals whose width falls like one over the root of the number of repetitions."""
WIDE = 120
"""Columns from which a row of the table has room for the name of a check beside its numbers."""
MANY = 100
"""Times the repetitions beyond which more are said to be no help."""
WOULD_DECIDE = "would decide it, if its mean stays where it is"
HARDLY_DECIDE = "hardly decide it: its mean is too near an end of its margin"


def show_details(console: Console, result: Result, verdict: str = "") -> None:
    """Print verdict, assumptions, checks, rivals and controls of one result.

    Args:
        console: where to.
        result: the result.
        verdict: the sign or word in front of the reason, as rich shows it; the usual one where it is left out.
    """
    word = verdict or f"{styled(result.verdict)} —"
    console.print(f"[bold]{result.claim}[/]: {word} {escape(result.reason)}", highlight=False)
    if size := noticed(result.resolutions):
        console.print(f"  would notice {size}", markup=False, highlight=False)
    for hypothesis in result.assumptions:
        console.print(f"  assumes {_assumption(hypothesis)}", markup=False)
    counted = [check for check in result.checks if check.decides]
    others = [check for check in result.checks if not check.decides]
    for title, checks in (("check", counted), ("identities and consistency", others)):
        if checks and console.width >= WIDE:
            console.print(_checks(title, checks))
        elif checks:
            console.print(f"{title}:", style="bold", highlight=False)
            for check in checks:
                _show_narrow(console, check)
    for clause in result.clauses:
        ids = f" ({', '.join(clause.checks)})" if clause.checks else ""
        console.print(
            f"  says: “{clause.text}” — {clause.verdict}{ids}", markup=False, highlight=False
        )
    for rival in result.rivals:
        verdict = f"rejected by {', '.join(rival.by)}" if rival.rejected else NOT_REJECTED
        if rival.accepted and not rival.rejected:
            verdict = f"accepted: {rival.accepted}"
        console.print(f"  rival: {rival.name} — {verdict}", markup=False, highlight=False)
    for control in result.controls:
        verdict = f"told apart by {', '.join(control.by)}" if control.rejected else PASSES
        console.print(f"  control: {control.name} — {verdict}", markup=False, highlight=False)
    for line in (*more_repetitions(result), *untold(result)):
        console.print(f"  {line}", markup=False, highlight=False)
    how = HOW.get(result.how, "")
    console.print(f"  {result.seconds:.1f} s{how}", markup=False, highlight=False)
    console.print(f"  {result.command}", markup=False, highlight=False, soft_wrap=True)


def more_repetitions(result: Result) -> Iterator[str]:
    """Yield of each undecided check whether more repetitions would decide it, where its interval shrinks with them."""
    for check in result.checks:
        interval = check.interval
        margin = check.margin
        if check.verdict is not Verdict.INCONCLUSIVE or interval.basis not in SHRINKING:
            continue
        if interval.inside(margin):
            continue  # what leaves it undecided is said in its note
        points = check.points if isinstance(check, LawCheck) else ()
        alone = (check.measured, interval.low, interval.high, margin.low, margin.high)
        every = [(at.measured, at.low, at.high, at.least, at.most) for at in points] or [alone]
        times = _times([_refuted_or_held(*numbers) for numbers in every])
        if times <= MANY:
            many = "four" if times <= 4 else f"about {math.ceil(times)}"
            yield f"undecided: {check.name}: {many} times the repetitions {WOULD_DECIDE}"
        else:
            yield f"undecided: {check.name}: more repetitions {HARDLY_DECIDE}"


def _times(points: Sequence[tuple[bool, float]]) -> float:
    """Return how many times the repetitions decide a check: one point refutes it, and it holds where all do."""
    refuting = [times for refuted, times in points if refuted]
    return min(refuting) if refuting else max(times for _, times in points)


def _refuted_or_held(
    mean: float, low: float, high: float, least: float, most: float
) -> tuple[bool, float]:
    """Return whether a mean lies outside of its margin, and how many times the repetitions show on which side it is.

    An interval is half as wide with four times as many.
    """
    if least <= mean <= most:
        sides = ((mean - low, mean - least), (high - mean, most - mean))
        return False, max(_squared_ratio(half, room) for half, room in sides)
    return True, _squared_ratio(
        *((mean - low, mean - most) if mean > most else (high - mean, least - mean))
    )


def _squared_ratio(half: float, room: float) -> float:
    return (half / room) ** 2 if room > 0 else math.inf


def untold(result: Result) -> Iterator[str]:
    """Yield what the data of a result do not tell: laws along an axis, rankings that something at hand passes too."""
    beside: dict[str, None] = {}
    for null in result.nulls:
        if null.rejected:
            continue
        if not null.headline:
            beside[null.law] = None
            continue
        reason = f" ({null.accepted})" if null.accepted else ""
        yield f"not told: {null.untold}{reason}"
    if beside:
        yield f"not told from wrong laws, beside the first sentence: {', '.join(beside)}"
    for check in result.checks:
        if not isinstance(check, LawCheck):
            continue
        for name in check.also_passed_by:
            yield f"not told: {check.name} is the order of {name} as well"
        if check.consistent:
            yield f"not tested: {check.name} is a bound with {check.room:.0%} of room"


def _checks(title: str, checks: Sequence[Check]) -> Table:
    titles = (title, "predicted", "measured", "interval", "margin", "would notice", "verdict")
    table = Table(*titles, box=None, header_style="bold")
    for check in checks:
        table.add_row(
            escape(_named(check)),
            f"{check.predicted:.4g}",
            f"{check.measured:.4g}",
            _span(check, "interval"),
            _span(check, "margin"),
            check.would_notice,
            styled(check.verdict),
        )
    return table


def _show_narrow(console: Console, check: Check) -> None:
    """Print a check below its name, where a terminal has no room for columns."""
    console.print(f"  {styled(check.verdict)}  {escape(_named(check))}", highlight=False)
    words = (
        f"predicted {check.predicted:.4g}, measured {check.measured:.4g}, interval {_span(check, 'interval')}, "
        f"margin {_span(check, 'margin')}, would notice {check.would_notice}"
    )
    console.print(Padding(Text(words), (0, 0, 0, 6)), highlight=False)


def _assumption(hypothesis: Hypothesis) -> str:
    advice = f" — {hypothesis.note}" if hypothesis.note and not hypothesis.holds else ""
    return f"{'✓' if hypothesis.holds else '✗'} {hypothesis}{advice}"


def _named(check: Check) -> str:
    """Return a check's name, and of a law the point whose numbers are shown: the worst of several."""
    if not isinstance(check, LawCheck) or not check.points:
        return check.name
    return f"{check.name} ({len(check.points)} points, {check.note})"


def _span(check: Check, which: str) -> str:
    interval = getattr(check, which)
    if interval.low == interval.high:
        repeated = interval.basis not in (Basis.EXACT, Basis.OTHER)
        return f"{interval.low:.4g}, {interval.how}" if repeated else interval.how
    return f"{interval.low:.4g} … {interval.high:.4g}"
