"""Hand the records of a monitor over to what draws them: TensorBoard, Weights & Biases, a function of your own."""

from collections.abc import Callable, Sequence
from typing import Any

from steepest.core.errors import UserError

Record = dict[str, Any]
PREFIX = "steepest"


def receivers(to: Any) -> tuple[Callable[[Record], object], ...]:
    """Return functions that hand a record over.

    What ``to`` is shows by its methods; nothing is imported.

    Args:
        to: None; a ``SummaryWriter`` of TensorBoard; a run of Weights & Biases, or the module ``wandb``; whatever has
            ``log_metrics(numbers, step)``, such as the loggers of Lightning; a function of the record; or several of
            them in a list.

    Raises:
        UserError: anything else.

    >>> rows = []
    >>> for hand_over in receivers([rows.append, None]):
    ...     hand_over({"step": 3, "quantities": {}})
    >>> rows
    [{'step': 3, 'quantities': {}}]
    """
    if to is None:
        return ()
    if isinstance(to, list | tuple):
        return tuple(hand_over for one in to for hand_over in receivers(one))
    if callable(getattr(to, "add_scalar", None)):
        return (lambda record: _to_tensorboard(to, record),)
    if _is_wandb(to):
        return (lambda record: _to_wandb(to, record),)
    if callable(getattr(to, "log_metrics", None)):
        return (lambda record: to.log_metrics(scalars(record), record["step"]),)
    if callable(to):
        return (to,)
    raise UserError(
        f"to={type(to).__name__} is nothing that takes numbers; give a SummaryWriter of TensorBoard, a run of wandb, "
        "a logger with log_metrics, or a function of the record"
    )


def scalars(record: Record) -> dict[str, float]:
    """Return the numbers of a record by name, each with the limit that it is compared with.

    >>> sharpness = {"value": 3.0, "compared": 4.0, "theory": "2/η"}
    >>> scalars({"step": 0, "quantities": {"sharpness": sharpness}, "lr": 0.5})
    {'steepest/sharpness': 3.0, 'steepest/sharpness, limit': 4.0, 'steepest/lr': 0.5}
    """
    numbers = {}
    for name, entry in record["quantities"].items():
        if entry["value"] is not None:
            numbers[f"{PREFIX}/{name}"] = entry["value"]
        if is_limit(entry):
            numbers[f"{PREFIX}/{name}, limit"] = entry["compared"]
    if "lr" in record:
        numbers[f"{PREFIX}/lr"] = record["lr"]
    return numbers


def is_limit(entry: Record) -> bool:
    """Tell whether a quantity is compared with the limit of a step size, such as 2/η."""
    return entry.get("compared") is not None and "η" in entry.get("theory", "")


def sentences(record: Record) -> Sequence[str]:
    """Return what a record says in words: its warnings, and what went wrong."""
    return [*record.get("warnings", ()), *([record["trouble"]] if "trouble" in record else ())]


def _to_tensorboard(writer: Any, record: Record) -> None:
    for name, value in scalars(record).items():
        writer.add_scalar(name, value, record["step"])
    for sentence in sentences(record):
        writer.add_text(f"{PREFIX}/warnings", sentence, record["step"])
    writer.flush()


def _is_wandb(to: Any) -> bool:
    """Tell whether this is the module wandb or one of its runs; other things have a method ``log`` too."""
    home = getattr(to, "__name__", "") if not isinstance(to, type) else ""
    return (home == "wandb" or type(to).__module__.split(".")[0] == "wandb") and callable(
        getattr(to, "log", None)
    )


def _to_wandb(run: Any, record: Record) -> None:
    """Log against our own step: the run's counts the calls of ``log``, and drops what is behind it."""
    step = f"{PREFIX}/step"
    numbers = scalars(record)
    for name in numbers:
        run.define_metric(name, step_metric=step)
    said = sentences(record)
    row = {step: record["step"], **numbers, **({f"{PREFIX}/warnings": said[0]} if said else {})}
    run.log(row)
