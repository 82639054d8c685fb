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

from steepest.core.extras import exporter
from steepest.core.panels import Map, Panel
from steepest.core.records import number
from steepest.core.words import CRASHED
from steepest.engine.run import build
from steepest.engine.sweeps._batch import Record
from steepest.engine.sweeps._diagram import diagram
from steepest.engine.sweeps._plan import Plan

SIDES = ("measured", "predicted", "low", "high")
"""What a judged quantity has at each point: low and high are the ends of its interval."""


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
        return {
            name: value for name, value in self.plan.fixed.items() if value != getattr(usual, name)
        }

    @property
    def total(self) -> int:
        """How many points were planned."""
        return len(self.plan)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader should know, one sentence each."""
        return self.plan.experiment.diagram_remarks if self.plan.experiment else ()

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many points have each verdict; ``"crashed"`` counts those that could not be computed."""
        return dict(Counter(point["verdict"] for point in self.points if point))

    @cached_property
    def crashes(self) -> dict[str, int]:
        """Why points could not be computed, and how many for each reason, the most frequent first."""
        reasons = Counter(
            point["reason"] for point in self.points if point and point["verdict"] == CRASHED
        )
        return dict(reasons.most_common())

    @cached_property
    def judged(self) -> tuple[str, ...]:
        """The ids of the checks, in their order."""
        ids = (check["id"] for point in self.points if point for check in point["checks"])
        return tuple(dict.fromkeys(ids))

    @cached_property
    def others(self) -> tuple[str, ...]:
        """The ids of quantities that nothing judges."""
        ids = (id for point in self.points if point for id in point["quantities"])
        return tuple(dict.fromkeys(ids))

    @cached_property
    def labels(self) -> dict[str, str]:
        """What each check and each quantity is called in figures, by id."""
        labels = {
            check["id"]: check["name"]
            for point in self.points
            if point
            for check in point["checks"]
        }
        own = self.plan.experiment.labels if self.plan.experiment else {}
        return labels | {id: own.get(id, id.replace("_", " ")) for id in self.others}

    def ends(self, column: str) -> str:
        """Return the smallest and the largest number of a column, in words; empty where there is none."""
        values = self.numbers.get(column, np.array([]))
        sound = values[np.isfinite(values)]
        if not sound.size:
            return ""
        low = sound.min()
        high = sound.max()
        return f"{low:.4g}" if low == high else f"{low:.4g} … {high:.4g}"

    @cached_property
    def numbers(self) -> dict[str, np.ndarray]:
        """``ID_measured``, ``ID_predicted``, ``ID_low`` and ``ID_high`` of every check, one number a point.

        NaN where there is none. Quantities that nothing judges have only ``ID_measured``.
        """
        names = [f"{id}_{side}" for id in self.judged for side in SIDES]
        names += [f"{id}_measured" for id in self.others]
        columns = {name: np.full(self.total, np.nan) for name in names}
        for i, point in enumerate(self.points):
            if point is None:
                continue
            for check in point["checks"]:
                interval = check["interval"]
                values = (check["measured"], check["predicted"], interval["low"], interval["high"])
                for side, value in zip(SIDES, values, strict=True):
                    columns[f"{check['id']}_{side}"][i] = number(value)
            for id, value in point["quantities"].items():
                columns[f"{id}_measured"][i] = number(value)
        return columns

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        """The whole table: swept fields, ``verdict``, ``reason``, and the numbers of every quantity."""
        return {name: np.array(values) for name, values in self.table().items()}

    def table(self) -> dict[str, list[Any]]:
        """Return one column a swept field, then ``verdict``, ``reason``, and the numbers of every quantity."""
        words = {
            part: [point[part] if point else "" for point in self.points]
            for part in ("verdict", "reason")
        }
        numbers = {name: column.tolist() for name, column in self.numbers.items()}
        return {**self.plan.columns, **words, **numbers}

    def to_csv(self, path: str | Path) -> Path:
        """Write one row a point; empty where there is no number."""
        table = self.table()
        empty = lambda value: "" if isinstance(value, float) and math.isnan(value) else value
        with open(path, "w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(table)
            rows.writerows(
                [empty(value) for value in row] for row in zip(*table.values(), strict=True)
            )
        return Path(path)

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` with one row a point.

        Raises:
            UserError: without the extra ``export``.
        """
        return exporter("pandas").DataFrame(self.table())

    def to_parquet(self, path: str | Path) -> Path:
        """Write one row a point.

        Raises:
            UserError: without the extra ``export``.
        """
        exportable()
        self.to_pandas().to_parquet(path, engine="pyarrow", index=False)
        return Path(path)

    def to_xarray(self) -> Any:
        """Return an ``xarray.Dataset`` with one dimension a swept field; Sobol points share ``point``.

        Raises:
            UserError: without the extra ``export``.
        """
        xarray = exporter("xarray")
        drawn = [axis for axis in self.plan.axes if axis.sobol]
        blocks = [axis for axis in self.plan.axes if not axis.sobol or axis is drawn[0]]
        dims = ["point" if axis.sobol else axis.field for axis in blocks]
        sizes = [len(axis.values) for axis in blocks]
        data = {
            name: (dims, np.array(column).reshape(sizes))
            for name, column in self.table().items()
            if name not in self.plan.columns
        }
        coordinates: dict[str, Any] = {
            axis.field: ("point", list(axis.values)) if axis.sobol else list(axis.values)
            for axis in self.plan.axes
        }
        labels = {f"label_{id}": label for id, label in self.labels.items()}
        return xarray.Dataset(data, coordinates, attrs={"claim": self.claim, **labels})

    @cached_property
    def panels(self) -> tuple[Panel | Map, ...]:
        """What the phase diagram shows."""
        return diagram(self)


def exportable() -> None:
    """Refuse a Parquet table where its packages are missing.

    Raises:
        UserError: without the extra ``export``.
    """
    exporter("pandas")
    exporter("pyarrow")
