"""The last step of Adam: its size beside those of noise and of agreement, and what bfloat16 keeps of it."""

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.measurement._context import Context
from steepest.measurement._report import Reading
from steepest.optimizers import Adam

SIZE = "size of the last update"
STAYED = "share of weights that bfloat16 would not move"
BFLOAT16 = "bfloat16"
ROOM = 0.1  # relative distance from the size on noise within which it is said to be that of noise


def measure_updates(context: Context) -> list[Reading]:
    """Measure the root mean square of m̂/(√v̂ + ε) over the weights, and how many of them bfloat16 would not move.

    Raises:
        UserError: an optimizer that is not Adam, or has taken no step.
    """
    if context.optimizer.update is None:
        raise UserError(
            "updates are those of Adam or AdamW after some steps; give the optimizer that trains your model"
        )
    return [_size(context), *_lost(context)]


def lost_in_bfloat16(weights: NDArray, change: NDArray) -> NDArray:
    """Tell which weights stay where they are when they are kept in bfloat16, rounded to nearest.

    >>> lost_in_bfloat16(np.array([1.0, 1.0]), np.array([0.001, 0.01])).tolist()
    [True, False]
    """
    kept = np.asarray(weights, np.float32).astype(ml_dtypes.bfloat16)
    moved = kept.astype(np.float32) - np.asarray(change, np.float32)
    return moved.astype(ml_dtypes.bfloat16) == kept


def _size(context: Context) -> Reading:
    """Read the size over all weights and of each array, beside that of noise."""
    optimizer = context.optimizer
    update = np.array(optimizer.update, float)
    parts = {}
    for weight in context.subject.weights:
        if weight.name in optimizer.left_out:  # next to no gradient, so that its update is rounding
            update[weight.place] = np.nan
        if np.isfinite(update[weight.place]).any():
            parts[weight.name] = float(np.sqrt(np.nanmean(update[weight.place] ** 2)))
    value = float(np.sqrt(np.nanmean(update**2)))
    noise = float(Adam(optimizer.momentum).update_size())
    return Reading(
        SIZE,
        value,
        theory=f"{noise:.3g} where batches are pure noise, 1 where they agree",
        compared=noise,
        assumes=(("gradients have kept their size over the memory of second moments", None),),
        interpretation=f"Adam moves a weight by {value:.2g} of its step size, root mean square{_beside(value, noise)}; "
        f"an orthogonalized update of an m × n matrix (Muon) has that with a factor of {value:.2g} √max(m, n)",
        parts=parts,
    )


def _beside(value: float, noise: float) -> str:
    """Say how a size compares with that of noise."""
    if value > (1 + ROOM) * noise:
        return ", more than on pure noise: batches agree in part"
    if value < (1 - ROOM) * noise:
        return (
            ", less than on pure noise: its second moments remember larger gradients, or those of successive steps "
            "cancel"
        )
    return ", as on pure noise"


def _lost(context: Context) -> list[Reading]:
    """Read how many weights the last step would leave where they are; nothing where the step size is not known."""
    optimizer = context.optimizer
    if optimizer.lr is None:
        return []
    weights = context.subject.values().astype(float)
    update = np.array(optimizer.update, float)
    relative = 1.0 if optimizer.relative is None else optimizer.relative
    decay = optimizer.one_decay if optimizer.decoupled else 0.0
    change = optimizer.lr / relative * (update + decay * weights)
    moves = np.isfinite(change) & (change != 0)
    if not moves.any():
        return []
    lost = lost_in_bfloat16(weights, change)
    share = float(lost[moves].mean())
    parts = {
        weight.name: float(lost[weight.place][moves[weight.place]].mean())
        for weight in context.subject.weights
        if moves[weight.place].any()
    }
    kept_so = context.subject.kept_in == BFLOAT16
    did = "did not move" if kept_so else "would not move if they were kept so"
    return [
        Reading(
            STAYED,
            share,
            interpretation=f"{share:.0%} of the weights {did}: what is less than half of the distance between "
            "neighbouring numbers is rounded away",
            parts=parts,
        )
    ]
