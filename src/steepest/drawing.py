"""Panels drawn with matplotlib: figures for notebooks, light and deterministic SVG for pages.

Curves are thinned before they are drawn (:func:`thin`), so that a page stays small however long the run was; values
that are not finite, or not positive on a logarithmic axis, leave gaps.
"""

import io
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steepest.panels import Curve, Panel

# One colour a role, readable on white; pages replace INK, GRID and these by variables of the theme.
COLOURS = {"observed": "#1f6fb4", "predicted": "#c4451c", "rival": "#707070", "context": "#8a63b8"}
INK = "#222221"
GRID = "#dcdcda"
# Families of curves go from the role's colour towards a greener or lighter relative of it.
FAMILY = {"observed": "#2fa37c", "predicted": "#c18a10", "rival": "#a3a3a3", "context": "#c65d9e"}
# What differs between the roles besides colour, for print and for those who see colours differently.
DASHES = {"predicted": (0, (4.5, 2)), "rival": (0, (1.2, 1.6)), "context": (0, (6, 2, 1.2, 2)), "observed": "--"}
MARKERS = {"observed": "o", "predicted": "D", "rival": "X", "context": "s"}


@dataclass(frozen=True)
class Detail:
    """How much of a panel is drawn.

    Attributes:
        size: width and height in inches.
        points: most points of a lone curve; curves of many seeds share six times as many.
        seeds: most seeds drawn of one curve.
        ticks: most labelled ticks of an axis.
        bare: leave out title, legend and grid.
    """

    size: tuple[float, float]
    points: int
    seeds: int
    ticks: int
    bare: bool = False


FULL = Detail((4.2, 3.1), points=400, seeds=30, ticks=6)
SMALL = Detail((3.2, 1.9), points=60, seeds=3, ticks=4, bare=True)

STYLE: dict[Any, Any] = {
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color"), INK),
    "svg.hashsalt": "steepest", "svg.fonttype": "none",
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 9.5,
    "axes.titlesize": 10, "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.linewidth": 0.7, "xtick.labelsize": 8.5, "ytick.labelsize": 8.5,
    "grid.color": GRID, "grid.linewidth": 0.6, "lines.linewidth": 1.5,
    "axes.axisbelow": True, "legend.frameon": False, "legend.fontsize": 8.5,
}  # fmt: skip


def draw(panels: Sequence[Panel]) -> Any:
    """A matplotlib ``Figure`` with one axes a panel, at most two in a row.

    It belongs to no window system: show it in a notebook, or save it with ``figure.savefig``.
    """
    return _draw(panels, FULL)


def svg(panels: Sequence[Panel]) -> str:
    """The figure as SVG text: the same panels give the same bytes."""
    return _svg(panels, FULL)


def thumbnail(panel: Panel) -> str:
    """A small SVG of one panel for a card: curves and axes, no title and no legend."""
    return _svg([panel], SMALL)


def thin(x: np.ndarray, y: np.ndarray, limit: int, log: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """At most ``limit`` points that draw like all of them.

    The horizontal axis, in its own scale, is cut into equal bins, and each keeps its first, last, lowest and highest
    point and one gap (NaN). Where x is not sorted, the points are a cloud or a closed path and are thinned evenly.

    Args:
        x: abscissae, shape ``(points,)``, positive or NaN where ``log`` is set.
        y: ordinates, shape ``(points,)``.
        limit: most points, at least 5.
        log: whether the horizontal axis is logarithmic.

    >>> x = np.arange(100_000.0)
    >>> a, b = thin(x, np.where(x == 77_777, 5.0, 0.0), 400)
    >>> len(a) <= 400, float(b.max())
    (True, 5.0)
    """
    if len(x) <= limit:
        return x, y
    place = np.log10(x) if log else x
    known = np.isfinite(place)
    place = place[known]
    if place.size < limit or np.any(np.diff(place) < 0):
        keep = np.unique(np.linspace(0, len(x) - 1, limit).round().astype(int))
        return x[keep], y[keep]
    x, y = x[known], y[known]
    for each in (2, 3, 4, 5):  # a smooth curve needs two points a bin, a rough one with gaps five
        edges = np.linspace(place[0], place[-1], max(1, limit // each) + 1)[1:-1]
        bins = [part for part in np.split(np.arange(len(x)), np.searchsorted(place, edges)) if part.size]
        keep = np.unique(np.concatenate([_telling(y, part) for part in bins]))
        if len(keep) <= limit:
            break
    return x[keep], y[keep]


def power(value: float, digits: int = 4) -> str:
    """A number as a power of ten, in characters that every font has.

    >>> power(1e-8), power(250000.0), power(1.0)
    ('10⁻⁸', '2.5×10⁵', '1')
    """
    if value == 0 or not np.isfinite(value):
        return "0" if value == 0 else str(value)
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    front, exponent = f"{float(mantissa):g}".replace("-", "−"), str(int(exponent))
    if exponent == "0":
        return front
    ten = "10" if exponent == "1" else "10" + exponent.translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return {"1": ten, "−1": f"−{ten}"}.get(front, f"{front}×{ten}")


def _draw(panels: Sequence[Panel], detail: Detail) -> Any:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    columns = min(2, max(1, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    with rc_context(STYLE):
        size = (detail.size[0] * columns, detail.size[1] * rows)
        figure = Figure(figsize=size, layout="constrained")
        figure.patch.set_alpha(0)
        axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
        legends = [_panel(ax, panel, detail) for ax, panel in zip(axes, panels, strict=False)]
        figure.set_figheight(size[1] + 0.18 * rows * max([0, *(lines - 2 for lines in legends)]))
        for ax in axes[len(panels) :]:
            ax.set_axis_off()
        if not panels:
            axes[0].text(0.5, 0.5, "nothing was observed", ha="center", transform=axes[0].transAxes)
    return figure


def _svg(panels: Sequence[Panel], detail: Detail) -> str:
    from matplotlib import rc_context

    text = io.StringIO()
    with rc_context(STYLE):
        figure = _draw(panels, detail)
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    # two decimals, a hundredth of a point, in every coordinate
    rounded = lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip(".")
    return re.sub(r"<[^>]*>", lambda tag: re.sub(r"-?\d+\.\d{3,}", rounded, tag[0]), text.getvalue())


def _panel(ax: Any, panel: Panel, detail: Detail) -> int:
    ax.set(xscale=panel.xscale, yscale=panel.yscale)
    ax.set(xlabel=textwrap.fill(panel.x, 52), ylabel=textwrap.fill(panel.y, 22 if detail.bare else 38))
    drawn = [_curve(ax, curve, panel, detail) for curve in panel.curves]
    if not any(drawn):
        ax.text(0.5, 0.5, "no finite value to show", ha="center", va="center", transform=ax.transAxes)
    if panel.xlim:
        ax.set_xlim(*_limits(panel.xlim, [curve.x for curve in panel.curves], panel.xscale))
    if panel.ylim:
        ax.set_ylim(*_limits(panel.ylim, [curve.y for curve in panel.curves], panel.yscale))
    for axis in (ax.xaxis, ax.yaxis):
        _ticks(axis, detail.ticks)
    if detail.bare:
        return 0
    ax.grid(True)
    return _heading(ax, panel.title, detail)


def _curve(ax: Any, curve: Curve, panel: Panel, detail: Detail) -> bool:
    """Draw one curve; say whether there was anything to draw."""
    y = np.atleast_2d(np.asarray(curve.y, float))
    x = np.broadcast_to(np.asarray(curve.x, float), y.shape)
    x, y = _valid(x, panel.xscale), _valid(y, panel.yscale)
    some = bool(np.any(np.isfinite(x) & np.isfinite(y)))
    look, many = _look(curve), len(y)
    if curve.label:
        ax.plot([], [], label=curve.label if some else f"{curve.label} (not finite)", **look)
    if many > 1:
        rows = np.unique(np.linspace(0, many - 1, min(many, detail.seeds)).round().astype(int))
        x, y = x[rows], y[rows]
        look |= {"linewidth": 0.8, "alpha": float(np.clip(1.8 / np.sqrt(len(rows)), 0.3, 0.85))}
    limit = detail.points if many == 1 else max(48, 6 * detail.points // len(y))
    if some:
        for row_x, row_y in zip(x, y, strict=True):
            row_x, row_y = thin(row_x, row_y, limit, panel.xscale == "log")
            there = np.pad(np.isfinite(row_x) & np.isfinite(row_y), 1)
            alone = np.flatnonzero(there[1:-1] & ~there[:-2] & ~there[2:])  # between gaps: no line would show it
            dots = {"marker": "o", "markersize": 2.5, "markevery": list(alone)} if alone.size else {}
            ax.plot(row_x, row_y, **({} if "marker" in look else dots), **look)
    return some


def _limits(
    given: tuple[float | None, float | None], values: list[Any], scale: str
) -> tuple[float | None, float | None]:
    """The limits of an axis; an end left open goes a little beyond the values that the other end lets in."""
    low, high = given
    flat = np.concatenate([_valid(np.ravel(np.asarray(part, float)), scale) for part in values])
    inside = flat[(flat >= (-np.inf if low is None else low)) & (flat <= (np.inf if high is None else high))]
    if inside.size == 0 or (low is None) == (high is None):
        return given
    to, back = (np.log10, lambda v: 10.0**v) if scale == "log" else (np.asarray, float)
    start, end = to(inside.min() if low is None else low), to(inside.max() if high is None else high)
    beyond = 0.05 * (end - start)
    return (back(start - beyond) if low is None else low), (back(end + beyond) if high is None else high)


def _valid(values: np.ndarray, scale: str) -> np.ndarray:
    """The values, with NaN for what the axis cannot show."""
    return np.where(np.isfinite(values) & ((scale == "linear") | (values > 0)), values, np.nan)


def _look(curve: Curve) -> dict[str, Any]:
    colour = blend(curve.role, curve.shade)
    if curve.kind == "points":
        hollow = {"markerfacecolor": "none", "markeredgewidth": 1.1} if curve.role == "predicted" else {}
        points = {"linestyle": "none", "marker": MARKERS[curve.role], "markersize": 4.6, "markeredgewidth": 0}
        return {"color": colour, **points, **hollow}
    look = {"color": colour, "linestyle": DASHES[curve.role] if curve.kind == "dashed" else "-", "markeredgewidth": 0}
    if curve.kind == "steps":
        look["drawstyle"] = "steps-post"
    if np.ndim(curve.y) == 1 and np.size(curve.y) <= 16 and curve.role == "observed" and curve.kind == "line":
        look |= {"marker": "o", "markersize": 3.2}
    return look


def blend(role: str, shade: float) -> str:
    """A role's colour mixed with its relative: shade 0 is the role's own, steps of a hundredth."""
    first, last, shade = COLOURS[role], FAMILY[role], round(float(shade), 2)
    mixed = (int(first[i : i + 2], 16) * (1 - shade) + int(last[i : i + 2], 16) * shade for i in (1, 3, 5))
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


def _telling(y: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Indices of the first, last, lowest and highest point of a bin, and of one gap."""
    values, gaps = y[part], part[np.isnan(y[part])]
    ends = [part[0], part[-1], *gaps[:1]]
    if gaps.size < part.size:
        ends += [part[np.nanargmin(values)], part[np.nanargmax(values)]]
    return np.array(ends)


def _ticks(axis: Any, most: int) -> None:
    """Few ticks at round numbers, in plain characters."""
    from matplotlib import ticker

    low, high = sorted(axis.get_view_interval())
    if axis.get_scale() == "log":
        decades, plain = np.log10(high / low), low >= 1e-3 and high <= 2e4
        subs = (1,) if decades > 2.5 else (1, 3) if decades > 1.4 else (1, 2, 5)
        few = ticker.MaxNLocator(most - 1, steps=[1, 2, 5, 10])
        minor = ticker.LogLocator(subs=range(2, 10)) if decades <= 4 < most else ticker.NullLocator()
        axis.set_major_locator(few if decades < 0.6 else ticker.LogLocator(subs=subs, numticks=most))
        axis.set_major_formatter(lambda value, _: f"{value:g}" if plain else power(value))
        axis.set_minor_locator(minor)
        axis.set_minor_formatter(ticker.NullFormatter())
        return
    axis.set_major_locator(ticker.MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))
    if 1e-3 <= max(abs(low), abs(high)) < 1e5:
        axis.set_major_formatter(ticker.ScalarFormatter(useOffset=False, useMathText=False))
    else:
        axis.set_major_formatter(lambda value, _: power(value, 6))


def _heading(ax: Any, title: str, detail: Detail) -> int:
    """The title, and below it the legend in as few rows as fit, never over a curve; returns how many."""
    handles, labels = ax.get_legend_handles_labels()
    labels, rows = [textwrap.fill(label, 44) for label in labels], 0
    if labels:
        columns = next(n for n in range(len(labels), 0, -1) if n == 1 or _width(labels, n) < 60 * detail.size[0])
        per = -(-len(labels) // columns)
        columns = -(-len(labels) // per)
        rows = sum(max(label.count("\n") + 1 for label in labels[i::per]) for i in range(per))
        place = {"loc": "lower left", "bbox_to_anchor": (-0.01, 1), "borderaxespad": 0.2, "borderpad": 0.2}
        gaps = {"columnspacing": 1.4, "handlelength": 2, "labelspacing": 0.25}
        ax.legend(handles, labels, ncols=columns, **place, **gaps).set_in_layout(False)  # the title makes room for it
    # a blank title of no height keeps the legend's room
    ax.set_title(textwrap.fill(title, 46) or " ", pad=12.2 * rows + 6 * bool(title), fontsize=10 if title else 0.5)
    return rows


def _width(labels: Sequence[str], columns: int) -> float:
    """How wide a legend is, in points: text, handle and gaps of every column."""
    from matplotlib.textpath import TextPath

    wide = [TextPath((0, 0), label.replace("\n", "  "), size=8.5).get_extents().width for label in labels]
    return sum(max(column) + 36 for column in np.array_split(wide, columns))
