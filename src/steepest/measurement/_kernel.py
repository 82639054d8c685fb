"""The empirical tangent kernel of a subject, on as many examples as fit."""

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.measurement._context import Context
from steepest.measurement._report import Reading
from steepest.measurement.adapters import Subject, few

ENTRIES = 120  # rows of the kernel: examples times outputs


def kernel_matrix(subject: Subject) -> NDArray:
    """Compute Θ = J Jᵀ of all outputs of all examples, ``(n k, n k)``, column by column; J is never held."""
    shape = subject.outputs()[0].shape
    columns = [
        subject.jvp(subject.vjp(unit.reshape(shape))).ravel()
        for unit in np.eye(int(np.prod(shape)))
    ]
    theta = np.stack(columns)
    return (theta + theta.T) / 2


def sample(context: Context) -> Subject:
    """Return the first examples, so many that the kernel stays small."""
    outputs = context.outputs[0]
    return few(context.subject, max(1, ENTRIES // max(1, int(np.prod(outputs.shape[1:])))))


def measure_tangent_kernel(context: Context) -> list[Reading]:
    """Measure the spectrum of the tangent kernel and its alignment with the targets."""
    subject = sample(context)
    theta = kernel_matrix(subject)
    n = len(subject.outputs()[1])
    values = np.linalg.eigvalsh(theta)
    smallest = float(values[0])
    floor = 100 * np.finfo(subject.dtype).eps * float(values[-1])
    definite = smallest > floor
    condition = float(values[-1]) / smallest if definite else np.nan
    residual = _targets(subject)
    aligned = float(residual @ theta @ residual / (np.linalg.norm(theta) * (residual @ residual)))
    rank = f"of the {len(values)} outputs of {n} examples"
    return [
        Reading(
            "λ_max of the tangent kernel / n",
            float(values[-1]) / n,
            interpretation=f"the fastest rate of learning, {rank}",
        ),
        Reading(
            "condition of the tangent kernel",
            condition,
            interpretation=f"slowest against fastest direction, {rank}"
            if definite
            else f"above {values[-1] / floor:.0e}, or infinite: {subject.dtype} does not tell",
        ),
        Reading(
            "alignment of kernel and targets",
            aligned,
            theory="1 when the targets are all that the kernel learns fast",
            compared=1.0,
            interpretation="cosine between the kernel and the targets' own kernel y yᵀ",
        ),
    ]


def measure_drift(context: Context) -> list[Reading]:
    """Measure how far weights and tangent kernel are from a checkpoint's."""
    if context.since is None:
        raise UserError("drift needs a checkpoint to measure from; give since=... (--since FILE)")
    subject = sample(context)
    before = kernel_matrix(subject.at(context.since))
    now = kernel_matrix(subject)
    moved = float(np.linalg.norm(now - before) / np.linalg.norm(before))
    far = float(np.linalg.norm(subject.values() - context.since) / np.linalg.norm(context.since))
    turned = 1 - float((now * before).sum() / (np.linalg.norm(now) * np.linalg.norm(before)))
    regime = (
        "lazy: the network is nearly linear in its weights"
        if moved < 0.1
        else "rich: features have changed"
    )
    return [
        Reading(
            "relative change of the weights",
            far,
            theory="0 for infinitely wide networks",
            compared=0.0,
        ),
        Reading(
            "relative change of the tangent kernel",
            moved,
            theory="0 in the kernel regime",
            compared=0.0,
            interpretation=f"{regime} since the checkpoint"
            if moved < 0.1 or moved > 0.5
            else "between lazy and rich",
        ),
        Reading(
            "turn of the tangent kernel",
            turned,
            theory="0 in the kernel regime",
            compared=0.0,
            interpretation="one minus the cosine between the kernels: 0 when only its size has changed",
        ),
    ]


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
