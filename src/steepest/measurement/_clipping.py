"""Gradients that reach an optimizer larger or smaller than they are, as clipping and scaled losses make them.

Adam's steps do not depend on the size of gradients, and its curvature does: with gradients cg it descends as on c times
the loss, whose curvature in its coordinates is that of c D^(−½)HD^(−½). So D = √v̂ + ε is divided by c where it is
known.
"""

from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.measurement._rules import Optimizer, Rule
from steepest.measurement.adapters import Subject, random_batches

AVERAGES = (Rule.ADAM, Rule.AMSGRAD, Rule.ADAMAX, Rule.RADAM, Rule.NADAM, Rule.RMSPROP)
"""Rules that divide by a size of recent gradients; neither by a sum nor by a ratio."""
BATCHES = 8
NEAR = 1.25  # between two factors that are one
FAR = 2.0  # between the sizes of gradients then and now, beyond which it is not their noise
ALIKE = 0.9  # cosine of both sizes over the weights, of a common factor


class Gradients(NamedTuple):
    """Gradients at the weights as they are, each ``(p,)``.

    Attributes:
        mean: of all examples.
        size: root mean square.
        of_batches: whether these are the user's batches; else it is the gradient of all examples.
    """

    mean: NDArray
    size: NDArray
    of_batches: bool


def with_clipping(
    optimizer: Optimizer, subject: Subject, batch: int | None, seed: int
) -> Optimizer:
    """Compare second moments with gradients of now, and count a common factor where there is one.

    Second moments remember larger and smaller gradients, so that another size is none by itself. A factor is common if
    both sizes are proportional over the weights, and the average of the last gradients is as much larger or smaller
    than the gradient of now.

    Args:
        optimizer: as it was read.
        subject: model, loss and data.
        batch: examples in each of the user's batches, if they say it.
        seed: of the batches.
    """
    if optimizer.unknown or optimizer.scale is None or optimizer.kind not in AVERAGES:
        return optimizer
    relative = 1.0 if optimizer.relative is None else np.asarray(optimizer.relative, float)
    with np.errstate(invalid="ignore"):
        divisor = np.asarray(optimizer.scale, float) / relative
    counts = np.isfinite(divisor)
    gradients = _gradients(subject, batch, seed)
    then = divisor[counts]
    now = gradients.size[counts]
    if not now.any():
        return optimizer
    factor = float(np.linalg.norm(then) / np.linalg.norm(now))
    is_larger = (
        factor > 1 and gradients.of_batches
    )  # the gradient of all has less noise than those of batches
    if not (factor < 1 / NEAR or (is_larger and factor > NEAR)):
        return optimizer
    cosine = float(then @ now / np.linalg.norm(then) / np.linalg.norm(now))
    recent = _recent(optimizer, divisor, gradients.mean)
    if recent is not None and factor / NEAR < recent < NEAR * factor and cosine > ALIKE:
        scale = (np.asarray(optimizer.scale, float) / factor).astype(subject.dtype)
        return replace(optimizer, scale=scale, passed_on=factor)
    if factor > 1 / FAR:  # gradients have become smaller, as they do, or this is their noise
        return optimizer
    why = (
        f"the gradients that {optimizer.called} has seen are {factor:.2g} times as large as those measured here, as "
        "after clipping, or because gradients have grown of late, so that its second moments tell no limit"
    )
    return replace(optimizer, unknown=why)


def _gradients(subject: Subject, batch: int | None, seed: int) -> Gradients:
    """Take gradients of some batches like the user's, or of all examples where their size is not known."""
    whole = subject.batches.whole
    if whole and batch is None:
        gradient = subject.gradient().astype(float)
        return Gradients(gradient, np.abs(gradient), False)
    examples = sum(count for _, count in subject.batches)
    if whole and batch is not None and 1 <= batch <= examples and not subject.normalizes:
        rng = np.random.default_rng(seed)
        batches = list(random_batches(subject, batch, BATCHES, rng))
    else:
        batches = [part for part, _ in islice(subject.batches, BATCHES)]
    squares = [np.square(subject._gradient(part), dtype=float) for part in batches]
    return Gradients(subject.gradient().astype(float), np.sqrt(np.mean(squares, 0)), True)


def _recent(optimizer: Optimizer, divisor: NDArray, gradient: NDArray) -> float | None:
    """Return the factor between the average of the last gradients and that of now, along the latter; None without."""
    if optimizer.update is None:
        return None
    average = np.asarray(optimizer.update, float) * divisor
    counts = np.isfinite(average)
    length = float(gradient[counts] @ gradient[counts])
    return float(average[counts] @ gradient[counts]) / length if length else None
