"""Figures and SVG of several panels."""

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from steepest.core.panels import Map, Panel

from ._cells import SEAM
from ._colours import FULL, PAGE, SMALL, STYLE, Detail
from ._labels import settable
from ._map import map_axes
from ._panel import panel_axes

CELL = f"stroke-width: {SEAM};"  # what tells the paths of cells from all others
_RECTANGLE = re.compile(r"M (\S+) (\S+) \nL (\S+) \2 \nL \3 (\S+) \nL \1 \4 \nz\s*")

PIXELS = 200
"""Pixels per inch of what is not drawn as paths."""


def draw(panels: Sequence[Panel | Map]) -> Any:
    """A matplotlib ``Figure`` with one axes a panel, at most two in a row.

    It belongs to no window system: show it in a notebook, or save it with ``figure.savefig``.
    """
    return _draw(panels, FULL)


def svg(panels: Sequence[Panel | Map]) -> str:
    """The figure as SVG text: the same panels give the same bytes."""
    return _svg(panels, FULL)


def page_svg(panel: Panel | Map) -> str:
    """One panel as SVG for a page, which sets the title itself: so narrow that a phone shows its words large enough."""
    return _svg([replace(panel, title="")], PAGE)


def thumbnail(panel: Panel | Map) -> str:
    """A small SVG of one panel for a card: colours, curves with their names and axes, no title."""
    return _svg([panel], SMALL)


@cache
def _figure_class() -> Any:
    """Matplotlib's figure, which a notebook shows without any magic; imported where something is drawn."""
    from matplotlib.figure import Figure

    class InlineFigure(Figure):
        def _repr_png_(self) -> bytes:
            picture = io.BytesIO()
            self.savefig(picture, format="png", dpi=PIXELS // 2)
            return picture.getvalue()

        def _repr_svg_(self) -> str:
            picture = io.StringIO()
            self.savefig(picture, format="svg")
            return picture.getvalue()

    return InlineFigure


def _draw(panels: Sequence[Panel | Map], detail: Detail) -> Any:
    from matplotlib import rc_context

    panels = [settable(panel) for panel in panels]
    columns = min(2, max(1, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    with rc_context(STYLE):
        size = (detail.size[0] * columns, detail.size[1] * rows)
        figure = _figure_class()(figsize=size, layout="constrained")
        figure.patch.set_alpha(0)
        axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
        legends = [_one(ax, panel, detail) for ax, panel in zip(axes, panels, strict=False)]
        figure.set_figheight(size[1] + 0.18 * rows * max([0, *(lines - 2 for lines in legends)]))
        for ax in axes[len(panels) :]:
            ax.set_axis_off()
        if not panels:
            axes[0].text(0.5, 0.5, "nothing was observed", ha="center", transform=axes[0].transAxes)
    return figure


def _svg(panels: Sequence[Panel | Map], detail: Detail) -> str:
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    text = io.StringIO()
    with rc_context(STYLE):
        figure = _draw(panels, detail)
        FigureCanvasSVG(figure)
        # matplotlib draws once to lay out and once more to save; laid out before, it is drawn once
        figure.get_layout_engine().execute(figure)
        figure.set_layout_engine(None)  # "none" leaves an engine that only holds its place
        # only maps of very many cells have pixels
        look = {"metadata": {"Date": None, "Creator": None}, "transparent": True, "dpi": PIXELS}
        figure.savefig(text, format="svg", **look)
    return re.sub(r"<[^>]*>", lambda tag: _light(tag[0]), text.getvalue())


def _light(tag: str) -> str:
    """A tag with a hundredth of a point in its coordinates; cells have a tenth and a third of the letters."""
    cells = CELL in tag
    digits = 1 if cells else 2
    rounded = lambda found: f"{float(found[0]):.{digits}f}".rstrip("0").rstrip(".")
    tag = re.sub(rf"-?\d+\.\d{{{digits + 1},}}", rounded, tag)
    return _RECTANGLE.sub(r"M\1 \2H\3V\4H\1z", tag) if cells else tag


def _one(ax: Any, panel: Panel | Map, detail: Detail) -> int:
    return map_axes(ax, panel, detail) if isinstance(panel, Map) else panel_axes(ax, panel, detail)
