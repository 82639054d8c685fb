"""Panels from laws: theory, measurement and wrong theories over one axis, a shade for each value of another."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xarray

from steepest.core.laws import At, LawCheck
from steepest.core.panels import (
    Curve,
    Panel,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)


def curves(
    title: str,
    law: xarray.DataArray | None,
    seen: xarray.DataArray | None,
    *,
    over: str,
    by: str = "",
    x: str = "",
    y: str = "",
    name: str = "{}",
    rivals: Mapping[str, xarray.DataArray] | None = None,
    more: tuple[Curve, ...] = (),
    kind: str = "points",
    log: str = "",
    **limits: Any,
) -> Panel:
    """Draw a law, what was measured, and wrong theories over one axis.

    Args:
        title: a short sentence that says what to see.
        law: the prediction; None for none.
        seen: what was measured; the mean over its repetitions is drawn. None for none.
        over: the horizontal axis.
        by: another axis, of which every value has a shade of its own.
        x: label of the horizontal axis, with unit; its name where it is left out.
        y: label of the vertical axis.
        name: of each value of ``by`` in the legend, such as ``"depth {}"``.
        rivals: wrong predictions by what the legend calls them.
        more: other curves.
        kind: how measurements are drawn: ``"points"`` or ``"line"``.
        log: names of the logarithmic axes.
        **limits: ``xlim`` and ``ylim``.
    """
    lines: list[Curve] = []
    values = _values(by, seen if seen is not None else law)
    for place, value in enumerate(values):
        shade = place / max(1, len(values) - 1) * 0.8
        label = name.format(f"{value:g}" if isinstance(value, float) else value) if by else ""
        if seen is not None:
            points = _line(seen, over, by, place)
            lines.append(observed_curve(*points, label or "measured", kind=kind, shade=shade))
        if law is not None:
            lines.append(
                predicted_curve(*_line(law, over, by, place), "" if by else "theory", shade=shade)
            )
    for label, wrong in (rivals or {}).items():
        for place in range(len(_values(by if by in wrong.dims else "", wrong))):
            lines.append(rival_curve(*_line(wrong, over, by, place), label if place == 0 else ""))
    return panel(title, x or over, y, *lines, *more, log=log, **limits)


def of_headline(
    claim: Any, law: xarray.Dataset, seen: xarray.Dataset, rivals: Mapping[str, xarray.Dataset]
) -> Iterator[Panel]:
    """Yield a panel for each headline check that is judged along axes: theory, measurement, and each rival's mean.

    The last axis whose coordinates are numbers is horizontal; each combination of the others has a shade.
    """
    wrong = {label: _headline(claim, arrays, seen) for label, arrays in rivals.items()}
    for check in _headline(claim, law, seen).values():
        axes = [axis for axis in check.axes if _is_number(check.points[0].where[axis])]
        over = [*check.axes, *axes][-1]
        lines: list[Curve] = []
        groups = _groups(check.points, over)
        for place, (name, points) in enumerate(groups.items()):
            shade = place / max(1, len(groups) - 1) * 0.8
            x = _across(points, over)
            measured = [point.measured for point in points]
            label = name or "measured"
            lines.append(observed_curve(x, measured, label, kind="points", shade=shade))
            label = "" if name else "theory"
            lines.append(
                predicted_curve(x, [point.predicted for point in points], label, shade=shade)
            )
        for label, checks in wrong.items():
            points = checks[check.id].points if check.id in checks else ()
            if points and [p.predicted for p in points] != [p.predicted for p in check.points]:
                for name, of_group in _groups(points, over).items():
                    first = name == next(iter(groups))
                    across = _across(of_group, over)
                    lines.append(
                        rival_curve(across, [p.predicted for p in of_group], label if first else "")
                    )
        yield panel(check.name, over, "", *lines, log=_logarithmic(lines))


def _headline(claim: Any, law: xarray.Dataset, seen: xarray.Dataset) -> dict[str, LawCheck]:
    """Return the headline checks that are judged along axes, by id."""
    checks = {check.id: check for check in claim.judge(law, seen)}
    return {
        id: check
        for id, check in checks.items()
        if id in claim.headline and isinstance(check, LawCheck) and check.points
    }


def _groups(points: Sequence[At], over: str) -> dict[str, list[At]]:
    """Return points by what they are called on all axes but one."""
    groups: dict[str, list[At]] = {}
    for point in points:
        others = [f"{axis} = {value}" for axis, value in point.where.items() if axis != over]
        groups.setdefault(", ".join(others), []).append(point)
    return groups


def _across(points: Sequence[At], over: str) -> list[float]:
    """Return coordinates along an axis, or places where it has names."""
    where = [point.where[over] for point in points]
    return [float(x) for x in where] if all(map(_is_number, where)) else list(range(len(where)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating)


def _logarithmic(lines: Sequence[Curve]) -> str:
    """Return the axes along which all numbers are positive and span more than a factor of ten."""
    spans = {
        "x": np.concatenate([np.asarray(line.x, float) for line in lines]),
        "y": np.concatenate([np.asarray(line.y, float) for line in lines]),
    }
    wide = lambda values: values.min() > 0 and values.max() > 10 * values.min()
    return "".join(axis for axis, values in spans.items() if wide(values))


def _values(by: str, array: xarray.DataArray | None) -> list[Any]:
    if not by or array is None or by not in array.dims:
        return [""]
    return array[by].values.tolist()


def _line(array: xarray.DataArray, over: str, by: str, place: int) -> tuple[np.ndarray, np.ndarray]:
    """Return abscissae and ordinates of one curve: the mean over all axes but one."""
    line = array.isel({by: place}) if by and by in array.dims else array
    mean = line.mean([dim for dim in line.dims if dim != over])
    across = line[over].values
    up = mean.values if over in mean.dims else np.full(len(across), float(mean))
    return np.asarray(across), np.asarray(up, float)
