"""The step size that short descents from the weights as they are speak for: what is read, and what is found."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from steepest.core.errors import UserError
from steepest.core.panels import Curve, Panel
from steepest.measurement._batch_noise import size_of_batches
from steepest.measurement._context import Context
from steepest.measurement._descents import Descent, Descents, Judges, Tried, rounded, short_descents
from steepest.measurement._optimizer import Optimizer, Rule
from steepest.measurement._report import Finding, FindingId, Reading
from steepest.measurement.adapters import Subject, gathered, on_batches

BEST = "step that short descents speak for"
STEPS = 50  # of each descent
DRAWS = 2  # of batches, over each of which each step size descends
USUAL = 3  # step sizes, where it is not said how many
ADAM = 1e-3  # where the search begins if neither a step size nor a limit is known, as of Adam before its first step
BELOW_THE_LIMIT = 0.3  # of the largest stable step: where it begins if only the limit is known
ASIDE = 5  # one in so many examples judges, and no descent uses it
LEAST = 50  # examples that judge so
MOST = 2000
NOT_STATIONARY = (
    "no descents were tried: data or targets of the loss change with the network, as you say, so that its fall is no "
    "progress"
)


ON = {
    Judges.HELD_OUT: "on the held-out examples",
    Judges.ASIDE: "on examples that no descent used",
    Judges.GIVEN: "on the examples given, which the descents used",
}
"""Which examples judge the descents, in words."""


class _Material(NamedTuple):
    """What descents descend on, and what judges them."""

    draws: list[list[Any]]
    judge: Subject
    judges: Judges


def measure_descents(context: Context) -> list[Reading]:
    """Measure which step size ends lowest after some steps from the weights as they are.

    Raises:
        UserError: an optimizer whose steps are not known here; an unknown size of the batches; a loss whose fall is no
            progress.
    """
    before = context.subject.passes
    tried = _tried(context)
    context.tried = tried
    descents = tried.descents
    if not descents.any_descends:
        return [Reading(BEST, math.nan, interpretation=_none_descends(tried))]
    best = descents.best
    text = f"of {_count(descents)} from these weights the one with {best.step:g} ends lowest, {_at(tried, best)}, from "
    text += f"{descents.start:.3g}"
    lost = [f"{descent.step:g}" for descent in descents.tried if descent.diverges]
    if lost:
        text += f"; with {', '.join(lost)} it diverges"
    if not descents.is_inside:
        text += "; steps beyond those tried may end lower"
    if isinstance(context.optimizer.decay, tuple):
        text += "; your groups' several weight decays are left out"
    passes = context.subject.passes - before
    text += f". They took {passes} passes over the data"
    kept = [descent for descent in descents.tried if not descent.diverges]
    parts = {f"risk after steps of {descent.step:g}": descent.risk for descent in kept}
    step = _spoken_for(context, descents).step
    return [Reading(BEST, step, interpretation=text, parts=parts, panel=_panel(descents))]


def _spoken_for(context: Context, descents: Descents) -> Descent:
    """Return the one whose step is named: one to start with, one that is better than the user's, or the user's."""
    if context.optimizer.lr is None:
        return descents.best
    return descents.better or descents.from_the_usual_step


def _tried(context: Context) -> Tried:
    """Make the descents that the context asks for."""
    if not context.stationary:
        raise UserError(NOT_STATIONARY)
    optimizer = context.optimizer
    # an Adam that has not begun has no limit either, but its steps are known
    if optimizer.unknown and optimizer.stepped is not False:
        raise UserError(f"no descents were tried: {optimizer.unknown}")
    if optimizer.called and optimizer.kind != Rule.ADAM:
        raise UserError(f"no descents were tried: steps of {optimizer.called} are not known here")
    subject = context.subject
    examples = sum(count for _, count in subject.batches)
    size = size_of_batches(context, examples, "a short descent")
    usual = _usual_step(context)
    at_peak = _is_below_its_peak(optimizer)
    if optimizer.peak is not None:
        optimizer = replace(optimizer, momentum=optimizer.peak.momentum)
    material = _material(context, examples, size)
    count = context.descents or USUAL
    descents = short_descents(
        subject, optimizer, material.draws, usual, count, material.judge, only_larger=at_peak
    )
    judging = sum(count for _, count in material.judge.batches)
    evaluated = len(descents.tried) * DRAWS * (STEPS * size + judging)
    subject.passes += math.ceil(evaluated / examples)
    return Tried(descents, material.judges, at_peak)


def _material(context: Context, examples: int, size: int) -> _Material:
    """Draw the batches of the descents, and choose the examples that judge: others, where there are enough."""
    subject = context.subject
    # generators of their own: what is tried here must not change the probes of what comes after
    order = np.random.default_rng(context.seed).permutation(examples)
    aside = min(examples // ASIDE, MOST)
    if subject.normalizes:
        aside -= aside % size
    judges = Judges.ASIDE
    if context.held_out is not None:
        judges = Judges.HELD_OUT
    elif aside < LEAST or examples - aside < size:
        judges = Judges.GIVEN
    if judges != Judges.ASIDE:
        aside = 0
    generators = [np.random.default_rng((context.seed, draw)) for draw in range(DRAWS)]
    rows = [
        rng.choice(order[aside:], size, replace=False) for rng in generators for _ in range(STEPS)
    ]
    parts = max(1, aside // size) if subject.normalizes else 1
    judging = np.array_split(order[:aside], parts) if aside else []
    batches = list(gathered(subject, [*rows, *judging]))
    draws = [batches[STEPS * draw : STEPS * (draw + 1)] for draw in range(DRAWS)]
    judge = subject
    if judges == Judges.ASIDE:
        judge = on_batches(subject, batches[STEPS * DRAWS :], subject.batches.size)
    elif context.held_out is not None:
        judge = context.held_out
        if subject.normalizes:  # its running statistics belong to weights that have not moved
            judge = on_batches(subject, judge.batches.source, subject.batches.size)
    return _Material(draws, judge, judges)


def _usual_step(context: Context) -> float:
    """Return where the search begins: at the user's step, the peak of its schedule, or below these weights' limit."""
    optimizer = context.optimizer
    if optimizer.peak is not None:
        return optimizer.peak.lr
    if optimizer.lr is not None:
        return optimizer.lr
    if optimizer.unknown:
        return ADAM
    top = context.top if optimizer.scale is None else context.preconditioned
    largest = float(top.values[0])
    if not largest > 0:
        raise UserError(
            "no descents were tried: the loss does not curve upwards here, so that nothing tells where to begin; give "
            "your step size with --lr (lr=)"
        )
    return rounded(BELOW_THE_LIMIT * optimizer.largest_step(largest))


def _is_below_its_peak(optimizer: Optimizer) -> bool:
    """Tell whether a schedule is in its warm-up, or has come down."""
    if optimizer.peak is None or optimizer.lr is None:
        return False
    return optimizer.scheduled or optimizer.lr < optimizer.peak.lr


def _none_descends(tried: Tried) -> str:
    descents = tried.descents
    text = f"none of {_count(descents)} ends below the risk {descents.start:.3g} of their start {ON[tried.judges]}"
    if tried.at_peak:
        return (
            f"{text}, with the peak of your schedule, {descents.usual:g}, and above: after a schedule has come down "
            "this is as it should be; before, the warm-up is needed, or the peak is too large"
        )
    smallest = descents.tried[0].step
    return f"{text}, and the smallest step was {smallest:g}: give a smaller one with --lr (lr=)"


def _count(descents: Descents) -> str:
    return f"{DRAWS} × {len(descents.tried)} descents of {STEPS} steps"


def _at(tried: Tried, descent: Descent) -> str:
    return f"at the risk {descent.risk:.3g} {ON[tried.judges]}"


def _panel(descents: Descents) -> Panel:
    """Draw the risk at the end over the step size."""
    kept = [descent for descent in descents.tried if not descent.diverges]
    steps = np.array([descent.step for descent in kept])
    curves: Sequence[Curve] = [
        Curve(
            steps,
            np.array([descent.risks[draw] for descent in kept]),
            f"after a short descent, {'first' if draw == 0 else 'second'} draw of batches",
            kind="points",
        )
        for draw in range(len(kept[0].risks))
    ]
    return Panel(
        f"After {STEPS} steps the risk is lowest at {descents.best.step:g}",
        "step size η",
        "risk",
        tuple(curves),
        xscale="log",
    )


def step_tried(context: Context, learned: bool | None) -> Finding | None:
    """Say which step size short descents speak for, beside the user's; nothing where none were made.

    Args:
        context: of the measurement.
        learned: whether the network does better than a constant guess. If so, it may just be where batches are too
            noisy for steps of this size.
    """
    tried = context.tried
    if tried is None:
        return None
    descents = tried.descents
    if not descents.any_descends:
        sign = "?" if learned or tried.at_peak else "!"
        return Finding(sign, _none_descends(tried), BEST, FindingId.NO_STEP_DESCENDS)
    of = f"of {_count(descents)} from here"
    named = _spoken_for(context, descents)
    ends = f"{_at(tried, named)}, from {descents.start:.3g}"
    if context.optimizer.lr is None:
        text = f"start with a step of {named.step:g}: {of} those with it end lowest, {ends}"
        return Finding("?", text, BEST, FindingId.STEP_TO_START_WITH)
    yours = descents.from_the_usual_step
    whose = "the peak of your schedule," if context.optimizer.peak is not None else "your step"
    whose += f" {yours.step:g}"
    if descents.better is None:
        which = "none with a larger step" if tried.at_peak else "none"
        text = f"{of} {which} ends clearly lower in both draws of batches than with {whose}, {ends}"
        return Finding("✓", text, BEST, FindingId.STEP_TRIED)
    if yours.diverges:
        text = f"{of} those with {whose} diverge; with {named.step:g} they end {ends}: lower it"
        return Finding("!", text, BEST, FindingId.STEP_TO_TRY)
    text = f"{of} those with {named.step:g} end clearly lower in both draws of batches, {ends}; with {whose} they end "
    text += f"at {yours.risk:.3g}"
    if named.step > yours.step:
        return Finding("?", f"{text}. Try the larger one", BEST, FindingId.STEP_TO_TRY)
    # a smaller step averages over the noise of batches, which looks like progress at first, and then is slower
    text = f"{text}. Try the smaller one, above all at the end of a training: before, a part of what it gains is noise "
    return Finding("?", f"{text}of batches that it averages over", BEST, FindingId.STEP_TO_LOWER)
