"""One map on a matplotlib axes: cells or points of colour, what the colours mean, curves over them."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from steepest.core.panels import Map

from ._axes import ticks
from ._cells import SEAM, around, beyond, cleaned, edges, level, runs, span
from ._colours import GAP, GAP_LINE, INK, LEVELS, MARK, Detail, named, ramp
from ._legend import heading
from ._panel import curve_line, name_above

NO_VALUE = "no value"
CELLS = 8_000
"""Maps of more stretches of one colour are drawn as pixels."""
SIGN = 5.5  # points; a cell has room for a sign where it is half as large again
# The part of a figure's width and height that its axes fill, near enough to tell whether a sign fits.
SHARE = (0.72, 0.6)


def map_axes(ax: Any, panel: Map, detail: Detail) -> int:
    """Draw a map; return how many lines its legend has.

    Raises:
        ValueError: where shapes do not fit, or a category has no word.
    """
    across, up, values = cleaned(panel)
    ax.set(xscale=panel.xscale, yscale=panel.yscale)
    ax.set_xlabel(textwrap.fill(panel.x, detail.letters_across(46)))
    ax.set_ylabel(textwrap.fill(panel.y, detail.letters_up(38)))
    ax.spines[:].set_visible(True)
    if values.size:
        colours = [colour for colour, _ in named(panel.words)] if panel.words else ramp()
        levels = level(panel, values, LEVELS)
        if values.ndim == 2:
            _grid(ax, panel, (across, up), levels, colours)
        else:
            _scattered(ax, panel, (across, up), levels, colours, 60 if detail.bare else 90)
        if panel.words and values.ndim == 2 and not detail.bare:
            _signs(ax, panel, (across, up), values, detail)
    if not np.isfinite(values).any():
        ax.text(
            0.5,
            0.5,
            "no finite value to show",
            ha="center",
            va="center",
            transform=ax.transAxes,
            zorder=5,
        )
    for curve in panel.curves:
        curve_line(ax, curve, panel, detail)
        name_above(ax, curve, panel)
    for axis in (ax.xaxis, ax.yaxis):
        ticks(axis, detail.ticks)
    if detail.bare:
        return 0
    if not panel.words and np.isfinite(values).any():
        _bar(ax, panel, detail)
    return heading(ax, panel.title, detail)


def _grid(
    ax: Any,
    panel: Map,
    places: tuple[np.ndarray, np.ndarray],
    levels: np.ndarray,
    colours: list[str],
) -> None:
    """Every cell as part of one path for its colour; each path has a thin edge of its own colour against seams."""
    x = edges(places[0], panel.xscale)
    y = edges(places[1], panel.yscale)
    paths = runs(levels)
    ax.set_xlim(x[0], x[-1])
    ax.set_ylim(y[0], y[-1])
    if len(paths) > CELLS:
        _pixels(ax, panel, (x, y), levels, colours)
        return
    boxes = np.stack([x[paths[:, 1]], x[paths[:, 2]], y[paths[:, 0]], y[paths[:, 0] + 1]], axis=1)
    for one in _last(np.unique(paths[:, 3])):
        mine = boxes[paths[:, 3] == one]
        label = NO_VALUE if one < 0 else _name(panel, one)
        ax.add_patch(_rectangles(mine, GAP if one < 0 else colours[one], label))
    rows, columns = np.nonzero(levels < 0)
    gap = [np.stack([x[columns], x[columns + 1], np.full(columns.size, np.nan)], 1).ravel()]
    gap += [np.stack([y[rows], y[rows + 1], np.full(rows.size, np.nan)], 1).ravel()]
    if rows.size:
        ax.plot(*gap, color=GAP_LINE, linewidth=0.8, zorder=2, solid_capstyle="butt")


def _pixels(
    ax: Any, panel: Map, ends: tuple[np.ndarray, np.ndarray], levels: np.ndarray, colours: list[str]
) -> None:
    """Very many cells as a picture of pixels inside of the figure, where paths would take megabytes."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Rectangle

    shown = ListedColormap(colours).with_extremes(bad=GAP)
    look = {
        "cmap": shown,
        "vmin": -0.5,
        "vmax": len(colours) - 0.5,
        "rasterized": True,
        "zorder": 1,
    }
    ax.pcolormesh(*ends, np.ma.masked_less(levels, 0), shading="flat", **look)
    for one in _last(np.unique(levels)):  # what the legend reads
        label, colour = (NO_VALUE, GAP) if one < 0 else (_name(panel, one), colours[one])
        ax.add_patch(Rectangle((ends[0][0], ends[1][0]), 0, 0, fc=colour, ec=colour, label=label))


def _last(levels: np.ndarray) -> np.ndarray:
    """What has no value comes behind what has one."""
    return np.r_[levels[levels >= 0], levels[levels < 0]]


def _rectangles(boxes: np.ndarray, colour: str, label: str = "") -> Any:
    """A patch of left, right, bottom and top, shape ``(rectangles, 4)``."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    corners = boxes[:, [[0, 2], [1, 2], [1, 3], [0, 3], [0, 2]]].reshape(-1, 2)
    codes = np.tile(
        [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(boxes)
    )
    return PathPatch(
        Path(corners, codes),
        fc=colour,
        ec=colour,
        linewidth=SEAM,
        label=label,
        zorder=1,
        clip_on=False,
    )


def _scattered(
    ax: Any,
    panel: Map,
    places: tuple[np.ndarray, np.ndarray],
    levels: np.ndarray,
    colours: list[str],
    room: float,
) -> None:
    """A marker a point, smaller where there are many; crosses where there is no value."""
    size = float(np.clip(room / np.sqrt(levels.size), 2.5, room / 11))
    for one in _last(np.unique(levels)):
        mine = levels == one
        look: dict[str, Any] = {
            "marker": "o",
            "color": colours[one],
            "markeredgecolor": INK,
            "markeredgewidth": 0.4,
        }
        if one < 0:
            look = {"marker": "x", "color": GAP_LINE, "markeredgewidth": 1.2}
        label = (NO_VALUE if one < 0 else _name(panel, one)) or None
        ax.plot(
            places[0][mine],
            places[1][mine],
            linestyle="none",
            markersize=size,
            label=label,
            zorder=3,
            **look,
        )
    ax.set_xlim(around(places[0], panel.xscale))
    ax.set_ylim(around(places[1], panel.yscale))


def _name(panel: Map, one: int) -> str:
    """What a category is called in the legend: its sign, and its word without hyphens."""
    return (
        f"{named(panel.words)[one][1]} {panel.words[one].replace('-', ' ')}" if panel.words else ""
    )


def _signs(
    ax: Any, panel: Map, places: Sequence[np.ndarray], values: np.ndarray, detail: Detail
) -> None:
    """The sign of its category in every cell that has room for it."""
    room = []
    for place, scale, inches, share in zip(
        places, (panel.xscale, panel.yscale), detail.size, SHARE, strict=True
    ):
        ends = edges(place, scale)
        ends = np.log10(ends) if scale == "log" else ends
        room.append(72 * inches * share * np.diff(ends) / (ends[-1] - ends[0]) >= 1.5 * SIGN)
    for one, (_, sign) in enumerate(named(panel.words)):
        rows, columns = np.nonzero((values == one) & room[0] & room[1][:, None])
        if rows.size:
            middle = [
                _middle(place, scale)
                for place, scale in zip(places, (panel.xscale, panel.yscale), strict=True)
            ]
            look = {
                "marker": _outline_of(sign),
                "markersize": SIGN,
                "color": MARK,
                "markeredgewidth": 0,
            }
            ax.plot(middle[0][columns], middle[1][rows], linestyle="none", zorder=3, **look)


def _middle(place: np.ndarray, scale: str) -> np.ndarray:
    """Where the middle of each cell is seen."""
    ends = edges(place, scale)
    return np.sqrt(ends[1:] * ends[:-1]) if scale == "log" else (ends[1:] + ends[:-1]) / 2


def _outline_of(sign: str) -> Any:
    """A character as a marker, centred."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path
    from matplotlib.textpath import TextPath

    paths = TextPath(
        (0, 0), sign, size=10, prop=FontProperties(family="DejaVu Sans", weight="bold")
    )
    box = paths.get_extents()
    return Path(paths.vertices - [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2], paths.codes)


def _bar(ax: Any, panel: Map, detail: Detail) -> None:
    """Colours and their values beside the map."""
    ends = np.linspace(*span(panel), LEVELS + 1)
    bar = ax.inset_axes([1.03, 0, 0.045, 1])
    for colour, low, high in zip(ramp(), ends[:-1], ends[1:], strict=True):
        bar.add_patch(_rectangles(np.array([[0.0, 1.0, low, high]]), colour))
    bar.set(xlim=(0, 1), ylim=(ends[0], ends[-1]), xticks=[])
    bar.yaxis.tick_right()
    bar.yaxis.set_label_position("right")
    bar.set_ylabel(
        textwrap.fill(
            panel.label + (" (beyond the ends: their colour)" if beyond(panel) else ""),
            detail.letters_up(34),
        )
    )
    bar.spines[:].set_visible(True)
    ticks(bar.yaxis, 5)
