"""The step size that short descents from the weights as they are speak for: what is read, and what is found."""

import math

import numpy as np

from steepest.core.errors import UserError
from steepest.core.panels import Curve, Panel
from steepest.measurement._batch_noise import size_of_batches
from steepest.measurement._context import Context
from steepest.measurement._descents import Descents, rounded, short_descents
from steepest.measurement._optimizer import Rule
from steepest.measurement._report import Finding, FindingId, Reading
from steepest.measurement.adapters import random_batches

BEST = "step of the short descent that ends lowest"
STEPS = 50  # of each descent
USUAL = 3  # descents, where it is not said how many
ADAM = 1e-3  # where the search begins if neither a step size nor a limit is known, as of Adam before its first step
BELOW_THE_LIMIT = 0.3  # of the largest stable step: where it begins if only the limit is known
CLEARLY = 1.1  # times as far down as the user's step, from which another is worth a line


def measure_descents(context: Context) -> list[Reading]:
    """Measure which step size ends lowest after some steps from the weights as they are.

    Raises:
        UserError: an optimizer whose steps are not known here; an unknown size of the batches.
    """
    before = context.subject.passes
    descents = _descents(context)
    best = descents.best
    context.tried = descents
    if not descents.any_descends:
        return [Reading(BEST, math.nan, interpretation=_none_descends(descents))]
    text = f"of {_count(descents)} from these weights the one with {best.step:g} ends lowest, at the risk "
    text += f"{best.risk:.3g}, from {descents.start:.3g}"
    lost = [f"{descent.step:g}" for descent in descents.tried if math.isinf(descent.risk)]
    if lost:
        text += f"; with {', '.join(lost)} it diverges"
    if not descents.is_inside:
        text += "; steps beyond those tried may end lower"
    if isinstance(context.optimizer.decay, tuple):
        text += "; your groups' several weight decays are left out"
    passes = context.subject.passes - before
    text += f". They took {passes} passes over the data"
    kept = [descent for descent in descents.tried if math.isfinite(descent.risk)]
    parts = {f"risk after steps of {descent.step:g}": descent.risk for descent in kept}
    return [Reading(BEST, best.step, interpretation=text, parts=parts, panel=_panel(descents))]


def _descents(context: Context) -> Descents:
    """Make the descents that the context asks for."""
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
    # a generator of its own: what is tried here must not change the probes of what comes after
    batches = list(random_batches(subject, size, STEPS, np.random.default_rng(context.seed)))
    descents = short_descents(subject, optimizer, batches, usual, context.descents or USUAL)
    subject.passes += math.ceil(len(descents.tried) * (STEPS * size / examples + 1))
    return descents


def _usual_step(context: Context) -> float:
    """Return where the search begins: at the user's step, or below the limit of these weights."""
    optimizer = context.optimizer
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


def _none_descends(descents: Descents) -> str:
    smallest = descents.tried[0].step
    return (
        f"none of {_count(descents)} ends below the risk {descents.start:.3g} of their start, and the smallest step "
        f"was {smallest:g}: give a smaller one with --lr (lr=)"
    )


def _count(descents: Descents) -> str:
    return f"{len(descents.tried)} descents of {STEPS} steps"


def _panel(descents: Descents) -> Panel:
    """Draw the risk at the end over the step size."""
    kept = [descent for descent in descents.tried if math.isfinite(descent.risk)]
    steps = np.array([descent.step for descent in kept])
    risks = np.array([descent.risk for descent in kept])
    return Panel(
        f"After {STEPS} steps the risk is lowest at {descents.best.step:g}",
        "step size η",
        "risk",
        (Curve(steps, risks, "after a short descent", kind="points"),),
        xscale="log",
    )


def step_tried(context: Context, learned: bool | None) -> Finding | None:
    """Say which step size short descents speak for, beside the user's; nothing where none were made.

    Args:
        context: of the measurement.
        learned: whether the network does better than a constant guess. If so, it may just be where batches are too
            noisy for steps of this size.
    """
    descents = context.tried
    if descents is None:
        return None
    if not descents.any_descends:
        sign = "?" if learned else "!"
        return Finding(sign, _none_descends(descents), BEST, FindingId.NO_STEP_DESCENDS)
    best = descents.best
    tried = f"of {_count(descents)} from here"
    ends = f"ends lowest, at the risk {best.risk:.3g}, from {descents.start:.3g}"
    if context.optimizer.lr is None:
        return Finding(
            "?",
            f"start with a step of {best.step:g}: {tried} it {ends}",
            BEST,
            FindingId.STEP_TO_START_WITH,
        )
    yours = descents.from_the_usual_step
    if math.isinf(yours.risk):
        text = (
            f"{tried} that with your step {yours.step:g} diverges; {best.step:g} {ends}: lower it"
        )
        return Finding("!", text, BEST, FindingId.STEP_TO_TRY)
    if descents.start - best.risk < CLEARLY * (descents.start - yours.risk):
        text = f"{tried} none ends clearly lower than that with your step {yours.step:g}, at the risk {yours.risk:.3g}"
        return Finding("✓", text, BEST, FindingId.STEP_TRIED)
    text = f"{tried} {best.step:g} {ends}; your step {yours.step:g} ends at {yours.risk:.3g}"
    if best.step > yours.step:
        return Finding("?", f"{text}. Try the larger one", BEST, FindingId.STEP_TO_TRY)
    # a smaller step averages over the noise of batches, which looks like progress at first, and then is slower
    text = f"{text}. So it pays to lower it at the end of a training; before, a smaller step may only be slower"
    return Finding("?", text, BEST, FindingId.STEP_TO_LOWER)
