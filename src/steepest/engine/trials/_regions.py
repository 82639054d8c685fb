"""Where in its scope a claim holds: the share of settings that hold, in each part of the range of each field."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steepest.core.panels import Curve, Panel, context_curve, observed_curve, panel
from steepest.core.scope import Scope
from steepest.core.words import Verdict
from steepest.engine.commands import spell
from steepest.engine.trials._tally import Tally

THIRDS_FROM = 12
"""Settings from which a range is cut into thirds; fewer are cut into halves."""


@dataclass(frozen=True)
class Region:
    """A part of the range of one field.

    Attributes:
        low: its smallest value; None for a value that is listed.
        high: its largest value; None for a value that is listed.
        value: the value that is listed; None for a range.
        tally: of the settings in it.
    """

    low: float | None
    high: float | None
    value: Any
    tally: Tally

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return spell(self.value)
        ends = dict.fromkeys((_short(self.low), _short(self.high)))
        return " to ".join(ends)

    def to_json(self) -> dict[str, Any]:
        """Return the part with its counts."""
        ends = {"low": self.low, "high": self.high}
        where = {"value": self.value} if self.low is None else ends
        return {**where, "holds": self.tally.holds, "runs": self.tally.runs}


@dataclass(frozen=True)
class FieldMap:
    """Where along one field the claim holds.

    Attributes:
        field: its name.
        regions: parts of its range, in order.
        values: of the field at each setting.
        verdicts: of each setting.
        logarithmic: whether the range is cut, and drawn, on a logarithmic scale.
    """

    field: str
    regions: tuple[Region, ...]
    values: tuple[Any, ...]
    verdicts: tuple[str, ...]
    logarithmic: bool

    @property
    def panel(self) -> Panel | None:
        """Every setting at 1 where it holds and else at 0, with the share in each part; None without an axis."""
        ranges = [region for region in self.regions if region.low is not None]
        if not ranges or not self.values:
            return None
        share = [region.tally.holds / max(region.tally.runs, 1) for region in ranges]
        ends = [region.tally.interval for region in ranges]
        settings = [float(verdict == Verdict.HOLDS) for verdict in self.verdicts]
        return panel(
            f"Where it holds along {self.field}",
            self.field,
            "share that holds",
            _steps(ranges, [low for low, _ in ends], "Wilson’s interval, 95 %"),
            _steps(ranges, [high for _, high in ends], ""),
            observed_curve(*_by_region(ranges, share), "share of the settings in each part"),
            observed_curve(self.values, settings, "a setting: 1 holds, 0 does not", kind="points"),
            log="x" if self.logarithmic else "",
            ylim=(-0.05, 1.05),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the field with its parts."""
        return {"field": self.field, "parts": [region.to_json() for region in self.regions]}


def where_it_holds(
    scope: Mapping[str, Scope], settings: Sequence[Mapping[str, Any]], verdicts: Sequence[str]
) -> tuple[FieldMap, ...]:
    """Return where along each field of its scope a claim holds.

    Args:
        scope: of each field.
        settings: the fields of each run.
        verdicts: of each run.
    """
    parts = 3 if len(settings) >= THIRDS_FROM else 2
    maps = []
    for field, limits in scope.items():
        values = tuple(setting[field] for setting in settings)
        find = _listed if limits.choices else _cut
        regions = find(limits, values, verdicts, parts)
        maps.append(FieldMap(field, regions, values, tuple(verdicts), limits.logarithmic))
    return tuple(maps)


def _listed(
    scope: Scope, values: Sequence[Any], verdicts: Sequence[str], parts: int
) -> tuple[Region, ...]:
    """Return one part for each value that the scope lists."""
    del parts
    tallies = {
        choice: Tally.of(v for value, v in zip(values, verdicts, strict=True) if value == choice)
        for choice in scope.choices
    }
    return tuple(Region(None, None, choice, tally) for choice, tally in tallies.items())


def _cut(
    scope: Scope, values: Sequence[Any], verdicts: Sequence[str], parts: int
) -> tuple[Region, ...]:
    """Return equal parts of a range, on the scale on which it is drawn from; parts without a value are left out."""
    assert scope.low is not None
    assert scope.high is not None
    spaced = np.geomspace if scope.logarithmic else np.linspace
    edges = [float(edge) for edge in spaced(scope.low, scope.high, parts + 1)]
    places = np.searchsorted(edges[1:-1], np.array(values, float), side="right")
    regions = []
    for part in range(parts):
        tally = Tally.of(v for place, v in zip(places, verdicts, strict=True) if place == part)
        low, high = _ends(scope, edges, part)
        if low <= high:
            regions.append(Region(low, high, None, tally))
    return tuple(regions)


def _ends(scope: Scope, edges: Sequence[float], part: int) -> tuple[float, float]:
    """Return the smallest and the largest value of a part; a whole number at an edge belongs above it."""
    last = part == len(edges) - 2
    if not (isinstance(scope.low, int) and isinstance(scope.high, int)):
        return edges[part], edges[part + 1]
    return math.ceil(edges[part]), scope.high if last else math.ceil(edges[part + 1]) - 1


def _short(value: float) -> str:
    """Return the end of a range to three digits, without an exponent where it is whole.

    >>> _short(0.37512), _short(1200)
    ('0.375', '1200')
    """
    return str(value) if isinstance(value, int) else f"{value:.3g}"


def _by_region(
    regions: Sequence[Region], heights: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Return a level line over each part, broken between parts."""
    x: list[float] = []
    y: list[float] = []
    for region, height in zip(regions, heights, strict=True):
        x += [float(region.low or 0.0), float(region.high or 0.0), math.nan]
        y += [height, height, math.nan]
    return x, y


def _steps(regions: Sequence[Region], heights: Sequence[float], label: str) -> Curve:
    return context_curve(*_by_region(regions, heights), label, kind="dashed")
