"""Noise of the user's batches: how sharp the loss is along their gradients, and how much of a gradient is noise."""

import math

import numpy as np
from scipy import stats

from steepest.core.errors import UserError
from steepest.measurement._context import Context
from steepest.measurement._report import Reading
from steepest.measurement.adapters import batch_forms
from steepest.noise import batch_factor

BATCHES = 32  # random batches over which both numbers are averaged
NEAR = 0.1  # relative distance from a limit that counts as being at it


def measure_batch_noise(context: Context) -> list[Reading]:
    """Measure the batch sharpness E[gᵀHg]/E[gᵀg], of gradient g and Hessian H of the same batch, and the noise scale.

    To second order one step of SGD changes the loss of its own batch by −η gᵀg + ½η² gᵀHg, so that it raises it on
    average where the batch sharpness is above 2/η (Andreyev and Beneventano 2024). The full batch allows 2/λ_max. The
    noise scale is tr Σ/|∇L|² with the covariance Σ of the examples' gradients (McCandlish et al. 2018).

    Raises:
        UserError: an unknown size of the batches, or one larger than the data.
    """
    subject = context.subject
    optimizer = context.optimizer
    examples = sum(count for _, count in subject.batches)
    size = _size(context, examples)
    gradient = subject.gradient()
    if optimizer.one_decay and not optimizer.decoupled:
        gradient = gradient + optimizer.one_decay * subject.values()
    forms, squares, deviations = batch_forms(
        subject,
        size,
        1 if size == examples else BATCHES,
        context.rng,
        gradient,
        decay=0.0 if optimizer.decoupled else optimizer.one_decay,
    )
    value, interval = _ratio(forms, squares)
    return [
        Reading(
            "batch sharpness",
            value,
            interval,
            "batches" if interval else "rounding",
            theory="2/η" if _plain(context) and optimizer.lr else "",
            compared=2 / optimizer.lr if _plain(context) and optimizer.lr else None,
            assumes=(
                (f"batches of {size} examples, drawn without replacement", None),
                ("plain SGD, without momentum and not Adam", _plain(context)),
            ),
            interpretation=_sentence(context, value, interval, size),
        ),
        _noise_scale(float(gradient @ gradient), squares, deviations, examples, size),
    ]


def _size(context: Context, examples: int) -> int:
    """Return the size of the user's batches: as said, or that of the loader's first."""
    size = context.batch
    if size is None:
        if context.subject.batches.whole:
            raise UserError(
                "batch sharpness needs the size of your batches, which arrays do not tell; pass batch=32 (--batch 32)"
            )
        size = context.subject.batches.first()[1]
    if not 1 <= size <= examples:
        raise UserError(
            f"a batch holds between 1 and {examples} examples, all that the data have; got batch={size}"
        )
    return int(size)


def _plain(context: Context) -> bool:
    return context.optimizer.scale is None and context.optimizer.momentum == 0


def _ratio(forms: np.ndarray, squares: np.ndarray) -> tuple[float, tuple[float, float] | None]:
    """Return a ratio of means over batches with its 95 % interval, to first order in their deviations."""
    mean = float(squares.mean())
    if mean == 0:
        return math.nan, None
    value = float(forms.mean()) / mean
    count = len(forms)
    if count < 2:
        return value, None
    residual = (forms - value * squares) / mean
    half = float(stats.t.ppf(0.975, count - 1)) * float(residual.std(ddof=1)) / count**0.5
    return value, (value - half, value + half)


def _sentence(
    context: Context, value: float, interval: tuple[float, float] | None, size: int
) -> str:
    """Say what a batch sharpness means beside the user's step, and which of the two limits binds."""
    if math.isnan(value):
        return "all gradients vanish, so that no step changes anything"
    if value <= 0:
        return "along their own gradients the batches do not curve upwards"
    limit = 2 / value
    batches = f"with batches of {size}"
    if not _plain(context):
        return (
            f"plain SGD {batches} raises the loss of its own batch on average at steps above {limit:.3g}; "
            "your optimizer's limit is another, which is not compared here"
        )
    largest = float(context.top.values[0])
    full = context.optimizer.largest_step(largest) if largest > 0 else math.inf
    lr = context.optimizer.lr
    if lr is None:
        return (
            f"{batches} a step raises the loss of its own batch on average if it is above {limit:.3g}; "
            f"{_other(full)}, so that {_binding(limit, full, interval)}"
        )
    ratio = lr / limit
    many = f"{ratio:.3g} times" if ratio >= 10 else f"{ratio:.2f} of"
    text = (
        f"{batches} your step size is {many} the limit {limit:.3g}; {_other(full)}, so that "
        f"{_binding(limit, full, interval)}"
    )
    if ratio > 1 + NEAR:
        return f"{text}: a step raises the loss of its own batch on average"
    return f"{text}: the edge of stochastic stability" if ratio > 1 - NEAR else text


def _other(full: float) -> str:
    if math.isinf(full):
        return "the full batch has no limit here"
    return f"the full batch allows {full:.3g}"


def _binding(limit: float, full: float, interval: tuple[float, float] | None) -> str:
    """Say which of two largest steps is the smaller one, where the interval of the batches' tells them apart."""
    if interval is not None and math.isfinite(full) and interval[0] <= 2 / full <= interval[1]:
        return "the two limits are about the same"
    return "your batches bind" if limit < full else "the full batch binds"


def _noise_scale(
    length: float, squares: np.ndarray, deviations: np.ndarray, examples: int, size: int
) -> Reading:
    """Return tr Σ/|∇L|² from the deviations |g_B − ∇L|² of batches, whose mean is tr Σ times a factor of the size."""
    name = "gradient-noise scale"
    factor = batch_factor(examples, size, "fixed") if examples > 1 else 0.0
    if factor == 0:
        return Reading(name, math.nan, interpretation="a batch of all examples has no noise")
    if length == 0:
        return Reading(
            name, math.nan, interpretation="the full gradient vanishes, all that is left is noise"
        )
    count = len(deviations)
    value = float(deviations.mean()) / factor / length
    half = float(stats.t.ppf(0.975, count - 1)) * float(deviations.std(ddof=1)) / count**0.5
    half /= factor * length
    noise = float(deviations.mean()) / (length + float(deviations.mean()))
    return Reading(
        name,
        value,
        (max(0.0, value - half), value + half),
        "batches",
        interpretation="batches of this many examples have as much noise as gradient; at yours of "
        f"{size}, {noise:.0%} of the mean squared gradient is noise",
    )
