"""Noise of the user's batches: how sharp the loss is along their gradients, and how much of a gradient is noise."""

import math

import numpy as np
from scipy.special import stdtrit

from steepest.core.errors import UserError
from steepest.measurement._context import Context
from steepest.measurement._report import Reading
from steepest.measurement.adapters import batch_forms

BATCHES = 32  # random batches over which both numbers are averaged
ROUNDING = 1e-10  # of the batches' mean squared gradient, below which the full one is rounding
NEAR = 0.1  # relative distance from a limit that counts as being at it


def measure_batch_noise(context: Context) -> list[Reading]:
    """Measure the batch sharpness E[gᵀHg]/E[gᵀg], of gradient g and Hessian H of the same batch, and the noise scale.

    To second order one step of SGD changes the loss of its own batch by −η gᵀg + ½η² gᵀHg, so that it raises it on
    average where the batch sharpness is above 2/η (Andreyev and Beneventano 2024). The full batch allows 2/λ_max. The
    noise scale is tr Σ/|∇L|² with the covariance Σ of the examples' gradients (McCandlish et al. 2018). A weight decay
    in the gradient counts as part of the loss.

    Raises:
        UserError: an unknown size of the batches, or one larger than the data.
    """
    subject = context.subject
    optimizer = context.optimizer
    examples = sum(count for _, count in subject.batches)
    size = size_of_batches(context, examples, "batch sharpness")
    gradient = subject.gradient() + _decay(context) * subject.values()
    batches = 1 if size == examples else BATCHES
    forms, squares, deviations = batch_forms(
        subject, size, batches, context.rng, gradient, _decay(context)
    )
    value, interval = _ratio(forms, squares)
    compared = 2 / optimizer.lr if _plain(context) and optimizer.lr else None
    scale = _noise_scale(float(gradient @ gradient), squares, deviations, examples, size)
    return [
        Reading(
            "batch sharpness",
            value,
            interval,
            "batches" if interval else "rounding",
            theory="2/η" if compared else "",
            compared=compared,
            assumes=(
                (f"batches of {size} examples, drawn without replacement", None),
                ("plain SGD, without momentum and not Adam", _plain(context)),
                optimizer.assumption,
            ),
            interpretation=_sentence(context, value, interval, size),
        ),
        scale,
    ]


def _decay(context: Context) -> float:
    """Return λ of a decay that is added to the gradient, which all weights share; else 0."""
    return 0.0 if context.optimizer.decoupled else context.optimizer.one_decay


def size_of_batches(context: Context, examples: int, what: str) -> int:
    """Return the size of the user's batches: as said, or that of the loader's first.

    Args:
        context: of the measurement.
        examples: in the data.
        what: needs it, in words.

    Raises:
        UserError: an unknown size, or one larger than the data.
    """
    size = context.batch
    if size is None:
        if context.subject.batches.whole:
            raise UserError(
                f"{what} needs the size of your batches, which arrays do not tell; pass batch=32 (--batch 32)"
            )
        size = context.subject.batches.given()
    if int(size) != size or not 1 <= size <= examples:
        raise UserError(
            f"a batch holds a whole number of examples, between 1 and the {examples} of the data; got batch={size}"
        )
    return int(size)


def _plain(context: Context) -> bool:
    return context.optimizer.is_plain


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
    half = float(stdtrit(count - 1, 0.975)) * float(residual.std(ddof=1)) / count**0.5
    return value, (value - half, value + half)


def _sentence(
    context: Context, value: float, interval: tuple[float, float] | None, size: int
) -> str:
    """Say what a batch sharpness means beside the user's step, and which of the two limits binds."""
    if math.isnan(value):
        return "the gradients of the batches that were drawn vanish"
    if value <= 0:
        return "on average the batches do not curve upwards along their own gradients"
    limit = 2 / value
    batches = f"with batches of {size}"
    loss = "the loss of its own batch" + (", with its decay," if _decay(context) else "")
    if not _plain(context):
        return (
            f"plain SGD {batches} raises {loss} on average, to second order, at steps above {limit:.3g}; "
            "your optimizer's limit is another, which is not compared here"
        )
    beside = _beside(context, limit, interval)
    lr = context.optimizer.lr
    if lr is None:
        return (
            f"{batches} a step above {limit:.3g} raises {loss} on average, to second order{beside}"
        )
    ratio = lr / limit
    many = f"{ratio:.3g} times" if ratio >= 10 else f"{ratio:.2f} of"
    text = f"{batches} your step size is {many} the limit {limit:.3g}{beside}"
    low = value if interval is None else interval[0]
    if lr * low / 2 > 1 + NEAR:
        return f"{text}: a step raises {loss} on average, to second order"
    return f"{text}: the edge of stochastic stability" if abs(ratio - 1) < NEAR else text


def _beside(context: Context, limit: float, interval: tuple[float, float] | None) -> str:
    """Say which of the two largest steps is the smaller one, where the data tell; of the Hessian alone."""
    if context.kind != "hessian":
        return ""
    largest = float(context.top.values[0])
    if largest <= 0:
        return "; the full batch has no limit here, so that your batches bind"
    full = context.optimizer.largest_step(largest)
    decayed = 2 / full
    if abs(limit / full - 1) < NEAR:
        binding = "the two limits are about the same"
    elif interval is not None and interval[0] <= decayed <= interval[1]:
        binding = f"{BATCHES} batches cannot tell which of the two binds"
    else:
        binding = "your batches bind" if limit < full else "the full batch binds"
    return f"; the full batch allows {full:.3g}, so that {binding}"


def _noise_scale(
    length: float, squares: np.ndarray, deviations: np.ndarray, examples: int, size: int
) -> Reading:
    """Return tr Σ/|∇L|² from the deviations |g_B − ∇L|² of batches, whose mean is tr Σ times a factor of the size.

    Args:
        length: |∇L|².
        squares: gᵀg of the batches, beside which |∇L|² may be rounding.
        deviations: |g − ∇L|² of the batches.
        examples: in the data.
        size: of the batches.
    """
    name = "gradient-noise scale"
    from steepest.noise import batch_factor  # it brings JAX along

    factor = batch_factor(examples, size, "fixed") if examples > 1 else 0.0
    if factor == 0:
        return Reading(name, math.nan, interpretation="a batch of all examples has no noise")
    if length <= ROUNDING * float(squares.mean()):
        return Reading(
            name,
            math.nan,
            interpretation="the full gradient vanishes up to rounding, so that the scale has no end",
        )
    count = len(deviations)
    mean = float(deviations.mean())
    value = mean / factor / length
    half = float(stdtrit(count - 1, 0.975)) * float(deviations.std(ddof=1)) / count**0.5
    half /= factor * length
    noise = mean / (length + mean)
    return Reading(
        name,
        value,
        (max(0.0, value - half), value + half),
        "batches",
        interpretation="batches of this many independent examples have as much noise as gradient; of your batches' "
        f"mean squared gradient, with {size} of the {examples} examples, {noise:.0%} is noise",
        parts={"share of noise": noise},
    )
