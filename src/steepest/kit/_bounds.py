"""Curves that nothing may cross: strokes on the side that a theorem forbids."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from steepest.core.panels import Curve, context_curve

POINTS = 16
"""Points of the line that is drawn: bounds are smooth."""
STROKES = 12
SHARE = 60
"""Strokes lean over by the horizontal axis divided by this."""


def bound_curve(
    x: ArrayLike,
    y: ArrayLike,
    label: str,
    *,
    forbidden: Literal["above", "below"],
    tall: float,
    log: str = "",
) -> Curve:
    """Return a bound as a reference line with short strokes on its forbidden side, as one curve with gaps.

    Args:
        x: abscissae, increasing, shape ``(points,)``.
        y: the bound there, shape ``(points,)``.
        label: its name in the legend.
        forbidden: on which side nothing may lie.
        tall: height of a stroke, in the units of the vertical axis, or in decades where it is logarithmic.
        log: the logarithmic axes of the panel, as in :func:`steepest.kit.panel`.

    >>> curve = bound_curve([0.0, 1.0], [2.0, 2.0], "at most 2", forbidden="above", tall=0.1)
    >>> bool(np.nanmin(curve.y) == 2.0), float(np.nanmax(curve.y))
    (True, 2.1)
    """
    across = _scaled(x, "x" in log)
    up = _scaled(y, "y" in log)
    line = np.linspace(across[0], across[-1], POINTS)
    lean = (across[-1] - across[0]) / SHARE
    feet = np.linspace(across[0] + lean, across[-1] - lean, STROKES)
    heights = np.interp(feet, across, up)
    falls = up[-1] < up[0]
    # away from the line: a stroke that leans along it would hide in it
    lean = -lean if falls == (forbidden == "below") else lean
    gap = np.full(STROKES, np.nan)
    tips = heights + (tall if forbidden == "above" else -tall)
    strokes_x = np.stack([gap, feet, feet + lean], axis=1).ravel()
    strokes_y = np.stack([gap, heights, tips], axis=1).ravel()
    return context_curve(
        _plain(np.concatenate([line, strokes_x]), "x" in log),
        _plain(np.concatenate([np.interp(line, across, up), strokes_y]), "y" in log),
        label,
    )


def _scaled(values: ArrayLike, log: bool) -> np.ndarray:
    return np.log10(np.asarray(values, float)) if log else np.asarray(values, float)


def _plain(values: np.ndarray, log: bool) -> np.ndarray:
    return 10.0**values if log else values
