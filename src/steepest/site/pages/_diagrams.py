"""Pages of sweeps: phase diagrams with what was swept, counted and kept."""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from steepest.core.panels import Map, Panel
from steepest.site.drawing import GAP, blend, named, page_svg, thumbnail

from . import _hover, _pages
from ._figures import inline, label, theme

if TYPE_CHECKING:
    from steepest.engine.sweeps import Sweep

SCRIPT = "bokeh.min.js"
LIVE = 10_000
"""So many points can be read with a pointer; more would make a page of tens of megabytes."""
REASONS = 10
"""So many reasons of crashes are listed, the others are counted."""


def gather(results: Path) -> dict[str, list["Sweep"]]:
    """Return all sound sweeps by claim, newest first."""
    if not any(Path(results).glob("*/sweeps/*.json")):
        return {}  # pages of results alone need no JAX
    from steepest.engine.sweeps import stored_sweeps

    sweeps: dict[str, list["Sweep"]] = {}
    for sweep in stored_sweeps(results):
        sweeps.setdefault(sweep.claim, []).append(sweep)
    return sweeps


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
    panels = sweep.panels
    name = f"{sweep.claim}/sweep-{sweep.key}"
    (folder / name).mkdir()
    sweep.to_csv(folder / name / "points.csv")
    (folder / f"{name}.html").write_text(page(sweep, panels, alone), "utf-8")
    prefix = f"s-{sweep.claim}-{number}-"
    small = [inline(thumbnail(panel), prefix, label(panel)) for panel in panels[:1]]
    figure = Markup("").join(small)
    return _pages.Diagram(f"{name}.html", sweep.axes, _ordered(sweep), figure, sweep.plan.stale)


def page(sweep: "Sweep", panels: Sequence[Panel | Map], alone: bool) -> str:
    """The page of a sweep; the static figures need no script, and the script replaces them where it can."""
    entry = sweep.plan.entry
    crashes = list(sweep.crashes.items())
    figures = [
        (
            panel.title,
            inline(page_svg(panel), f"f{i}-", label(panel)),
            list(_legend(panel)),
            _unit(panel),
        )
        for i, panel in enumerate(panels)
    ]
    text = (resources.files("steepest.site.pages") / "templates" / "diagram.js").read_text("utf-8")
    text = text.replace("LIBRARY", f"../{SCRIPT}")
    curves = [curve for panel in panels if isinstance(panel, Map) for curve in panel.curves]
    few = panels and sweep.total <= LIVE
    live = _hover.live(panels, sweep.table(), sweep.labels) if few else ""
    return (
        _pages.environment()
        .get_template("diagram.html")
        .render(
            root="../",
            entry=entry,
            chapter=_pages.heading(entry.chapter),
            sweep=sweep,
            alone=alone,
            counts=_ordered(sweep),
            missing=sweep.total - sum(sweep.counts.values()),
            figures=figures,
            boundary=any(curve.role == "predicted" for curve in curves),
            gaps=any(isinstance(panel, Map) and _gaps(panel) for panel in panels),
            shared=any(isinstance(panel, Map) and panel.limits for panel in panels),
            reasons=crashes[:REASONS],
            others=crashes[REASONS:],
            live=live,
            many=sweep.total > LIVE,
            scripts=[Markup(text)] if live else [],
        )
    )


def _ordered(sweep: "Sweep") -> dict[str, int]:
    """The counts that are not zero, in the order in which verdicts are always named."""
    return {word: sweep.counts[word] for word in _pages.WORDS if sweep.counts.get(word)}


def _gaps(panel: Map) -> bool:
    return not bool(np.isfinite(np.asarray(panel.values, float)).all())


def _legend(panel: Panel | Map) -> Any:
    """Words, sign, kind and colour of what a figure shows, in the theme's colours."""
    if isinstance(panel, Map):
        values = np.asarray(panel.values, float)
        for i, (word, (colour, sign)) in enumerate(
            zip(panel.words, named(panel.words), strict=True)
        ):
            if np.any(values == i):
                yield word.replace("-", " "), sign, "cell", theme(colour)
        if _gaps(panel):
            yield "no value", "", "cell gap", theme(GAP)
    for curve in panel.curves:
        if curve.label:
            yield (
                curve.label,
                "",
                "line" if curve.kind != "dashed" else "dashed",
                theme(blend(curve.role, curve.shade)),
            )


def _unit(panel: Panel | Map) -> str:
    """What the colours of a map of numbers mean."""
    return panel.label if isinstance(panel, Map) and not panel.words else ""
