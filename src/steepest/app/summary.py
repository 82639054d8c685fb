"""What a run of claims came to, beside what is recorded: in words, a line for each chapter, a row for each claim."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from steepest.app.console import styled
from steepest.app.standing import Standing, record_for, standing
from steepest.catalogue import Entry, chapter_title
from steepest.core.words import CRASHED, word
from steepest.engine.crew import Outcome
from steepest.engine.rates import spelled_rates
from steepest.engine.results import Result
from steepest.record import Record

HOW = {"stored": " (stored)", "judged anew": " (judged anew)"}
MOVED = (Standing.CHANGED, Standing.UNSETTLED)
"""The verdict is another than the recorded one."""
PARTS = {
    "holds": ("holds", "hold", "green"),
    "fails-as-recorded": ("fails as recorded", "fail as recorded", "default"),
    "undecided": ("undecided", "undecided", "yellow"),
    "fails": ("fails", "fail", "red"),
    "changed": ("changed", "changed", "bold red"),
    "crashed": ("crashed", "crashed", "bold red"),
}
"""Parts of a chapter's line, in their order: the words for one claim and for several, and a colour."""


def verdict_of(outcome: Outcome) -> str:
    """Return the verdict of an outcome for the terminal, with what is recorded where it is not simply ``holds``."""
    if outcome.result is None:
        return styled(CRASHED)
    return f"{styled(outcome.result.verdict)}{as_recorded(outcome)}"


def as_recorded(outcome: Outcome) -> str:
    """Return the words behind a verdict that say what is recorded; empty where it holds, as recorded or without."""
    result = outcome.result
    recorded = None if result is None else record_for(result)
    if recorded is None:
        return ""
    if standing(outcome) in MOVED:
        return f", recorded {word(recorded.verdict)}"
    return "" if recorded.verdict == "holds" else ", as recorded"


def change(result: Result) -> str:
    """Return how a verdict differs from the recorded one, as in "recorded fails, now holds"; else empty."""
    recorded = record_for(result)
    if recorded is None or recorded.verdict == result.verdict:
        return ""
    return f"recorded {word(recorded.verdict)}{_with_other(recorded, result)}, now {word(result.verdict)}"


def spelled_record(recorded: Record) -> str:
    """Return a record in words, as in "holds (version 2, 2026-11-23, jax 0.10.2), holds at 20 of 20 fresh seeds"."""
    packages = [f"{package} {version}" for package, version in recorded.versions.items()]
    where = ", ".join(filter(None, [f"version {recorded.version}", recorded.date, *packages]))
    parts = (f"{word(recorded.verdict)} ({where})", spelled_rates(recorded))
    return ", ".join(filter(None, parts))


def table(outcomes: Sequence[Outcome]) -> Table:
    """Return a row for each claim: verdict, reason, seconds."""
    columns = ("claim", "verdict", "why", "seconds")
    rows = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for outcome in outcomes:
        result = outcome.result
        if result is None:
            rows.add_row(outcome.name, verdict_of(outcome), escape(outcome.crash), "")
            continue
        verdict = verdict_of(outcome) + HOW.get(result.how, "")
        rows.add_row(result.claim, verdict, escape(result.reason), f"{result.seconds:.1f}")
    return rows


def by_chapter(entries: Sequence[Entry], outcomes: Sequence[Outcome]) -> Table:
    """Return a row for each chapter: how many of its claims hold, fail as recorded, are undecided, changed."""
    counts: dict[str, Counter[str]] = {}
    for entry, outcome in zip(entries, outcomes, strict=True):
        counts.setdefault(entry.chapter, Counter())[_part(outcome)] += 1
    rows = Table.grid(padding=(0, 2))
    for chapter, parts in counts.items():
        rows.add_row(escape(chapter_title(chapter)), _counted(parts))
    return rows


def of_tour(entries: Sequence[Entry], outcomes: Sequence[Outcome]) -> Table:
    """Return a row for each claim of the tour: the chapter for which it stands, its name, and its verdict."""
    rows = Table.grid(padding=(0, 2))
    for entry, outcome in zip(entries, outcomes, strict=True):
        how = HOW.get(outcome.result.how, "") if outcome.result else ""
        rows.add_row(escape(chapter_title(entry.chapter)), entry.name, verdict_of(outcome) + how)
    return rows


def show_exceptions(console: Console, outcomes: Iterable[Outcome]) -> None:
    """Print a line for each claim that does not hold, or whose verdict is another than the recorded one."""
    for outcome in outcomes:
        line = exception(outcome)
        if line:
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def exception(outcome: Outcome) -> str:
    """Return a claim by name with its verdict, what is recorded and why; empty where it holds as it should."""
    result = outcome.result
    if result is None:
        return f"{outcome.name} crashed: {outcome.crash}"
    verdict = change(result)
    if not verdict and result.verdict == "holds":
        return ""
    return f"{outcome.name}: {verdict or word(result.verdict) + as_recorded(outcome)} — {result.reason}"


def duration(seconds: float) -> str:
    """Return a time as people say it.

    >>> duration(368.2), duration(8.25)
    ('6 min 8 s', '8.2 s')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, remainder = divmod(round(seconds), 60)
    return f"{minutes} min {remainder} s"


def _part(outcome: Outcome) -> str:
    """The part of its chapter's line that an outcome belongs to."""
    where = standing(outcome)
    if outcome.result is None:
        return "crashed"
    if where in MOVED:
        return "changed"
    if outcome.result.verdict == "holds":
        return "holds"
    if outcome.result.verdict == "fails":
        return "fails-as-recorded" if where is Standing.AS_RECORDED else "fails"
    return "undecided"


def _counted(parts: Counter[str]) -> str:
    words = []
    for part, (singular, several, colour) in PARTS.items():
        if parts[part]:
            words.append(f"[{colour}]{parts[part]} {singular if parts[part] == 1 else several}[/]")
    return ", ".join(words)


def _with_other(recorded: Record, result: Result) -> str:
    """The packages that were of another version when the verdict was recorded: they may be why it changed."""
    others = [
        f"{package} {version}"
        for package, version in recorded.versions.items()
        if result.versions.get(package) != version
    ]
    return f" (with {' and '.join(others)})" if others else ""
