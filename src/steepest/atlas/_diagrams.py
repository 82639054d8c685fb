"""Pages of sweeps: phase diagrams with what was swept, counted and kept."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from steepest import claims
from steepest.drawing import GAP, blend, named, svg, thumbnail
from steepest.panels import Map, Panel

from . import _hover, _pages
from ._figures import inline, label, theme
from ._runs import chapter_title, entries

if TYPE_CHECKING:
    from steepest.sweeping import Sweep

SCRIPT = "bokeh.min.js"
LIVE = 10_000
"""So many points can be read with a pointer; more would make a page of tens of megabytes."""
REASONS = 10
"""So many reasons of failure are told, the others are counted."""


def gather(results: Path) -> dict[str, list["Sweep"]]:
    """All sound sweeps by claim, newest first; those of a claim that is not known are left out with a warning."""
    from steepest.sweeping import stored_sweeps

    found: dict[str, list[Sweep]] = {}
    for sweep in stored_sweeps(results):
        if sweep.claim in claims.catalogue():
            found.setdefault(sweep.claim, []).append(sweep)
        else:
            warnings.warn(
                f"a sweep in {results} is left out: there is no claim {sweep.claim!r} in this version of steepest",
                stacklevel=2,
            )
    return found


def save(sweep: "Sweep", number: int, folder: Path, alone: bool) -> _pages.Diagram:
    """Write the page of a sweep and its table.

    Args:
        sweep: the sweep.
        number: its place among the claim's sweeps.
        folder: of the atlas; the claim's own folder is in it.
        alone: whether the claim has no page of its own.

    Returns:
        what other pages show of it.
    """
    panels, name = sweep.panels(), f"{sweep.claim}/sweep-{sweep.key}"
    (folder / name).mkdir()
    sweep.to_csv(folder / name / "points.csv")
    (folder / f"{name}.html").write_text(page(sweep, panels, alone), "utf-8")
    place = [entry.name for entry in entries()].index(sweep.claim)
    small = [inline(thumbnail(panel), f"s{place}-{number}-", label(panel)) for panel in panels[:1]]
    return _pages.Diagram(f"{name}.html", sweep.axes, _ordered(sweep), Markup("").join(small))


def page(sweep: "Sweep", panels: Sequence[Panel | Map], alone: bool) -> str:
    """The page of a sweep; the static figures need no script, and the script replaces them where it can."""
    entry, told = claims.entry(sweep.claim), list(sweep.failures.items())
    figures = [
        (
            panel.title,
            inline(svg([replace(panel, title="")]), f"f{i}-", label(panel)),
            list(_legend(panel)),
            _unit(panel),
        )
        for i, panel in enumerate(panels)
    ]
    text = (resources.files("steepest.atlas") / "templates" / "diagram.js").read_text("utf-8")
    curves = [curve for panel in panels if isinstance(panel, Map) for curve in panel.curves]
    return (
        _pages.environment()
        .get_template("diagram.html")
        .render(
            root="../",
            entry=entry,
            chapter=chapter_title(entry.chapter),
            sweep=sweep,
            alone=alone,
            counts=_ordered(sweep),
            missing=sweep.total - sum(sweep.counts.values()),
            figures=figures,
            boundary=any(curve.role == "predicted" for curve in curves),
            gaps=any(isinstance(panel, Map) and _gaps(panel) for panel in panels),
            shared=any(isinstance(panel, Map) and panel.limits for panel in panels),
            reasons=told[:REASONS],
            others=told[REASONS:],
            live=_hover.live(panels, sweep.table()) if panels and sweep.total <= LIVE else "",
            many=sweep.total > LIVE,
            script=Markup(text),
            library=SCRIPT,
        )
    )


def _ordered(sweep: "Sweep") -> dict[str, int]:
    """The counts that are not zero, in the order in which verdicts are always named."""
    return {word: sweep.counts[word] for word in _pages.WORDS if sweep.counts.get(word)}


def _gaps(panel: Map) -> bool:
    import numpy as np

    return not bool(np.isfinite(np.asarray(panel.values, float)).all())


def _legend(panel: Panel | Map) -> Any:
    """Words, sign, kind and colour of what a figure shows, in the theme's colours."""
    import numpy as np

    if isinstance(panel, Map):
        values = np.asarray(panel.values, float)
        for i, (word, (colour, sign)) in enumerate(zip(panel.words, named(panel.words), strict=True)):
            if np.any(values == i):
                yield word.replace("-", " "), sign, "cell", theme(colour)
        if _gaps(panel):
            yield "no value", "", "cell gap", theme(GAP)
    for curve in panel.curves:
        if curve.label:
            yield curve.label, "", "line" if curve.kind != "dashed" else "dashed", theme(blend(curve.role, curve.shade))


def _unit(panel: Panel | Map) -> str:
    """What the colours of a map of numbers mean."""
    return panel.label if isinstance(panel, Map) and not panel.words else ""
