"""A monitored training, read from its log: each quantity over the steps, with the limit that theory gives it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from steepest.core.errors import UserError, nearest
from steepest.core.extras import exporter
from steepest.core.panels import Panel
from steepest.core.records import plain
from steepest.measurement._report import Finding
from steepest.measurement.training._handover import is_limit
from steepest.measurement.training._log import Record, training_of


@dataclass(frozen=True)
class Series:
    """One quantity along a training; NaN where a record does not have it.

    Attributes:
        name: of the quantity.
        values: shape ``(n,)``, one for each record.
        low: lower ends of its intervals, shape ``(n,)``; the value itself where there is none.
        over_examples: 95 % intervals for other examples like these, shape ``(n, 2)``.
        compared: what theory compares it with, shape ``(n,)``: it changes with the step size.
        theory: that in words, as last recorded, such as ``"2/η"``.
        bounds: whether this is the limit of a step size, which the value should not exceed.
    """

    name: str
    values: Float[ndarray, " n"]
    low: Float[ndarray, " n"]
    over_examples: Float[ndarray, "n 2"]
    compared: Float[ndarray, " n"]
    theory: str
    bounds: bool

    @property
    def ratio(self) -> Float[ndarray, " n"]:
        """Return the values over what they are compared with."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.values / self.compared

    @property
    def least_ratio(self) -> Float[ndarray, " n"]:
        """Return the lower ends of the intervals over what they are compared with."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.low / self.compared


@dataclass(frozen=True)
class Row:
    """A quantity of a training in a table; None where there is no number.

    Attributes:
        name: of the quantity.
        first: its first value.
        last: its last value.
        least: its smallest.
        most: its largest.
        compared: what theory compares the last value with.
        theory: that in words.
    """

    name: str
    first: float | None
    last: float | None
    least: float | None
    most: float | None
    compared: float | None
    theory: str


@dataclass(frozen=True)
class TrainingRun:
    """What ``steepest.watch`` returns: a training as its monitor has recorded it.

    Attributes:
        file: the log.
        records: of this training, in the order of their steps.
        number: which of the trainings in the log this is, counted from 1.
        total: how many there are.
        left_out: how many records the log has of this training besides; only a very long one has any.

    >>> sharpness = {"value": 3.0, "compared": 4.0, "theory": "2/η"}
    >>> run = TrainingRun("run.jsonl", ({"step": 0, "quantities": {"sharpness": sharpness}},))
    >>> run.steps, run.columns["sharpness"], run["sharpness"].ratio
    (array([0]), array([3.]), array([0.75]))
    """

    file: str
    records: tuple[Record, ...]
    number: int = 1
    total: int = 1
    left_out: int = 0

    @cached_property
    def steps(self) -> Int[ndarray, " n"]:
        """Return the steps of the records."""
        return np.array([record["step"] for record in self.records], int)

    @cached_property
    def stationary(self) -> bool:
        """Tell whether a lower loss is progress, as the monitor was told."""
        return all(record.get("stationary", True) is not False for record in self.records)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names of the quantities, in the order in which they were first measured."""
        return tuple(
            dict.fromkeys(name for record in self.records for name in record["quantities"])
        )

    @cached_property
    def columns(self) -> dict[str, Float[ndarray, " n"]]:
        """Return every quantity by name, one number a record, NaN where there is none; also ``"step"`` and ``"lr"``.

        What a limit is known of has a second column, such as ``"sharpness, limit"``.
        """
        columns: dict[str, ndarray] = {"step": self.steps.astype(float)}
        for name in self.names:
            series = self[name]
            columns[name] = series.values
            if series.bounds:
                columns[f"{name}, limit"] = series.compared
        if any("lr" in record for record in self.records):
            columns["lr"] = self._numbers([record.get("lr") for record in self.records])
        return columns

    def __getitem__(self, name: str) -> Series:
        """Return one quantity along the training.

        Raises:
            UserError: a quantity that was not measured.
        """
        if name not in self.names:
            raise UserError(
                f"{name!r} was not measured in {self.file}; {nearest(name, self.names)}"
            )
        entries = [record["quantities"].get(name, {}) for record in self.records]
        values = self._numbers([entry.get("value") for entry in entries])
        low = self._numbers([(entry.get("interval") or (None,))[0] for entry in entries])
        over = [entry.get("over_examples") or (None, None) for entry in entries]
        present = [entry for entry in entries if entry]
        return Series(
            name,
            values,
            np.where(np.isnan(low), values, low),
            np.stack([self._numbers([pair[end] for pair in over]) for end in (0, 1)], axis=1),
            self._numbers([entry.get("compared") for entry in entries]),
            present[-1].get("theory", ""),
            any(is_limit(entry) for entry in present),
        )

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Draw at most five lines to act on."""
        from steepest.measurement.training._findings import training_findings

        return training_findings(self)

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        """Return a picture of each quantity over the steps, as data."""
        from steepest.measurement.training._panels import training_panels

        return training_panels(self)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Return each quantity's first, last, smallest and largest value."""
        return tuple(_row(self[name]) for name in self.names)

    @property
    def warnings(self) -> tuple[tuple[int, str], ...]:
        """Return the warnings of the monitor with their steps."""
        return tuple(
            (record["step"], text) for record in self.records for text in _texts(record, "warnings")
        )

    @property
    def title(self) -> str:
        """Return what the log holds, in a line."""
        many = f"{len(self.records)} records" if len(self.records) > 1 else "one record"
        many += f" of {len(self.records) + self.left_out}" * bool(self.left_out)
        steps = f"steps {self.steps[0]} to {self.steps[-1]}" if len(self.records) > 1 else ""
        which = f"training {self.number} of {self.total}" if self.total > 1 else ""
        first = f"step {self.steps[0]}"
        return ", ".join(filter(None, [Path(self.file).name, which, many, steps or first]))

    def _repr_html_(self) -> str:
        listed = "".join(f"<li>{one.sign} {escape(one.text)}</li>" for one in self.findings)
        numbers = lambda row: (row.first, row.last, row.least, row.most)
        rows = "".join(
            f"<tr><th>{escape(row.name)}</th>"
            + "".join(f"<td>{'–' if x is None else f'{x:.4g}'}</td>" for x in numbers(row))
            + "</tr>"
            for row in self.rows
        )
        head = "<tr><th></th><th>first</th><th>last</th><th>least</th><th>most</th></tr>"
        return f"<p><b>{escape(self.title)}</b></p><ul>{listed}</ul><table>{head}{rows}</table>"

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` of the columns by step, one row a record.

        Raises:
            UserError: without the extra ``export``.
        """
        pandas = exporter("pandas")
        columns = {name: column for name, column in self.columns.items() if name != "step"}
        return pandas.DataFrame(columns, pandas.Index(self.steps, name="step"))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready object: findings, warnings and columns; what is not finite is null."""
        return plain(
            {
                "file": str(self.file),
                "training": self.number,
                "trainings": self.total,
                "findings": [vars(finding) for finding in self.findings],
                "warnings": [{"step": step, "text": text} for step, text in self.warnings],
                "theory": {name: self[name].theory for name in self.names},
                "columns": {name: column.tolist() for name, column in self.columns.items()},
            }
        )

    @staticmethod
    def _numbers(values: Sequence[Any]) -> Float[ndarray, " n"]:
        return np.array([np.nan if value is None else value for value in values], float)


def _row(series: Series) -> Row:
    finite = np.isfinite(series.values)
    values = series.values[finite]
    if not len(values):
        return Row(series.name, None, None, None, None, None, series.theory)
    compared = float(series.compared[finite][-1])
    ends = (float(values[0]), float(values[-1]), float(values.min()), float(values.max()))
    return Row(series.name, *ends, None if np.isnan(compared) else compared, series.theory)


def _texts(record: Record, key: str) -> list[str]:
    """Return the sentences of a record; a log that somebody edited may hold something else."""
    said = record.get(key, [])
    return [text for text in said if isinstance(text, str)] if isinstance(said, list) else []


def watch(file: str | Path, training: int | None = None) -> TrainingRun:
    """Read the log of a monitor, complete or still growing.

    Args:
        file: which ``Monitor(file, …)`` writes. Lines that a kill cut off are left out; of a training of more than
            20 000 records some thousands are read: evenly spaced ones, the last, and those of extreme values.
        training: which of the trainings in it, counted from 1; None for the last. One begins where steps start again.

    Raises:
        UserError: no such file, an empty one, one of another program; a training that it does not hold.
    """
    kept, number, total = training_of(file, training)
    return TrainingRun(str(file), kept.records, number, total, kept.left_out)
