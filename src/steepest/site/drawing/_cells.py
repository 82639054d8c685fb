"""Maps as numbers: where cells begin and end, which colour each has."""

from typing import Any

import numpy as np

from steepest.core.panels import Map

SEAM = 0.51  # points; the edge that each cell has in its own colour, so that nothing shines through between two


def edges(centres: Any, scale: str) -> np.ndarray:
    """Where cells begin and end: midway between neighbours in the axis' own scale.

    Args:
        centres: shape ``(cells,)``, increasing, positive where the scale is logarithmic.
        scale: ``"linear"`` or ``"log"``.

    Returns:
        shape ``(cells + 1,)``. A single cell is half as wide as its value is large, or of ratio two on a
        logarithmic axis.

    >>> edges([1, 2, 4], "linear"), edges([1, 100], "log"), edges([8.0], "linear")
    (array([0.5, 1.5, 3. , 5. ]), array([1.e-01, 1.e+01, 1.e+03]), array([ 6., 10.]))
    """
    place = np.asarray(centres, float)
    place = np.log10(place) if scale == "log" else place
    if place.size == 1:
        half = np.log10(2) / 2 if scale == "log" else 0.25 * abs(float(place[0])) or 0.5
        cells = np.array([place[0] - half, place[0] + half])
    else:
        middle = (place[1:] + place[:-1]) / 2
        cells = np.concatenate([[2 * place[0] - middle[0]], middle, [2 * place[-1] - middle[-1]]])
    return 10.0**cells if scale == "log" else cells


def cleaned(panel: Map) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Abscissae, ordinates and values as floats, without what an axis cannot show.

    Raises:
        ValueError: where the shapes do not fit, or a category has no word.
    """
    across, up, values = (
        np.asarray(part, float) for part in (panel.across, panel.up, panel.values)
    )
    fits = (up.size, across.size) if values.ndim == 2 else (across.size,)
    if (
        values.shape != fits
        or across.ndim != 1
        or up.ndim != 1
        or (values.ndim == 1 and up.size != across.size)
    ):
        raise ValueError(
            f"the map {panel.title!r} has values of shape {values.shape} over {across.shape} and {up.shape}; "
            "a grid needs (rows, columns), scattered points one value each"
        )
    finite = values[np.isfinite(values)]
    if panel.words and not np.isin(finite, np.arange(len(panel.words))).all():
        raise ValueError(
            f"the map {panel.title!r} has a value that none of its {len(panel.words)} words stands for"
        )
    columns = _shown(across, panel.xscale)
    rows = _shown(up, panel.yscale)
    if values.ndim == 2:
        return across[columns], up[rows], values[np.ix_(rows, columns)]
    return across[columns & rows], up[columns & rows], values[columns & rows]


def span(panel: Map) -> tuple[float, float]:
    """The values of the first and the last colour, never the same.

    >>> span(Map("", "x", "y", [1], [1], [[3.0]], "c")), span(Map("", "x", "y", [1], [1], [[3.0]], "c", limits=(0, 9)))
    ((2.0, 4.0), (0.0, 9.0))
    """
    values = np.asarray(panel.values, float)
    finite = values[np.isfinite(values)]
    low, high = panel.limits or ((finite.min(), finite.max()) if finite.size else (0.0, 1.0))
    if not high > low:
        around_it = abs(low) / 3 or 0.5
        low, high = low - around_it, low + around_it
    return float(low), float(high)


def level(panel: Map, values: np.ndarray, levels: int) -> np.ndarray:
    """Which colour each value has, −1 for none; values beyond the limits have the colour at that end."""
    if panel.words:
        return np.where(np.isfinite(values), values, -1).astype(int)
    low, high = span(panel)
    with np.errstate(invalid="ignore"):
        cells = np.floor((values - low) / (high - low) * levels)
    return np.where(np.isfinite(values), np.clip(np.nan_to_num(cells), 0, levels - 1), -1).astype(
        int
    )


def beyond(panel: Map) -> bool:
    """Whether finite values lie outside the limits of the colours."""
    values = np.asarray(panel.values, float)
    finite = values[np.isfinite(values)]
    low, high = span(panel)
    return bool(finite.size) and not panel.words and bool(finite.min() < low or finite.max() > high)


def runs(levels: np.ndarray) -> np.ndarray:
    """Neighbours of one colour in a row as one: row, first column, column after the last, colour; shape ``(runs, 4)``.

    >>> runs(np.array([[0, 0, 2]])).tolist()
    [[0, 0, 2, 0], [0, 2, 3, 2]]
    """
    cells = []
    for row, line in enumerate(levels):
        starts = np.flatnonzero(np.r_[True, np.diff(line) != 0])
        ends = np.r_[starts[1:], len(line)]
        cells += [(row, start, end, line[start]) for start, end in zip(starts, ends, strict=True)]
    return np.array(cells, int).reshape(-1, 4)


def around(points: np.ndarray, scale: str) -> tuple[float, float]:
    """Limits of an axis that leave a little room around scattered points."""
    ends = edges([points.min()], scale)
    if points.max() > points.min():
        place = (
            np.log10([points.min(), points.max()])
            if scale == "log"
            else np.array([points.min(), points.max()])
        )
        room = 0.06 * (place[1] - place[0])
        ends = place + np.array([-room, room])
        ends = 10.0**ends if scale == "log" else ends
    return float(ends[0]), float(ends[-1])


def _shown(places: np.ndarray, scale: str) -> np.ndarray:
    """Whether an axis has room for each place."""
    return np.isfinite(places) & ((scale == "linear") | (places > 0))
