"""The empirical tangent kernel of a subject, on as many examples as fit."""

from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.krylov import row_by_row, top_eigenpairs
from steepest.measurement._context import Context
from steepest.measurement._report import Reading, Regime
from steepest.measurement._sample import Sample, sample
from steepest.measurement.adapters import Subject

ENTRIES = 120  # rows of the kernel: examples times outputs
LARGEST = 4e9  # bytes of a kernel
RICH = 0.5  # relative change of the kernel above which features have changed
LAZY = 0.1  # relative change of the kernel below which the network has been nearly linear in its weights
FAR = 0.1  # relative change of outputs and of the risk above which that says something


def kernel_matrix(subject: Subject, entries: NDArray | None = None) -> NDArray:
    """Compute Θ = J Jᵀ of all outputs of all examples, ``(n k, n k)``, column by column; J is never held.

    Args:
        subject: the model on some examples.
        entries: which of the n k outputs are wanted; all of them without.

    Raises:
        UserError: a kernel of more than 4 GB.
    """
    shape = subject.outputs()[0].shape
    count = int(np.prod(shape))
    chosen = np.arange(count) if entries is None else entries
    size = len(chosen) ** 2 * subject.dtype.itemsize
    if size > LARGEST:
        raise UserError(
            f"the tangent kernel of {shape[0]} examples with {count // shape[0]} outputs each has {count}² entries, "
            f"{size / 1e9:.3g} GB, more than {LARGEST / 1e9:.3g} GB; choose fewer examples or outputs"
        )

    def column(index: Any) -> NDArray:
        unit = np.zeros(count, subject.dtype)
        unit[index] = 1.0
        return subject.jvp(subject.vjp(unit.reshape(shape))).ravel()[chosen]

    theta = np.stack([column(index) for index in chosen])
    return (theta + theta.T) / 2


def measure_tangent_kernel(context: Context) -> list[Reading]:
    """Measure the spectrum of the tangent kernel and its alignment with the targets."""
    drawn = few_examples(context)
    entries, of_outputs = few_entries(drawn, context.seed)
    theta = kernel_matrix(drawn.subject, entries)
    n = drawn.count
    values = np.linalg.eigvalsh(theta)
    smallest = float(values[0])
    floor = 100 * np.finfo(drawn.subject.dtype).eps * float(values[-1])
    definite = smallest > floor
    condition = float(values[-1]) / smallest if definite else np.nan
    residual = _targets(drawn.subject)
    residual = residual if entries is None else residual[entries]
    aligned = _ratio(
        float(residual @ theta @ residual), float(np.linalg.norm(theta) * (residual @ residual))
    )
    top = float(values[-1]) if entries is None else _top(drawn.subject, context.seed)
    at_least = "" if entries is None else "at least this: "
    above = f"above {values[-1] / floor:.0e}" if floor else "not defined: the kernel is zero"
    return [
        Reading(
            "λ_max of the tangent kernel / n",
            top / n,
            interpretation=f"the fastest rate of learning, of the {_outputs_of(drawn)} outputs of {drawn.how}",
        ),
        Reading(
            "condition of the tangent kernel",
            condition,
            interpretation=f"{at_least}slowest against fastest direction, {of_outputs}"
            if definite
            else f"{above}, or infinite: {drawn.subject.dtype} does not tell",
        ),
        Reading(
            "alignment of kernel and targets",
            aligned,
            theory="1 when the targets are all that the kernel learns fast",
            compared=1.0,
            interpretation=f"cosine between the kernel and the targets' own kernel y yᵀ, {of_outputs}",
        ),
    ]


def few_entries(drawn: Sample, seed: int) -> tuple[NDArray | None, str]:
    """Draw so many outputs that the kernel stays small, None where all of them do, and say of what it is."""
    count = _outputs_of(drawn)
    if count <= ENTRIES or drawn.count > 1:
        return None, f"of the {count} outputs of {drawn.how}"
    chosen = np.sort(np.random.default_rng(seed).choice(count, ENTRIES, replace=False))
    return chosen, f"of a random {ENTRIES} of the {count} outputs of {drawn.how}"


def _outputs_of(drawn: Sample) -> int:
    return drawn.subject.outputs()[0].size


def _top(subject: Subject, seed: int) -> float:
    """Find λ_max of the whole kernel by its products, on outputs or on weights, whichever are fewer."""
    shape = subject.outputs()[0].shape
    count = int(np.prod(shape))
    of_outputs = lambda v: subject.jvp(subject.vjp(v.reshape(shape))).ravel()
    of_weights = lambda w: subject.vjp(subject.jvp(w))
    size, times = (count, of_outputs) if count <= subject.size else (subject.size, of_weights)
    start = np.random.default_rng(seed).standard_normal(size).astype(subject.dtype)
    return float(top_eigenpairs(row_by_row(times), start, tolerance=0.01).values[0])


def few_examples(context: Context) -> Sample:
    """Draw so many examples that the kernel stays small, of every class one if they fit."""
    outputs = context.outputs[0]
    return sample(context, max(1, ENTRIES // max(1, int(np.prod(outputs.shape[1:])))))


def measure_drift(context: Context) -> list[Reading]:
    """Measure how far weights, outputs and tangent kernel are from a checkpoint's."""
    if context.since is None:
        raise UserError("drift needs a checkpoint to measure from; give since=... (--since FILE)")
    drawn = few_examples(context)
    subject = drawn.subject
    entries, of_outputs = few_entries(drawn, context.seed)
    earlier = subject.at(context.since)
    before = kernel_matrix(earlier, entries)
    now = kernel_matrix(subject, entries)
    moved = _ratio(np.linalg.norm(now - before), np.linalg.norm(before))
    step = np.linalg.norm(subject.values() - context.since)
    turned = 1 - _ratio(float((now * before).sum()), np.linalg.norm(now) * np.linalg.norm(before))
    way = _way(context, subject, earlier)
    regime = _regime(moved, way)
    return [
        Reading(
            "relative change of the weights",
            _ratio(step, np.linalg.norm(context.since)),
            theory="0 for infinitely wide networks",
            compared=0.0,
        ),
        Reading(
            "relative change of the outputs",
            way.outputs,
            interpretation=f"how far the network has come: {way.said}",
        ),
        Reading(
            "relative change of the tangent kernel",
            moved,
            theory="0 in the kernel regime",
            compared=0.0,
            interpretation=_meaning(regime, way),
            regime=regime,
        ),
        Reading(
            "turn of the tangent kernel",
            turned,
            theory="0 in the kernel regime",
            compared=0.0,
            interpretation="one minus the cosine between the kernels: 0 when only its size has changed"
            + ("" if entries is None else f"; {of_outputs}"),
        ),
    ]


class Way(NamedTuple):
    """How far training has come since the checkpoint."""

    outputs: float
    """``‖f − f₀‖ / max(‖f‖, ‖f₀‖)`` over the sample."""
    risk: float
    """``|R − R₀| / max(|R|, |R₀|)`` over all examples."""
    said: str

    @property
    def far(self) -> bool:
        """Return whether a kernel that stayed where it was is a finding: outputs and risk have both moved."""
        return self.outputs > FAR and self.risk > FAR


def _way(context: Context, now: Subject, earlier: Subject) -> Way:
    outputs, _ = now.outputs()
    outputs_before, _ = earlier.outputs()
    size = max(np.linalg.norm(outputs), np.linalg.norm(outputs_before))
    moved = _ratio(np.linalg.norm(outputs - outputs_before), size)
    risk = context.subject.risk()
    start = context.subject.at(cast(NDArray, context.since)).risk()
    change = _ratio(abs(risk - start), max(abs(risk), abs(start)))
    said = f"outputs have changed by {moved:.2g} of their size, the risk from {start:.4g} to {risk:.4g}"
    return Way(moved, change, said)


def _regime(moved: float, way: Way) -> Regime:
    """Return what a change of the kernel means, beside the way that the network has gone."""
    if moved > RICH:
        return Regime.RICH
    if moved >= LAZY:
        return Regime.BETWEEN
    return Regime.LAZY if way.far else Regime.UNKNOWN


def _meaning(regime: Regime, way: Way) -> str:
    """Say a regime in words."""
    words = {
        Regime.RICH: "rich: features have changed since the checkpoint",
        Regime.BETWEEN: "between lazy and rich",
        Regime.LAZY: f"lazy so far: nearly linear in its weights on the way that it has gone; {way.said}",
        Regime.UNKNOWN: f"nothing follows yet, as the network has hardly moved: {way.said}",
    }
    return words[regime]


def _ratio(part: float | np.floating, whole: float | np.floating) -> float:
    """Divide; NaN by zero."""
    return float(part) / float(whole) if whole else np.nan


def _targets(subject: Subject) -> NDArray:
    """Return targets as a vector beside the outputs: class numbers become centred one-hot rows."""
    outputs, targets = subject.outputs()
    if targets.shape == outputs.shape:
        return targets.astype(float).ravel()
    if targets.shape == outputs.shape[:-1] and np.issubdtype(targets.dtype, np.integer):
        return (np.eye(outputs.shape[-1])[targets] - 1 / outputs.shape[-1]).ravel()
    if targets.size == outputs.size:
        return targets.astype(float).ravel()
    raise UserError(
        f"targets of shape {targets.shape} do not belong to outputs of shape {outputs.shape}"
    )
