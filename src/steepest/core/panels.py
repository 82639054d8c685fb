"""What a figure shows, as data: claims describe their panels, the atlas draws them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from steepest.core.records import plain

Role = Literal["observed", "predicted", "rival", "context"]


@dataclass(frozen=True)
class Curve:
    """One line, cloud, band or bar series of a panel.

    Attributes:
        x: abscissae, shape ``(points,)``.
        y: ordinates, shape ``(points,)``, or ``(seeds, points)``: then every seed is drawn faintly.
        label: its name in the legend; empty for none.
        role: colour by meaning: observed, predicted, rival or context.
        kind: ``"line"``, ``"dashed"``, ``"points"``, or ``"steps"`` (a cumulative distribution).
        shade: 0…1, position in the family's colour range when several curves share a role.
    """

    x: ArrayLike
    y: ArrayLike
    label: str = ""
    role: Role = "observed"
    kind: Literal["line", "dashed", "points", "steps"] = "line"
    shade: float = 0.0


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: a short sentence that says what to see.
        x: label of the horizontal axis, with unit.
        y: label of the vertical axis, with unit.
        curves: what is drawn, in order.
        xscale: ``"linear"`` or ``"log"``.
        yscale: ``"linear"`` or ``"log"``.
        ylim: limits of the vertical axis, or None.
        xlim: limits of the horizontal axis, or None.
    """

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    xscale: Literal["linear", "log"] = "linear"
    yscale: Literal["linear", "log"] = "linear"
    ylim: tuple[float | None, float | None] | None = None
    xlim: tuple[float | None, float | None] | None = None


@dataclass(frozen=True)
class Map:
    """A quantity over a plane: colour over two fields, and curves drawn over it.

    Attributes:
        title: a short sentence that says what to see.
        x: label of the horizontal axis, with unit.
        y: label of the vertical axis, with unit.
        across: abscissae of the cells, shape ``(columns,)``, increasing; of scattered points, shape ``(points,)``.
        up: ordinates of the cells, shape ``(rows,)``, increasing; of scattered points, shape ``(points,)``.
        values: the quantity, shape ``(rows, columns)`` on a grid and ``(points,)`` scattered; NaN where there is none.
        label: what the colours mean, with unit.
        words: the meanings of the values 0, 1, 2, … of a map of categories; empty for a map of numbers.
        curves: drawn over the colours, in the coordinates of the axes.
        limits: values of the first and the last colour, or None for the smallest and largest value; maps that are
            compared share them.
        xscale: ``"linear"`` or ``"log"``.
        yscale: ``"linear"`` or ``"log"``.
        role: whose numbers they are.
    """

    title: str
    x: str
    y: str
    across: ArrayLike
    up: ArrayLike
    values: ArrayLike
    label: str
    words: tuple[str, ...] = ()
    curves: tuple[Curve, ...] = ()
    limits: tuple[float, float] | None = None
    xscale: Literal["linear", "log"] = "linear"
    yscale: Literal["linear", "log"] = "linear"
    role: Role = "observed"


def panel(title: str, x: str, y: str, *curves: Curve, log: str = "", **limits: Any) -> Panel:
    """A panel from its curves; ``log`` names the logarithmic axes, ``limits`` are ``xlim`` and ``ylim``.

    >>> panel("Loss", "step", "loss", observed_curve([0, 1], [1.0, 0.1]), log="y").yscale
    'log'
    """
    scales = {f"{axis}scale": "log" if axis in log else "linear" for axis in "xy"}
    return Panel(title, x, y, curves, **scales, **limits)


def observed_curve(x: ArrayLike, y: ArrayLike, label: str = "", **look: Any) -> Curve:
    """A curve that was observed."""
    return Curve(x, y, label, "observed", **look)


def predicted_curve(x: ArrayLike, y: ArrayLike, label: str = "", **look: Any) -> Curve:
    """A curve that was predicted, dashed unless told otherwise."""
    return Curve(x, y, label, "predicted", **{"kind": "dashed", **look})


def rival_curve(x: ArrayLike, y: ArrayLike, label: str = "", **look: Any) -> Curve:
    """A curve of a wrong theory, dashed unless told otherwise."""
    return Curve(x, y, label, "rival", **{"kind": "dashed", **look})


def context_curve(x: ArrayLike, y: ArrayLike, label: str = "", **look: Any) -> Curve:
    """A curve that is neither predicted nor observed by the claim, such as a reference."""
    return Curve(x, y, label, "context", **look)


def panels_to_json(panels: Sequence[Panel]) -> list[dict[str, Any]]:
    """Return panels as plain lists and words; what is not finite is null."""
    return [plain({**vars(panel), "curves": [_curve(c) for c in panel.curves]}) for panel in panels]


def panels_from_json(record: Sequence[Mapping[str, Any]]) -> tuple[Panel, ...]:
    """Return the inverse of :func:`panels_to_json`."""
    return tuple(
        Panel(
            **{
                **panel,
                "curves": tuple(
                    Curve(**{**curve, "x": _array(curve["x"]), "y": _array(curve["y"])})
                    for curve in panel["curves"]
                ),
                "xlim": _pair(panel["xlim"]),
                "ylim": _pair(panel["ylim"]),
            }
        )
        for panel in record
    )


def _curve(curve: Curve) -> dict[str, Any]:
    x = np.asarray(curve.x, float)
    y = np.asarray(curve.y, float)
    return {**vars(curve), "x": x.tolist(), "y": y.tolist()}


def _array(values: Any) -> np.ndarray:
    return np.asarray(values, float)  # null becomes NaN


def _pair(ends: Any) -> Any:
    return None if ends is None else tuple(ends)
