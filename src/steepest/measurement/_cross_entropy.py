"""Whether a loss is the mean cross-entropy of class numbers, which shows by its values."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from steepest.core.errors import UserError
from steepest.measurement.adapters import Subject

SPREAD = 5.0  # of the outputs at which a loss is asked once more
FEW = 64  # examples there
NUMBERS = 2**20
"""Logits that are in double precision at once: language models have many."""


def mean_cross_entropy(outputs: NDArray, targets: NDArray) -> float | None:
    """Return the mean cross-entropy of logits ``(…, C)`` with class numbers ``(…)``; None for other targets.

    >>> round(mean_cross_entropy(np.zeros((2, 4)), np.array([0, 3])), 6)
    1.386294
    """
    if outputs.ndim < 2 or outputs.shape[-1] < 2 or targets.shape != outputs.shape[:-1]:
        return None
    if not np.issubdtype(targets.dtype, np.integer):
        return None
    logits = outputs.reshape(-1, outputs.shape[-1])  # of single tokens too
    labels = targets.ravel()
    if not 0 <= labels.min() <= labels.max() < logits.shape[1]:
        return None
    rows = max(1, NUMBERS // logits.shape[1])
    parts = [
        _cross_entropies(logits[i : i + rows].astype(float), labels[i : i + rows])
        for i in range(0, len(logits), rows)
    ]
    return float(np.concatenate(parts).mean())


def _cross_entropies(logits: NDArray, labels: NDArray) -> NDArray:
    chosen = np.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
    return logsumexp(logits, axis=1) - chosen


def is_cross_entropy(subject: Subject) -> bool:
    """Tell whether the risk is the mean cross-entropy of the outputs."""
    outputs, targets = subject.outputs()
    return is_this_loss(subject, outputs, targets, mean_cross_entropy)


def check_cross_entropy(subject: Subject, outputs: NDArray, labels: NDArray) -> None:
    """Check that the risk is the mean cross-entropy of the outputs.

    Args:
        subject: whose risk it is.
        outputs: logits, shape ``(n, C)``.
        labels: class numbers, shape ``(n,)``.

    Raises:
        UserError: it is not.
    """
    if not is_this_loss(subject, outputs, labels, mean_cross_entropy):
        mean = mean_cross_entropy(outputs, labels)
        beside = "" if mean is None else f" and the cross-entropy of its outputs {mean:.6g}"
        raise UserError(
            f"expected the mean cross-entropy: the loss of {subject.name} is {subject.risk():.6g}{beside}, or they "
            "differ at other outputs; leave decay, label smoothing and other terms out of the loss"
        )


def is_this_loss(
    subject: Subject,
    outputs: NDArray,
    targets: NDArray,
    value: Callable[[NDArray, NDArray], float | None],
) -> bool:
    """Tell whether the risk is a loss of outputs and targets, by its values at the network's outputs and at others.

    Near a start label smoothing, weights of classes and Huber's loss have nearly the values of simpler losses: so the
    loss is asked for outputs that are spread too, of the first examples.

    Args:
        subject: whose risk it is.
        outputs: its outputs, shape ``(n, …)``.
        targets: shape ``(n, …)``.
        value: of the loss in question, None where it takes no such targets.
    """
    own = value(outputs, targets)
    if own is None or not same_risk(subject, subject.risk(), own):
        return False
    few = targets[: max(1, min(FEW, NUMBERS // max(1, outputs[0].size)))]
    apart = SPREAD * np.random.default_rng(0).standard_normal((len(few), *outputs.shape[1:]))
    try:
        asked = subject.loss_at(apart, few)
    except UserError:  # a loss of the parameters and the batch cannot be asked
        return True
    other = value(apart, few)
    return other is not None and same_risk(subject, asked, other)


def same_risk(subject: Subject, risk: float, value: float) -> bool:
    """Tell whether a risk has this value, to rounding in the subject's precision."""
    return abs(risk - value) <= 1e4 * float(np.finfo(subject.dtype).eps) * (1 + abs(value))
