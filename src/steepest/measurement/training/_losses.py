"""Announce a divergence from what a training has at hand in each step: the losses of its batches, and its updates."""

import math
import sys
from collections import deque
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from steepest.measurement.training._alarms import Alarm, Rule
from steepest.measurement.training._first_order import (
    EFFICIENCY,
    LEAST,
    MEMORY,
    TO_DEVIATION,
    StepNumbers,
)

# Fixed on the kinds of benchmarks/divergence and others like them at the seeds 0 to 3, and on the first list of
# benchmarks/warnings. Losses of single examples scatter so much, and with so long a tail, that medians of eight rise by
# more than a constant guess in trainings that end well: hence the scatter.
WINDOW = 8  # losses, whose median is compared with the lowest such median
SCATTER = 6.0  # standard errors of that median, by which it must have risen
RISE = 0.4  # of a constant guess's risk, or of what the losses had fallen by, by which too
CHANCE = 1e-3  # of as many losses in a row above that lowest median, if they still were what they had been
WORTH = 0.05  # of the losses of the start, from which a fall is something to lose
PAIR = 1.2  # times all earlier losses and a constant guess's: two in a row above
WIDE = 3.0  # standard deviations of losses, by which they must be above that too
BAD = 10.0  # times the same: one
UPDATE = 0.4  # of the weights' norm, moved by one step
MOVED = 1.5  # of it, moved by all steps together
STUCK = 0.95  # of a constant guess's risk, below which no median has been
AGO = 5  # steps, since which losses do not count as earlier ones


class Jump(NamedTuple):
    """A step that has moved the weights far."""

    step: int
    share: float
    """Of the weights' norm."""
    before: float
    """The median of the losses before it."""


class Losses:
    """The losses of the batches, as far as warnings need them: a few recent ones, and the extremes of the others."""

    def __init__(self) -> None:
        self.recent: deque[float] = deque(maxlen=MEMORY)
        self.last: deque[float] = deque(maxlen=WINDOW - 1)
        self.first: float | None = None
        self.start = -math.inf  # the highest of the first medians of losses
        self.medians = 0  # that were taken
        self.lowest: tuple[float, int] | None = None  # median of losses, and its step
        self.largest = -math.inf  # of the smaller of two losses in a row, until some steps ago
        self.pairs: deque[float] = deque(maxlen=AGO)
        self.jump: Jump | None = None
        self.share: float | None = None  # of the last update over the weights that was looked at
        self.moved = 0.0  # by all steps, in units of the weights' norm

    def alarms(self, numbers: StepNumbers, guess: float | None) -> list[Alarm]:
        """Return the alarms of one step, and remember its loss; where none is given there are none.

        Args:
            numbers: of the step; steps must come in their order.
            guess: the risk of a constant guess, if it is known; the first loss stands for it if it is larger.
        """
        step = numbers.step
        loss = numbers.loss
        if loss is None:
            return []
        if not math.isfinite(loss):
            text = f"the loss of the batch is {loss} at step {step}: the training has diverged, or the batch is spoilt"
            return [Alarm(Rule.NOT_FINITE, text)]
        if self.first is None:
            self.first = loss
        scale = max(self.first, guess or 0.0)  # the loss may be scaled, the guess is not
        # a negative loss, such as that of a density, has no scale
        candidates = [self._climb(step, loss, scale), self._leap(loss, scale)] if scale > 0 else []
        candidates.append(self._jump(loss))
        candidates.append(self._restless(numbers.share, scale))
        self._remember(loss)
        if numbers.share is not None and numbers.share >= UPDATE:
            self.jump = Jump(step, numbers.share, self._median())
        return [alarm for alarm in candidates if alarm is not None]

    def calm(self, guess: float | None) -> float:
        """Return the largest loss that can wait: while no loss is above it, losses alone raise no alarm.

        It holds as long as the lowest median of losses stays; what an update raises does not wait for it.

        Args:
            guess: as for ``alarms``.
        """
        if self.first is None or self.lowest is None or self.jump is not None:
            return -math.inf
        scale = max(self.first, guess or 0.0)
        if scale <= 0:
            return sys.float_info.max
        bound = min(self._top(scale), PAIR * max(self.largest, self.first, scale))
        # a median of eight that has risen so far has four losses above that
        return -math.inf if sum(loss > bound for loss in self.last) >= WINDOW // 2 else bound

    def _top(self, scale: float) -> float:
        """Return the median from which on losses have climbed, as far as its scatter and chance allow to say so."""
        assert self.lowest is not None
        low = self.lowest[0]
        fallen = self.start - low
        least = min(max(scale, low), fallen if fallen > WORTH * scale else math.inf)
        return low + RISE * least

    def _climb(self, step: int, loss: float, scale: float) -> Alarm | None:
        """Compare the median of the last losses with the lowest before, beside their scatter and their fall."""
        now = median([*self.last, loss])
        if len(self.last) >= LEAST - 1:
            self.medians += 1
            self.start = max(self.start, now) if self.medians <= WINDOW else self.start
            if self.lowest is None or now < self.lowest[0]:
                self.lowest = (now, step)
        if self.lowest is None:
            return None
        low, when = self.lowest
        if now < self._top(scale):
            return None
        if self._chance(loss, low, step - when) > CHANCE:
            return None
        if now - low < SCATTER * self._scatter() * EFFICIENCY / math.sqrt(WINDOW):
            return None
        return Alarm(
            Rule.LOSSES_CLIMB,
            f"the losses of the batches have climbed from {low:.3g} at step {when} to {now:.3g} (medians of {WINDOW}): "
            "expect that what was learned is lost. Lower the step, or go back to a checkpoint",
        )

    def _leap(self, loss: float, scale: float) -> Alarm | None:
        """Compare the last losses with all before."""
        assert self.first is not None
        largest = max(self.largest, self.first, scale)
        if loss > BAD * largest:
            return Alarm(
                Rule.BAD_BATCH,
                f"the loss of a batch is {loss:.3g}, and none was above {largest:.3g} before: look at this batch. "
                "Clipping the gradient bounds what one batch can do",
            )
        if not self.recent:
            return None
        above = min(loss, self.recent[-1]) - PAIR * largest
        if above <= 0 or above <= WIDE * self._scatter():
            return None
        return Alarm(
            Rule.LOSSES_LEAP,
            f"two batches in a row have losses of {self.recent[-1]:.3g} and {loss:.3g}, far above all before "
            f"({largest:.3g}): expect divergence. Lower the step, or warm it up",
        )

    def _jump(self, loss: float) -> Alarm | None:
        """Say that a step has moved the weights far, if the loss after it is not below those before."""
        jump = self.jump
        self.jump = None
        # weights that start near zero move by all of their size in steps that descend
        if jump is None or loss < jump.before:
            return None
        return Alarm(
            Rule.UPDATE,
            f"the step before {jump.step} has moved the weights by {jump.share:.0%} of their size, and the loss has "
            f"not fallen by it: {loss:.3g} after {jump.before:.3g}. Lower the step, or warm it up",
        )

    def _restless(self, share: float | None, scale: float) -> Alarm | None:
        """Say that steps move the weights by all of their size while the losses stay where they began."""
        self.share = self.share if share is None else share
        self.moved += self.share or 0.0
        if self.lowest is None or len(self.recent) < 2 * WINDOW or self.moved < MOVED:
            return None
        low = self.lowest[0]
        if low < STUCK * scale:
            return None
        return Alarm(
            Rule.RESTLESS,
            f"the steps have moved the weights by {self.moved:.2g} times their size in all, and the losses are still "
            f"those of the start ({low:.3g} at the least, medians of {WINDOW}): lower the step, or warm it up",
        )

    def _chance(self, loss: float, low: float, since: int) -> float:
        """Return how likely so many losses in a row are above a low one by chance.

        Of single examples some are learned and some are not: the median of a few leaps, and several stay low. How often
        losses were above since then, and in the window before, tells.
        """
        losses = [*self.recent, loss]
        row = next((i for i, x in enumerate(reversed(losses)) if x <= low), len(losses))
        before = losses[max(0, len(losses) - since - WINDOW) : len(losses) - row]
        share = (sum(x > low for x in before) + 1) / (len(before) + 2)
        return share**row

    def _scatter(self) -> float:
        """Return the standard deviation of losses about their course, from successive differences before the last ones.

        Long tails count, what happens now does not. At the start there is nothing before: there it is of all, by the
        median, for which one leap does not count.
        """
        losses = list(self.recent)
        before = losses[: -(WINDOW - 1)]
        if len(before) > LEAST:
            return math.sqrt(
                sum((b - a) ** 2 for a, b in pairwise(before)) / (2 * (len(before) - 1))
            )
        steps = [abs(b - a) for a, b in pairwise(losses)]
        return TO_DEVIATION / math.sqrt(2) * median(steps) if steps else 0.0

    def _median(self) -> float:
        """Return the median of the last losses."""
        return median(self.last)

    def _remember(self, loss: float) -> None:
        if len(self.pairs) == AGO:
            self.largest = max(self.largest, self.pairs[0])
        if self.recent:
            self.pairs.append(min(loss, self.recent[-1]))
        self.recent.append(loss)
        self.last.append(loss)
