"""Panels from laws: theory, measurement and wrong theories over one axis, a shade for each value of another."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray

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
