"""What a pointer over a map shows: the cells or points of maps as columns, each with its line of the sweep's table."""

import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steepest.core.intervals import Interval
from steepest.core.panels import Map
from steepest.site.drawing import around, cleaned, edges

from . import _text

Table = Mapping[str, Sequence[Any]]
NONE = "–"
MOST = 4
"""Quantities shown at once, where a map belongs to none of them."""


@dataclass(frozen=True)
class Sheet:
    """Maps over the same cells or points, as columns that they share.

    Attributes:
        maps: the maps, with their place among all panels.
        grid: whether they have cells; else scattered points.
        columns: numbers to draw and words to show, all equally long.
        tips: for each map, what the pointer shows: words and the column that follows them.
        across: ends of the horizontal axis.
        up: ends of the vertical axis.
    """

    maps: Mapping[int, Map]
    grid: bool
    columns: Mapping[str, list[Any]]
    tips: Mapping[int, list[tuple[str, str]]]
    across: tuple[float, float]
    up: tuple[float, float]


def sheets(
    panels: Sequence[Any], table: Table, labels: Mapping[str, str] | None = None
) -> list[Sheet]:
    """Return the maps among the panels; those with the same cells or points, and the same lines of the table, together.

    Args:
        panels: of a sweep.
        table: its table.
        labels: what its quantities are called in figures, by id.
    """
    groups: dict[Any, dict[int, tuple[Map, str | None]]] = {}
    for i, panel in enumerate(panels):
        if isinstance(panel, Map) and np.size(panel.values):
            across, up, values = cleaned(panel)
            rows, column = _joined(panel, table)
            place = (across.tobytes(), up.tobytes(), values.ndim, panel.xscale, panel.yscale, rows)
            groups.setdefault(place, {})[i] = (panel, column)
    return [_sheet(maps, place[-1], table, labels or {}) for place, maps in groups.items()]


def _sheet(
    maps: Mapping[int, tuple[Map, str | None]],
    rows: Sequence[int | None],
    table: Table,
    labels: Mapping[str, str],
) -> Sheet:
    first = next(iter(maps.values()))[0]
    across, up, values = cleaned(first)
    grid = values.ndim == 2
    x, y = _places(first)
    columns: dict[str, list[Any]] = {"x": _short(x), "y": _short(y)}
    if grid:
        ends = edges(across, first.xscale), edges(up, first.yscale)
        boxes = [np.tile(ends[0][:-1], up.size), np.tile(ends[0][1:], up.size)]
        boxes += [np.repeat(ends[1][:-1], across.size), np.repeat(ends[1][1:], across.size)]
        columns |= dict(zip(("left", "right", "bottom", "top"), map(_short, boxes), strict=True))
        limits = [(float(edges[0]), float(edges[-1])) for edges in ends]
    else:
        limits = [around(across, first.xscale), around(up, first.yscale)]
    columns |= {
        "across": [_text.number(float(v)) for v in x],
        "up": [_text.number(float(v)) for v in y],
    }
    columns |= _lines(rows, table)
    tips = {}
    for i, (panel, column) in maps.items():
        shown = cleaned(panel)[2].ravel()
        columns[f"value {i}"] = _short(shown)
        place = [(_name(panel.x), "across"), (_name(panel.y), "up")]
        tips[i] = [*place, *_told(panel, rows, table, labels)]
        if column is None:
            columns[f"own {i}"] = _words(panel, shown)
            tips[i].insert(2, (_name(panel.label), f"own {i}"))
    return Sheet(
        {i: panel for i, (panel, _) in maps.items()}, grid, columns, tips, limits[0], limits[1]
    )


def _places(panel: Map) -> tuple[np.ndarray, np.ndarray]:
    """Abscissa and ordinate of every cell or point."""
    across, up, values = cleaned(panel)
    x, y = np.meshgrid(across, up) if values.ndim == 2 else (across, up)
    return x.ravel(), y.ravel()


def _joined(panel: Map, table: Table) -> tuple[tuple[int | None, ...], str | None]:
    """The line of the table that belongs to each place, and the column that the map shows; none where unsure.

    A pointer must not show another point's numbers: two swept fields are taken for the axes only if every place then
    has one line at most and the lines' numbers are the map's. A third field is held where the title says so.
    """
    values = cleaned(panel)[2].ravel()
    places = _places(panel)
    for pair in itertools.permutations(_fields(table), 2):
        other_fields = [
            name
            for name in _fields(table)
            if name not in pair and len(set(map(_key, table[name]))) > 1
        ]
        lines: dict[Any, list[int]] = {}
        for line, key in enumerate(zip(*(map(_key, table[name]) for name in pair), strict=True)):
            if all(
                f" {name} = {table[name][line]}," in f" {panel.title}," for name in other_fields
            ):
                lines.setdefault(key, []).append(line)
        if not lines or any(len(places_of_line) > 1 for places_of_line in lines.values()):
            continue
        keys = zip(*(map(_key, part) for part in places), strict=True)
        rows = tuple(lines.get(key, [None])[0] for key in keys)
        if (column := _column(panel, values, rows, table)) is not None:
            return rows, column
    return (None,) * values.size, None


def _column(panel: Map, values: np.ndarray, rows: Sequence[int | None], table: Table) -> str | None:
    """The column of the table that a map shows, or None."""
    if panel.words:
        mine = ["" if math.isnan(value) else panel.words[int(value)] for value in values]
        return (
            "verdict"
            if mine == ["" if row is None else table["verdict"][row] for row in rows]
            else None
        )
    for name in list(table)[list(table).index("verdict") + 1 :]:
        theirs = [math.nan if row is None else table[name][row] for row in rows]
        if any(not isinstance(value, int | float) for value in theirs):
            continue
        theirs = np.where(np.isfinite(theirs), np.array(theirs, float), np.nan)
        mine = np.where(np.isfinite(values), values, np.nan)
        if np.isfinite(mine).any():
            with np.errstate(divide="ignore", invalid="ignore"):
                shown = ((theirs, 0), (np.log10(theirs), 1e-12))  # a map may show the logarithm
            if any(
                np.allclose(mine, candidate, rtol=1e-9, atol=atol, equal_nan=True)
                for candidate, atol in shown
            ):
                return name
    return None


def _lines(rows: Sequence[int | None], table: Table) -> dict[str, list[str]]:
    """Verdict and quantities of each place as words."""
    if all(row is None for row in rows):
        return {}
    at = lambda name: [None if row is None else table[name][row] for row in rows]
    columns = {"verdict": [str(value or NONE).replace("-", " ") for value in at("verdict")]}
    if "reason" in table:
        columns["reason"] = [
            textwrap.shorten(value or NONE, 72, placeholder="…") for value in at("reason")
        ]
    for quantity in quantities(table):
        for side in ("measured", "predicted"):
            if (name := f"{quantity}_{side}") in table:
                columns[name] = [_number(value) for value in at(name)]
        if f"{quantity}_low" in table:
            pairs = zip(at(f"{quantity}_low"), at(f"{quantity}_high"), strict=True)
            columns[f"{quantity}_interval"] = [_interval(*pair) for pair in pairs]
    return columns


def _told(
    panel: Map, rows: Sequence[int | None], table: Table, labels: Mapping[str, str]
) -> list[tuple[str, str]]:
    """What the table says of a map's places: of the quantities that it is about, or of the first few."""
    if all(row is None for row in rows):
        return []
    words = {id: labels.get(id, id) for id in quantities(table)}
    about = [id for id, label in words.items() if label in panel.title or label in panel.label]
    # the longest label: a quantity's may begin with another's
    about = sorted(about, key=lambda id: len(words[id]))[-1:]
    tips = [("verdict", "verdict")]
    if panel.words and "reason" in table:
        tips.append(("because", "reason"))
    for id in about or list(words)[:MOST]:
        names = [(side, f"{id}_{side}") for side in ("measured", "predicted")]
        whose = "" if about else f"{_name(words[id])}, "
        tips += [(f"{whose}{side}", name) for side, name in names if name in table]
        if f"{id}_low" in table:
            tips.append(("interval", f"{id}_interval"))
    return tips


def quantities(table: Table) -> list[str]:
    """The ids of the quantities of a table, in its order."""
    columns = list(table)[list(table).index("verdict") + 1 :]
    return [name.removesuffix("_measured") for name in columns if name.endswith("_measured")]


def _fields(table: Table) -> list[str]:
    return list(table)[: list(table).index("verdict")]


def _key(value: Any) -> Any:
    return f"{float(value):.9g}" if isinstance(value, int | float | np.number) else str(value)


def _short(values: np.ndarray) -> list[float]:
    """Seven digits, enough for any screen."""
    return [float(f"{value:.7g}") for value in values]


def _words(panel: Map, values: np.ndarray) -> list[str]:
    if panel.words:
        return [NONE if math.isnan(value) else panel.words[int(value)] for value in values]
    return [_number(float(value)) for value in values]


def _number(value: Any) -> str:
    return NONE if value is None or value != value else _text.number(value)


def _interval(low: Any, high: Any) -> str:
    if low is None or high is None or low != low or high != high:
        return NONE
    return _text.ends(Interval(low, high))


def _name(label: str) -> str:
    """A label short enough to stand in front of a number."""
    return textwrap.shorten(label, 40, placeholder="…") or NONE
