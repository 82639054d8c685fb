"""One panel of curves on a matplotlib axes."""

import textwrap
from typing import Any

import numpy as np

from steepest.core.panels import Curve, Map, Panel

from ._axes import limits, thin, ticks, valid
from ._colours import DASHES, MARKERS, PALE, SERIES, Detail, blend
from ._legend import heading

LAYERS = {"rival": 2.0, "context": 2.1, "predicted": 2.2, "observed": 2.3}
"""Which role lies over which: data over all."""
ABOVE_ALL = 2.4
COVERED = {"linewidth": 2.8, "alpha": 0.6}
"""So wide that a measured line of 1.5 points leaves both edges of it free, and paler for it."""
LETTERS_BESIDE = 14
"""Most letters of a line of a name that is written at the end of its curve."""
LINE = 11.0
"""Points between two such lines."""
HEIGHT = 0.75
"""Share of a figure's height that its axes have, about."""
FARTHEST = 0.13  # of the height of the axes, from the end of a curve to its name
FULLEST = 0.85  # of the height of the axes, for all such names together
RIGHTMOST = 0.85  # of the width, from where on a curve ends at the right


def panel_axes(ax: Any, panel: Panel, detail: Detail) -> int:
    """Draw a panel; return how many lines its legend has."""
    ax.set(xscale=panel.xscale, yscale=panel.yscale)
    ax.set_xlabel(textwrap.fill(panel.x, detail.letters_across(52)))
    ax.set_ylabel(textwrap.fill(panel.y, detail.letters_up(38)))
    places = _places(panel)
    for curve, series in zip(panel.curves, places, strict=True):
        curve_line(ax, curve, panel, detail, series)
    if not any(visible(curve, panel) for curve in panel.curves):
        ax.text(
            0.5, 0.5, "no finite value to show", ha="center", va="center", transform=ax.transAxes
        )
    if panel.xlim:
        ax.set_xlim(*limits(panel.xlim, [curve.x for curve in panel.curves], panel.xscale))
    if panel.ylim:
        ax.set_ylim(*limits(panel.ylim, [curve.y for curve in panel.curves], panel.yscale))
    for axis in (ax.xaxis, ax.yaxis):
        ticks(axis, detail.ticks)
    if same_units(panel):
        ax.set_aspect("equal")
    beside = named_beside(ax, panel, detail)
    for place, (curve, series) in enumerate(zip(panel.curves, places, strict=True)):
        if place not in beside:
            name_above(ax, curve, panel, series)
    ax.grid(not detail.bare)
    return heading(ax, "" if detail.bare else panel.title, detail)


def same_units(panel: Panel) -> bool:
    """Whether both axes have the same ends: then a circle is to be seen as a circle."""
    linear = panel.xscale == panel.yscale == "linear"
    return linear and panel.xlim is not None and panel.xlim == panel.ylim


def _places(panel: Panel) -> list[int]:
    """Number the measured curves that have a name; all others share the first place."""
    places = []
    named = 0
    for curve in panel.curves:
        counts = curve.role == "observed" and bool(curve.label)
        places.append(named if counts else 0)
        named += counts
    return places


def visible(curve: Curve, panel: Panel | Map) -> bool:
    """Whether the axes of a panel can show any point of a curve."""
    x, y = _shown(curve, panel)
    return bool(np.any(np.isfinite(x) & np.isfinite(y)))


def _shown(curve: Curve, panel: Panel | Map) -> tuple[np.ndarray, np.ndarray]:
    """Return abscissae and ordinates, ``(rows, points)``, with NaN for what the axes cannot show."""
    y = np.atleast_2d(np.asarray(curve.y, float))
    x = np.broadcast_to(np.asarray(curve.x, float), y.shape)
    return valid(x, panel.xscale), valid(y, panel.yscale)


def name_above(ax: Any, curve: Curve, panel: Panel | Map, series: int = 0) -> None:
    """Give a curve that has a name its line in the legend."""
    if curve.label:
        label = curve.label if visible(curve, panel) else f"{curve.label} (not finite)"
        ax.plot([], [], label=label, **_dressed(curve, panel, series))


def named_beside(ax: Any, panel: Panel, detail: Detail) -> set[int]:
    """Write names at the right ends of their lines, where all of them have room there.

    A family of lines needs it most, as its colours are near each other. All names of a panel are written so, or those
    of what was measured, or none: names in two places are looked for in both.

    Returns:
        the places of the curves that are named so; they need no line in the legend.
    """
    named = {i: curve for i, curve in enumerate(panel.curves) if curve.label}
    measured = {i: curve for i, curve in named.items() if curve.role == "observed"}
    line = LINE / (72 * HEIGHT * detail.size[1])
    for group in (named, measured):
        labels = {i: _lines_beside(curve.label) for i, curve in group.items()}
        if len(group) < 2 or not all(labels.values()):
            continue
        ends = {i: _end_on_axes(ax, curve, panel) for i, curve in group.items()}
        heights = _apart(ends, {i: line * len(labels[i]) for i in group})
        if heights:
            for i, curve in group.items():
                _write_beside(ax, curve, "\n".join(labels[i]), ends[i], heights[i])
            return set(group)
    return set()


def _lines_beside(label: str) -> list[str]:
    """Return the lines of a name beside its curve; none where it is too long for two short lines."""
    lines = textwrap.wrap(label, LETTERS_BESIDE, break_long_words=False)
    fits = len(lines) <= 2 and all(len(line) <= LETTERS_BESIDE for line in lines)
    return lines if fits else []


def _apart(ends: dict[int, tuple[float, float]], sizes: dict[int, float]) -> dict[int, float]:
    """Return heights at which no name covers another, as near to the ends of their curves as can be.

    Args:
        ends: where each curve ends, in shares of the axes.
        sizes: how high each name is, in shares of the axes.

    Returns:
        a height by curve; none where a curve ends far from the right, or a name would be far from its curve.
    """
    places = sorted(ends, key=lambda i: ends[i][1])
    true = np.array([ends[i][1] for i in places])
    if not np.isfinite(true).all() or min(ends[i][0] for i in places) < RIGHTMOST:
        return {}
    tall = np.array([sizes[i] for i in places])
    if tall.sum() > FULLEST:
        return {}
    above = np.concatenate([[0.0], np.cumsum((tall[1:] + tall[:-1]) / 2)])
    heights = _rising(true - above) + above
    far = np.abs(heights - true).max() > FARTHEST
    inside = heights[0] >= -tall[0] and heights[-1] <= 1 + tall[-1]
    return {} if far or not inside else dict(zip(places, map(float, heights), strict=True))


def _rising(values: np.ndarray) -> np.ndarray:
    """Return the nearest values that do not fall, in least squares: those that would are put at their mean."""
    blocks: list[list[float]] = []
    for value in values:
        blocks.append([float(value)])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    return np.concatenate([np.full(len(block), np.mean(block)) for block in blocks])


def _write_beside(
    ax: Any, curve: Curve, name: str, end: tuple[float, float], height: float
) -> None:
    points_up = 72 * ax.figure.get_figheight() * ax.get_position().height
    ax.annotate(
        name,
        end,
        (5, points_up * (height - end[1])),
        xycoords="axes fraction",
        textcoords="offset points",
        color=blend(curve.role, curve.shade),
        fontsize=8.5,
        linespacing=1,
        va="center",
        annotation_clip=False,
    )


def _end_on_axes(ax: Any, curve: Curve, panel: Panel) -> tuple[float, float]:
    """Return where a curve ends, in shares of the axes; NaN where it has no end."""
    across, up = ax.transLimits.transform(
        ax.transScale.transform(_end(curve, panel, ax.get_xlim()))
    )
    return float(across), float(up)


def _end(curve: Curve, panel: Panel, across: tuple[float, float]) -> tuple[float, float]:
    """Return the last point of a curve between the ends of the axes, of many rows their median; NaN without any."""
    x, y = _shown(curve, panel)
    least, most = across
    finite = np.isfinite(y).any(0) & np.isfinite(x[0]) & (x[0] >= least) & (x[0] <= most)
    between = np.flatnonzero(finite)
    if not between.size:
        return np.nan, np.nan
    return float(x[0, between[-1]]), float(np.nanmedian(y[:, between[-1]]))


def curve_line(ax: Any, curve: Curve, panel: Panel | Map, detail: Detail, series: int = 0) -> None:
    """Draw one curve, over a map with a pale outline.

    Args:
        ax: where it is drawn.
        curve: what is drawn.
        panel: of which it is a part.
        detail: how much of it.
        series: its place among the measured curves of the panel, which decides its marker.
    """
    x, y = _shown(curve, panel)
    looks = _dressed(curve, panel, series)
    many = len(y)
    if many > 1:
        rows = np.unique(np.linspace(0, many - 1, min(many, detail.seeds)).round().astype(int))
        x = x[rows]
        y = y[rows]
        looks |= {"linewidth": 0.8, "alpha": float(np.clip(1.8 / np.sqrt(len(rows)), 0.3, 0.85))}
    limit = detail.points if many == 1 else max(48, 6 * detail.points // len(y))
    if visible(curve, panel):
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


def _dressed(curve: Curve, panel: Panel | Map, series: int) -> dict[str, Any]:
    """Return the look of a curve in its panel: data lie over predictions, which are wider where a line covers them."""
    if isinstance(panel, Map):
        return look(curve, series) | _outline()
    looks = look(curve, series) | {"zorder": LAYERS[curve.role]}
    if curve.role == "predicted" and curve.kind == "points":
        looks["zorder"] = ABOVE_ALL  # hollow: what was measured is seen inside
    elif curve.role == "predicted" and any(_covers(data) for data in panel.curves):
        looks |= COVERED
    return looks


def _covers(curve: Curve) -> bool:
    return curve.role == "observed" and curve.kind != "points"


def look(curve: Curve, series: int = 0) -> dict[str, Any]:
    """Colour, line and marker of a curve, as matplotlib names them; measured ones have markers by their place."""
    colour = blend(curve.role, curve.shade)
    marker = SERIES[series % len(SERIES)] if curve.role == "observed" else MARKERS[curve.role]
    if curve.kind == "points":
        hollow = (
            {"markerfacecolor": "none", "markeredgewidth": 1.1, "markersize": 7}
            if curve.role == "predicted"
            else {}
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
