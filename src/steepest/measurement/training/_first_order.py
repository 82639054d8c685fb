"""First-order numbers of a model along its training: what it has at hand anyway, for next to nothing."""

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.measurement._report import Reading
from steepest.measurement.adapters import is_torch_module
from steepest.measurement.training._names import (
    CLIPPED,
    GRADIENT,
    LARGEST,
    LOSS,
    UNCLIPPED,
    UPDATE,
    WEIGHTS,
)
from steepest.measurement.training._weights import (
    NOT_TAKEN,
    Norms,
    Weights,
    is_at_hand,
    weights_of,
)

ALL = 4  # first steps, each of which is looked at
EVERY = 8  # steps later on, of which at most two are: going through all weights costs as much as a layer
SELDOM = 16  # steps, after which what they hand over is looked at; a multiple of the number before
SHARE = 0.003  # of the time since the first look, which looks may take
STIR = 0.05  # of the weights' norm, from which on every step is looked at that moves them so far
STIRRED = 0.03  # of the time, which looks may take then
WARM = 3  # first steps whose looks do not count
HELD = 20  # steps whose numbers wait on their device before they are fetched together
SHRUNK = 0.99  # of the gradient's norm, below which what the optimizer used was clipped
MEMORY = 60  # losses that tell the scatter
LEAST = 5  # of them at least
TO_DEVIATION = 1.4826  # from the median of absolute normal numbers to their standard deviation
# the standard error of the median of n normal numbers, in units of that of their mean
EFFICIENCY = 1.2533


class Look(NamedTuple):
    """What was taken at one step: norms on their device, and once they are fetched numbers."""

    step: int
    norms: Norms
    loss: Any  # of the last batch, or None
    slope: Any = None  # norm of its gradient before clipping


class Medians(NamedTuple):
    """Of each array of weights, over the steps since the last record; NaN where it was not taken."""

    weights: NDArray
    updates: NDArray
    gradients: NDArray


class StepNumbers(NamedTuple):
    """What is known of one step; None where it was not looked at."""

    step: int
    loss: float | None
    """Of the last batch."""
    share: float | None
    """Norm of the last update over that of the weights."""
    is_finite: bool
    """Whether no weight was seen not to be finite."""


class FirstOrder:
    """Looks at a model in every step, and sums up since the last record.

    A look at all weights takes a share of the training's time, so that a fast training is looked at less often.

    Args:
        clock: seconds.

    Attributes:
        names: of the arrays of weights.
        medians: of their norms, at the last record.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.names: list[str] = []
        self.medians: Medians | None = None
        self._clock = clock
        self._started: float | None = None
        self._spent = 0.0  # by looks at all weights, of which the last took
        self._last = 0.0
        self._model: Any = None  # the module whose weights are listed
        self._weights: Weights | None = None
        self._before: Any = None  # a copy of the weights, at
        self._step: int | None = None
        self._slopes: tuple[int, Sequence[Any]] = (-1, ())  # taken before the step of this number
        self._held: list[Look] = []  # on their device, or not looked at yet
        self._fetched: list[Look] = []
        self._news: list[StepNumbers] = []  # of what was fetched since the last look
        self._donates = False  # whether the training has taken away an array that it handed over
        self._losses: deque[float] = deque(maxlen=MEMORY)  # finite ones, also of earlier records
        self._stirs = False  # whether the last step that was looked at has moved the weights far

    def hold(self, step: int, loss: Any, slope: Any, calm: float) -> bool:
        """Keep what a step hands over until the next look; tell whether it can wait, otherwise nothing is kept.

        This is called in most steps, between which the training uses all caches: it must touch little.

        Args:
            step: of the training.
            loss: as for ``look``; a number, or a tensor of torch on a processor, is compared with
            calm: the largest loss that can wait.
            slope: as for ``look``.
        """
        loss = _taken(loss)
        if type(loss) is float:
            if not loss <= calm:
                return False
        elif self._donates or len(self._held) >= HELD - 1:
            return False
        self._held.append(Look(step, NOT_TAKEN, loss, _taken(slope)))
        return True

    def next_look(self, step: int) -> int:
        """Return until which step after this one what steps hand over can be held."""
        if self._step == step:  # the next step is compared with this one
            return step + 1
        if self._stirs and self._affords(self._clock(), STIRRED):
            return step + 1
        pace = EVERY if self._affords(self._clock()) else SELDOM
        return step - step % pace + pace

    def before(self, step: int, model: Any) -> None:
        """Take the norms of the gradients that this step is about to use, for trainers that clear them in it."""
        follows = self._step is not None and step == self._step + 1
        weights = weights_of(model) if follows else None
        if weights is not None:
            self._slopes = (step, weights.gradients())

    def look(
        self, step: int, model: Any, loss: Any = None, wanted: bool = False, slope: Any = None
    ) -> list[StepNumbers]:
        """Take the numbers of now; return what has come in since the last look, in the order of their steps.

        On a processor they come in at once, on an accelerator some steps later, so that nothing waits for it.

        Args:
            step: of the training.
            model: a module of torch, or a pair ``(apply, params)``; of anything else nothing is taken.
            loss: of the last batch, if the loop hands it over.
            wanted: whether the next step is looked at whatever it costs, so that weights are kept now.
            slope: norm of its gradient before clipping, if the loop hands it over.
        """
        begun = self._clock()
        if self._started is None:
            self._started = begun
        follows = self._step is not None and step == self._step + 1
        starts = wanted or step < ALL or (step % EVERY == 0 and self._affords(begun))
        starts = starts or (self._stirs and self._affords(begun, STIRRED))
        due = starts or follows
        # a module keeps its weights, and going through it costs as much as a norm of all
        is_same = model is self._model and is_torch_module(model)
        is_listed = is_same and (not starts or self._weights_are_still(model))
        if (due or self._weights is None) and not is_listed and not self._list(model):
            due = starts = follows = (
                False  # there are no weights to look at, only what is handed over
            )
        norms = self._norms(starts, follows, step) if due else NOT_TAKEN
        self._held.append(Look(step, norms, _taken(loss), _taken(slope)))
        if len(self._held) >= HELD or self._has_arrived():
            self._fetch()
        news = self._checked(self._news, model)
        self._news = []
        if due:
            self._last = self._clock() - begun
            # the first ones compile what they need, once
            self._spent += self._last if step >= WARM else 0.0
        return news

    def _checked(self, news: list[StepNumbers], model: Any) -> list[StepNumbers]:
        """Look at the weights where a loss is not finite: often they are, and only the batch is spoilt."""
        doubtful = [n.loss is not None and not math.isfinite(n.loss) for n in news]
        if not any(doubtful) or not self._list(model):
            return news
        assert self._weights is not None
        are_finite = self._weights.are_finite()
        return [
            numbers._replace(is_finite=numbers.is_finite and (are_finite or not in_doubt))
            for numbers, in_doubt in zip(news, doubtful, strict=True)
        ]

    def _affords(self, now: float, share: float = SHARE) -> bool:
        """Tell whether two looks at all weights are within their share of the time."""
        assert self._started is not None
        return self._spent + 2 * self._last <= share * (now - self._started)

    def readings(self) -> list[Reading]:
        """Return medians over the steps since the last call, and begin anew; updates by array are among the parts."""
        self._fetch()
        looks = self._fetched
        self._fetched = []
        if not looks:
            return []
        # of the arrays of now, where they have been others
        taken = [look for look in looks if max(map(len, look.norms)) == len(self.names)]
        weights, updates, gradients = (self._table(taken, name) for name in Norms._fields)
        self.medians = Medians(*(_medians(table) for table in (weights, updates, gradients)))
        size, used = _total(weights), _total(gradients)
        # no layer has the largest update where another has no size
        sound = np.where(np.isfinite(size), 1.0, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = updates / weights * sound[:, None]
            overall = _total(updates) / size
        handed = np.array([(look.loss, look.slope) for look in looks], float)  # of None NaN
        slopes = np.array([look.slope for look in taken], float)
        middle = _medians(np.column_stack([used, overall, size]))
        values: dict[str, float] = dict(zip((GRADIENT, UPDATE, WEIGHTS), middle, strict=True))
        values |= dict(zip((LOSS, UNCLIPPED), _medians(handed), strict=True))
        values[CLIPPED] = _clipped(used, slopes)
        given = [look.loss for look in looks if look.loss is not None]
        readings = [self._of_losses(given, values[LOSS])] if given else []
        readings += [
            Reading(name, float(values[name]))
            for name in (GRADIENT, UNCLIPPED, CLIPPED, UPDATE, WEIGHTS)
            if not math.isnan(values[name])
        ]
        by_array = dict(zip(self.names, _medians(shares).tolist(), strict=True))
        layers = {name: value for name, value in by_array.items() if not math.isnan(value)}
        if layers:
            readings.append(Reading(LARGEST, max(layers.values()), parts=layers))
        return readings

    def _of_losses(self, given: list[float], median: float) -> Reading:
        """Return the median loss since the last record, and where that of other batches like these would lie.

        NaN if none of them is finite. The standard error of a median of n is 1.25 of that of their mean, whose scatter
        is told by second differences of successive losses, in which a steady fall cancels.
        """
        finite = [loss for loss in given if math.isfinite(loss)]
        self._losses.extend(finite)
        if math.isnan(median) or len(self._losses) < LEAST:
            return Reading(LOSS, median)
        bends = np.diff(self._losses, 2)  # of variance 1 + 4 + 1 times that of a loss
        scatter = TO_DEVIATION / math.sqrt(6) * float(np.median(np.abs(bends)))
        error = EFFICIENCY * scatter / math.sqrt(len(finite))
        return Reading(LOSS, median, over_examples=(median - 1.96 * error, median + 1.96 * error))

    def _weights_are_still(self, model: Any) -> bool:
        return self._weights is not None and self._weights.are_still(model)

    def _list(self, model: Any) -> bool:
        """List the weights of now, and forget those of the step before if they are others; tell if there are any."""
        weights = weights_of(model)
        if weights is None:
            return False
        if self._weights is None or weights.places != self._weights.places:
            self._before = self._step = None
        self.names = weights.names
        self._model = model
        self._weights = weights
        return True

    def _norms(self, starts: bool, follows: bool, step: int) -> Norms:
        """Take the norms of now, and keep the weights where the next step is to be compared with them."""
        assert self._weights is not None
        norms = self._weights.norms(self._before) if follows else NOT_TAKEN
        if not norms.gradients and self._slopes[0] == step:
            norms = norms._replace(gradients=self._slopes[1])
        if starts:
            self._before = self._weights.copy(self._before)
            self._step = step
        return norms

    def _has_arrived(self) -> bool:
        """Tell whether what is held can be fetched without waiting for a device."""
        last = self._held[-1]
        at_hand = is_at_hand(last.loss) and is_at_hand(last.slope)
        return at_hand and (self._weights is None or self._weights.have_arrived(last.norms))

    def _fetch(self) -> None:
        """Bring what is held to the host; it is news for the next look."""
        held = self._held
        self._held = []
        on_device = [row for look in held if look.norms is not NOT_TAKEN for row in look.norms]
        rows = iter(self._weights.fetch(on_device) if self._weights and on_device else ())
        for look in held:
            is_taken = look.norms is not NOT_TAKEN
            norms = Norms(*(next(rows) for _ in look.norms)) if is_taken else NOT_TAKEN
            loss = self._number(look.loss)
            slope = self._number(look.slope)
            self._fetched.append(Look(look.step, norms, loss, slope))
            numbers = _numbers(look.step, norms, loss)
            self._news.append(numbers)
            if numbers.share is not None:
                self._stirs = numbers.share >= STIR

    def _number(self, value: Any) -> float | None:
        """Return a number that was handed over; None where there is none, or the training has taken it away."""
        if value is None or type(value) is float:
            return value
        if hasattr(value, "is_deleted") and value.is_deleted():
            self._donates = True
            return None
        return float(value)

    def _table(self, looks: Sequence[Look], name: str) -> NDArray:
        """Return the norms ``(looks, arrays)``; NaN where they were not taken."""
        nothing = [np.nan] * len(self.names)
        rows = [getattr(look.norms, name) or nothing for look in looks]
        return np.array(rows, float).reshape(len(looks), len(self.names))


def _taken(value: Any) -> Any:
    """Return a number if one is at hand, otherwise an array that keeps no graph and that does not change."""
    if value is None or type(value) is float:
        return value
    is_cpu = getattr(value, "is_cpu", None)
    if is_cpu is None:  # nothing of torch; an array of JAX may still be calculated
        return value if hasattr(value, "is_ready") else float(value)
    return float(value.item()) if is_cpu else value.detach().clone()


def _numbers(step: int, norms: Norms, loss: float | None) -> StepNumbers:
    """Sum up one step."""
    if not norms.weights:
        return StepNumbers(step, loss, None, True)
    size = math.hypot(*norms.weights)
    is_finite = math.isfinite(size)
    share = math.hypot(*norms.updates) / size if is_finite and size > 0 else None
    return StepNumbers(step, loss, share, is_finite)


def _total(norms: NDArray) -> NDArray:
    """Return the norm of all arrays together at each look; NaN where there are none."""
    return np.sqrt((norms**2).sum(axis=1)) if norms.shape[1] else np.full(len(norms), np.nan)


def _clipped(used: NDArray, before: NDArray) -> float:
    """Return the share of steps whose gradient was smaller when it was used; NaN where none has both norms."""
    both = np.isfinite(used) & np.isfinite(before)
    return float((used < SHRUNK * before)[both].mean()) if both.any() else math.nan


def _medians(table: NDArray) -> NDArray:
    """Return the median of what is finite in each column; NaN where nothing is.

    >>> _medians(np.array([[1.0, np.nan], [np.nan, np.nan], [3.0, np.inf]]))
    array([ 2., nan])
    """
    if not len(table):
        return np.full(table.shape[1], np.nan)
    rows = np.sort(np.where(np.isfinite(table), table, np.inf), axis=0)
    counts = np.isfinite(rows).sum(axis=0)
    columns = np.arange(table.shape[1])
    low = rows[np.maximum(counts - 1, 0) // 2, columns]
    high = rows[counts // 2, columns]
    return np.where(counts > 0, (low + high) / 2, np.nan)
