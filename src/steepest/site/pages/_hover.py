"""The figures of a diagram with a pointer that reads values, as bokeh draws them in a browser.

Only a page with a sweep imports bokeh, and only the script in the page shows what is written here: where it cannot,
the static figure stays.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from steepest.core.panels import Curve, Map, Panel
from steepest.site.drawing import (
    GAP,
    GAP_LINE,
    GRID,
    INK,
    MARK,
    PALE,
    blend,
    named,
    power,
    ramp,
    span,
)

from ._figures import theme
from ._sheets import Sheet, Table, sheets
from ._text import number

HEIGHT = 340  # pixels
DASHES = {"predicted": [7, 3], "rival": [2, 3], "context": [9, 3, 2, 3], "observed": [4, 3]}
SIGNS = (24, 18)
"""Columns and rows up to which every cell has room for a sign."""
TOOLS = "pan,box_zoom,wheel_zoom,reset"


def script() -> bytes:
    """The library that draws in the browser, as the installed package brings it along."""
    return (resources.files("bokeh") / "server" / "static" / "js" / "bokeh.min.js").read_bytes()


def live(
    panels: Sequence[Panel | Map], table: Table, labels: Mapping[str, str] | None = None
) -> Markup:
    """What the page's script needs, as JSON that is safe inside of HTML: the document, and the root of each figure.

    The colours in it are names of the theme's; the same panels give the same text.
    """
    from bokeh.document import Document

    document = Document(title="diagrams")
    roots = {}
    for sheet in sheets(panels, table, labels):
        roots |= _maps(sheet)
    for i, panel in enumerate(panels):
        if isinstance(panel, Panel):
            roots[i] = _lines(panel)
    names: dict[str, str] = {}
    for i in sorted(roots):
        document.add_root(roots[i])
    whole = _renamed(document.to_json(deferred=False), names)
    record = {"document": whole, "roots": {f"live-{i}": names[roots[i].id] for i in sorted(roots)}}
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text = re.sub(r'(?<=")#[0-9a-f]{6}(?=")', lambda found: theme(found[0]), text)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)


def _renamed(part: Any, names: dict[str, str]) -> Any:
    """The document with identifiers counted from one, as bokeh counts all that it made since it was imported."""
    if isinstance(part, list | tuple):
        return [_renamed(renderer, names) for renderer in part]
    if not isinstance(part, Mapping):
        return part
    parts = {}
    for key, value in part.items():
        if key == "id" and isinstance(value, str):
            parts[key] = names.setdefault(value, f"m{len(names) + 1}")
        else:
            parts[key] = _renamed(value, names)
    return parts


def _maps(sheet: Sheet) -> dict[int, Any]:
    """A figure for each map of a sheet: they have one source and move together."""
    from bokeh.models import ColumnDataSource, Range1d

    columns: dict[str, Any] = {f"c{i}": values for i, values in enumerate(sheet.columns.values())}
    short = dict(zip(sheet.columns, columns, strict=True))
    for i, panel in sheet.maps.items():
        columns |= _extra(i, panel, sheet)
    source = ColumnDataSource(columns)
    ranges = [Range1d(start=ends[0], end=ends[1]) for ends in (sheet.across, sheet.up)]
    return {i: _map(i, panel, sheet, source, short, ranges) for i, panel in sheet.maps.items()}


def _extra(i: int, panel: Map, sheet: Sheet) -> dict[str, list[Any]]:
    """Strokes over cells without value, and signs in cells of words where there are few."""
    values = sheet.columns[f"value {i}"]
    parts = {}
    if sheet.grid and any(value != value for value in values):
        parts[f"hatch{i}"] = [
            "right_diagonal_line" if value != value else "blank" for value in values
        ]
    if (
        panel.words
        and sheet.grid
        and np.shape(panel.values)[1] <= SIGNS[0]
        and np.shape(panel.values)[0] <= SIGNS[1]
    ):
        signs = [sign for _, sign in named(panel.words)]
        parts[f"sign{i}"] = ["" if value != value else signs[int(value)] for value in values]
    return parts


def _map(
    i: int, panel: Map, sheet: Sheet, source: Any, short: Mapping[str, str], ranges: Sequence[Any]
) -> Any:
    from bokeh.models import BasicTicker, ColorBar, HoverTool, LinearColorMapper

    plot = _figure(panel, ranges)
    for axis, scale, ends in (
        (plot.xaxis, panel.xscale, sheet.across),
        (plot.yaxis, panel.yscale, sheet.up),
    ):
        if scale == "log":
            _decades(axis, ends)
    colours = [colour for colour, _ in named(panel.words)] if panel.words else ramp()
    low, high = (-0.5, len(panel.words) - 0.5) if panel.words else span(panel)
    mapper = LinearColorMapper(palette=colours, low=low, high=high, nan_color=GAP)
    colour = {"field": short[f"value {i}"], "transform": mapper}
    if sheet.grid:
        look: dict[str, Any] = {side: short[side] for side in ("left", "right", "bottom", "top")}
        look |= {"line_color": colour, "line_width": 1.2}
        if f"hatch{i}" in source.data:
            look |= {
                "hatch_pattern": f"hatch{i}",
                "hatch_color": GAP_LINE,
                "hatch_scale": 8,
                "hatch_weight": 1,
            }
        drawn = plot.quad(fill_color=colour, source=source, **look)
        drawn.hover_glyph = None
        if f"sign{i}" in source.data:
            place = {
                "text_align": "center",
                "text_baseline": "middle",
                "text_font_size": "9px",
                "text_color": MARK,
            }
            plot.text(short["x"], short["y"], text=f"sign{i}", source=source, **place)
    else:
        drawn = plot.scatter(
            short["x"],
            short["y"],
            fill_color=colour,
            line_color=INK,
            line_width=0.5,
            size=10,
            source=source,
        )
    for curve in panel.curves:
        _curve(plot, curve, outlined=True)
    tips = _tips([(name, f"@{short[column]}") for name, column in sheet.tips[i]])
    plot.add_tools(HoverTool(renderers=[drawn], tooltips=tips, visible=False))
    if not panel.words:
        look = {
            "major_label_text_color": INK,
            "background_fill_alpha": 0,
            "major_tick_line_color": INK,
        }
        plot.add_layout(
            ColorBar(
                color_mapper=mapper, width=12, ticker=BasicTicker(desired_num_ticks=5), **look
            ),
            "right",
        )
    return plot


def _lines(panel: Panel) -> Any:
    """A figure of curves; the pointer reads the nearest point."""
    from bokeh.models import DataRange1d, HoverTool

    given = [DataRange1d(), DataRange1d()]
    for axis, (low, high) in zip(
        given, (panel.xlim or (None, None), panel.ylim or (None, None)), strict=True
    ):
        axis.update(**{end: at for end, at in (("start", low), ("end", high)) if at is not None})
    plot = _figure(panel, given)
    drawn = [renderer for curve in panel.curves for renderer in _curve(plot, curve)]
    tips = _tips([("", "@name"), (panel.x, "@across"), (panel.y, "@up")])
    plot.add_tools(HoverTool(renderers=drawn, tooltips=tips, visible=False))
    return plot


def _tips(rows: Sequence[tuple[str, str]]) -> str:
    """Words beside columns, in lines that break where a phone ends; a word is never read as a column's name."""
    plain = lambda words: escape(words).replace("@", Markup("&#64;")).replace("$", Markup("&#36;"))
    lines = [
        f'<div><span style="opacity:.65">{plain(words)}</span> {column}</div>'
        for words, column in rows
    ]
    return f'<div style="max-width:15rem;white-space:normal;font:12px/1.4 sans-serif">{"".join(lines)}</div>'


def _figure(panel: Panel | Map, ranges: Sequence[Any]) -> Any:
    """Empty axes in the atlas's colours, as wide as there is room."""
    from bokeh.models import PlainText
    from bokeh.plotting import figure

    plot = figure(
        x_axis_type=panel.xscale, y_axis_type=panel.yscale, height=HEIGHT, sizing_mode="stretch_width", tools=TOOLS,
        active_drag=None, active_scroll=None, toolbar_location="above", background_fill_alpha=0, border_fill_alpha=0,
        outline_line_color=INK, outline_line_alpha=0.4, x_range=ranges[0], y_range=ranges[1],
    )  # fmt: skip
    plot.toolbar.logo = None
    plot.toolbar.autohide = False
    for axis, label in ((plot.xaxis, panel.x), (plot.yaxis, panel.y)):
        axis.axis_label = PlainText(
            text=label
        )  # never TeX, which the library would fetch from outside
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font_size = "12px"
        axis.major_label_text_font_size = "11px"
        axis.axis_label_text_color = axis.major_label_text_color = INK
        axis.axis_line_color = axis.major_tick_line_color = axis.minor_tick_line_color = INK
    plot.grid.grid_line_color = None if isinstance(panel, Map) else GRID
    return plot


def _decades(axis: Any, ends: tuple[float, float]) -> None:
    """Ticks at 1, 2 and 5 times powers of ten, or at powers alone where there are many, in plain numbers."""
    from bokeh.models import BasicTickFormatter, FixedTicker

    first, last = (math.floor(math.log10(end)) for end in ends)
    powers = [10.0**k for k in range(first - 1, last + 3)]
    major = [
        float(f"{m * power:.3g}")
        for power in powers
        for m in ((1, 2, 5) if last - first <= 3 else (1,))
    ]
    minor = [float(f"{m * power:.3g}") for power in powers for m in range(2, 10)]
    axis.ticker = FixedTicker(ticks=major, minor_ticks=minor)
    axis.formatter = BasicTickFormatter(power_limit_low=-3)
    axis.major_label_overrides = {
        tick: f"{tick:g}" if 1e-3 <= tick <= 2e4 else power(tick) for tick in major
    }


def _curve(plot: Any, curve: Curve, outlined: bool = False) -> list[Any]:
    """Draw a curve, or each row of one with several, and return what a pointer can read."""
    y = np.atleast_2d(np.asarray(curve.y, float))
    x = np.broadcast_to(np.asarray(curve.x, float), y.shape)
    colour = blend(curve.role, curve.shade)
    parts = []
    for row_x, row_y in zip(x, y, strict=True):
        data = {
            "x": [*map(float, row_x)],
            "y": [*map(float, row_y)],
            "name": [curve.label or curve.role] * len(row_x),
        }
        data |= {
            name: [number(value) for value in data[side]]
            for name, side in (("across", "x"), ("up", "y"))
        }
        if outlined:
            plot.line(data["x"], data["y"], line_color=PALE, line_width=4.5, line_alpha=0.85)
        if curve.kind == "points":
            parts.append(plot.scatter("x", "y", source=data, size=6, color=colour))
            continue
        dash = DASHES[curve.role] if curve.kind == "dashed" else []
        draw = plot.step if curve.kind == "steps" else plot.line
        look = {"mode": "after"} if curve.kind == "steps" else {}
        draw("x", "y", source=data, line_color=colour, line_width=1.8, line_dash=dash, **look)
        if not outlined:
            parts.append(
                plot.scatter(
                    "x", "y", source=data, size=6, color=colour, fill_alpha=0 if dash else 1
                )
            )
    return parts
