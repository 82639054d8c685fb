"""Short descents from the weights as they are, each with another step size: which of them ends lowest."""

import math
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.measurement._optimizer import Optimizer, Rule
from steepest.measurement.adapters import Subject

RATIO = math.sqrt(10)  # between neighbouring step sizes
RISEN = 10.0  # times the risk at the start: a descent that is lost
LONG_AGO = (
    10**6
)  # steps after which Adam's averages have forgotten their start, if it does not count
CLEARLY = 1.2  # times as far down as the usual step, from which another is clearly lower
LOWER = 0.05  # of the risk with the usual step, by which it is lower then
NEARLY = 0.8  # of the way down that the best step goes, which is nearly as low


class Descent(NamedTuple):
    """Short descents with one step size.

    Attributes:
        step: the step size.
        risks: at their ends, one for each draw of batches; infinite where a descent diverged.
    """

    step: float
    risks: tuple[float, ...]

    @property
    def risk(self) -> float:
        """Return the mean of the risks."""
        return float(np.mean(self.risks))

    @property
    def diverges(self) -> bool:
        """Tell whether any of them diverged."""
        return math.isinf(self.risk)


class Descents(NamedTuple):
    """What short descents from the same weights, over the same draws of batches, came to.

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
        """Return the one that ends lowest, in the mean over the draws."""
        return min(self.tried, key=lambda descent: descent.risk)

    @property
    def any_descends(self) -> bool:
        """Tell whether any of them ends below its start."""
        return self.best.risk < self.start

    @property
    def from_the_usual_step(self) -> Descent:
        """Return the one with the step size at which the search began."""
        return next(descent for descent in self.tried if descent.step == self.usual)

    @property
    def better(self) -> Descent | None:
        """Return one that ends clearly lower than with the usual step in each draw; None where none does.

        Of the descents that end nearly as low as the best, it is the descent whose step is nearest to the usual: what
        a step that is far off costs shows later than in a short descent.
        """
        clear = [descent for descent in self.tried if self._is_better(descent)]
        if not clear:
            return None
        lowest = min(descent.risk for descent in clear)
        enough = self.start - NEARLY * (self.start - lowest)
        near = [descent for descent in clear if descent.risk <= enough]
        return min(near, key=lambda descent: abs(math.log(descent.step / self.usual)))

    def _is_better(self, descent: Descent) -> bool:
        """Tell whether it ends clearly lower than with the usual step in each draw."""
        usual = self.from_the_usual_step
        if usual.diverges:
            return descent.risk < self.start
        return all(
            risk < self.start
            and self.start - risk >= CLEARLY * (self.start - yours)
            and yours - risk >= LOWER * abs(yours)
            for risk, yours in zip(descent.risks, usual.risks, strict=True)
        )


class Judges(StrEnum):
    """Which examples judge the descents."""

    HELD_OUT = "held-out"
    ASIDE = "aside"
    """Examples of those given that no descent uses."""
    GIVEN = "given"


class Tried(NamedTuple):
    """The descents of a measurement.

    Attributes:
        descents: what they came to.
        judges: which examples judged them.
        at_peak: whether the usual step is the peak of a schedule, while the schedule is elsewhere.
    """

    descents: Descents
    judges: Judges
    at_peak: bool


def short_descents(
    subject: Subject,
    optimizer: Optimizer,
    draws: Sequence[Sequence[Any]],
    usual: float,
    count: int,
    judge: Subject | None = None,
    only_larger: bool = False,
) -> Descents:
    """Descend from the weights as they are, on copies of them, with several step sizes.

    All step sizes see the same batches in the same order, so that descents differ only by their step sizes. The search
    begins at the usual step and goes up by factors of √10 while it ends lower, then down. Momentum begins at rest; Adam
    goes on from its averages.

    Args:
        subject: model, loss and data; its weights stay as they are.
        optimizer: whose steps these are.
        draws: batches, one a step; each step size descends once over each draw.
        usual: the step size at which the search begins.
        count: how many step sizes at most.
        judge: the same model on the examples that judge; without it all of the subject's.
        only_larger: whether no smaller steps are tried.
    """
    judge = subject if judge is None else judge
    start = judge.risk()

    def end(batches: Sequence[Any], step: float) -> float:
        weights = _descended(subject, optimizer, batches, step)
        risk = judge.at(weights).risk() if np.isfinite(weights).all() else math.inf
        is_lost = not math.isfinite(risk) or risk > start + (RISEN - 1) * abs(start)
        return math.inf if is_lost else risk

    def descend(step: float) -> Descent:
        return Descent(step, tuple(end(batches, step) for batches in draws))

    return _search(descend, usual, count, start, only_larger)


def _search(
    descend: Callable[[float], Descent],
    usual: float,
    count: int,
    start: float,
    only_larger: bool = False,
) -> Descents:
    """Try a step, then larger ones while they end lower, then smaller ones."""
    tried = {0: descend(usual)}
    best = 0
    while len(tried) < count:
        has_larger = best + 1 in tried or tried[best].diverges
        place = best - 1 if has_larger else best + 1
        if place in tried or (only_larger and place < 0):
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
    for taken, batch in enumerate(batches):
        # a loss that draws random numbers draws others in each step
        model = subject.redrawn(taken) if subject.is_noisy else subject
        gradient = model.at(weights)._gradient(batch) + in_gradient * weights
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
        self.steps = LONG_AGO if optimizer.steps is None else optimizer.steps
        relative = 1.0 if optimizer.relative is None else optimizer.relative
        with np.errstate(invalid="ignore"):
            scale = np.asarray(optimizer.scale / relative, float)
        # weights that have next to no gradients, or that no group moves, have an infinite scale
        self.moves = np.isfinite(scale) & np.isfinite(optimizer.update)
        filled = 1 - self.beta**self.steps
        filled_2 = 1 - self.beta_2**self.steps
        self.second[self.moves] = filled_2 * np.square(scale[self.moves] - self.eps)
        self.first[self.moves] = filled * (optimizer.update * scale)[self.moves]

    def by(self, gradient: NDArray) -> NDArray:
        """Return what a step of size 1 takes from the weights."""
        self.steps += 1
        self.first += (1 - self.beta) * (gradient - self.first)
        self.second += (1 - self.beta_2) * (np.square(gradient) - self.second)
        first = self.first / (1 - self.beta**self.steps)
        second = self.second / (1 - self.beta_2**self.steps)
        return np.where(self.moves, first / (np.sqrt(second) + self.eps), 0.0)
