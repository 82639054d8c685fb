"""A monitor as a callback of Lightning and of the Trainer of Hugging Face; both are imported only when asked for."""

import importlib
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from steepest.core.errors import UserError

if TYPE_CHECKING:
    from steepest.measurement.training._monitor import Monitor

LIGHTNING = ("lightning.pytorch", "pytorch_lightning")


class Guarded:
    """A monitor that is called along somebody else's loop: once for each step of the optimizer, never raising.

    Attributes:
        monitor: which measures.
        part: which module of the one that is trained is measured.
    """

    def __init__(self, monitor: "Monitor", part: Callable[[Any], Any] | None) -> None:
        self.monitor = monitor
        self.part = part
        self.last: int | None = None

    def begin(self, optimizer: Any) -> None:
        """Take the trainer's optimizer, if the monitor knows neither one nor its step size."""
        if optimizer is not None and not self.monitor.knows_optimizer:
            self.monitor.options["optimizer"] = unwrapped(optimizer)

    def __call__(
        self, step: int, module: Any, now: bool = False, loss: Any = None, slope: Any = None
    ) -> None:
        """Measure, if the optimizer has stepped since the last call; what goes wrong is said once."""
        # gradients are accumulated; and at the end the last step may have been measured already
        if step == (self._done() if now else self.last):
            return
        self.last = step
        if self.monitor.stopped:
            return
        try:
            model = module if self.part is None else self.part(module)
            self.monitor(step, model, now=now, loss=loss, grad_norm=slope)
        except Exception as trouble:
            said = (
                str(trouble)
                if isinstance(trouble, UserError)
                else f"{type(trouble).__name__}: {trouble}"
            )
            self.monitor.stop(said)

    def before(self, step: int, module: Any) -> None:
        """Take the gradients that the optimizer is about to use in this step."""
        with suppress(Exception):  # the call after the step says what is wrong
            self.monitor.before_step(step, module if self.part is None else self.part(module))

    def evaluated(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Record the loss of an evaluation by the trainer, if there is one among its numbers."""
        loss = held_out_loss(metrics)
        if loss is not None and not self.monitor.stopped:
            self.monitor.held_out(step, loss)

    def _done(self) -> int | None:
        """Return the last step that needs no record any more."""
        return self.monitor.recorded if self.monitor.data is None else self.monitor.measured


def held_out_loss(metrics: Mapping[str, Any]) -> Any:
    """Return the loss of an evaluation by its usual names; None where there is none.

    >>> held_out_loss({"eval_loss": 0.5, "epoch": 1.0}), held_out_loss({"val/loss": 0.4}), held_out_loss({"loss": 1.0})
    (0.5, 0.4, None)
    """
    for name, value in metrics.items():
        words = name.replace("/", "_").split("_")
        if words[-1] == "loss" and words[0] in ("eval", "val", "valid", "validation"):
            return value
    return None


class ReturnedLosses:
    """The losses that a module returns in its own training, averaged as a trainer of transformers does.

    Batches whose gradients are accumulated are averaged; where the module is told how many items all of them have
    together, each loss is already a share of the sum.
    """

    def __init__(self) -> None:
        self.handle: Any = None
        self.losses: list[Any] = []
        self.are_shares = False

    def listen(self, module: Any) -> None:
        """Begin to listen to a module of torch."""
        self.leave()
        self.handle = module.register_forward_hook(self._heard, with_kwargs=True)

    def leave(self) -> None:
        """Listen no more, and leave the module as it was."""
        if self.handle is not None:
            self.handle.remove()
        self.handle = None

    def since_the_last(self) -> Any:
        """Return the loss since the last call; None where the module returned none."""
        losses, self.losses = self.losses, []
        if not losses:
            return None
        return sum(losses) / (1 if self.are_shares else len(losses))

    def _heard(self, module: Any, given: Any, named: dict[str, Any], outputs: Any) -> None:
        if not module.training:  # an evaluation, or a measurement
            return
        loss: Any = loss_among(outputs) if isinstance(outputs, Mapping) else None
        if getattr(loss, "ndim", None) == 0:
            self.losses.append(loss.detach())
            self.are_shares = named.get("num_items_in_batch") is not None


def unwrapped(optimizer: Any) -> Any:
    """Return the optimizer of torch inside of what accelerate or Lightning put around it."""
    while not _of_torch(optimizer) and hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    return optimizer


def _of_torch(optimizer: Any) -> bool:
    return type(optimizer).__module__.split(".")[0] == "torch"


def lightning_callback(monitor: "Monitor", part: Callable[[Any], Any] | None) -> Any:
    """Return a callback of Lightning.

    Raises:
        UserError: if Lightning is not installed.
    """
    bases = tuple(module.Callback for module in _lightning())

    class SteepestMonitor(*bases):
        def __init__(self) -> None:
            super().__init__()
            self.guarded = Guarded(monitor, part)

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            if trainer.is_global_zero:
                optimizers = trainer.optimizers
                self.guarded.begin(optimizers[0] if len(optimizers) == 1 else None)
                self.guarded(trainer.global_step, pl_module)

        def on_train_batch_end(
            self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
        ) -> None:
            if trainer.is_global_zero:
                self.guarded(trainer.global_step, pl_module, loss=loss_among(outputs))

        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            # the check before a training has seen a few batches only
            if trainer.is_global_zero and not trainer.sanity_checking:
                self.guarded.evaluated(trainer.global_step, trainer.callback_metrics)

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            if trainer.is_global_zero:
                self.guarded(trainer.global_step, pl_module, now=True)

    return SteepestMonitor()


def loss_among(outputs: Any) -> Any:
    """Return the loss among what a training step of Lightning returns; None where there is none.

    >>> loss_among({"loss": 0.5}), loss_among(0.5), loss_among(None), loss_among({"logits": 0.5})
    (0.5, 0.5, None, None)
    """
    return outputs.get("loss") if isinstance(outputs, Mapping) else outputs


def _lightning() -> list[Any]:
    """Return the packages of Lightning whose trainer may ask for a callback: both, if both are imported."""
    imported = [sys.modules[name] for name in LIGHTNING if sys.modules.get(name) is not None]
    if imported:
        return imported
    for name in LIGHTNING:
        try:
            return [importlib.import_module(name)]
        except ImportError:
            continue
    raise UserError("Lightning is not installed; pip install lightning")


def huggingface_callback(monitor: "Monitor", part: Callable[[Any], Any] | None) -> Any:
    """Return a callback of the Trainer of transformers.

    Raises:
        UserError: if transformers is not installed.
    """
    try:
        base = importlib.import_module("transformers").TrainerCallback
    except ImportError:
        raise UserError(
            "transformers is not installed; pip install 'transformers[torch]'"
        ) from None

    class SteepestMonitor(base):
        def __init__(self) -> None:
            self.guarded = Guarded(monitor, part)
            self.returned = ReturnedLosses()
            self.logged: Any = None
            self.slope: Any = None

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if not state.is_world_process_zero:
                return
            self.guarded.begin(kwargs.get("optimizer"))
            model = kwargs.get("model")
            if model is not None and not getattr(args, "torch_compile", False):
                self.returned.listen(model)  # a compiled module would be compiled with it
            self.guarded(state.global_step, model)

        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.is_world_process_zero:
                self.guarded.before(state.global_step + 1, kwargs.get("model"))

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.is_world_process_zero:
                returned = self.returned.since_the_last()
                loss = self.logged if returned is None else returned
                slope, self.logged, self.slope = self.slope, None, None
                self.guarded(state.global_step, kwargs.get("model"), loss=loss, slope=slope)

        def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            # the trainer's mean since its last line; of losses that the module does not return itself
            logs = kwargs.get("logs") or {}
            self.logged = logs.get("loss", self.logged)
            self.slope = logs.get("grad_norm", self.slope)

        def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.is_world_process_zero:
                self.guarded.evaluated(state.global_step, kwargs.get("metrics") or {})

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self.returned.leave()
            if state.is_world_process_zero:
                model = kwargs.get("model")
                self.guarded(state.global_step, model, now=True, loss=self.logged)

    return SteepestMonitor()
