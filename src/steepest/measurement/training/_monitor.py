"""Measure along a user's own training loop, within a budget of time, into a file that survives a kill."""

import itertools
import math
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError, nearest
from steepest.core.given import file as given_file
from steepest.core.given import real
from steepest.measurement._building import first_line
from steepest.measurement._measure import (
    NOT_MEASURED,
    Statistics,
    checked_statistics,
    chosen,
    report_on,
)
from steepest.measurement._optimizer import (
    Optimizer,
    is_resting,
    optimizer_of,
    with_transformation,
)
from steepest.measurement._report import Reading
from steepest.measurement.adapters import (
    Subject,
    in_evaluation,
    is_torch_module,
    normalizing_layers,
    subject,
    unwrapped,
)
from steepest.measurement.training._alarms import Alarm, Rule
from steepest.measurement.training._callbacks import huggingface_callback, lightning_callback
from steepest.measurement.training._divergence import Course
from steepest.measurement.training._first_order import FirstOrder, StepNumbers
from steepest.measurement.training._handover import receivers
from steepest.measurement.training._log_file import LogFile
from steepest.measurement.training._names import DECAY, HELD_OUT, PARTS
from steepest.measurement.training._own_optimizers import (
    OwnOptimizers,
    decay_over_update,
    groups_by_array,
)
from steepest.measurement.training._own_step import (
    Heard,
    OwnStep,
    facts_of,
    readings_of,
)
from steepest.measurement.training._weights import weights_of

RECORDED = ("value", "interval", "source_of_error", "over_examples", "compared", "theory")
"""What a log keeps of each reading."""
SHARE = 0.01  # of the training time, which the monitor takes by default
LEAST = 0.25  # of it, which measuring on the data has whatever all else takes
# what the first measurements take, in steps of the training
ESTIMATE = 100
OF_RISK = 60  # most of it to find out how model, loss and data fit together
COMPILED = 4.0  # seconds besides, of JAX
OF_ALL = 3.0  # times the first measurement of the risk
GROWN = 1.2  # times the largest step size of a look, from which on there is another
CHEAP = ("risk",)
"""What is measured first, where the budget does not yet allow for the rest: it takes one pass."""
ATTACH = ("micro_batch", "features", "noise")
OPTIONS = ("optimizer", "lr", "momentum", "weight_decay", "batch", "curvature", "since", "seed")


class DivergenceError(UserError):
    """Weights are not finite any more."""


class Monitor:
    """A schedule that measures a model during its training and appends one JSON line each time.

    Every call takes first-order numbers, which cost next to nothing: updates over weights by layer, whether all weights
    are finite, and of a module of torch the gradient norm of the last batch. A due step has them in its record, as
    medians over the steps since the last one, and what hooks have heard of a training step of a module of torch: units
    that are zero, saturated activations, modes, outputs. Without ``data`` this is all that is recorded.

    On ``data`` risk and curvature are measured when a step is due and the budget allows for it: at first the risk,
    which takes one pass, then all. A due step that finds no budget is made up for as soon as there is some, and
    ``now=True`` measures whatever it costs, such as after the last step. A module in training mode is measured without
    dropout, with batch normalization as it trains, and left in its mode.

    Nothing is raised into your loop. If model, loss and data do not fit together, or each process holds a part of the
    weights, the first call says so on standard error, and first-order numbers go on. In a training of several processes
    the monitor waits for none of them: call it on one, or on all with a log each. Later, weights that are not finite,
    or a measurement that fails, are logged as ``trouble`` with the last good record, and a quantity that does not exist
    for this model is among ``not_measured``. What cannot be written or handed over is said once on standard error.

    Args:
        file: the log, one JSON object a line: ``step``, ``seconds``, ``quantities`` by name; where they are known
            ``lr`` and ``momentum``; where there are any ``not_measured``, a sentence by name, and ``warnings``; after
            trouble ``trouble`` and ``last_good``, and ``diverged`` if weights are not finite. The first record of each
            monitor says when it ``started``. The file is appended to; ``steepest watch`` shows it.
        loss: see ``steepest.measure``; without one that which the model returns itself, as those of transformers do.
        data: the same; a fixed part of the training data keeps measuring cheap and comparable.
        what: names of quantities; without ``since`` the drift is measured from the first call.
        every: measure at multiples of this step; or
        per_decade: measure at this many steps for each factor of ten, which suits long runs.
        budget: share of the training time since the first call that measuring may take, the first measurement
            included; looks at the weights and records count too, but a quarter is left. None for no limit.
        to: where the numbers go besides: a ``SummaryWriter`` of TensorBoard, a run of Weights & Biases or the module
            ``wandb``, a logger with ``log_metrics``, a function of the record, or a list of these.
        then: the same, for functions: the former name.
        histograms: whether ``SummaryWriter`` and Weights & Biases get histograms of each array of weights and of its
            gradient, as the module holds them after each step that the schedule asks for; of JAX only weights.
        warn: whether a record that announces a divergence says so: a sentence in its ``warnings``, and one line on
            standard error the first time. See ``docs/measuring.md`` for the rule, and how often it is right.
        statistics: of batch normalization: those of the batch, as in the training, or ``"running"``; see
            ``steepest.measure``. Layers that you have set to evaluation mode stay in it.
        stationary: whether a lower loss is progress. False where the data or the targets change with the network, as in
            reinforcement learning, adversarial training and self-distillation: then nothing is concluded from how the
            loss goes, besides that it is finite.
        options: more of ``steepest.measure``. ``optimizer``: the torch optimizer of this training (SGD, Adam, AdamW),
            whose own limit the sharpness is compared with; without it, the optimizer whose first steps change the
            module. Or ``lr``, ``momentum``, ``weight_decay`` of plain SGD: give
            these with no other optimizer, as they compare with 2(1+β)/η. ``batch``: examples in each of your batches,
            for ``batch-noise``. Also ``curvature``, ``since``, ``micro_batch``, ``features``, ``noise``,
            ``seed``.

    Raises:
        UserError: unknown quantities or options, a schedule or a budget that makes no sense.

    >>> import tempfile
    >>> import jax.numpy as jnp
    >>> from steepest.measurement import read_log
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
        loss: Any = None,
        data: Any = None,
        what: Sequence[str] = ("risk", "sharpness"),
        *,
        every: int | None = None,
        per_decade: int = 10,
        budget: float | None = SHARE,
        to: Any = None,
        then: Callable[[dict[str, Any]], object] | None = None,
        histograms: bool = False,
        warn: bool = True,
        statistics: Statistics = "batch",
        stationary: bool = True,
        **options: Any,
    ) -> None:
        if budget is not None and not 0 < real("budget", budget, "0.05") <= 1:
            raise UserError(
                f"a budget is a share of the training time in (0, 1], or None for no limit, got {budget}"
            )
        steps = {"every": every, "per_decade": per_decade}
        given = {name: value for name, value in steps.items() if value is not None}
        if per_decade is None or any(real(name, value, "10") < 1 for name, value in given.items()):
            raise UserError(
                f"a schedule needs every ≥ 1 or per_decade ≥ 1, got {every} and {per_decade}"
            )
        self.file = given_file("the log of a monitor", file)
        self.log = LogFile(self.file)
        self.clock = time.perf_counter
        self.loss = loss
        self.data = data
        self.what = chosen(what)
        self.every = every
        self.per_decade = per_decade
        self.hand_over = (*receivers(to), *receivers(then))
        self.histograms = histograms and any(receiver.draws for receiver in self.hand_over)
        self.warn = warn
        self.statistics = checked_statistics(statistics)
        self.stationary = bool(stationary)
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
        self.measured: int | None = None  # the last step that was measured on the data
        # seconds on the clock, and spent by measuring on the data and by all other looks
        self.started = self.spent = self.besides = 0.0
        self.calls = 0
        self.took: dict[bool, float] = {}  # seconds of the last measurement, of the risk and of all
        self.owed = False  # whether a step was due that the budget did not allow yet
        self.start: np.ndarray | None = None  # what Lanczos found last
        self.course = Course()  # of what warnings rest on
        self.watched = -1  # the last step whose numbers were looked through
        self.pending: list[Alarm] = []  # of steps since the last record
        self.first_order: FirstOrder | None = FirstOrder()
        self.own_step: OwnStep | None = OwnStep()
        self.own_optimizers = OwnOptimizers()
        self.heard: Heard | None = None
        self.gone = False  # whether weights that are not finite have been said
        self.said: set[str] = set()  # on standard error
        self.recorded: int | None = None  # the last step that is in the log
        self.begun = False  # whether it has been called
        self.stopped = False
        self.model: Any = None  # of the last call, and its step
        self.last = self.wake = -1  # until before which step nothing but the loss is looked at
        self.calm = -math.inf  # the largest loss that can wait until then
        self.step_size = 0.0  # the largest at a look

    def due(self, step: int) -> bool:
        """Tell whether the schedule asks for this step."""
        return _next_due(step - 1, self.every, self.per_decade) == step

    def __call__(
        self,
        step: int,
        model: Any,
        optimizer: Any = None,
        *,
        now: bool = False,
        lr: float | None = None,
        loss: Any = None,
        grad_norm: Any = None,
    ) -> dict[str, Any] | None:
        """Measure now, if it is time; return the record that was written, or None.

        Args:
            step: of the training.
            model: as for ``steepest.measure``, with the weights of now.
            optimizer: the pair ``(transformation, state)`` of optax, or the state alone where the monitor has the
                transformation as its option; a torch optimizer is given once, as an option of the monitor.
            now: measure whatever schedule and budget say, such as after the last step.
            lr: the step size of now, where a schedule of optax sets it: ``lr=schedule(step)``.
            loss: of the last batch, a number or a tensor, which is recorded.
            grad_norm: the norm of its gradient before clipping, as ``clip_grad_norm_`` of torch returns it.
        """
        if not now and not self._has_grown(lr) and self._can_wait(step, loss, grad_norm):
            self.last = step
            self.model = model
            self.calls += 1
            return None
        if self.stopped:
            return None
        try:
            step = int(real("step", step, "100"))
        except UserError as trouble:  # a training must not end because of its monitor
            self.stop(str(trouble))
            return None
        begun = self.clock()
        spent = self.spent
        record = self._looked(begun, step, model, optimizer, now, lr, loss, grad_norm)
        self.besides += self.clock() - begun - (self.spent - spent)
        self.last = step
        self.wake = self._next(step)
        judges = self.warn and self.stationary and not self.gone
        self.calm = self.course.calm() if judges else sys.float_info.max
        return record

    def _can_wait(self, step: int, loss: Any, slope: Any) -> bool:
        """Keep what a step hands over that is not looked at now; tell whether there is nothing else to do."""
        if type(step) is not int or not self.last <= step < self.wake or self.first_order is None:
            return False
        try:
            return self.first_order.hold(step, loss, slope, self.calm)
        except Exception:  # the look at this step says what is wrong
            return False

    def _has_grown(self, lr: float | None) -> bool:
        """Tell whether the step size is larger than at all looks before; this is called in each step."""
        return self._step_size(lr) > GROWN * self.step_size

    def _step_size(self, lr: float | None) -> float:
        """Return the step size that is handed over, or the step size of the optimizer's first group; else zero."""
        if lr is None:
            try:  # what has no groups is no optimizer of torch, or a pair of optax
                lr = self.options["optimizer"].param_groups[0]["lr"]
            except Exception:
                return 0.0
        return lr if type(lr) is float else 0.0

    def _next(self, step: int) -> int:
        """Return the next step that is looked at whatever its loss is.

        One that is due is listened to from the call before it, and whether it moves the weights from two before.
        """
        if self.stopped or self.first_order is None or not self.own_optimizers.over:
            return step + 1
        due = _next_due(step, self.every, self.per_decade)
        return min(self.first_order.next_look(step), max(due - 2, step + 1))

    def _looked(
        self,
        clock: float,
        step: int,
        model: Any,
        optimizer: Any,
        now: bool,
        lr: float | None,
        loss: Any,
        grad_norm: Any,
    ) -> dict[str, Any] | None:
        """Look at a step, and measure if it is time; return the record that was written, or None."""
        self.model = model
        self._listen(step, model)
        has_grown = self._has_grown(lr)
        if has_grown:
            self.step_size = self._step_size(lr)
        news = self._look(step, model, loss, grad_norm, has_grown)
        gone = next((numbers.step for numbers in news if not numbers.is_finite), None)
        if gone is not None and not self.gone:
            self.gone = True
            return self._gone(model, step, gone)
        if self.warn and not self.gone:
            self._watch(news)
        first = not self.begun
        self.begun = True
        if first:
            self.started = clock
            unwritable = self.log.unwritable()
            if unwritable is not None:
                self.stop(str(unwritable))
                return self._begun(step) | self._trouble(unwritable)
        self.calls += 1
        due = self.due(step)
        wanted = due or now or bool(self.pending)
        self.owed = self.owed or due
        what = self._what(clock, now, first)
        if not what:
            return self._first_order_record(step, model, due) if wanted else None
        record = self._begun(step)
        # whatever goes wrong: a training must not end because of its monitor
        try:
            if self.subject is None:
                self._attach(model)
            with in_evaluation(model):
                record |= self._measured(model, what, optimizer, lr)
            self.last_good = record
            self.measured = step
        except Exception as trouble:
            record |= self._trouble(trouble)
        if self.subject is None:
            self.data = None
            self._say("data", f"only what each step has at hand is recorded: {record['trouble']}")
        self._add_first_order(record, model)
        if self.warn:
            self._announce(record)
        took = self.clock() - clock
        record["seconds"] = round(took, 4)
        self.owed = False
        self.took[what == self.what] = took
        self.spent += took
        return self._written(record, due)

    def _what(self, clock: float, now: bool, first: bool) -> tuple[str, ...]:
        """Return what is to be measured on the data in this call: all, the risk to begin with, or nothing."""
        if self.data is None:
            return ()
        if now or (first and "drift" in self.what):  # which is a change since the first call
            return self.what
        if not self.owed:
            return ()
        step = self._step_seconds(clock)
        compiling = 0.0 if is_torch_module(unwrapped(self.model)) else COMPILED
        estimate = max(ESTIMATE * step, OF_ALL * self.took.get(False, compiling))
        if self._affords(clock, self.took.get(True, estimate)):
            return self.what
        if not self.took and self._affords(clock, OF_RISK * step + compiling):
            return tuple(name for name in self.what if name in CHEAP)
        return ()

    def _step_seconds(self, clock: float) -> float:
        """Return how long a step of the training takes, in the mean."""
        return (clock - self.started - self.spent) / max(self.calls - 1, 1)

    def _affords(self, clock: float, cost: float) -> bool:
        """Tell whether the budget allows for what costs so many seconds; at once if it has no limit."""
        if math.isinf(self.budget):
            return True
        elapsed = clock - self.started - self.spent
        besides = self.besides + (0.0 if self.own_step is None else self.own_step.spent)
        share = max(self.budget * elapsed - besides, LEAST * self.budget * elapsed)
        return elapsed > 0 and self.spent + cost <= share

    def held_out(self, step: int, loss: Any) -> dict[str, Any] | None:
        """Record a loss on held-out examples, as an evaluation of your own has it; return the record.

        Args:
            step: of the training; one that is behind the last record counts as the record's.
            loss: a number or a tensor.
        """
        if self.stopped:
            return None
        try:
            value = float(loss.detach() if hasattr(loss, "detach") else loss)
            step = int(real("step", step, "100"))
            # of a step that is behind, as where calls count from one, it would begin another training
            record = self._begun(step if self.recorded is None else max(step, self.recorded))
        except Exception as trouble:  # a training must not end because of its monitor
            self._say("held out", f"a held-out loss cannot be recorded: {first_line(trouble)}")
            return None
        self._put(record, Reading(HELD_OUT, value))
        self._add_first_order(record, self.model)
        return self._written(record)

    def _begun(self, step: int) -> dict[str, Any]:
        """Return a record that holds nothing yet; the first of a monitor says when it started."""
        record: dict[str, Any] = {"step": step, "seconds": 0.0, "quantities": {}}
        if self.recorded is None:
            record["started"] = datetime.now(UTC).isoformat(timespec="seconds")
            if not self.stationary:
                record["stationary"] = False
        return record

    def _written(self, record: dict[str, Any], due: bool = False) -> dict[str, Any]:
        """Append a record to the log, hand it over, with histograms if it is due, and return it."""
        self.recorded = record["step"]
        self._guarded("the log cannot be written", self.log.append, record)
        arrays = self._arrays() if due and self.histograms else {}
        for receiver in self.hand_over:
            self._guarded("handing the record over failed", receiver.take, record, arrays)
        return record

    def _arrays(self) -> dict[str, NDArray]:
        """Return what histograms are drawn of: the weights of now, and the gradients that the module holds."""
        try:
            weights = weights_of(self.model)
            return {} if weights is None else weights.entries()
        except Exception as trouble:  # a training must not end because of its monitor
            self._say("histograms", f"no histograms: {first_line(trouble)}")
            return {}

    def _listen(self, step: int, model: Any) -> None:
        """Take what hooks have heard of the step before this call, and listen to the next one if it is due."""
        if self.own_step is None:
            return
        try:
            self.own_step.follow(model)
            self.heard = self.own_step.heard() or self.heard
            if self.due(step + 1) and self.own_step.affords(step):
                self.own_step.listen(model)
            if not self.own_optimizers.over:
                self.own_optimizers.look_for(model)
                if len(self.own_optimizers.found) == 1 and not self.knows_optimizer:
                    self.options["optimizer"] = self.own_optimizers.found[0]
        except Exception as trouble:  # a training must not end because of its monitor
            self.own_step.leave()
            self.own_step = None
            self._say("own step", f"nothing is heard of the steps: {first_line(trouble)}")

    def _look(
        self, step: int, model: Any, loss: Any, slope: Any, has_grown: bool
    ) -> list[StepNumbers]:
        """Take first-order numbers; return what has come in, of this step or of earlier ones."""
        if self.first_order is None:
            return []
        try:
            wanted = has_grown or self.due(step + 1)
            return self.first_order.look(step, model, loss, wanted, slope)
        except Exception as trouble:  # a training must not end because of its monitor
            self._without_first_order(trouble)
            return []

    def before_step(self, step: int, model: Any) -> None:
        """Take the gradients that the step of this number is about to use; for trainers that clear them in it.

        Args:
            step: the number that the coming call of this monitor has.
            model: as for that call.
        """
        if self.first_order is None or self.stopped:
            return
        try:
            self.first_order.before(step, model)
        except Exception as trouble:  # a training must not end because of its monitor
            self._without_first_order(trouble)

    def _watch(self, news: list[StepNumbers]) -> None:
        """Keep the alarms of steps for the next record."""
        for numbers in news:
            if numbers.step < self.watched:  # back at a checkpoint
                self.course = Course()
            self.watched = numbers.step
            with suppress(Exception):  # a rule that fails must not cost the training
                alarms = self.course.alarms_of_step(numbers)
                self.pending += [alarm for alarm in alarms if self._counts(alarm)]

    def _counts(self, alarm: Alarm) -> bool:
        """Tell whether an alarm means anything in this training."""
        return self.stationary or alarm.rule == Rule.NOT_FINITE

    def _add_first_order(self, record: dict[str, Any], model: Any) -> None:
        """Add first-order numbers since the last record, and what hooks have heard."""
        if self.first_order is None:
            return
        try:
            readings = self.first_order.readings()
            readings += self._of_groups(record, model)
            if self.heard is not None:
                readings += readings_of(self.heard)
                record |= facts_of(self.heard)
                self.heard = None
        except Exception as trouble:  # a training must not end because of its monitor
            self._without_first_order(trouble)
            return
        for reading in readings:
            self._put(record, reading)

    @staticmethod
    def _put(record: dict[str, Any], reading: Reading) -> None:
        """Put a number into a record."""
        entry = {key: getattr(reading, key) for key in RECORDED}
        if not math.isfinite(reading.value):  # no number of JSON
            entry["value"] = None
        record["quantities"][reading.name] = entry
        if reading.parts:
            record[PARTS[reading.name]] = reading.parts

    def _of_groups(self, record: dict[str, Any], model: Any) -> list[Reading]:
        """Add the step sizes of an optimizer's groups; return what its decay is of the updates."""
        groups = groups_by_array(self.options.get("optimizer"), model)
        assert self.first_order is not None
        medians = self.first_order.medians
        if not groups or medians is None:
            return []
        steps = sorted({group.lr for group in groups.values()}, reverse=True)
        record.setdefault("lr", steps[0])
        if len(steps) > 1:
            record["lrs"] = steps
        share = decay_over_update(groups, self.first_order.names, *medians)
        return [] if share is None else [Reading(DECAY, share)]

    def _without_first_order(self, trouble: Exception) -> None:
        """Take no first-order numbers any more, and say why."""
        self.first_order = None
        self._say("first order", f"no first-order numbers: {first_line(trouble)}")

    def _first_order_record(self, step: int, model: Any, due: bool) -> dict[str, Any] | None:
        """Write a record of first-order numbers alone; nothing where there are none."""
        record = self._begun(step)
        self._add_first_order(record, model)
        if self.warn:
            self._announce(record)
        return self._written(record, due) if record["quantities"] else None

    def _gone(self, model: Any, step: int, since: int) -> dict[str, Any]:
        """Write that weights are not finite, as soon as that is seen, and which if it is known."""
        which = "the weights"
        with suppress(Exception):
            if self.subject is not None:
                which += f" {self._not_finite(self.subject.now(model))[0]!r}"
        trouble = f"{which} are not finite at step {since}: the training has diverged"
        return self._written(self._begun(step) | self._trouble(DivergenceError(trouble)))

    def lightning(self, part: Callable[[Any], Any] | None = None) -> Any:
        """Return a callback for the trainer of Lightning that calls this monitor; it never raises.

        It measures before the first step of the optimizer, as scheduled after each, and after the last, on the first
        process alone. Steps are Lightning's ``global_step``. Without an optimizer or step size of its own, the monitor
        takes the trainer's, if that has one alone.

        Args:
            part: which part of the module is measured, such as ``lambda module: module.net``; None for all of it, whose
                ``forward`` must then be of the inputs in ``data``.

        Raises:
            UserError: if Lightning is not installed.
        """
        return lightning_callback(self, part)

    def huggingface(self, part: Callable[[Any], Any] | None = None) -> Any:
        """Return a callback for the Trainer of transformers that calls this monitor; see ``lightning``.

        Without a ``loss`` it is the model's own, and ``data`` are batches as the model takes them: dictionaries with
        the labels.

        Raises:
            UserError: if transformers is not installed.
        """
        return huggingface_callback(self, part)

    @property
    def knows_optimizer(self) -> bool:
        """Tell whether it was given an optimizer, or a step size."""
        return any(self.options.get(name) is not None for name in ("optimizer", "lr"))

    def stop(self, why: str) -> None:
        """Measure no more, and say why on standard error; for callbacks, which must not raise."""
        self.stopped = True
        self._say("stop", f"the monitor is off: {why}")

    def _announce(self, record: dict[str, Any]) -> None:
        """Add the warnings that are due to a record; print the first one of this monitor."""
        if self.recorded is not None and record["step"] < self.recorded:  # back at a checkpoint
            self.course = Course()
        alarms = self.pending
        self.pending = []
        with suppress(Exception):  # a rule that fails must not cost the record
            alarms += [alarm for alarm in self.course.alarms(record) if self._counts(alarm)]
        if alarms:
            record["warnings"] = [alarm.text for alarm in alarms]
            record["rules"] = [alarm.rule for alarm in alarms]
            self._say("warning", f"step {record['step']}: {alarms[0].text}")

    def _guarded(self, what: str, action: Callable[..., object], *given: Any) -> None:
        """Do something that must not break the training; say what went wrong, once."""
        try:
            action(*given)
        except Exception as trouble:
            self._say(what, f"{what}: {first_line(trouble)}")

    def _say(self, kind: str, sentence: str) -> None:
        """Print a line on standard error, the first time that there is something of this kind to say."""
        if kind not in self.said:
            self.said.add(kind)
            with suppress(Exception):  # there may be no standard error
                print(f"steepest: {sentence}", file=sys.stderr, flush=True)

    def _attach(self, model: Any) -> None:
        normalizing = normalizing_layers(model) if self.statistics == "batch" else ()
        with in_evaluation(model):
            self.subject = subject(
                model,
                self.loss,
                self.data,
                normalizing=normalizing,
                batch=self.options.get("batch"),
                **self.attach,
            )
        if "drift" in self.what and self.options.get("since") is None:
            self.options["since"] = self.subject.values()

    @staticmethod
    def _not_finite(subject: Subject) -> list[str]:
        """Return the names of weights that are not finite."""
        values = subject.values()
        return [w.name for w in subject.weights if not np.isfinite(values[w.place]).all()]

    def _measured(
        self, model: Any, what: tuple[str, ...], optimizer: Any, lr: float | None
    ) -> dict[str, Any]:
        """Return what a record says of the weights of now.

        Raises:
            UserError: weights that are not finite.
        """
        assert self.subject is not None
        self.subject = self.subject.now(model)
        wrong = self._not_finite(self.subject)
        if wrong:
            raise DivergenceError(
                f"the weights {wrong[0]!r} are not finite: the training has diverged"
            )
        options = dict(self.options)
        if optimizer is not None:
            options["optimizer"] = with_transformation(options.get("optimizer"), optimizer)
        if lr is not None:
            options["lr"] = float(lr)
        settings, missing = self._optimizer(options)
        report, start = report_on(self.subject, what, start=self.start, tolerant=True, **options)
        if start is None or np.isfinite(start).all():
            self.start = start
        quantities = {}
        for entry in report.to_json()["quantities"]:
            if entry["interpretation"].startswith(NOT_MEASURED):
                missing[entry["name"]] = entry["interpretation"]
            else:
                quantities[entry["name"]] = {key: entry[key] for key in RECORDED}
        return {**settings, "quantities": quantities} | (
            {"not_measured": missing} if missing else {}
        )

    def _optimizer(self, options: dict[str, Any]) -> tuple[dict[str, float], dict[str, str]]:
        """Return step size and momentum, as far as they are known, and why an optimizer cannot be read yet.

        Such an optimizer is taken out of the options.
        """
        settings = [options.get(name) for name in ("lr", "momentum", "weight_decay")]
        lr, momentum, weight_decay = settings
        if (
            is_resting(options.get("optimizer")) or lr == 0
        ):  # at the ends of many schedules: there is no limit
            for name in ("optimizer", "lr", "momentum", "weight_decay"):
                options.pop(name, None)
            return {"lr": 0.0}, {}
        try:
            assert self.subject is not None
            optimizer = optimizer_of(
                options.get("optimizer"), self.subject, lr, momentum or 0.0, weight_decay
            )
            why = optimizer.unknown
        except UserError as trouble:
            why = str(trouble)
            optimizer = Optimizer()
        if why:
            # the step size alone would compare with the limit of SGD, which is not that of this optimizer
            for name in ("optimizer", "lr", "momentum", "weight_decay"):
                options.pop(name, None)
        missing = {"optimizer": f"{NOT_MEASURED}: {why}"} if why else {}
        if optimizer.lr is None:
            return {}, missing
        return {"lr": optimizer.lr, "momentum": optimizer.momentum}, missing

    def _trouble(self, trouble: Exception) -> dict[str, Any]:
        """Say what went wrong, and what was seen last."""
        said = str(trouble).strip() or type(trouble).__name__
        if not isinstance(trouble, UserError):
            said = f"{type(trouble).__name__}: {said.splitlines()[0]}"
        before = self.last_good or {}
        last_good = {key: before[key] for key in ("step", "quantities") if key in before}
        diverged = {"diverged": True} if isinstance(trouble, DivergenceError) else {}
        return {"trouble": said, **diverged, "last_good": last_good or None}


@lru_cache(maxsize=8)  # looks of a monitor ask of the same few
def _next_due(step: int, every: int | None, per_decade: int) -> int:
    """Return the first step after this one that a schedule asks for.

    >>> [_next_due(step, None, 3) for step in (-1, 0, 1, 9, 10)], _next_due(7, 5, 10)
    ([0, 1, 2, 10, 22], 10)
    """
    if every is not None:
        return step - step % every + every
    if step < 1:
        return 0 if step < 0 else 1
    places = itertools.count(math.floor(math.log10(step) * per_decade))
    steps = (round(10 ** (place / per_decade)) for place in places)
    return next(due for due in steps if due > step)
