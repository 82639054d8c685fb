"""The phase diagram of a sweep: maps over two fields, or families of lines over one."""

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from steepest.core.intervals import fit_exponent
from steepest.core.panels import Curve, Map, Panel, observed_curve, panel, predicted_curve
from steepest.core.words import CRASHED
from steepest.engine.sweeps._axes import SEED, Axis

if TYPE_CHECKING:
    from steepest.engine.sweeps._table import Sweep

VERDICTS = ("holds", "fails", "inconclusive", "out-of-range", CRASHED)
MOST = 6
"""So many values of a third field have maps of their own; the others are in the table."""
WIDE = 30.0
"""Positive quantities whose largest value is so many times the smallest are mapped, and drawn, by their logarithms."""
STRAIGHT = 0.98
"""An exponent is told where a power law explains this share of the variance of the logarithms."""
LINES = 8
"""So many lines of a family are drawn."""


def diagram(sweep: "Sweep") -> tuple[Panel | Map, ...]:
    """Maps where two fields with numbers are swept, lines where one is; nothing where none is.

    The mean over seeds is shown. Verdicts of several seeds are shown as the one that most of them have.
    """
    numeric = [
        axis
        for axis in sweep.plan.axes
        if axis.numeric and axis.field != SEED and len(axis.values) > 1
    ]
    if not numeric:
        numeric = [axis for axis in sweep.plan.axes if axis.numeric and len(axis.values) > 1]
    if not numeric:
        return ()
    plane = numeric[:2]
    others = [
        axis
        for axis in sweep.plan.axes
        if axis not in plane and axis.field != SEED and len(axis.values) > 1
    ]
    facets = list(itertools.islice(_facets(sweep, others), MOST))
    draw = _maps if len(plane) == 2 else _lines
    panels = [drawn for where, chosen in facets for drawn in draw(sweep, plane, chosen, where)]
    if len(plane) == 2 and not plane[0].sobol and not plane[1].sobol:
        panels += [
            family for where, chosen in facets for family in _families(sweep, plane, chosen, where)
        ]
    return tuple(panels)


def _facets(sweep: "Sweep", rest: Sequence[Axis]) -> Iterator[tuple[str, np.ndarray]]:
    """For each combination of the other fields its words and which points it has."""
    columns = sweep.plan.columns
    for values in itertools.product(*(axis.values for axis in rest)):
        chosen = np.ones(sweep.total, bool)
        for axis, value in zip(rest, values, strict=True):
            chosen &= np.array([other == value for other in columns[axis.field]])
        words = ", ".join(
            f"{axis.field} = {value}" for axis, value in zip(rest, values, strict=True)
        )
        if chosen.any():
            yield words, chosen


def _maps(sweep: "Sweep", plane: Sequence[Axis], chosen: np.ndarray, where: str) -> Iterator[Map]:
    """The verdict, then what was measured and predicted of each quantity."""
    across, up = plane
    place = lambda name: _placed(sweep, plane, name, chosen)
    curves = [*sweep.plan.boundaries(across.field, up.field), *_contours(sweep, plane, chosen)]
    common: dict[str, Any] = {
        "x": sweep.plan.label(across.field),
        "y": sweep.plan.label(up.field),
        "curves": tuple(curves),
    }
    common |= {
        f"{side}scale": "log" if axis.scale == "log" else "linear"
        for side, axis in (("x", across), ("y", up))
    }
    at = f", {where}" * bool(where)
    coordinates = _coordinates(sweep, plane, chosen)
    yield Map(
        f"Verdict{at}",
        values=place("verdict"),
        label="verdict",
        words=VERDICTS,
        **coordinates,
        **common,
    )
    for id in sweep.judged:
        name = sweep.labels[id]
        measured = place(f"{id}_measured")
        predicted = place(f"{id}_predicted")
        if not np.isfinite(measured).any():
            continue
        if said := _one(sweep, id, predicted):
            yield Map(
                f"{name}, measured ({said}){at}",
                values=measured,
                label=name,
                **coordinates,
                **common,
            )
            continue
        both = np.concatenate([measured, predicted])
        sound = both[np.isfinite(both)]
        logs = sound.min() > 0 and sound.max() > WIDE * sound.min()
        if logs:  # on a linear scale a peak would leave one colour to everything else
            measured, predicted, sound = (
                np.log10(values) for values in (measured, predicted, sound)
            )
        limits = (float(sound.min()), float(sound.max())) if sound.min() < sound.max() else None
        shared = {
            "label": f"log₁₀ {name}" if logs else name,
            "limits": limits,
            **coordinates,
            **common,
        }
        yield Map(f"{shared['label']}, measured{at}", values=measured, **shared)
        yield Map(f"{shared['label']}, predicted{at}", values=predicted, role="predicted", **shared)
    for id in sweep.others:
        name = sweep.labels[id]
        values = place(f"{id}_measured")
        if np.isfinite(values).any():
            yield Map(f"{name}, measured{at}", values=values, label=name, **coordinates, **common)


def _contours(sweep: "Sweep", plane: Sequence[Axis], chosen: np.ndarray) -> Iterator[Curve]:
    """Where the columns that the experiment names take their values, one curve each, interpolated on the axes."""
    from contourpy import contour_generator

    columns = sweep.plan.experiment.contours if sweep.plan.experiment else {}
    scattered = any(axis.sobol for axis in plane)
    small = any(len(axis.values) < 2 for axis in plane)
    for name, (value, label) in columns.items():
        if scattered or small or name not in sweep.numbers:
            continue
        x, y = (np.array(sorted(axis.values), float) for axis in plane)
        logs = [axis.scale == "log" for axis in plane]
        on_axes = [np.log(axis) if log else axis for axis, log in zip((x, y), logs, strict=True)]
        values = np.ma.masked_invalid(_placed(sweep, plane, name, chosen))
        lines: Any = contour_generator(on_axes[0], on_axes[1], values).lines(value)
        if lines:
            joined = np.concatenate([np.vstack([line, [[np.nan, np.nan]]]) for line in lines])[:-1]
            on_x, on_y = (np.exp(c) if log else c for c, log in zip(joined.T, logs, strict=True))
            yield predicted_curve(on_x, on_y, label)


def _one(sweep: "Sweep", id: str, predicted: np.ndarray) -> str:
    """Where theory predicts one number for the whole plane, that number in words: it needs no map."""
    values = np.unique(predicted[np.isfinite(predicted)])
    if values.size != 1:
        return ""
    checks = (
        check for point in sweep.points if point for check in point["checks"] if check["id"] == id
    )
    margin = next(checks)["margin"]
    low = margin["low"]
    high = margin["high"]
    words = "at most " if low is None else "at least " if high is None else ""
    return f"predicted: {words}{values[0]:.4g}"


def _coordinates(sweep: "Sweep", plane: Sequence[Axis], chosen: np.ndarray) -> dict[str, Any]:
    if any(axis.sobol for axis in plane):
        columns = [np.array(sweep.plan.columns[axis.field], float)[chosen] for axis in plane]
        return {"across": columns[0], "up": columns[1]}
    return {
        "across": np.array(sorted(plane[0].values), float),
        "up": np.array(sorted(plane[1].values), float),
    }


def _column(sweep: "Sweep", name: str) -> np.ndarray:
    if name != "verdict":
        return sweep.numbers[name]
    return np.array(
        [VERDICTS.index(point["verdict"]) if point else np.nan for point in sweep.points]
    )


def _placed(sweep: "Sweep", plane: Sequence[Axis], name: str, chosen: np.ndarray) -> np.ndarray:
    """A column on the plane's grid, shape ``(rows, columns)``: the mean over seeds, of verdicts the most frequent."""
    column = _column(sweep, name)
    if any(axis.sobol for axis in plane):
        return column[chosen]
    number = {
        axis.field: {value: i for i, value in enumerate(sorted(axis.values))} for axis in plane
    }
    x, y = (np.array([number[a.field][v] for v in sweep.plan.columns[a.field]]) for a in plane)
    grid = np.full((len(plane[1].values), len(plane[0].values)), np.nan)
    sound = chosen & np.isfinite(column)
    order = np.lexsort((column, x, y))
    order = order[sound[order]]
    cells, starts = np.unique(np.stack([y[order], x[order]]), axis=1, return_index=True)
    for (row, place), values in zip(cells.T, np.split(column[order], starts[1:]), strict=True):
        grid[row, place] = (
            np.bincount(values.astype(int)).argmax() if name == "verdict" else values.mean()
        )
    return grid


def _families(
    sweep: "Sweep", plane: Sequence[Axis], chosen: np.ndarray, where: str
) -> Iterator[Panel]:
    """Each quantity along the first field, one line a value of the second, with exponents on logarithmic axes."""
    across, up = plane
    x = np.array(sorted(across.values), float)
    rows = np.array(sorted(up.values), float)
    some = np.unique(np.linspace(0, len(rows) - 1, min(LINES, len(rows))).round().astype(int))
    for id in sweep.judged:
        name = sweep.labels[id]
        measured, predicted = (
            _placed(sweep, plane, f"{id}_{side}", chosen) for side in ("measured", "predicted")
        )
        curves = []
        for row in some:
            shade = float(row / max(1, len(rows) - 1))
            curves += _pair(
                x, measured[row], predicted[row], f"{up.field} = {rows[row]:.4g}", across, shade
            )
        yield _family(sweep, name, across, curves, where, measured)


def _lines(
    sweep: "Sweep", plane: Sequence[Axis], chosen: np.ndarray, where: str
) -> Iterator[Panel]:
    """Each quantity over one field: what was measured with its interval, and what was predicted."""
    across = plane[0]
    every = np.array(sweep.plan.columns[across.field], float)
    x = np.unique(every[chosen])
    mean = lambda name: np.array(
        [_mean(sweep.numbers[name][chosen & (every == value)]) for value in x]
    )
    for id in sweep.judged:
        name = sweep.labels[id]
        measured = mean(f"{id}_measured")
        predicted = mean(f"{id}_predicted")
        ends = [
            observed_curve(x, mean(f"{id}_{side}"), kind="dashed", shade=1.0)
            for side in ("low", "high")
        ]
        curves = [*_pair(x, measured, predicted, "measured", across, 0.0), *ends]
        yield _family(sweep, name, across, curves, where, measured)
    for id in sweep.others:
        name = sweep.labels[id]
        values = mean(f"{id}_measured")
        yield _family(
            sweep,
            name,
            across,
            _pair(x, values, values * np.nan, "measured", across, 0.0),
            where,
            values,
        )


def _pair(
    x: np.ndarray,
    measured: np.ndarray,
    predicted: np.ndarray,
    words: str,
    across: Axis,
    shade: float,
) -> list[Curve]:
    exponent = _exponent(x, measured) if across.scale == "log" else ""
    curves = [observed_curve(x, measured, f"{words}{exponent}", shade=shade)]
    return curves + (
        [predicted_curve(x, predicted, shade=shade)] if np.isfinite(predicted).any() else []
    )


def _family(
    sweep: "Sweep",
    name: str,
    across: Axis,
    curves: Sequence[Curve],
    where: str,
    measured: np.ndarray,
) -> Panel:
    sound = measured[np.isfinite(measured)]
    least = 5 if across.scale == "log" else WIDE
    wide = sound.size > 0 and sound.min() > 0 and sound.max() > least * sound.min()
    log = ("x" if across.scale == "log" else "") + ("y" if wide else "")
    title = f"{name} along {across.field}" + f", {where}" * bool(where)
    return panel(title, sweep.plan.label(across.field), name, *curves, log=log)


def _exponent(x: np.ndarray, y: np.ndarray) -> str:
    """The fitted exponent with its interval, in words; empty where the points follow no power law."""
    x = x[np.isfinite(y)]
    y = y[np.isfinite(y)]
    if y.size < 4 or y.min() <= 0 or y.max() < 2 * y.min():
        return ""
    if np.corrcoef(np.log(x), np.log(y))[0, 1] ** 2 < STRAIGHT:
        return ""
    slope, interval = fit_exponent(x, y)
    return f", exponent {slope:.2f} ({interval.low:.2f} … {interval.high:.2f})"


def _mean(values: np.ndarray) -> float:
    sound = values[np.isfinite(values)]
    return float(sound.mean()) if sound.size else float("nan")
