"""How much each part of a batch counts in the loss of the whole, where memory asks that it be cut.

A plain mean over the examples is the mean of the parts' losses by their numbers of examples. One with weights of
classes, or with ignored tokens, is their mean by what each part's loss divides by. A loss that compares examples with
each other (contrastive, ranking, Dice) is none of the two: its batches stay whole. Where a model's outputs
depend on what is evaluated together, as where the first axis is time, or where it reads no part of a batch, as of a
graph, batches stay whole too.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.measurement.adapters._batches import as_pair, examples, stacked, taken
from steepest.measurement.adapters._checks import few, is_read
from steepest.measurement.adapters._subject import Subject

ROOM = 8  # times the examples that are evaluated at once: as many are taken together where the loss asks for it
PAIRS = 4  # of parts, that are compared where all together are too many
NUMBERS = 2**22  # of outputs at once: products with the Hessian hold some six arrays of them
CERTAIN = 200.0  # roundings, beyond which two derivatives or losses are different ones


def weigh(subject: Subject) -> None:
    """Let the parts of batches that are cut count as they do in the whole, or leave the batches whole.

    Batches of very many outputs are cut into smaller parts than the reader asked for.

    Raises:
        UserError: batches that must stay whole and are many times larger than what is evaluated at once.
    """
    batches = subject.batches
    largest = max(batches.sizes(), default=0)
    if batches.entire or largest < 2:
        return
    asked = batches.size
    batches.size = _size(subject, min(asked, largest))
    if largest <= batches.size:
        batches.size = asked
        return
    factors = _factors(subject) if is_read(subject) else None
    if factors is None:
        _leave_whole(subject, asked)
    elif batches.whole:
        batches.factors = factors
    elif any(
        factor != 1 for factor in factors
    ):  # a loader may order its examples anew in every pass
        _leave_whole(subject, asked)


def _size(subject: Subject, count: int) -> int:
    """Return how many examples are evaluated at once, so that their outputs are not too many."""
    try:
        numbers = few(subject, 1).numbers()
    except UserError:  # a loss that one example does not have, such as of pairs
        return count
    return max(1, min(count, NUMBERS // max(1, numbers)))


def _leave_whole(subject: Subject, size: int) -> None:
    """Cut no batches.

    Args:
        subject: whose batches they are.
        size: examples that are evaluated at once, as the reader says.

    Raises:
        UserError: they are too large.
    """
    batches = subject.batches
    largest = max(batches.sizes())
    if largest > ROOM * size:
        raise UserError(
            f"the loss of {largest} examples is no mean of the losses of their parts, as where loss or model compares "
            "them, or where the first axis is time, so that they must be evaluated at once, and "
            f"micro_batch={size} allows for {ROOM} times as many; give fewer examples, batches as your training has "
            "them, or a larger micro_batch"
        )
    batches.size = max(size, largest)
    batches.together = True


def _factors(subject: Subject) -> list[float] | None:
    """Return by what each part counts more than its number of examples; None where parts do not add up at all."""
    parts = [(batch, count) for batch, count in subject.batches]
    try:
        subject.slopes(subject._outputs(parts[0][0])[0], as_pair(parts[0][0])[1])
    except UserError:  # the loss is of (params, batch), or of no single array
        return _by_value(subject, parts)
    return _by_slopes(subject, parts) if _is_row_by_row(subject, parts) else None


def _is_row_by_row(subject: Subject, parts: list[tuple[Any, int]]) -> bool:
    """Tell whether outputs are the same whatever is evaluated with them, to half of the digits."""
    batch, count = parts[0]
    if count < 2:
        batch = stacked([part for part, _ in parts[:2]])
    rows = np.arange(examples(batch))
    middle = len(rows) // 2
    whole = subject._outputs(batch)[0]
    halves = [subject._outputs(taken(batch, half))[0] for half in (rows[:middle], rows[middle:])]
    if any(half.shape[1:] != whole.shape[1:] for half in halves):
        return False
    put_together = np.concatenate(halves)
    if put_together.shape != whole.shape:
        return False
    apart = float(np.linalg.norm(put_together - whole))
    allowed = float(np.sqrt(np.finfo(subject.dtype).eps)) * float(np.linalg.norm(whole))
    return not apart > allowed  # outputs that are not finite are told of later


def _by_value(subject: Subject, parts: list[tuple[Any, int]]) -> list[float] | None:
    """Compare the mean of the parts' losses with the loss of all together, or of some pairs where all are too many."""
    few = len(parts) <= ROOM
    groups = [parts] if few else [[parts[i], parts[-1 - i]] for i in range(PAIRS)]
    for group in groups:
        mean = sum(n * subject._risk(part) for part, n in group) / sum(n for _, n in group)
        together = subject._risk(stacked([part for part, _ in group]))
        if not abs(together - mean) <= _tolerance(subject) * abs(mean):
            return None
    return [1.0] * len(parts)


def _by_slopes(subject: Subject, parts: list[tuple[Any, int]]) -> list[float] | None:
    """Weigh each part beside one of reference, by the derivative of their common loss in the outputs.

    Where part b has the loss ``L_b`` and the weight ``W_b``, both together have ``(W_r L_r + W_b L_b) / (W_r + W_b)``:
    the derivative in the outputs of r is that of ``L_r`` times ``W_r / (W_r + W_b)``, whatever these outputs are. A
    part without weight, such as padding, may have no loss by itself, as that is divided by zero.
    """
    sides = (_side(subject, part) for part, _ in parts)
    reference = next((side for side in sides if side.slopes.any()), None)
    if reference is None:
        return [1.0] * len(parts)
    ratios = []
    for part, _ in parts:
        share = _share(subject, reference, _side(subject, part))
        if share is None:
            return None
        ratios.append(1 / share - 1)
    counts = np.array([count for _, count in parts], float)
    weights = np.array(ratios)
    factors = weights / weights.sum() * counts.sum() / counts
    if np.abs(factors - 1).max() <= _tolerance(subject):
        return [1.0] * len(parts)
    return np.where(np.abs(factors) <= _tolerance(subject), 0.0, factors).tolist()


class _Side(NamedTuple):
    """A part of a batch: outputs ``(b, …)``, targets, and the derivative of its own loss in the outputs."""

    outputs: NDArray
    targets: Any
    slopes: NDArray


def _side(subject: Subject, part: Any) -> _Side:
    """Evaluate a part; where it has no loss by itself the derivative is zero."""
    outputs = subject._outputs(part)[0]
    targets = as_pair(part)[1]
    slopes = subject.slopes(outputs, targets)
    return _Side(outputs, targets, slopes if np.isfinite(slopes).all() else np.zeros_like(slopes))


def _share(subject: Subject, reference: _Side, other: _Side) -> float | None:
    """Return which share a part of reference has in the loss of both; None where the loss of both is no mean."""
    outputs = np.concatenate([reference.outputs, other.outputs])
    both = subject.slopes(outputs, stacked([reference.targets, other.targets]))
    count = len(reference.outputs)
    share = _multiple(both[:count], reference.slopes, subject)
    others_share = _multiple(both[count:], other.slopes, subject)
    if share is None or others_share is None or share <= 0:
        return None
    # a part without derivative, such as one that is fitted, may have weight
    adds_up = abs(share + others_share - 1) <= _tolerance(subject) or not other.slopes.any()
    return share if adds_up else None


def _multiple(slopes: NDArray, alone: NDArray, subject: Subject) -> float | None:
    """Return which multiple of others derivatives are; None where they are none."""
    size = float((alone * alone).sum())
    factor = float((slopes * alone).sum()) / size if size else 0.0
    misfit = float(np.linalg.norm(slopes - factor * alone))
    return factor if misfit <= _tolerance(subject) * np.sqrt(size) else None


def _tolerance(subject: Subject) -> float:
    return CERTAIN * float(np.finfo(subject.dtype).eps)
