"""Hand the records of a monitor over to what draws them: TensorBoard, Weights & Biases, a function of your own."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.measurement.training._names import PARTS

Record = dict[str, Any]
PREFIX = "steepest"


class Receiver(NamedTuple):
    """What takes the records of a monitor.

    Attributes:
        take: takes a record, and arrays by name whose histograms belong to it.
        draws: whether it draws histograms; else it makes nothing of arrays.
    """

    take: Callable[[Record, Mapping[str, NDArray]], object]
    draws: bool = False


def receivers(to: Any) -> tuple[Receiver, ...]:
    """Return what takes a record, and draws histograms if it can.

    What ``to`` is shows by its methods; nothing is imported.

    Args:
        to: None; a ``SummaryWriter`` of TensorBoard; a run of Weights & Biases, or the module ``wandb``; whatever has
            ``log_metrics(numbers, step)``, such as the loggers of Lightning; a function of the record; or several of
            them in a list.

    Raises:
        UserError: anything else.

    >>> rows = []
    >>> for receiver in receivers([rows.append, None]):
    ...     receiver.take({"step": 3, "quantities": {}}, {})
    >>> rows
    [{'step': 3, 'quantities': {}}]
    """
    if to is None:
        return ()
    if isinstance(to, list | tuple):
        return tuple(receiver for part in to for receiver in receivers(part))
    if callable(getattr(to, "add_scalar", None)):
        draws = callable(getattr(to, "add_histogram", None))
        return (Receiver(lambda record, arrays: _to_tensorboard(to, record, arrays), draws),)
    if _is_wandb(to):
        return (Receiver(lambda record, arrays: _to_wandb(to, record, arrays), draws=True),)
    if callable(getattr(to, "log_metrics", None)):
        return (Receiver(lambda record, _: to.log_metrics(scalars(record), record["step"])),)
    if callable(to):
        return (Receiver(lambda record, _: to(record)),)
    raise UserError(
        f"to={type(to).__name__} is nothing that takes numbers; give a SummaryWriter of TensorBoard, a run of wandb, "
        "a logger with log_metrics, or a function of the record"
    )


def scalars(record: Record) -> dict[str, float]:
    """Return the numbers of a record by name, each with the limit that it is compared with, also those by layer.

    >>> sharpness = {"value": 3.0, "compared": 4.0, "theory": "2/η"}
    >>> scalars({"step": 0, "quantities": {"sharpness": sharpness}, "lr": 0.5})
    {'steepest/sharpness': 3.0, 'steepest/sharpness, limit': 4.0, 'steepest/lr': 0.5}
    >>> scalars({"step": 0, "quantities": {}, "updates": {"0.weight": 0.01}})
    {'steepest/updates/0.weight': 0.01}
    """
    numbers = {}
    for name, entry in record["quantities"].items():
        if entry["value"] is not None:
            numbers[f"{PREFIX}/{name}"] = entry["value"]
        if is_limit(entry):
            numbers[f"{PREFIX}/{name}, limit"] = entry["compared"]
    if "lr" in record:
        numbers[f"{PREFIX}/lr"] = record["lr"]
    for part in PARTS.values():
        for layer, value in record.get(part, {}).items():
            numbers[f"{PREFIX}/{part}/{layer}"] = value
    return numbers


def is_limit(entry: Record) -> bool:
    """Tell whether a quantity is compared with the limit of a step size, such as 2/η."""
    return entry.get("compared") is not None and "η" in entry.get("theory", "")


def sentences(record: Record) -> Sequence[str]:
    """Return what a record says in words: its warnings, and what went wrong."""
    return [*record.get("warnings", ()), *([record["trouble"]] if "trouble" in record else ())]


def _to_tensorboard(writer: Any, record: Record, arrays: Mapping[str, NDArray]) -> None:
    for name, value in scalars(record).items():
        writer.add_scalar(name, value, record["step"])
    for name, entries in arrays.items():
        writer.add_histogram(f"{PREFIX}/{name}", entries, record["step"])
    for sentence in sentences(record):
        writer.add_text(f"{PREFIX}/warnings", sentence, record["step"])
    writer.flush()


def _is_wandb(to: Any) -> bool:
    """Tell whether this is the module wandb or one of its runs; other things have a method ``log`` too."""
    home = getattr(to, "__name__", "") if not isinstance(to, type) else ""
    return (home == "wandb" or type(to).__module__.split(".")[0] == "wandb") and callable(
        getattr(to, "log", None)
    )


def _to_wandb(run: Any, record: Record, arrays: Mapping[str, NDArray]) -> None:
    """Log one row against our own step: the run's counts the calls of ``log``, and drops what is behind it."""
    step = f"{PREFIX}/step"
    run.define_metric(step)
    run.define_metric(f"{PREFIX}/*", step_metric=step)
    row: dict[str, Any] = {step: record["step"], **scalars(record)}
    if arrays:
        histogram = sys.modules["wandb"].Histogram
        row |= {f"{PREFIX}/{name}": histogram(entries) for name, entries in arrays.items()}
    if said := sentences(record):
        row[f"{PREFIX}/warnings"] = said[0]
    run.log(row)
