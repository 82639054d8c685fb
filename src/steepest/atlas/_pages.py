"""Pages from runs: what each template is given."""

import inspect
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from steepest import claims
from steepest.claims import Entry
from steepest.drawing import svg, thumbnail
from steepest.judging import Check, Interval, Rejection, Verdict
from steepest.panels import Panel
from steepest.results import Result
from steepest.store import Store

from . import _text
from ._bars import bar
from ._figures import inline, label
from ._formula import formula
from ._runs import Run, chapter_title, entries

WORDS = {
    Verdict.HOLDS: ("✓", "holds"),
    Verdict.FAILS: ("✕", "fails"),
    Verdict.INCONCLUSIVE: ("?", "inconclusive"),
    Verdict.OUT_OF_RANGE: ("∅", "out of range"),
    "failed": ("!", "failed"),
}
"""Symbol and word of a verdict, and of a sweep's points that broke off: colour alone says nothing to some readers."""


@dataclass(frozen=True)
class Diagram:
    """A sweep and where to find it.

    Attributes:
        page: its page, relative to the atlas.
        axes: what was swept, a sentence a field.
        counts: how many points have each verdict.
        figure: its first map or panel, small; empty where there is none.
    """

    page: str
    axes: Sequence[str]
    counts: Mapping[str, int]
    figure: str


@dataclass(frozen=True)
class Card:
    """A claim on the index.

    Attributes:
        entry: its line in the catalogue.
        run: the run that is shown, or None.
        runs: how many there are.
        figure: its first panel, or that of its first sweep, or empty.
        diagrams: its sweeps.
    """

    entry: Entry
    run: Run | None = None
    runs: int = 0
    figure: str = ""
    diagrams: Sequence[Diagram] = ()


def index(cards: Sequence[Card]) -> str:
    """The first page: every claim of the catalogue by chapter, in the order given."""
    order = dict.fromkeys(card.entry.chapter for card in cards)
    chapters = {chapter_title(name): [c for c in cards if c.entry.chapter == name] for name in order}
    found = [card.run.result.verdict for card in cards if card.run]
    counts = {verdict: found.count(verdict) for verdict in Verdict}
    return (
        environment()
        .get_template("index.html")
        .render(
            root="",
            chapters=chapters,
            counts=counts,
            missing=len(cards) - len(found),
        )
    )


def page(
    run: Run, runs: Sequence[Run], around: tuple[str | None, str | None], diagrams: Sequence[Diagram] = ()
) -> tuple[str, Markup]:
    """The page of one run, and its thumbnail for the index.

    Args:
        run: the run to show.
        runs: all runs of the claim.
        around: the names of the claims before and after it, or None.
        diagrams: the sweeps of the claim.
    """
    kind = claims.load(run.result.claim)
    place = [entry.name for entry in entries()].index(run.result.claim)
    figures, small = _figures(run, place)
    rest = (inspect.getdoc(sys.modules[kind.__module__]) or "").partition("\n\n")[2]
    entry = claims.entry(run.result.claim)
    text = (
        environment()
        .get_template("claim.html")
        .render(
            root="../",
            entry=entry,
            chapter=chapter_title(entry.chapter),
            run=run,
            runs=runs,
            result=run.result,
            kind=kind,
            prose=_text.prose(rest) if rest.strip() else "",
            figures=figures,
            rivals=[(rival, list(_confronted(rival, run.result))) for rival in run.result.rivals],
            parameters=list(_parameters(kind, run.result)),
            before=around[0],
            after=around[1],
            diagrams=diagrams,
        )
    )
    return text, small


def _confronted(rival: Rejection, result: Result) -> Iterator[tuple[Check, Check]]:
    """A claim's own checks beside the rival's, where the two predict differently."""
    own = {check.name: check for check in result.checks}
    for check in rival.checks:
        mine = own.get(check.name)
        if mine and (repr(mine) != repr(check) or check.name in rival.by):  # NaN differs from itself, its name does not
            yield mine, check


def _parameters(kind: type, result: Result) -> Iterator[tuple[str, Any, str, str]]:
    """Name, value, meaning and unit of every field."""
    from steepest.claims._claim import documentation

    comments = documentation(kind)
    for name, value in result.params.items():
        yield name, value, *_text.meaning(comments.get(name, ""))


def _figures(run: Run, place: int) -> tuple[Sequence[tuple[str, Markup]], Markup]:
    """Title and graphic of each panel, and a thumbnail of the first.

    Where the claim can no longer draw what it once stored, the stored figure is shown instead, with a warning.
    """
    whole = Store(run.folder.parent.parent).find(run.folder.parent.name, run.folder.name)
    try:
        panels: Sequence[Panel] = whole.panels() if whole else ()
    except Exception as trouble:
        warnings.warn(
            f"the figure of {run.folder} is the stored one: drawing it anew failed ({trouble!r})", stacklevel=2
        )
        stored = (run.folder / "figure.svg").read_text("utf-8")
        return [("", inline(stored, "f0-", f"figure of {run.result.claim}"))], Markup("")
    alone = [svg([replace(panel, title="")]) for panel in panels]
    figures = [
        (panel.title, inline(text, f"f{i}-", label(panel)))
        for i, (panel, text) in enumerate(zip(panels, alone, strict=True))
    ]
    small = [inline(thumbnail(panel), f"t{place}-", label(panel)) for panel in panels[:1]]
    return figures, Markup("").join(small)


@cache
def environment() -> Environment:
    """The templates with what they may call."""
    loader = PackageLoader("steepest.atlas", "templates")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.globals.update(bar=bar, words=WORDS, changed=_differences)
    for name in ("number", "found", "allowed", "duration", "ticks"):
        made.filters[name] = getattr(_text, name)
    made.filters["formula"] = formula
    made.filters["between"] = lambda pair: _text.ends(Interval(*pair))
    return made


def _differences(changed: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_text.number(value)}" for name, value in changed.items()) or "as the preset"


def stylesheet() -> str:
    """The one style sheet of all pages."""
    return (resources.files("steepest.atlas") / "templates" / "style.css").read_text("utf-8")
