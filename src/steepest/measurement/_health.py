"""Whether a network has learned anything: dead networks, constant guesses, networks that are linear in their inputs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from steepest.core.errors import UserError
from steepest.measurement._context import Context
from steepest.measurement._cross_entropy import is_this_loss, mean_cross_entropy, same_risk

LEARNED = 0.01  # relative difference from a constant guess below which nothing has been learned
AT_REST = 1e-3  # of the slope at zero, below which a search for a constant guess has come to rest
POINTS = 8  # at which linearity is tried
EVALUATIONS = 200
"""Of the loss in a search for a constant guess: a loss without a least value, as of a critic, goes on for ever."""
NUMBERS = (
    2**17
)  # outputs up to which a constant guess is searched for: each step of the search is a loss of all


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
    """Return the least risk of outputs that are the same for all examples, if it is known or a search finds it.

    It is looked for once in a context.

    The entropy of the labels' frequencies for the mean cross-entropy; the variance of the targets, or half of it, for
    the mean square or half of it. Of other losses of outputs ``(n,)`` or ``(n, k)`` what a descent from zero finds.
    None where targets change with the network, as what a guess is worth changes with them.
    """
    return context.once(_constant_guess) if context.stationary else None


def _constant_guess(context: Context) -> float | None:
    loss = _known_loss(context)
    if loss is None:
        return _least_of_constants(context)
    if loss.square is not None:
        return loss.square * _variance(loss.targets)
    shares = np.bincount(loss.targets.ravel()) / loss.targets.size
    return -float(sum(share * np.log(share) for share in shares if share))


def _least_of_constants(context: Context) -> float | None:
    """Return the least loss of constant outputs by a search from zero; None where it does not come to rest.

    It is the least of all if the loss is convex in the outputs, and otherwise one that a constant guess has.
    """
    try:
        outputs, targets = context.outputs
    except UserError:
        return None
    subject = context.subject
    if outputs.ndim > 2 or not 0 < outputs.size <= NUMBERS:
        return None

    def loss_and_slope(constant: NDArray) -> tuple[float, NDArray]:
        alike = np.broadcast_to(constant.reshape(outputs.shape[1:]), outputs.shape).copy()
        slope = subject.slopes(alike, targets).sum(0)
        return subject.loss_at(alike, targets), np.asarray(slope, float).ravel()

    start = np.zeros(outputs[0].size)
    try:
        # a loss that is no function of outputs and targets alone, or not of all examples at once, has no such guess
        if not same_risk(subject, subject.risk(), subject.loss_at(outputs, targets)):
            return None
        steepness = float(np.abs(loss_and_slope(start)[1]).max())
        least = minimize(
            loss_and_slope, start, jac=True, method="L-BFGS-B", options={"maxfun": EVALUATIONS}
        )
    except UserError:
        return None
    at_rest = np.abs(least.jac).max() <= AT_REST * max(
        steepness, float(np.finfo(subject.dtype).eps)
    )
    return float(least.fun) if at_rest and np.isfinite(least.fun) else None


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
    if mean_cross_entropy(outputs[:1], targets[:1]) is not None:
        is_the_mean = is_this_loss(context.subject, outputs, targets, mean_cross_entropy)
        return KnownLoss(outputs, targets, None) if is_the_mean else None
    if targets.shape != outputs.shape or not np.issubdtype(targets.dtype, np.floating):
        return None
    outputs = outputs.astype(float)
    for factor in (1.0, 0.5):
        square = lambda out, y, factor=factor: factor * float(((out - y) ** 2).mean())
        if is_this_loss(context.subject, outputs, targets, square):
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
