"""Short descents from the weights as they are, each with another step size: which of them ends lowest."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.measurement._optimizer import Optimizer, Rule
from steepest.measurement.adapters import Subject

RATIO = math.sqrt(10)  # between neighbouring step sizes
RISEN = 10.0  # times the risk at the start: a descent that is lost
LONG_AGO = 10**6  # steps after which Adam's averages have forgotten their start


class Descent(NamedTuple):
    """One short descent.

    Attributes:
        step: its step size.
        risk: on all examples at its end; infinite where it diverged.
    """

    step: float
    risk: float


class Descents(NamedTuple):
    """What short descents from the same weights, over the same batches, came to.

    Attributes:
        tried: in the order of their step sizes.
        start: the risk before them.
        usual: the step size at which the search began: the user's, if it is known.
        is_inside: whether a smaller step and a larger one than the best were tried.
    """

    tried: tuple[Descent, ...]
    start: float
    usual: float
    is_inside: bool

    @property
    def best(self) -> Descent:
        """Return the one that ends lowest."""
        return min(self.tried, key=lambda descent: descent.risk)

    @property
    def any_descends(self) -> bool:
        """Tell whether any of them ends below its start."""
        return self.best.risk < self.start

    @property
    def from_the_usual_step(self) -> Descent:
        """Return the one with the step size at which the search began."""
        return next(descent for descent in self.tried if descent.step == self.usual)


def short_descents(
    subject: Subject, optimizer: Optimizer, batches: Sequence[Any], usual: float, count: int
) -> Descents:
    """Descend from the weights as they are, on copies of them, with several step sizes.

    All descents see the same batches in the same order, so that they differ by their step sizes alone. The search
    begins at the usual step and goes up by factors of √10 while it ends lower, then down. Momentum begins at rest; Adam
    goes on from its averages.

    Args:
        subject: model, loss and data; its weights stay as they are.
        optimizer: whose steps these are.
        batches: one a step.
        usual: the step size at which the search begins.
        count: how many descents at most.
    """
    start = subject.risk()

    def descend(step: float) -> Descent:
        weights = _descended(subject, optimizer, batches, step)
        risk = subject.at(weights).risk() if np.isfinite(weights).all() else math.inf
        is_lost = not math.isfinite(risk) or risk > start + (RISEN - 1) * abs(start)
        return Descent(step, math.inf if is_lost else risk)

    return _search(descend, usual, count, start)


def _search(
    descend: Callable[[float], Descent], usual: float, count: int, start: float
) -> Descents:
    """Try a step, then larger ones while they end lower, then smaller ones."""
    tried = {0: descend(usual)}
    best = 0
    while len(tried) < count:
        has_larger = best + 1 in tried or math.isinf(tried[best].risk)
        place = best - 1 if has_larger else best + 1
        if place in tried:
            break
        tried[place] = descend(rounded(usual * RATIO**place))
        best = min(tried, key=lambda at: (tried[at].risk, at))
    inside = best - 1 in tried and best + 1 in tried
    return Descents(tuple(tried[place] for place in sorted(tried)), start, usual, inside)


def rounded(step: float) -> float:
    """Round a step size to two digits, as people type them.

    >>> rounded(0.0316227)
    0.032
    """
    return float(f"{step:.2g}")


def _descended(
    subject: Subject, optimizer: Optimizer, batches: Sequence[Any], step: float
) -> NDArray:
    """Return the weights after one descent, shape ``(p,)``; not finite where it diverged."""
    weights = subject.values()
    in_gradient = 0.0 if optimizer.decoupled else optimizer.one_decay
    decoupled = optimizer.one_decay if optimizer.decoupled else 0.0
    moves = (
        _Adam(optimizer, weights) if optimizer.kind == Rule.ADAM else _Momentum(optimizer, weights)
    )
    sizes = step if optimizer.relative is None else step / optimizer.relative
    for batch in batches:
        gradient = subject.at(weights)._gradient(batch) + in_gradient * weights
        if not np.isfinite(gradient).all():
            return np.full_like(weights, np.nan)
        with np.errstate(over="ignore", invalid="ignore"):
            weights = weights - sizes * (moves.by(gradient) + decoupled * weights)
        weights = weights.astype(subject.dtype)
    return weights


class _Momentum:
    """The memory of descent with momentum, from rest."""

    def __init__(self, optimizer: Optimizer, weights: NDArray) -> None:
        self.beta = optimizer.momentum
        self.kept = 1 - optimizer.dampening
        self.is_nesterov = optimizer.kind == Rule.NESTEROV
        self.velocity = np.zeros_like(weights)

    def by(self, gradient: NDArray) -> NDArray:
        """Return what a step of size 1 takes from the weights."""
        self.velocity = self.beta * self.velocity + self.kept * gradient
        return gradient + self.beta * self.velocity if self.is_nesterov else self.velocity


class _Adam:
    """The averages of Adam: as its state has them, or from zero before its first step."""

    def __init__(self, optimizer: Optimizer, weights: NDArray) -> None:
        self.beta = optimizer.momentum
        self.beta_2 = optimizer.beta_2
        self.eps = optimizer.eps
        self.steps = 0
        self.moves = np.ones(len(weights), bool)
        self.first = np.zeros_like(weights, float)
        self.second = np.zeros_like(weights, float)
        if optimizer.scale is None or optimizer.update is None:
            return
        relative = 1.0 if optimizer.relative is None else optimizer.relative
        scale = np.asarray(optimizer.scale / relative, float)
        # weights that have next to no gradients, or that no group moves, have an infinite scale
        self.moves = np.isfinite(scale) & np.isfinite(optimizer.update)
        self.steps = LONG_AGO
        self.second[self.moves] = np.square(scale[self.moves] - self.eps)
        self.first[self.moves] = (optimizer.update * scale)[self.moves]

    def by(self, gradient: NDArray) -> NDArray:
        """Return what a step of size 1 takes from the weights."""
        self.steps += 1
        self.first += (1 - self.beta) * (gradient - self.first)
        self.second += (1 - self.beta_2) * (np.square(gradient) - self.second)
        first = self.first / (1 - self.beta**self.steps)
        second = self.second / (1 - self.beta_2**self.steps)
        return np.where(self.moves, first / (np.sqrt(second) + self.eps), 0.0)
