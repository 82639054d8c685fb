"""A sweep with its points: counts, columns, tables for other programs, figures."""

import csv
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from steepest.errors import UserError
from steepest.panels import Map, Panel
from steepest.running import build
from steepest.sweeping._batch import FAILED, Record
from steepest.sweeping._plan import Plan

SIDES = ("measured", "predicted", "low", "high")
"""What a judged quantity has at each point: the ends are those of its interval."""


@dataclass(frozen=True)
class Sweep:
    """What a sweep came to.

    Attributes:
        plan: what was swept.
        points: for each point of the plan, in its order, the record of what was computed, or None where nothing is yet.
    """

    plan: Plan
    points: tuple[Record | None, ...]

    @property
    def claim(self) -> str:
        """The claim's name."""
        return self.plan.claim

    @property
    def key(self) -> str:
        """What the sweep is called on disk."""
        return self.plan.key

    @property
    def preset(self) -> str:
        """``"quick"`` or ``"full"``."""
        return self.plan.preset

    @property
    def command(self) -> str:
        """What to type to get the sweep again."""
        return self.plan.command

    @property
    def axes(self) -> tuple[str, ...]:
        """What was swept, one sentence a field."""
        return tuple(str(axis) for axis in self.plan.axes)

    @property
    def fixed(self) -> Mapping[str, Any]:
        """Fields that differ from the preset at every point."""
        usual = build(self.plan.kind, self.plan.preset, {})
        return {name: value for name, value in self.plan.fixed.items() if value != getattr(usual, name)}

    @property
    def total(self) -> int:
        """How many points were planned."""
        return len(self.plan)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader should know, one sentence each."""
        return self.plan.cell.remarks if self.plan.cell else ()

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many points have each verdict; ``"failed"`` counts those that could not be computed."""
        return dict(Counter(point["verdict"] for point in self.points if point))

    @cached_property
    def failures(self) -> dict[str, int]:
        """Why points could not be computed, and how many for each reason, the most frequent first."""
        reasons = Counter(point["reason"] for point in self.points if point and point["verdict"] == FAILED)
        return dict(reasons.most_common())

    @cached_property
    def judged(self) -> tuple[str, ...]:
        """The names of the checks, in their order."""
        return tuple(dict.fromkeys(check["name"] for point in self.points if point for check in point["checks"]))

    @cached_property
    def others(self) -> tuple[str, ...]:
        """The names of quantities that nothing judges."""
        return tuple(dict.fromkeys(name for point in self.points if point for name in point["quantities"]))

    def ends(self, name: str) -> str:
        """The smallest and the largest number of a column, in words; empty where there is none."""
        column = self.columns.get(name, np.array([]))
        sound = column[np.isfinite(column)]
        if not sound.size:
            return ""
        low, high = sound.min(), sound.max()
        return f"{low:.4g}" if low == high else f"{low:.4g} … {high:.4g}"

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        """``"NAME measured"``, ``"NAME predicted"``, ``"NAME low"`` and ``"NAME high"`` of every check, one a point.

        NaN where there is none. Quantities that nothing judges have only ``"NAME measured"``.
        """
        names = [f"{name} {side}" for name in self.judged for side in SIDES]
        found = {name: np.full(self.total, np.nan) for name in [*names, *(f"{name} measured" for name in self.others)]}
        for i, point in enumerate(self.points):
            for check in point["checks"] if point else ():
                low, high = check["interval"]
                for side, value in zip(SIDES, (check["measured"], check["predicted"], low, high), strict=True):
                    found[f"{check['name']} {side}"][i] = math.nan if value is None else value
            for name, value in point["quantities"].items() if point else ():
                found[f"{name} measured"][i] = math.nan if value is None else value
        return found

    def table(self) -> dict[str, list[Any]]:
        """One column a swept field, then ``verdict``, the reason, and the columns of every quantity."""
        told = {part: [point[part] if point else "" for point in self.points] for part in ("verdict", "reason")}
        return {**self.plan.columns, **told, **{name: column.tolist() for name, column in self.columns.items()}}

    def to_csv(self, path: str | Path) -> Path:
        """Write one row a point; empty where there is no number."""
        table = self.table()
        empty = lambda value: "" if isinstance(value, float) and math.isnan(value) else value
        with open(path, "w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(table)
            rows.writerows([empty(value) for value in row] for row in zip(*table.values(), strict=True))
        return Path(path)

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` with one row a point.

        Raises:
            UserError: without the extra ``export``.
        """
        return _needed("pandas").DataFrame(self.table())

    def to_parquet(self, path: str | Path) -> Path:
        """Write one row a point.

        Raises:
            UserError: without the extra ``export``.
        """
        exportable()
        self.to_pandas().to_parquet(path, engine="pyarrow", index=False)
        return Path(path)

    def to_xarray(self) -> Any:
        """An ``xarray.Dataset`` with one dimension a swept field; the points of a Sobol sequence share ``point``.

        Raises:
            UserError: without the extra ``export``.
        """
        xarray, axes = _needed("xarray"), self.plan.axes
        grid = [axis for axis in axes if not axis.sobol]
        drawn = [axis for axis in axes if axis.sobol]
        blocks = [axis for axis in axes if not axis.sobol or axis is drawn[0]]
        dims = ["point" if axis.sobol else axis.field for axis in blocks]
        sizes = [len(axis.values) for axis in blocks]
        table = {k: v for k, v in self.table().items() if k not in self.plan.columns}
        data = {name: (dims, np.array(column).reshape(sizes)) for name, column in table.items()}
        coordinates = {axis.field: list(axis.values) for axis in grid}
        return xarray.Dataset(data, {**coordinates, **{axis.field: ("point", list(axis.values)) for axis in drawn}})

    def _repr_html_(self) -> str:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())
        rows = "".join(
            f"<tr><td>{name}</td><td>{self.ends(f'{name} measured')}</td><td>{self.ends(f'{name} predicted')}</td></tr>"
            for name in (*self.judged, *self.others)
        )
        head = "<tr><th>quantity</th><th>measured</th><th>predicted</th></tr>"
        over = "; ".join(self.axes)
        return f"<b>{self.claim}</b> over {over}: {counts} of {self.total} points<table>{head}{rows}</table>"

    def panels(self) -> tuple[Panel | Map, ...]:
        """What the phase diagram shows."""
        from steepest.sweeping._diagram import diagram

        return diagram(self)

    def figure(self) -> Any:
        """The phase diagram as a matplotlib ``Figure``."""
        from steepest.drawing import draw

        return draw(self.panels())


def exportable() -> None:
    """Refuse a Parquet table where its packages are missing.

    Raises:
        UserError: without the extra ``export``.
    """
    _needed("pandas")
    _needed("pyarrow")


def _needed(module: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise UserError(f"this export needs {module}; pip install 'steepest[export]'") from None
