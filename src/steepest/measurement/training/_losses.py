"""Announce a divergence from what a training has at hand in each step: the losses of its batches, and its updates."""

import math
import sys
from collections import deque
from itertools import dropwhile
from statistics import median
from typing import NamedTuple

from steepest.measurement.training._alarms import Alarm, Rule
from steepest.measurement.training._chances import (
    allowance,
    chance_in_tail,
    chance_of_hits,
    chance_of_run,
)
from steepest.measurement.training._first_order import LEAST, StepNumbers

# Fixed on the first two lists of benchmarks/warnings, at seeds that no list records, before any monitor had run on the
# third. There steps of trainings that end well move the weights by up to 0.06 of their norm after the first five, and
# by 0.1 in these.
WINDOW = 8  # losses, whose median is compared with the lowest such median
RISE = 0.4  # of a constant guess's risk, or of what the losses had fallen by, by which it must have risen
WORTH = 0.05  # of the losses of the start, from which a fall is something to lose
PAIR = 1.5  # times a constant guess's risk, above which losses in a row are
BAD = 10.0  # times the same and all earlier losses: one, which
RARE = 3e-3  # chance at most has beside the few losses above a constant guess
AGO = 5  # steps, since which losses do not count as earlier ones in a row
MEMORY = 120  # earlier losses that tell how likely losses are
UPDATE = 0.2  # of the weights' norm, moved by one step while the loss does not fall
STRIDE = 0.1  # of it, moved by one step after the first ones: ten of them replace the weights
GROWN = 2.0  # times the least such share so far, which a stride is
STARTED = 5  # first steps, in which small weights may move by much of their size


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
        self.recent: deque[float] = deque(maxlen=MEMORY + WINDOW)
        self.count = 0  # of losses
        self.first: float | None = None
        self.start = -math.inf  # the highest of the first medians of losses
        self.medians = 0  # that were taken
        self.lowest: tuple[float, int] | None = None  # median of losses, and its step
        self.largest = -math.inf  # loss until some steps ago
        self.jump: Jump | None = None
        self.least_share = math.inf  # of the weights' norm that a step has moved

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
        self._remember(loss)
        # a negative loss, such as that of a density, has no scale
        candidates = [self._climb(step, scale), self._leap(loss, scale)] if scale > 0 else []
        candidates.append(self._jump(loss))
        candidates.append(self._stride(step, numbers.share))
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
        bound = min(self._top(scale), PAIR * scale)
        # a median of eight that has risen so far has four losses above that
        high = sum(loss > bound for loss in self._last(WINDOW - 1))
        return -math.inf if high >= WINDOW // 2 else bound

    def _top(self, scale: float) -> float:
        """Return the median from which on losses have climbed."""
        assert self.lowest is not None
        low = self.lowest[0]
        fallen = self.start - low
        least = min(max(scale, low), fallen if fallen > WORTH * scale else math.inf)
        return low + RISE * least

    def _climb(self, step: int, scale: float) -> Alarm | None:
        """Compare the median of the last losses with the lowest before, and how many are so high with how many were.

        Of single examples some are learned and some are not: the median of a few leaps. Earlier losses count from the
        first that is below the level, so that the descent from the start does not.
        """
        last = self._last(WINDOW)
        now = median(last)
        if self.count >= LEAST:
            self.medians += 1
            self.start = max(self.start, now) if self.medians <= WINDOW else self.start
            if self.lowest is None or now < self.lowest[0]:
                self.lowest = (now, step)
        if self.lowest is None:
            return None
        low, when = self.lowest
        top = self._top(scale)
        if now < top:
            return None
        high = sum(loss >= top for loss in last)
        before = list(dropwhile(lambda loss: loss >= top, list(self.recent)[:-WINDOW]))
        high_before = sum(loss >= top for loss in before)
        if chance_of_hits(high, WINDOW, high_before, len(before)) > allowance(self.count):
            return None
        return Alarm(
            Rule.LOSSES_CLIMB,
            f"the losses of the batches have climbed from {low:.3g} at step {when} to {now:.3g} (medians of {WINDOW}): "
            "expect that what was learned is lost. Lower the step, or go back to a checkpoint",
        )

    def _leap(self, loss: float, scale: float) -> Alarm | None:
        """Compare the last losses with all before: one that is far above, or up to eight in a row."""
        if loss <= PAIR * scale:
            return None
        before = list(self.recent)[: -1 - AGO]
        largest = max(self.largest, scale)
        allowed = allowance(self.count)
        if loss > BAD * largest and self._is_beyond(loss, scale, before):
            return Alarm(
                Rule.BAD_BATCH,
                f"the loss of a batch is {loss:.3g}, and none was above {largest:.3g} before: look at this batch. "
                "Clipping the gradient bounds what one batch can do",
            )
        least = loss
        for length, earlier in enumerate(reversed(self._last(WINDOW)[:-1]), 2):
            least = min(least, earlier)
            if least <= PAIR * scale:
                return None
            if chance_of_run(length, least, scale, before) <= allowed:
                return Alarm(
                    Rule.LOSSES_LEAP,
                    f"{length} batches in a row have losses of {least:.3g} and more, far above those before (a "
                    f"constant guess or the first batch had {scale:.3g}): expect divergence. Lower the step, or warm "
                    "it up",
                )
        return None

    def _is_beyond(self, loss: float, scale: float, before: list[float]) -> bool:
        """Tell whether a loss is beyond the tail of those before, of which one tells little by its rank."""
        middle = min(median(before), scale) if before else 0.0
        return (
            middle > 0
            and chance_in_tail(1, loss, middle, before) <= allowance(self.count)
            and chance_in_tail(1, loss, scale, before) <= RARE
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

    def _stride(self, step: int, share: float | None) -> Alarm | None:
        """Say that steps have grown to a large part of the weights' size; ramps do before the losses show it.

        Weights that start at zero move by 1/n of their size in the n-th step of a steady descent: that does not grow.
        """
        if share is None:
            return None
        least = self.least_share
        self.least_share = min(least, share)
        if share >= UPDATE:
            self.jump = Jump(step, share, median(self._last(WINDOW - 1)))
        if step <= STARTED or share < max(STRIDE, GROWN * least):
            return None
        return Alarm(
            Rule.STRIDE,
            f"one step moves the weights by {share:.0%} of their size, and it was {least:.1%} before: a few such steps "
            "replace what was learned. Lower the step, or clip the gradient",
        )

    def _last(self, count: int) -> list[float]:
        """Return so many last losses, or all if there are fewer."""
        return list(self.recent)[-count:]

    def _remember(self, loss: float) -> None:
        if len(self.recent) > AGO:
            self.largest = max(self.largest, self.recent[-1 - AGO])
        self.recent.append(loss)
        self.count += 1
