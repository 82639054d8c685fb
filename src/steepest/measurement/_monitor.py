"""Measure along a user's own training loop, within a budget of time, into a file that survives a kill."""

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steepest.core.errors import UserError, nearest
from steepest.measurement._measure import NOT_MEASURED, chosen, report_on
from steepest.measurement._optimizer import optimizer_of
from steepest.measurement.adapters import Subject, in_evaluation, subject

RECORDED = ("value", "interval", "source_of_error", "over_examples", "compared", "theory")
"""What a log keeps of each reading."""
ATTACH = ("micro_batch", "features")
OPTIONS = ("optimizer", "lr", "momentum", "weight_decay", "curvature", "since", "seed")


class Monitor:
    """A schedule that measures a model during its training and appends one JSON line each time.

    The first call measures, whatever it costs; later ones do so when a step is due and the budget allows for another
    measurement like the last. A due step that finds no budget is made up for as soon as there is some. A module in
    training mode is measured in evaluation mode and set back.

    The first call raises if model, loss and data do not fit together. After it nothing is raised into your loop:
    weights that are not finite, or a measurement that fails, are logged as ``trouble`` with the last good record, and
    a quantity that does not exist for this model is among ``not_measured``.

    Args:
        file: the log, one JSON object a line: ``step``, ``seconds``, ``quantities`` by name; where there are any
            ``not_measured``, a sentence by name; after trouble ``trouble`` and ``last_good``. It is appended to.
        loss: see ``steepest.measure``.
        data: the same; a fixed part of the training data keeps measuring cheap and comparable.
        what: names of quantities; without ``since`` the drift is measured from the first call.
        every: measure at multiples of this step; or
        per_decade: measure at this many steps for each factor of ten, which suits long runs.
        budget: share of the training time since the first call that measuring may take; None for no limit.
        then: called with each record, to hand it over to other loggers.
        options: more of ``steepest.measure``. ``optimizer``: the torch optimizer of this training (SGD, Adam, AdamW),
            whose own limit the sharpness is compared with. Or ``lr``, ``momentum``, ``weight_decay`` of plain SGD: give
            these with no other optimizer, as they compare with 2(1+β)/η. Also ``curvature``, ``since``,
            ``micro_batch``, ``features``, ``seed``.

    Raises:
        UserError: unknown quantities or options, a schedule or a budget that makes no sense.

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
        for name in options:
            if name not in (*ATTACH, *OPTIONS):
                raise UserError(
                    f"a monitor has no option {name!r}; {nearest(name, (*ATTACH, *OPTIONS))}"
                )
        self.attach = {name: options.pop(name) for name in ATTACH if name in options}
        self.options = options
        self.last_good: dict[str, Any] | None = None
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

    def __call__(self, step: int, model: Any, optimizer: Any = None) -> dict[str, Any] | None:
        """Measure now, if it is time; return the record that was written, or None.

        Args:
            step: of the training.
            model: as for ``steepest.measure``, with the weights of now.
            optimizer: the state of an optax optimizer, which is another one in every step; a torch optimizer is given
                once, as an option of the monitor.
        """
        now = time.perf_counter()
        first = self.subject is None
        self.owed = self.owed or self.due(step)
        if first:
            self.started = now
        elif not self.owed or self.spent + self.last > self.budget * (
            now - self.started - self.spent
        ):
            return None
        record: dict[str, Any] = {"step": step, "seconds": 0.0, "quantities": {}}
        with in_evaluation(model):
            if self.subject is None:
                self._attach(model)
            # whatever goes wrong: a training must not end because of its monitor
            try:
                record |= self._measured(model, optimizer)
                self.last_good = record
            except Exception as trouble:
                record |= self._trouble(trouble)
        took = time.perf_counter() - now
        record["seconds"] = round(took, 4)
        self._append(record)
        self.owed = False
        self.last = 0.0 if first else took
        self.spent += took
        self.then(record)
        return record

    def _attach(self, model: Any) -> None:
        self.subject = subject(model, self.loss, self.data, **self.attach)
        if "drift" in self.what and self.options.get("since") is None:
            self.options["since"] = self.subject.values()

    def _measured(self, model: Any, optimizer: Any) -> dict[str, Any]:
        """Return what a record says of the weights of now.

        Raises:
            UserError: weights that are not finite.
        """
        assert self.subject is not None
        self.subject = self.subject.now(model)
        values = self.subject.values()
        wrong = [
            weight.name
            for weight in self.subject.weights
            if not np.isfinite(values[weight.place]).all()
        ]
        if wrong:
            raise UserError(f"the weights {wrong[0]!r} are not finite: the training has diverged")
        options = dict(self.options)
        if optimizer is not None:
            options["optimizer"] = optimizer
        missing = self._without_optimizer(options)
        report, start = report_on(
            self.subject, self.what, start=self.start, tolerant=True, **options
        )
        if start is None or np.isfinite(start).all():
            self.start = start
        quantities = {}
        for entry in report.to_json()["quantities"]:
            if entry["interpretation"].startswith(NOT_MEASURED):
                missing[entry["name"]] = entry["interpretation"]
            else:
                quantities[entry["name"]] = {key: entry[key] for key in RECORDED}
        return {"quantities": quantities} | ({"not_measured": missing} if missing else {})

    def _without_optimizer(self, options: dict[str, Any]) -> dict[str, str]:
        """Take out of the options an optimizer that cannot be read yet; return why, by the name of the option."""
        settings = [options.get(name) for name in ("lr", "momentum", "weight_decay")]
        lr, momentum, weight_decay = settings
        try:
            assert self.subject is not None
            optimizer_of(options.get("optimizer"), self.subject, lr, momentum or 0.0, weight_decay)
        except UserError as trouble:
            # the step size alone would compare with the limit of SGD, which is not that of this optimizer
            for name in ("optimizer", "lr", "momentum", "weight_decay"):
                options.pop(name, None)
            return {"optimizer": f"{NOT_MEASURED}: {trouble}"}
        return {}

    def _trouble(self, trouble: Exception) -> dict[str, Any]:
        """Say what went wrong, and what was seen last."""
        said = str(trouble).strip() or type(trouble).__name__
        if not isinstance(trouble, UserError):
            said = f"{type(trouble).__name__}: {said.splitlines()[0]}"
        seen = self.last_good or {}
        last_good = {key: seen[key] for key in ("step", "quantities") if key in seen}
        return {"trouble": said, "last_good": last_good or None}

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
