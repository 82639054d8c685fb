"""Faults of a training that its free numbers show: one table of rules, each with what it reads and what it says.

A rule is a function of a run, which returns a sign and a sentence, or None where there is nothing to say. It needs no
other place: its id stands in ``Fault``, ``@rule`` puts it into the table, and its test plants the fault.
"""

import math
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from steepest.measurement._report import Finding
from steepest.measurement.training import _names as names
from steepest.measurement.training._learning import is_fresh, of_losses

if TYPE_CHECKING:
    from steepest.measurement.training._run import TrainingRun

Said = tuple[str, str] | None
"""A sign and a sentence."""


class Fault(StrEnum):
    """What is wrong with a training, by its free numbers."""

    EVALUATION_MODE = "evaluation-mode"
    GRADIENTS_ADD_UP = "gradients-add-up"
    REPEATS_INPUTS = "repeats-inputs"
    PROBABILITIES = "probabilities"
    DOES_NOT_CARRY_OVER = "does-not-carry-over"
    MEMORIZES = "memorizes"
    DECAY_DOMINATES = "decay-dominates"
    DEAD_UNITS = "dead-units"
    SATURATED = "saturated"
    STEP_RAISED = "step-raised"
    CLIPPED_AWAY = "clipped-away"
    DOES_NOT_MOVE = "does-not-move"
    LAYER_APART = "layer-apart"
    HARDLY_MOVES = "hardly-moves"


class Rule(NamedTuple):
    """A rule of the table."""

    id: Fault
    reads: str
    """The quantity without which it says nothing."""
    of_progress: bool
    """Whether it takes a lower loss for progress."""
    says: Callable[["TrainingRun"], Said]


RULES: list[Rule] = []
RECENT = 1 / 3  # of the steps, of which medians tell how a training stands
FEW = 2  # records that a rule needs, so that one batch decides nothing


def faults(run: "TrainingRun") -> list[Finding]:
    """Return what the rules of the table say of a run."""
    return [
        Finding(*said, rule.reads, rule.id)
        for rule in RULES
        if rule.reads in run.names
        and (run.stationary or not rule.of_progress)
        and (said := rule.says(run)) is not None
    ]


def rule(
    id: Fault, reads: str, of_progress: bool = False
) -> Callable[[Callable[["TrainingRun"], Said]], Callable]:
    """Put a function into the table.

    Args:
        id: what it finds.
        reads: the quantity without which it says nothing.
        of_progress: whether it takes a lower loss for progress.
    """

    def put(says: Callable[["TrainingRun"], Said]) -> Callable[["TrainingRun"], Said]:
        RULES.append(Rule(id, reads, of_progress, says))
        return says

    return put


@rule(Fault.EVALUATION_MODE, names.SIZE)
def _evaluation_mode(run: "TrainingRun") -> Said:
    """Say that a module trains in evaluation mode, or that some of its normalizing layers do."""
    record = _last(run, names.SIZE)
    frozen = record.get(names.FROZEN_STATISTICS, [])
    if not frozen:
        return None
    step = record["step"]
    if record.get(names.EVALUATION):
        return "!", (
            f"the module is in evaluation mode in training step {step}: dropout is off, and {_listed(frozen)} "
            "normalize by running statistics that stay as they are. Call model.train() after each evaluation"
        )
    return "?", (
        f"{_listed(frozen)} normalize by running statistics in training step {step}: right if you have frozen them"
    )


@rule(Fault.GRADIENTS_ADD_UP, names.LEFT_OVER)
def _gradients_add_up(run: "TrainingRun") -> Said:
    """Say that gradients of earlier steps are still in the gradients of a step."""
    shares = _recent(run, names.LEFT_OVER)
    if len(shares) < FEW or shares.min() < 0.05:  # rounding leaves a millionth
        return None
    return "!", (
        f"{np.median(shares):.0%} of the gradient that a step uses did not come from the batch of this step: gradients "
        "of earlier steps are still in it. Call optimizer.zero_grad() in each step"
    )


@rule(Fault.REPEATS_INPUTS, names.REPEATS)
def _repeats_inputs(run: "TrainingRun") -> Said:
    """Say that a language model has learned to return its input."""
    shares = _recent(run, names.REPEATS)
    if len(shares) < FEW or np.median(shares) < 0.5:
        return None
    return "?", (
        f"the likeliest output is the input at the same place, in {np.median(shares):.0%} more places than neighbours "
        "are alike. If the next place is to be predicted, the targets are not shifted"
    )


@rule(Fault.PROBABILITIES, names.SIZE, of_progress=True)
def _probabilities(run: "TrainingRun") -> Said:
    """Say that outputs are probabilities, and whether the losses stay above what is possible after another softmax."""
    classes = _last(run, names.SIZE).get(names.SHARES, 0)
    if not classes or names.LOSS not in run.names:
        return None
    # of outputs p it is log Σ exp(p) − p_y, with logits between 0 and 1: one more at most than its least value
    floor = math.log(math.e + classes - 1) - 1
    losses = run[names.LOSS].values
    losses = losses[np.isfinite(losses)]
    if not len(losses) or losses.min() < 0.999 * floor or losses.max() > floor + 1.001:
        return None  # this is another loss of probabilities
    # of few classes other losses, such as one less an overlap, lie between the same bounds
    return "!" if classes > 3 else "?", (
        f"the outputs are probabilities, and all losses lie between {floor:.3g} and {floor + 1:.3g}, as losses of a "
        f"cross-entropy of {classes} classes that takes them for logits: it learns slowly. Hand over what stands "
        "before the softmax"
    )


@rule(Fault.DOES_NOT_CARRY_OVER, names.HELD_OUT, of_progress=True)
def _does_not_carry_over(run: "TrainingRun") -> Said:
    """Say that the losses of batches fall and the held-out loss never has."""
    steps, held_out = _finite(run, names.HELD_OUT)
    course = of_losses(run)
    if len(steps) < FEW or course is None or not course.start.is_above(course.end):
        return None
    # both since the first evaluation, which may come late
    before = of_losses(run, until=int(steps[0]))
    start = course.start.value if before is None else min(course.start.value, before.end.value)
    fallen = 1 - course.end.value / start if start > 0 else 0.0
    if fallen < 0.03 or held_out.min() < (1 - 0.2 * fallen) * held_out[0]:
        return None
    if held_out[-1] - course.end.value < 0.5 * fallen * start:
        return None  # held-out examples are as well off as the batches
    return "!" if fallen > 0.3 else "?", (
        f"the loss of the batches has fallen {course.between()}, and the held-out loss is {held_out[-1]:.3g} at step "
        f"{steps[-1]}, at its lowest {held_out.min():.3g}: nothing of it carries over. Are the labels those of these "
        "examples, and the held-out ones of the same kind?"
    )


@rule(Fault.MEMORIZES, names.HELD_OUT, of_progress=True)
def _memorizes(run: "TrainingRun") -> Said:
    """Say that the held-out loss has risen since some step, while the losses of batches fell."""
    steps, held_out = _finite(run, names.HELD_OUT)
    course = of_losses(run)
    if len(steps) < 3 or course is None:
        return None
    lowest = int(held_out.argmin())
    low, end = held_out[lowest], held_out[-1]
    scatter = np.abs(np.diff(held_out)).min(initial=math.inf)
    risen = end - low
    if lowest == len(steps) - 1 or risen < max(0.1 * abs(low), 2 * scatter):
        return None
    before = of_losses(run, until=int(steps[lowest]))
    if before is None or not before.end.is_above(course.end):
        return None
    return "!" if end > held_out[0] else "?", (
        f"the held-out loss was lowest at step {steps[lowest]}, {low:.3g}, and is {end:.3g} at step {steps[-1]}, while "
        f"the loss of the batches fell from {before.end.value:.3g} to {course.end.value:.3g}: the network memorizes. "
        "Stop there, or regularize"
    )


@rule(Fault.DECAY_DOMINATES, names.DECAY)
def _decay_dominates(run: "TrainingRun") -> Said:
    """Say that weight decay makes up most of the updates."""
    # at the end of a training with all examples gradients balance the decay, and updates vanish; so all of it counts
    _, shares = _finite(run, names.DECAY)
    if len(shares) < 2 * FEW or np.median(shares) < 0.5:
        return None
    # at the optimum of a penalized loss both are as large, and nothing moves any more
    _, updates = _finite(run, names.UPDATE)
    moves = len(updates) > 0 and np.median(updates) > 1e-3
    return "!" if moves else "?", (
        f"the part that weight decay has in an update is {np.median(shares):.2g} times as large as the update, in the "
        "median over the training: the gradients mostly work against the decay. Lower it"
    )


@rule(Fault.DEAD_UNITS, names.IDLE)
def _dead_units(run: "TrainingRun") -> Said:
    """Say which layer has most units that are zero on all examples of many batches."""
    least, layer, share = _layer_of_most(run, names.IDLE)
    if least < 0.3:
        return None
    return "!" if least >= 0.45 else "?", (
        f"{share:.0%} of the inputs of {layer} have been zero on all examples of the last batches: these "
        "units are dead, or hardly used. A smaller step, or another start, keeps them alive"
    )


@rule(Fault.SATURATED, names.SATURATED)
def _saturated(run: "TrainingRun") -> Said:
    """Say which layer's activations lie at an end of their range."""
    least, layer, share = _layer_of_most(run, names.SATURATED)
    if least < 0.5:
        return None
    return "?", (
        f"{share:.0%} of the values of {layer} lie at an end of their range, where the gradient is next to "
        "zero: smaller first weights, or inputs of size one, keep them off it"
    )


@rule(Fault.STEP_RAISED, names.LOSS, of_progress=True)
def _step_raised(run: "TrainingRun") -> Said:
    """Say that the step size was raised after it had fallen, and the losses rose with it."""
    if "lr" not in run.columns:
        return None
    both = np.isfinite(run.columns["lr"]) & np.isfinite(run[names.LOSS].values)
    steps = run.steps[both]
    lr = run.columns["lr"][both]
    losses = run[names.LOSS].values[both]
    jumps = np.flatnonzero(
        (lr[1:] > 2.9 * lr[:-1]) & (lr[:-1] < 0.95 * np.maximum.accumulate(lr)[:-1])
    )
    if not len(jumps):
        return None
    at = int(jumps[-1])
    before = losses[at]
    after = losses[at + 1 :]
    if after.max() < 1.1 * before + 1e-12:
        return None
    course = of_losses(run)
    is_back = course is not None and course.end.value <= before
    now = f"{losses[-1]:.3g} at step {steps[-1]}"
    return "?" if is_back else "!", (
        f"the step size was raised from {lr[at]:.3g} to {lr[at + 1]:.3g} after step {steps[at]}, and the loss of the "
        f"batches went from {before:.3g} to {after.max():.3g}; it is {now}. Was the schedule meant to begin again?"
    )


@rule(Fault.CLIPPED_AWAY, names.UNCLIPPED)
def _clipped_away(run: "TrainingRun") -> Said:
    """Say that each step is clipped to a small part of its gradient."""
    if names.GRADIENT not in run.names or names.CLIPPED not in run.names:
        return None
    clipped = _recent(run, names.CLIPPED)
    kept = _recent(run, names.GRADIENT, over=names.UNCLIPPED)
    if len(clipped) < FEW or len(kept) < FEW or np.median(clipped) < 0.95 or np.median(kept) > 0.05:
        return None
    return "?", (
        f"nearly every step is clipped, to {np.median(kept):.1%} of its gradient's norm: all steps have one length, "
        "and the clip sets the step size. Raise the threshold to what usual gradients have"
    )


@rule(Fault.DOES_NOT_MOVE, names.LARGEST)
def _does_not_move(run: "TrainingRun") -> Said:
    """Say which arrays have not moved in any step that was looked at, while others have."""
    by_array = _by_array(run)
    if len(by_array) < 2 or not any(by_array.values()):
        return None
    still = [name for name, update in by_array.items() if update == 0]
    if not still:
        return None
    return "?", (
        f"{_listed(still)} {'have' if len(still) > 1 else 'has'} not moved in any step that was looked at: no "
        "optimizer holds them, or no gradient reaches them"
    )


@rule(Fault.LAYER_APART, names.LARGEST)
def _layer_apart(run: "TrainingRun") -> Said:
    """Say which array moves a hundred times as fast or as slowly as the others do."""
    by_array = {name: update for name, update in _by_array(run).items() if update > 0}
    if len(by_array) < 4:
        return None
    middle = float(np.median(list(by_array.values())))
    apart = {
        name: update
        for name, update in by_array.items()
        if update < middle / 100 or (update > 100 * middle and update > 0.1)
    }
    if not apart:
        return None
    name = min(apart, key=lambda name: min(apart[name] / middle, middle / apart[name]))
    return "?", (
        f"a step moves {name} by {apart[name]:.2g} of its size, and the others by {middle:.2g} in the median: look at "
        "its step size, its start and the gradient that reaches it"
    )


@rule(Fault.HARDLY_MOVES, names.UPDATE, of_progress=True)
def _hardly_moves(run: "TrainingRun") -> Said:
    """Say that all steps together have hardly moved the weights, and the losses stand."""
    _, updates = _finite(run, names.UPDATE)
    course = of_losses(run)
    steps = int(run.steps[-1] - run.steps[0])
    if len(updates) < FEW or course is None or steps < 100:
        return None
    moved = float(np.median(updates)) * steps
    if moved > 1e-3 or course.start.is_above(course.end):
        return None
    return "!", (
        f"{steps} steps have moved the weights by at most {moved:.1e} of their size, and the loss of the batches went "
        f"{course.between()}: the step is far too small, or rounding loses it"
    )


def _layer_of_most(run: "TrainingRun", name: str) -> tuple[float, str, float]:
    """Return the least that a layer's share has been lately, the layer with most of it now, and how much that has."""
    shares = _recent(run, name)
    if len(shares) < FEW:
        return 0.0, "", 0.0
    by_layer = _last(run, name)[names.PARTS[name]]
    layer = max(by_layer, key=by_layer.get)
    return float(shares.min()), layer, by_layer[layer]


def _last(run: "TrainingRun", name: str) -> dict[str, Any]:
    """Return the last record that has a quantity."""
    return next(record for record in reversed(run.records) if name in record["quantities"])


def _finite(run: "TrainingRun", name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps and values of a quantity, where it is finite."""
    if name not in run.names:
        return np.empty(0, int), np.empty(0)
    values = run[name].values
    finite = np.isfinite(values)
    return run.steps[finite], values[finite]


def _recent(run: "TrainingRun", name: str, over: str = "") -> np.ndarray:
    """Return the values of a quantity in the last third of the steps, two at least; none where they are old."""
    values = run[name].values
    if over:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = values / run[over].values
    finite = np.isfinite(values)
    if not is_fresh(run, finite) and finite.sum() < FEW:
        return np.empty(0)
    rows = np.flatnonzero(finite)
    late = run.steps[rows] >= run.steps[-1] - RECENT * (run.steps[-1] - run.steps[0])
    return values[rows[late] if late.sum() >= FEW else rows[-FEW:]]


def _by_array(run: "TrainingRun") -> dict[str, float]:
    """Return each array's update over weight, the median over the last third of the steps, two records at least."""
    key = names.PARTS[names.LARGEST]
    begin = run.steps[-1] - RECENT * (run.steps[-1] - run.steps[0])
    listed = [r for r in run.records if isinstance(r.get(key), dict)]
    if len(listed) < FEW:
        return {}
    late = [r[key] for r in listed if r["step"] >= begin]
    late = late if len(late) >= FEW else [r[key] for r in listed[-FEW:]]
    return {
        name: float(np.median([updates[name] for updates in late if name in updates]))
        for name in late[-1]
    }


def _listed(found: list[str]) -> str:
    """Return some names in words."""
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return ", ".join(found[:3]) + more
