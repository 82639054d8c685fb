"""Pages from runs: what each template is given."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from steepest.catalogue import Entry, chapter_title
from steepest.core.checks import Verdict
from steepest.core.errors import UserError
from steepest.core.laws import noticed
from steepest.core.panels import Map, Panel
from steepest.core.text import visible
from steepest.core.words import LOOKS
from steepest.engine.fingerprint import entry_of
from steepest.engine.rates import record_behind, spelled_rates, spelled_spans
from steepest.engine.results import Result
from steepest.site.drawing import page_svg
from steepest.sources import cited, expand, spelled

from . import _text
from ._bars import bar
from ._confronted import confronted, not_judged
from ._drawn import drawn, drawn_files
from ._figures import inline, label
from ._formula import formula, split_formula
from ._policy import policy
from ._runs import Run

WORDS = {verdict: (look.sign, look.word) for verdict, look in LOOKS.items()}
"""Sign and word of a verdict: colour alone says nothing to some readers."""


ROLE_WORDS = {
    "observed": "observed",
    "predicted": "predicted",
    "rival": "wrong theory",
    "context": "reference",
}
"""The words of the key for whose numbers a curve shows."""


@dataclass(frozen=True)
class Diagram:
    """A sweep and where to find it.

    Attributes:
        page: its page, relative to the atlas.
        axes: what was swept, a sentence a field.
        counts: how many points have each verdict.
        figure: its first map or panel, small; empty where there is none.
        stale: whether its points come from other code than that which is here.
    """

    page: str
    axes: Sequence[str]
    counts: Mapping[str, int]
    figure: str
    stale: bool = False


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
    chapters = {
        heading(name): [card for card in cards if card.entry.chapter == name] for name in order
    }
    verdicts = [card.run.result.verdict for card in cards if card.run and not card.run.stale]
    counts = {verdict: verdicts.count(verdict) for verdict in Verdict}
    stale = sum(bool(card.run and card.run.stale) for card in cards)
    return (
        environment()
        .get_template("index.html")
        .render(
            root="",
            chapters=chapters,
            counts=counts,
            missing=len(cards) - len(verdicts) - stale,
            stale=stale,
        )
    )


def page(
    run: Run,
    runs: Sequence[Run],
    around: tuple[str | None, str | None],
    diagrams: Sequence[Diagram] = (),
) -> tuple[str, Markup]:
    """The page of one run, and its thumbnail for the index.

    Args:
        run: the run to show.
        runs: all runs of the claim.
        around: the names of the claims before and after it, or None.
        diagrams: the sweeps of the claim.
    """
    about, small = _parts(run, runs, diagrams)
    text = (
        environment()
        .get_template("claim.html")
        .render(root="../", before=around[0], after=around[1], **about)
    )
    return text, small


def parts(run: Run, runs: Sequence[Run]) -> dict[str, Any]:
    """Return what the template of a claim's page is given, for pages around it that are not the atlas's."""
    return _parts(run, runs, ())[0]


def _parts(
    run: Run, runs: Sequence[Run], diagrams: Sequence[Diagram]
) -> tuple[dict[str, Any], Markup]:
    result = run.result
    entry = entry_of(result)
    figures, small = _figures(run)
    explanation = result.about["explanation"]
    about = {
        "entry": entry,
        "chapter": heading(entry.chapter),
        "run": run,
        "runs": runs,
        "result": result,
        "rates": spelled_rates(record_behind(result)),
        "spans": spelled_spans(result.about.get("scope", {})),
        "about": result.about,
        "prose": _text.prose(explanation) if explanation.strip() else "",
        "figures": figures,
        "diagrams": diagrams,
        **judged(result),
    }
    return about, small


def figure(run: Run, place: int, prefix: str) -> tuple[str, Markup]:
    """Return title and graphic of one panel of a run.

    Args:
        run: the run.
        place: which panel, counted from 0.
        prefix: put before every identifier; unique on the page.

    Raises:
        UserError: there is no such panel.
    """
    panels = run.result.panels
    if not 0 <= place < len(panels):
        raise UserError(f"{run.result.claim} has {len(panels)} panels, got number {place + 1}")
    panel = panels[place]
    return panel.title, inline(drawn(panels, run.folder).figures[place], prefix, label(panel))


def figure_files(run: Run) -> tuple[str, ...]:
    """Return the panels of a run as files for readers who take them elsewhere, with titles and colours of their own."""
    return drawn_files(run.result.panels, run.folder)


def figures_alike(runs: Sequence[Run], place: int, prefixes: Sequence[str]) -> list[Markup]:
    """Return the graphics of one panel of several runs, on the same axes: what moves is the data.

    Args:
        runs: the runs of one claim, each with this panel.
        place: which panel, counted from 0.
        prefixes: one a run, put before every identifier; unique on the page.
    """
    panels = [run.result.panels[place] for run in runs]
    curves = [panel for panel in panels if isinstance(panel, Panel)]
    if len(curves) == len(panels) and panels:
        first = curves[0]
        xlim = _common(
            [(panel.xlim, [c.x for c in panel.curves]) for panel in curves], first.xscale
        )
        ylim = _common(
            [(panel.ylim, [c.y for c in panel.curves]) for panel in curves], first.yscale
        )
        panels = [replace(panel, xlim=xlim, ylim=ylim) for panel in curves]
    return [
        inline(page_svg(panel), prefix, label(panel))
        for panel, prefix in zip(panels, prefixes, strict=True)
    ]


def _common(
    axes: Sequence[tuple[Any, Sequence[Any]]], scale: str
) -> tuple[float | None, float | None] | None:
    """Limits that hold the data of all panels, and a little room; ends that a panel sets itself are kept."""
    own = next((limits for limits, _ in axes if limits), (None, None))
    values = np.concatenate([np.ravel(np.asarray(v, float)) for _, series in axes for v in series])
    values = values[np.isfinite(values) & ((values > 0) | (scale != "log"))]
    if not values.size:
        return None
    log = scale == "log"
    low, high = (np.log10(end) if log else end for end in (values.min(), values.max()))
    room = 0.04 * (high - low) or 0.5
    ends = [10.0**end if log else float(end) for end in (low - room, high + room)]
    return (ends[0] if own[0] is None else own[0], ends[1] if own[1] is None else own[1])


def judged(result: Result) -> dict[str, Any]:
    """What the tables of checks, rivals, controls and parameters are given."""
    return {
        "counted": [check for check in result.checks if check.decides],
        "uncounted": [check for check in result.checks if not check.decides],
        "names": {one.id: one.name for one in (*result.rivals, *result.controls)},
        "rivals": [confronted(rival, result) for rival in result.rivals],
        "controls": [confronted(control, result) for control in result.controls],
        "parameters": list(_parameters(result)),
        "nulls": result.nulls,
        "noticed": noticed(result.resolutions),
        "not_judged": list(not_judged(result)),
    }


def heading(chapter: str) -> str:
    """Return a chapter's title with a capital."""
    title = chapter_title(chapter)
    return title[:1].upper() + title[1:]


def _parameters(result: Result) -> Iterator[tuple[str, Any, str, str]]:
    """Name, value, meaning and unit of every field."""
    for name, value in result.params.items():
        yield name, value, *_text.meaning(result.about["meanings"].get(name, ""))


def _figures(run: Run) -> tuple[Sequence[tuple[str, Markup]], Markup]:
    """Title and graphic of each panel, and a thumbnail of the first."""
    panels = run.result.panels
    drawings = drawn(panels, run.folder)
    figures = [
        (panel.title, inline(text, f"f{i}-", label(panel)))
        for i, (panel, text) in enumerate(zip(panels, drawings.figures, strict=True))
    ]
    if not panels:
        return figures, Markup("")
    small = inline(drawings.thumbnail, f"t-{run.result.claim}-", label(panels[0]))
    return figures, small


@cache
def environment() -> Environment:
    """The templates with what they may call."""
    loader = PackageLoader("steepest.site.pages", "templates")
    made = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    made.globals.update(
        policy=policy, role_words=ROLE_WORDS, bar=bar, words=WORDS, changed=_differences
    )
    for name in ("number", "found", "allowed", "duration", "ticks"):
        made.filters[name] = getattr(_text, name)
    made.filters["roles"] = roles
    made.filters["formula"] = formula
    made.filters["split_formula"] = split_formula
    made.filters["expanded"] = partial(expand, known_only=False)
    made.filters["spelled"] = partial(spelled, known_only=False)
    made.filters["works"] = partial(cited, known_only=False)
    made.filters["name_in"] = lambda id, names: names[id]
    return made


def _visible(value: Any) -> Any:
    """What a template prints, without characters that would turn its direction around."""
    return type(value)(visible(value)) if isinstance(value, str) else value


def roles(panels: Sequence[Panel | Map]) -> dict[str, bool]:
    """Return the roles of what some panels draw, and whether curves of a role have several colours."""
    shades: dict[str, set[float]] = {}
    for panel in panels:
        for curve in panel.curves:
            shades.setdefault(curve.role, set()).add(curve.shade)
    return {role: len(of_role) > 1 for role, of_role in shades.items()}


def _differences(changed: Mapping[str, Any]) -> str:
    return (
        ", ".join(f"{name} = {_text.number(value)}" for name, value in changed.items())
        or "as the preset"
    )
