"""Measure along a user's own training loop, within a budget of time, into a file that survives a kill."""

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steepest.core.errors import UserError
from steepest.measurement._measure import chosen, report_on
from steepest.measurement.adapters import Subject, in_evaluation, subject

RECORDED = ("value", "interval", "source_of_error", "over_examples", "compared")
"""What a log keeps of each reading."""


class Monitor:
    """A schedule that measures a model during its training and appends one JSON line each time.

    The first call measures, whatever it costs; later ones do so when a step is due and the budget allows for another
    measurement like the last. A due step that finds no budget is made up for as soon as there is some. A module in
    training mode is measured in evaluation mode and set back.

    Args:
        file: the log, one JSON object a line: ``step``, ``seconds``, ``quantities`` by name. It is appended to.
        loss: see ``steepest.measure``.
        data: the same; a fixed part of the training data keeps measuring cheap and comparable.
        what: names of quantities.
        every: measure at multiples of this step; or
        per_decade: measure at this many steps for each factor of ten, which suits long runs.
        budget: share of the training time since the first call that measuring may take; None for no limit.
        then: called with each record, to hand it over to other loggers.
        options: more of ``steepest.measure``: lr, momentum, micro_batch, features, seed.

    Raises:
        UserError: unknown quantities, a schedule or a budget that makes no sense.

    >>> import tempfile
    >>> import jax.numpy as jnp
    >>> data, squared = (jnp.eye(2), jnp.ones(2)), lambda f, y: ((f - y) ** 2).mean() / 2
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     monitor = Monitor(Path(folder) / "run.jsonl", squared, data, ["sharpness"], every=10, budget=None)
    ...     for step in range(21):
    ...         record = monitor(step, (lambda w, x: x @ w, jnp.zeros(2)))
    ...     [line["step"] for line in read_log(Path(folder) / "run.jsonl")]
    [0, 10, 20]
    """

    def __init__(
        self,
        file: str | Path,
        loss: Any,
        data: Any,
        what: Sequence[str] = ("risk", "sharpness"),
        *,
        every: int | None = None,
        per_decade: int = 10,
        budget: float | None = 0.05,
        then: Callable[[dict[str, Any]], None] = lambda record: None,
        **options: Any,
    ) -> None:
        if budget is not None and not 0 < budget <= 1:
            raise UserError(
                f"a budget is a share of the training time in (0, 1], or None for no limit, got {budget}"
            )
        if (every is not None and every < 1) or per_decade < 1:
            raise UserError(
                f"a schedule needs every ≥ 1 or per_decade ≥ 1, got {every} and {per_decade}"
            )
        self.file = Path(file)
        self.loss = loss
        self.data = data
        self.what = chosen(what)
        self.every = every
        self.per_decade = per_decade
        self.then = then
        self.budget = math.inf if budget is None else budget
        attach = ("micro_batch", "features")
        self.attach = {name: options.pop(name) for name in attach if name in options}
        self.options = options
        self.subject: Subject | None = None
        self.started = self.spent = self.last = 0.0
        self.owed = False  # whether a step was due that the budget did not allow yet
        self.start: np.ndarray | None = None  # what Lanczos found last

    def due(self, step: int) -> bool:
        """Tell whether the schedule asks for this step."""
        if self.every is not None:
            return step % self.every == 0
        if step < 1:
            return step == 0
        nearest = round(math.log10(step) * self.per_decade)
        return round(10 ** (nearest / self.per_decade)) == step

    def __call__(self, step: int, model: Any) -> dict[str, Any] | None:
        """Measure now, if it is time; the record that was written, or None."""
        now = time.perf_counter()
        first = self.subject is None
        self.owed = self.owed or self.due(step)
        if first:
            self.started = now
        elif not self.owed or self.spent + self.last > self.budget * (
            now - self.started - self.spent
        ):
            return None
        with in_evaluation(model):
            if self.subject is None:
                self.subject = subject(model, self.loss, self.data, **self.attach)
            self.subject = self.subject.now(model)
            report, self.start = report_on(
                self.subject, self.what, start=self.start, **self.options
            )
        record = {"step": step, "seconds": round(report.seconds, 4), "quantities": {}}
        for line in report.to_json()["quantities"]:
            record["quantities"][line["name"]] = {key: line[key] for key in RECORDED}
        self._append(record)
        took = time.perf_counter() - now
        self.owed = False
        self.last = 0.0 if first else took
        self.spent += took
        self.then(record)
        return record

    def _append(self, record: dict[str, Any]) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("ab+") as log:
            if log.tell():  # a line that a kill cut off is closed, so that it costs only itself
                log.seek(-1, os.SEEK_END)
                torn = log.read(1) != b"\n"
                log.write(b"\n" if torn else b"")
            log.write(json.dumps(record).encode() + b"\n")
            log.flush()
            os.fsync(log.fileno())


def read_log(file: str | Path) -> list[dict[str, Any]]:
    """Read the records of a monitor's log; lines that a kill cut off are left out.

    Raises:
        UserError: if there is no such file.
    """
    path = Path(file)
    records = []
    if not path.is_file():
        raise UserError(f"there is no log {path}")
    for line in path.read_text("utf-8", errors="replace").splitlines():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return records
