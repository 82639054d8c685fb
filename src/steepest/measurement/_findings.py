"""What a practitioner acts on: at most five lines drawn from a report, each with the reading that it rests on."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.measurement import _frozen, _start, _tried
from steepest.measurement._adapter_rank import (
    BY_ADAM,
    BY_DESCENT,
    UNDER_ADAM,
    UNDER_DESCENT,
    Factors,
    adapters,
)
from steepest.measurement._batch_noise import NEAR
from steepest.measurement._context import Context
from steepest.measurement._fingerprint import count_shared
from steepest.measurement._health import LEARNED, constant_guess, is_dead
from steepest.measurement._optimizer import Rule
from steepest.measurement._report import Finding, FindingId, Reading, Regime
from steepest.measurement._updates import BFLOAT16, STAYED

MOST = 5
DEAD_SHARE = 0.1  # of a layer's units: fewer dead ones are not worth a line
MANY_DEAD = 0.3  # of them, from which they are something to act on: usual starts leave a sixth
CARRIED = 0.5  # of what was learned on the examples given, which held-out ones must have
MEMORIZED = 3.0  # times as many errors on held-out data as on the examples
LOST = 0.5  # of what was learned, which running statistics lose before it is said
ROUNDED_AWAY = 0.5  # of the weights that stay where they are
FAR_RANK = 3.0  # ratio of an adapter's rank and r* from which it is on one side
NOISE = (
    0.9  # share of noise in a batch's mean squared gradient before larger batches are worth a line
)

NOTHING_LEARNED = {
    True: "",
    False: " yet, as before every training",
    None: ", as before a training",
}
"""What is added by whether the optimizer has taken a step, if that is known."""

NOT_STATIONARY = (
    "data or targets of the loss change with the network, as you say, so that its fall is no progress: nothing is said "
    "of what has been learned, and no steps are tried"
)
NO_STEP_TO_START_WITH = (
    "it is that of weights that have not learned, and falls as they do: --try 5 looks for a step to "
    "start with"
)


class Step(NamedTuple):
    """The largest stable step by one law."""

    size: float
    surely: float
    """the same at the end of the interval that allows larger steps"""
    law: str
    evidence: str


def findings(context: Context, readings: Sequence[Reading]) -> tuple[Finding, ...]:
    """Draw at most five findings from what was measured, those to act on first.

    Every rule reads what is measured already, or costs one more pass at most; a rule whose quantity was not measured
    says nothing.

    Args:
        context: of the measurement, whose shared results are used again.
        readings: of the report.
    """
    by_name = {reading.name: reading for reading in readings if not np.isnan(reading.value)}
    dead = "risk" in by_name and is_dead(context)
    learned = _has_learned(context, by_name)
    lost = _said(lambda: _start.signals(context, by_name, learned))
    if dead and lost is not None and _start.gradients_reach_the_first_layer(context):
        start = "the network is dead, all examples get the same outputs"
        return (replace(lost, sign="!", text=f"{start}: {lost.text}"),)
    rules: list[Callable[[], Finding | None]] = [
        lambda: _learned(context, by_name, dead),
        lambda: _leaking(context),
        lambda: _frozen.frozen(context, by_name),
        lambda: _frozen.not_held(context, by_name),
    ]
    if lost is not None and not dead:
        rules.append(lambda: lost)
    if not dead:  # what is measured of a dead network tells nothing else
        if lost is None or lost.sign != "!":  # else neither units nor the step are to blame
            rules += [
                lambda: _units(context, by_name),
                lambda: _step(context, by_name),
            ]
        rules.append(lambda: _tried.step_tried(context, learned))
        rules += [
            lambda: _running(context, by_name),
            lambda: _memory(context, by_name),
            lambda: _regime(by_name),
            lambda: _noise(context, by_name),
            lambda: _rounded_away(context, by_name),
            lambda: _adapters(context, by_name),
        ]
    drawn = [finding for rule in rules if (finding := _said(rule)) is not None]
    rank = {"!": 0, "?": 1, "✓": 2}
    return tuple(sorted(drawn, key=lambda finding: rank[finding.sign])[:MOST])


def _said(rule: Callable[[], Finding | None]) -> Finding | None:
    """Return what a rule finds; nothing where the model has no such thing."""
    try:
        return rule()
    except UserError:
        return None


def _learned(context: Context, by_name: dict[str, Reading], dead: bool) -> Finding | None:
    """Say whether anything has been learned."""
    if "risk" not in by_name:
        return None
    if dead:
        advice = _start.cure(context)
        return Finding(
            "!",
            "the network is dead: all examples get the same outputs and no small change of the weights tells them "
            f"apart. Start again with a smaller step{advice}",
            "risk",
            FindingId.DEAD,
        )
    if not context.stationary:
        return Finding("?", NOT_STATIONARY, "risk", FindingId.NOT_STATIONARY)
    learned = _has_learned(context, by_name)
    if learned is None:
        return None
    risk = by_name["risk"].value
    guess = by_name["risk"].compared
    if not learned:
        start = _start.too_large(context, by_name)
        if start is not None:
            return start
        when = NOTHING_LEARNED[context.optimizer.stepped]
        return Finding(
            "!" if context.optimizer.stepped else "?",
            f"nothing has been learned{when}: the risk {risk:.4g} is no better than {guess:.4g}, that of a constant "
            "guess",
            "risk",
            FindingId.NOTHING_LEARNED,
        )
    return Finding(
        "✓",
        f"it has learned: the risk is {risk:.3g}, that of a constant guess {guess:.3g}",
        "risk",
        FindingId.LEARNED,
    )


def _has_learned(context: Context, by_name: dict[str, Reading]) -> bool | None:
    """Return whether the risk is below that of a constant guess; None where that is not known."""
    guess = constant_guess(context) if "risk" in by_name else None
    return None if guess is None else by_name["risk"].value < (1 - LEARNED) * guess


def _step(context: Context, by_name: dict[str, Reading]) -> Finding | None:
    """Say the largest stable step, by the law that binds, and how near the user's is."""
    if context.kind != "hessian":
        return None
    if context.optimizer.unknown and "sharpness" in by_name:
        return Finding(
            "?",
            f"your step is not compared with a limit: {context.optimizer.unknown}",
            "sharpness",
            FindingId.STEP_NOT_COMPARED,
        )
    steps = _limits(context, by_name)
    if not steps:
        return None
    binding = min(steps, key=lambda step: step.size)
    lr = context.optimizer.lr
    if lr is None:
        knows = _has_learned(context, by_name) or not context.stationary
        advice = "give yours with --lr to compare it" if knows else NO_STEP_TO_START_WITH
        return Finding(
            "?",
            f"the largest stable step is {binding.size:.3g}, {binding.law}; {advice}",
            binding.evidence,
            FindingId.STEP_NOT_GIVEN,
        )
    ratio = lr / binding.size
    many = f"{ratio:.3g} times" if ratio >= 2 else f"{ratio:.2g} of"
    step = "the first step of your schedule," if context.optimizer.scheduled else "your step"
    text = f"{step} {lr:g} is {many} the largest stable one, {binding.size:.3g}, {binding.law}"
    if lr / binding.surely > 1 + NEAR:
        if binding.evidence == "batch sharpness":
            more = "a step raises the loss of its own batch on average"
        else:
            more = "full-batch descent leaves along the sharpest direction"
        return Finding(
            "!",
            f"{text}: {more}. Lower it, or expect spikes",
            binding.evidence,
            FindingId.STEP_TOO_LARGE,
        )
    if ratio > 1 - NEAR:
        return Finding(
            "?",
            f"{text}: the edge of stability, where long trainings often stay",
            binding.evidence,
            FindingId.STEP_AT_THE_EDGE,
        )
    return Finding("✓", text, binding.evidence, FindingId.STEP_STABLE)


def _limits(context: Context, by_name: dict[str, Reading]) -> list[Step]:
    """Return the largest stable steps that were measured: of the full batch, or of Adam's, and of the batches."""
    optimizer = context.optimizer
    steps = []
    name = "sharpness" if optimizer.scale is None else "preconditioned sharpness"
    reading = by_name.get(name)
    if reading is not None and reading.value > 0:
        low = reading.value if reading.interval is None else max(reading.interval[0], 1e-300)
        law = f"of {optimizer.called} in its own coordinates"
        if optimizer.passed_on != 1:
            law += f", with {optimizer.passed_on:.2g} of each gradient, as clipping leaves"
        if not optimizer.called:
            steps_of = " with the steps of your groups of weights"
            groups = "" if optimizer.scale is None else steps_of
            law = f"of the full batch{groups}{optimizer.with_momentum}"
        steps.append(
            Step(optimizer.largest_step(reading.value), optimizer.largest_step(low), law, name)
        )
    batches = by_name.get("batch sharpness")
    if optimizer.is_plain and batches is not None and batches.value > 0:
        low = batches.value if batches.interval is None else max(batches.interval[0], 1e-300)
        steps.append(Step(2 / batches.value, 2 / low, "of your batches", "batch sharpness"))
    return steps


def _units(context: Context, by_name: dict[str, Reading]) -> Finding | None:
    """Count hidden units that no example's loss depends on."""
    if "errors, first layer over last" not in by_name:
        return None
    errors = context.errors
    names = list(errors)
    last = np.asarray(errors[names[-1]])
    if not (last != 0).any():  # then no loss depends on anything, and units are not to blame
        return None
    counts = {}
    largest_share = 0.0
    units = 0
    for name in names[:-1]:
        rows = _by_unit(context, name, np.asarray(errors[name]))
        units += rows.shape[1]
        silent = int((rows == 0).all(0).sum())
        if silent >= DEAD_SHARE * rows.shape[1]:
            counts[name] = silent
            largest_share = max(largest_share, silent / rows.shape[1])
    if not counts:
        return None
    layers = ", ".join(f"{count} in {name}" for name, count in counts.items())
    keeps = "a smaller step or a start with smaller biases keeps them"
    if context.optimizer.stepped is False:
        keeps = "a start with smaller biases keeps them"
    return Finding(
        "!" if largest_share >= MANY_DEAD else "?",
        f"{sum(counts.values())} of {units} hidden units are dead, on no example does the loss depend on them "
        f"({layers}): {keeps}",
        "errors, first layer over last",
        FindingId.DEAD_UNITS,
    )


def _by_unit(context: Context, name: str, rows: NDArray) -> NDArray:
    """Return the errors ``(…, units)`` of what a layer writes; the channels of a convolution of torch stand second."""
    shapes = {weight.name: weight.shape for weight in context.subject.weights}
    kernel = shapes.get(f"{name}.weight", ())
    last = np.moveaxis(rows, 1, -1) if 2 < len(kernel) == rows.ndim else rows
    return last.reshape(-1, last.shape[-1])


def _memory(context: Context, by_name: dict[str, Reading]) -> Finding | None:
    """Say whether held-out examples do as well as those given, of a network that has learned."""
    if _has_learned(context, by_name) is False:
        return None
    errors = _error_rates(context, by_name)
    if errors is not None and errors.id == FindingId.MEMORIZED:
        return errors
    return _overfit(context, by_name) or errors or _carried(by_name)


def _error_rates(context: Context, by_name: dict[str, Reading]) -> Finding | None:
    """Compare the error rates of a classifier, beyond both intervals.

    To do better on the examples given is usual; it is something to act on where less than half of what was learned on
    them, beside always guessing the most frequent class, is so on the held-out ones.
    """
    inside = by_name.get("error rate")
    outside = by_name.get("error rate on held-out examples")
    if inside is None or outside is None:
        return None
    assert inside.interval is not None
    assert outside.interval is not None
    text = (
        f"{outside.value:.1%} of the held-out examples are wrong, {inside.value:.1%} of those given"
    )
    if outside.interval[0] > max(MEMORIZED * inside.value, inside.interval[1]):
        blind = _error_of_the_most_frequent(context)
        little = blind - outside.value < CARRIED * (blind - inside.value)
        return Finding(
            "!" if little else "?",
            f"{text}: it does better on what it saw. More data, or a stop at the least held-out risk, would help",
            outside.name,
            FindingId.MEMORIZED,
        )
    return Finding("✓", text, outside.name, FindingId.ERROR_RATES)


def _error_of_the_most_frequent(context: Context) -> float:
    """Return the share of the examples given that are wrong if always their most frequent class is guessed."""
    _, targets = context.outputs
    counts = np.unique(np.asarray(targets), return_counts=True)[1]
    return 1 - float(counts.max() / counts.sum())


def _overfit(context: Context, by_name: dict[str, Reading]) -> Finding | None:
    """Say where less than half of what was learned on the examples given is so on held-out ones, for any loss."""
    outside = by_name.get("risk on held-out examples")
    guess = constant_guess(context)
    if outside is None or guess is None or context.held_out is None:
        return None
    inside = by_name.get("risk with running statistics", by_name["risk"]).value
    if guess - outside.value >= CARRIED * (guess - inside):
        return None
    worse = "worse than" if outside.value > guess else "beside"
    return Finding(
        "!",
        f"it overfits: the risk is {outside.value:.3g} on held-out examples, {inside:.3g} on those given, {worse} "
        f"{guess:.3g} of a constant guess. More data, weight decay, or a stop at the least held-out risk, would help",
        outside.name,
        FindingId.OVERFITS,
    )


def _leaking(context: Context) -> Finding | None:
    """Count held-out examples that are among those given."""
    if context.held_out is None:
        return None
    shared = count_shared(context.subject.batches, context.held_out.batches)
    if shared is None or not shared.held_out:
        return None
    text = f"{shared.held_out} of {shared.of_held_out} held-out examples are among those given"
    if shared.is_natural:
        return Finding(
            "?",
            f"{text}, no more than chance has it in data in which {shared.given} of {shared.of_given} of those given "
            "stand twice: on these it does not tell learning from memorizing",
            "risk on held-out examples",
            FindingId.REPEATED,
        )
    return Finding(
        "!",
        f"{text}: they do not tell learning from memorizing. Take them out of one of the two",
        "risk on held-out examples",
        FindingId.LEAKING,
    )


def _carried(by_name: dict[str, Reading]) -> Finding | None:
    """Say the held-out risk of a model that counts no errors."""
    outside = by_name.get("risk on held-out examples")
    if outside is None:
        return None
    return Finding(
        "✓",
        f"the risk is {outside.value:.3g} on held-out examples, {by_name['risk'].value:.3g} on those given",
        outside.name,
        FindingId.HELD_OUT_RISK,
    )


def _regime(by_name: dict[str, Reading]) -> Finding | None:
    """Say whether training is lazy or rich, of a network that has moved."""
    reading = by_name.get("relative change of the tangent kernel")
    if reading is None or reading.regime in (None, Regime.UNKNOWN):
        return None
    return Finding("✓", reading.interpretation, reading.name, FindingId.REGIME)


def _running(context: Context, by_name: dict[str, Reading]) -> Finding | None:
    """Say where running statistics lose more than half of what was learned, on the very examples given."""
    reading = by_name.get("risk with running statistics")
    if reading is None or not _has_learned(context, by_name):
        return None
    risk = by_name["risk"].value
    guess = constant_guess(context)
    if guess is None or reading.value - risk < LOST * (guess - risk):
        return None
    return Finding(
        "!",
        f"in evaluation mode the risk on these examples is {reading.value:.3g}, with the statistics of each batch "
        f"{risk:.3g}: the running means and variances lag behind. A larger momentum of batch normalization, or some "
        "batches in training mode without a step, mend it",
        reading.name,
        FindingId.RUNNING_STATISTICS,
    )


def _noise(context: Context, by_name: dict[str, Reading]) -> Finding | None:
    """Say where larger batches would buy nearly proportionally fewer steps."""
    reading = by_name.get("gradient-noise scale")
    share = None if reading is None else reading.parts.get("share of noise")
    if reading is None or share is None or share < NOISE:
        return None
    examples = sum(count for _, count in context.subject.batches)
    upto = f"batches of about {reading.value:.2g}" if reading.value < examples else "all examples"
    return Finding(
        "?",
        f"{share:.0%} of your batches' mean squared gradient is noise: up to {upto}, twice the batch with "
        "twice the step needs nearly half the steps",
        reading.name,
        FindingId.BATCH_NOISE,
    )


def _rounded_away(context: Context, by_name: dict[str, Reading]) -> Finding | None:
    """Say where weights that are kept in bfloat16 mostly stay where they are."""
    reading = by_name.get(STAYED)
    if reading is None or context.subject.kept_in != BFLOAT16 or reading.value < ROUNDED_AWAY:
        return None
    return Finding(
        "!",
        f"{reading.value:.0%} of the weights did not move in the last step: they are kept in bfloat16, and a change of "
        "less than half of the distance between neighbours is rounded away. Keep the weights in float32 and compute "
        "under autocast, or round at random; a smaller step makes it worse",
        reading.name,
        FindingId.ROUNDED_AWAY,
    )


def _adapters(context: Context, by_name: dict[str, Reading]) -> Finding | None:
    """Say which factor keeps the first steps of a model's adapters the same at other ranks."""
    places = adapters(context.subject)
    by_adam = context.optimizer.kind == Rule.ADAM
    reading = by_name.get(UNDER_ADAM if by_adam else UNDER_DESCENT)
    if not places or reading is None:
        return None
    rank = min(place.rank or 0 for place in places)
    said = _beside(rank, list(reading.parts.values()), BY_ADAM if by_adam else BY_DESCENT)
    whose = "Adam" if by_adam else "plain descent"
    return Finding(
        "?",
        f"your adapters' rank {rank} is {said} under {whose}",
        reading.name,
        FindingId.ADAPTERS,
    )


def _beside(rank: int, ranks: Sequence[float], factors: Factors) -> str:
    """Say on which side of r* of some layers a rank is, and which factor keeps first steps the same there."""
    ends = f"{min(ranks):.2g} to {max(ranks):.2g}" if len(ranks) > 1 else f"{ranks[0]:.2g}"
    keeps = "their first steps keep their size at other ranks with"
    if rank >= FAR_RANK * max(ranks):
        return f"well above r* = {ends} of their inputs: {keeps} {factors.above}"
    if rank <= min(ranks) / FAR_RANK:
        return f"well below r* = {ends} of their inputs: {keeps} {factors.below}"
    return (
        f"near r* = {ends} of their inputs: {keeps} {factors.below} towards smaller ranks and {factors.above} towards "
        "larger ones"
    )
