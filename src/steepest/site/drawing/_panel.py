"""One panel of curves on a matplotlib axes."""

import textwrap
from typing import Any

import numpy as np

from steepest.core.panels import Curve, Map, Panel

from ._axes import limits, thin, ticks, valid
from ._colours import DASHES, MARKERS, PALE, SERIES, Detail, blend
from ._legend import heading


def panel_axes(ax: Any, panel: Panel, detail: Detail) -> int:
    """Draw a panel; return how many lines its legend has."""
    ax.set(xscale=panel.xscale, yscale=panel.yscale)
    ax.set(
        xlabel=textwrap.fill(panel.x, 52), ylabel=textwrap.fill(panel.y, 22 if detail.bare else 38)
    )
    drawn = [
        curve_line(ax, curve, panel, detail, series)
        for curve, series in zip(panel.curves, _places(panel), strict=True)
    ]
    if not any(drawn):
        ax.text(
            0.5, 0.5, "no finite value to show", ha="center", va="center", transform=ax.transAxes
        )
    if panel.xlim:
        ax.set_xlim(*limits(panel.xlim, [curve.x for curve in panel.curves], panel.xscale))
    if panel.ylim:
        ax.set_ylim(*limits(panel.ylim, [curve.y for curve in panel.curves], panel.yscale))
    for axis in (ax.xaxis, ax.yaxis):
        ticks(axis, detail.ticks)
    if detail.bare:
        return 0
    ax.grid(True)
    return heading(ax, panel.title, detail)


def _places(panel: Panel) -> list[int]:
    """Number the measured curves that have a name; all others share the first place."""
    places = []
    named = 0
    for curve in panel.curves:
        counts = curve.role == "observed" and bool(curve.label)
        places.append(named if counts else 0)
        named += counts
    return places


def curve_line(ax: Any, curve: Curve, panel: Panel | Map, detail: Detail, series: int = 0) -> bool:
    """Draw one curve, over a map with a pale outline; say whether there was anything to draw.

    Args:
        ax: where it is drawn.
        curve: what is drawn.
        panel: of which it is a part.
        detail: how much of it.
        series: its place among the measured curves of the panel, which decides its marker.
    """
    y = np.atleast_2d(np.asarray(curve.y, float))
    x = np.broadcast_to(np.asarray(curve.x, float), y.shape)
    x = valid(x, panel.xscale)
    y = valid(y, panel.yscale)
    some = bool(np.any(np.isfinite(x) & np.isfinite(y)))
    looks = look(curve, series) | (_outline() if isinstance(panel, Map) else {})
    many = len(y)
    if curve.label:
        ax.plot([], [], label=curve.label if some else f"{curve.label} (not finite)", **looks)
    if many > 1:
        rows = np.unique(np.linspace(0, many - 1, min(many, detail.seeds)).round().astype(int))
        x = x[rows]
        y = y[rows]
        looks |= {"linewidth": 0.8, "alpha": float(np.clip(1.8 / np.sqrt(len(rows)), 0.3, 0.85))}
    limit = detail.points if many == 1 else max(48, 6 * detail.points // len(y))
    if some:
        for row_x, row_y in zip(x, y, strict=True):
            row_x, row_y = thin(row_x, row_y, limit, panel.xscale == "log")
            drawn = np.pad(np.isfinite(row_x) & np.isfinite(row_y), 1)
            alone = np.flatnonzero(
                drawn[1:-1] & ~drawn[:-2] & ~drawn[2:]
            )  # between gaps: no line would show it
            dots = (
                {"marker": "o", "markersize": 2.5, "markevery": list(alone)} if alone.size else {}
            )
            ax.plot(row_x, row_y, **({} if "marker" in looks else dots), **looks)
    return some


def look(curve: Curve, series: int = 0) -> dict[str, Any]:
    """Colour, line and marker of a curve, as matplotlib names them; measured ones have markers by their place."""
    colour = blend(curve.role, curve.shade)
    marker = SERIES[series % len(SERIES)] if curve.role == "observed" else MARKERS[curve.role]
    if curve.kind == "points":
        hollow = (
            {"markerfacecolor": "none", "markeredgewidth": 1.1} if curve.role == "predicted" else {}
        )
        points = {
            "linestyle": "none",
            "marker": marker,
            "markersize": 4.6,
            "markeredgewidth": 0,
        }
        return {"color": colour, **points, **hollow}
    line = {
        "color": colour,
        "linestyle": DASHES[curve.role] if curve.kind == "dashed" else "-",
        "markeredgewidth": 0,
    }
    if curve.kind == "steps":
        line["drawstyle"] = "steps-post"
    if (
        np.ndim(curve.y) == 1
        and np.size(curve.y) <= 16
        and curve.role == "observed"
        and curve.kind == "line"
    ):
        line |= {"marker": marker, "markersize": 3.2}
    return line


def _outline() -> dict[str, Any]:
    from matplotlib.patheffects import Normal, Stroke

    return {
        "path_effects": [Stroke(linewidth=4, foreground=PALE, alpha=0.85), Normal()],
        "zorder": 4,
    }
