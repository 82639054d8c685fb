"""Whether a network has learned anything: dead networks, constant guesses, networks that are linear in their inputs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.measurement._context import Context
from steepest.measurement._cross_entropy import mean_cross_entropy, same_risk

LEARNED = 0.01  # relative difference from a constant guess below which nothing has been learned
POINTS = 8  # at which linearity is tried


class KnownLoss(NamedTuple):
    """A loss whose least risk of constant outputs is known, at a network's outputs."""

    outputs: NDArray
    """``(n, …, C)`` or ``(n, …)``, in float64"""
    targets: NDArray
    """``(n, …)``"""
    square: float | None
    """what a squared loss multiplies the mean square by, 1 or ½; None of the mean cross-entropy"""


class Spread(NamedTuple):
    """How large a network's outputs are beside what its targets allow."""

    ratio: float
    """of the risk and that of outputs of zero; of a squared loss the variances of outputs and targets"""
    is_squared: bool


def is_dead(context: Context) -> bool:
    """Tell whether no example differs from the others, in the outputs and in their change with the weights.

    A last layer of zeros gives the same outputs for every example too, but they change differently: it is not dead.
    Fewer than two examples tell nothing.
    """
    try:
        outputs, _ = context.outputs
    except UserError:  # the loss is of (params, batch), and there may be no outputs
        return False
    if len(outputs) < 2 or not _same(outputs, context.subject.dtype):
        return False
    # a generator of its own: what is looked at here must not change the probes of what comes after
    direction = np.random.default_rng(0).standard_normal(context.subject.size)
    return _same(context.subject.jvp(direction), context.subject.dtype)


def _same(rows: NDArray, dtype: np.dtype) -> bool:
    """Tell whether all rows are equal, to rounding."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    largest = max(float(high.max(initial=0)), -float(low.min(initial=0)))
    return float((high - low).max(initial=0)) <= 100 * np.finfo(dtype).eps * largest


def constant_guess(context: Context) -> float | None:
    """Return the least risk of outputs that are the same for all examples, if the loss is one whose minimum is known.

    The entropy of the labels' frequencies for the mean cross-entropy; the variance of the targets, or half of it, for
    the mean square or half of it.
    """
    loss = _known_loss(context)
    if loss is None:
        return None
    if loss.square is not None:
        return loss.square * _variance(loss.targets)
    shares = np.bincount(loss.targets.ravel()) / loss.targets.size
    return -float(sum(share * np.log(share) for share in shares if share))


def spread_of_the_outputs(context: Context) -> Spread | None:
    """Return how large the outputs are beside what the targets allow, if the loss is one that is known.

    Of C classes the risk over ``log C``, that of outputs of zero.
    """
    loss = _known_loss(context)
    if loss is None:
        return None
    if loss.square is None:
        return Spread(context.subject.risk() / float(np.log(loss.outputs.shape[-1])), False)
    variance = _variance(loss.targets)
    return Spread(_variance(loss.outputs) / variance, True) if variance else None


def _known_loss(context: Context) -> KnownLoss | None:
    """Return which loss it is, which shows by its value at the network's own outputs; None for others."""
    try:
        outputs, targets = context.outputs
    except UserError:
        return None
    risk = context.subject.risk()
    mean = mean_cross_entropy(outputs, targets)
    if mean is not None:
        is_the_mean = same_risk(context.subject, risk, mean)
        return KnownLoss(outputs, targets, None) if is_the_mean else None
    if targets.shape != outputs.shape or not np.issubdtype(targets.dtype, np.floating):
        return None
    outputs = outputs.astype(float)
    square = float(((outputs - targets) ** 2).mean())
    for factor in (1.0, 0.5):
        if same_risk(context.subject, risk, factor * square):
            return KnownLoss(outputs, targets, factor)
    return None


def _variance(rows: NDArray) -> float:
    """Return the mean square of what differs from the mean over the examples, of rows ``(n, …)``."""
    return float(((rows - rows.mean(0)) ** 2).mean())


def is_linear(context: Context) -> bool | None:
    """Tell whether the outputs are linear in the inputs, up to a constant; None where inputs are no real numbers."""
    try:
        x = np.array(context.subject.inputs()[:POINTS])
        if not np.issubdtype(x.dtype, np.floating):
            return None
        zero = np.zeros_like(x)
        other = 3 * x[::-1]
        points = np.concatenate([zero, x, other, x + other, -10 * x])
        outputs = np.asarray(context.subject.evaluate(points), float)
    except UserError:
        return None
    if len(outputs) != len(points):
        return None
    base, one, two, both, far = np.split(outputs, 5)
    bends = np.concatenate([both - one - two + base, far - base + 10 * (one - base)])
    size = float(np.abs(outputs).max(initial=0))
    return bool(np.abs(bends).max() <= 1e4 * np.finfo(context.subject.dtype).eps * size)
