"""What a training has learned, by the newest of what its log holds: losses of the batches, or the risk on the data."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.measurement._health import LEARNED
from steepest.measurement._report import Finding, FindingId
from steepest.measurement.training._names import LOSS

if TYPE_CHECKING:
    from steepest.measurement.training._run import Series, TrainingRun

RISK = "risk"
AGE = 0.1  # of a training, beyond which a record says nothing of its end
RECORDS = 5  # at the start and at the end, whose median is compared
CERTAIN = 4.0  # standard errors by which losses differ that are said to have fallen or risen
NORMAL = 1.96  # standard errors at each end of a 95 % interval
RISEN = 1.5  # times the lowest, from which a higher end is worth a line
YOUNG = 100  # steps, before which a network that has learned nothing is no finding to act on
LITTLE = 0.1  # of the start, which a course that has not certainly fallen has fallen at most
FORGOT = 0.9  # of the risk of a constant guess; what had less had learned something
LIKE = 0.25  # relative difference of the first loss and the risk, below which they are one loss


class Level(NamedTuple):
    """Where a course stood in some steps."""

    value: float
    error: float
    """Standard error; NaN where the log does not tell the scatter."""
    step: int
    """The last of these steps."""

    def above(self, other: "Level") -> float:
        """Return by how many standard errors it is higher; NaN where these are not known."""
        error = float(np.hypot(self.error, other.error))
        higher = self.value - other.value
        return higher / error if error else math.copysign(math.inf, higher) if higher else 0.0

    def is_above(self, other: "Level") -> bool:
        """Tell whether it is higher, by more than chance has it."""
        return self.above(other) > CERTAIN


class Course(NamedTuple):
    """How the losses of the batches, or the risk, went."""

    name: str
    start: Level
    lowest: Level
    before: Level
    """The record before the last."""
    end: Level
    guess: float
    """The risk of a constant guess; NaN where it is not known, or is one of another loss."""

    @property
    def beside(self) -> str:
        """Return the risk of a constant guess in words, if it is known."""
        return "" if np.isnan(self.guess) else f"; a constant guess has {self.guess:.3g}"

    @property
    def has_learned_nothing(self) -> bool:
        """Tell whether the end is not below a constant guess; a guess that is not known has nothing above it."""
        return self.end.value >= (1 - LEARNED) * self.guess

    def between(self, low: Level | None = None) -> str:
        """Return in words from where to where it went."""
        start = low or self.start
        return f"from {start.value:.3g} at step {start.step} to {self.end.value:.3g} at step {self.end.step}"


def learning(run: "TrainingRun") -> Finding | None:
    """Say what was learned, as far as the newest records tell; nothing where they do not."""
    gone = _not_finite(run)
    if gone is not None:
        return gone
    courses = [course for course in (of_risk(run), of_losses(run)) if course is not None]
    if not courses:
        return None
    # what is measured on the data at one time is more than losses of the batches on the way
    newest = courses[0]
    if not run.stationary:
        text = (
            f"{_what(newest)} went {newest.between()}; whether this is progress, it does not tell"
        )
        return Finding("✓", text, newest.name, FindingId.LOSS_WENT)
    finding = _of(newest)
    if len(courses) < 2 or finding.id is not FindingId.NOTHING_LEARNED:
        return finding
    losses = courses[1]
    if losses.start.is_above(losses.end) and losses.end.value < FORGOT * newest.guess:
        return Finding(
            "?",
            f"the losses of the batches have fallen {losses.between()}, but the risk on the monitor's data is "
            f"{newest.end.value:.3g} at step {newest.end.step}{newest.beside}: are these other examples, is this "
            "another loss, or does the model differ in evaluation mode?",
            RISK,
            FindingId.RISK_APART,
        )
    return finding


def newest(run: "TrainingRun") -> Course | None:
    """Return the course of what was recorded last, of losses rather than of the risk."""
    return of_losses(run) or of_risk(run)


def of_risk(run: "TrainingRun") -> Course | None:
    """Return the course of the risk; None where it was measured once and says nothing by itself, or long ago."""
    if RISK not in run.names:
        return None
    series = run[RISK]
    measured = np.isfinite(series.values)
    if not is_fresh(run, measured):
        return None
    guess = float(series.compared[measured][-1])
    if measured.sum() < 2 and np.isnan(guess):
        return None
    # one network on fixed examples: what is between two records is no chance
    levels = [
        Level(float(value), 0.0, int(step))
        for value, step in zip(series.values[measured], run.steps[measured], strict=True)
    ]
    return Course(RISK, levels[0], min(levels), levels[-2:][0], levels[-1], guess)


def of_losses(run: "TrainingRun", until: int | None = None) -> Course | None:
    """Return the course of the losses of the batches, up to a step; None where none were handed over, or long ago."""
    if LOSS not in run.names:
        return None
    series = run[LOSS]
    rows = np.flatnonzero(np.isfinite(series.values) & (run.steps <= _or_end(run, until)))
    if len(rows) < 2 or (until is None and not is_fresh(run, np.isfinite(series.values))):
        return None
    errors = _errors(series)
    late = run.steps[rows] >= run.steps[rows[-1]] - AGE * (run.steps[rows[-1]] - run.steps[0])
    end = _level(run, series, errors, rows[late][-RECORDS:])
    levels = [_level(run, series, errors, rows[i : i + 1]) for i in range(len(rows))]
    end = (
        levels[-1] if levels[-1].is_above(end) else end
    )  # a leap just now is news, a fall may be chance
    # a fast training has learned by its fifth record, a noisy one has no number before
    few = min(RECORDS, max(1, len(rows) // 4))
    starts = [levels[0], _level(run, series, errors, rows[:few])]
    start = max(starts, key=lambda level: level.above(end))
    return Course(LOSS, start, min(levels), levels[-2], end, _guess(run, start))


def is_fresh(run: "TrainingRun", measured: NDArray[np.bool_]) -> bool:
    """Tell whether the last of these records is no older than a tenth of the training."""
    if not measured.any():
        return False
    return run.steps[-1] - run.steps[measured][-1] <= AGE * (run.steps[-1] - run.steps[0])


def _or_end(run: "TrainingRun", until: int | None) -> int:
    return int(run.steps[-1]) if until is None else until


def _errors(series: "Series") -> NDArray:
    """Return the standard error of each record's loss; of the first few, which do not know it, the first known one."""
    low, high = series.over_examples.T
    errors = (high - low) / (2 * NORMAL)
    rows = np.flatnonzero(np.isfinite(errors))
    if len(rows):
        errors[: rows[0]] = errors[rows[0]]
    return errors


def _level(run: "TrainingRun", series: "Series", errors: NDArray, rows: NDArray) -> Level:
    """Return the median over some records, whose errors are independent."""
    error = float(np.max(errors[rows]) / np.sqrt(len(rows)))
    return Level(float(np.median(series.values[rows])), error, int(run.steps[rows[-1]]))


def _guess(run: "TrainingRun", start: Level) -> float:
    """Return the risk of a constant guess, where the losses of the batches begin at the risk of the start."""
    if RISK not in run.names:
        return float("nan")
    series = run[RISK]
    measured = np.flatnonzero(np.isfinite(series.values))
    if not len(measured):
        return float("nan")
    first = series.values[measured[0]]
    near = run.steps[measured[0]] <= start.step
    is_like = abs(first - start.value) <= LIKE * abs(first)
    return float(series.compared[measured[-1]]) if near and is_like else float("nan")


def _not_finite(run: "TrainingRun") -> Finding | None:
    """Say since when the losses of the batches have not been finite, if they are not now."""
    if LOSS not in run.names:
        return None
    given = [LOSS in record["quantities"] for record in run.records]
    steps = run.steps[given]
    finite = np.isfinite(run[LOSS].values[given])
    if finite[-1]:
        return None
    since = int(np.flatnonzero(finite)[-1]) + 1 if finite.any() else 0
    return Finding(
        "!",
        f"the losses of the batches have not been finite since step {steps[since]}: go back to a checkpoint before it",
        LOSS,
        FindingId.DIVERGED,
    )


def _of(course: Course) -> Finding:
    """Say how a course went: lost, nothing learned, risen, above its lowest, or fallen."""
    start, lowest, end = course.start, course.lowest, course.end
    what = _what(course)
    lost = lowest.value < FORGOT * course.guess and end.is_above(lowest)
    if course.has_learned_nothing and not lost:
        young = "?" if end.step < YOUNG else "!"
        yet = " yet" if end.step < YOUNG else ""
        text = f"nothing has been learned{yet}: {what} is {end.value:.3g} at step {end.step}{course.beside}"
        return Finding(young, text, course.name, FindingId.NOTHING_LEARNED)
    if course.has_learned_nothing:
        return _lost(course, what)
    if start == end:
        text = f"{what} is {end.value:.3g} at step {end.step}{course.beside}"
        return Finding("✓", text, course.name, FindingId.LEARNED)
    if np.isnan(start.error + end.error):
        text = f"{what} went {course.between()}{course.beside}"
        return Finding("?", text, course.name, FindingId.LOSS_STANDS)
    if end.is_above(start):
        doubled = end.value - start.value > abs(start.value)
        sign = "!" if doubled and not end.value < course.guess else "?"
        text = f"{what} has risen {course.between()}{course.beside}"
        return Finding(sign, text, course.name, FindingId.RISK_RISEN)
    if not start.is_above(end) or start.value - end.value < LEARNED * abs(start.value):
        little = start.value - end.value < LITTLE * abs(start.value)
        why = (
            "which is little"
            if little
            else "which the scatter of batches does not tell from chance"
        )
        text = f"{what} went {course.between()}, {why}"
        return Finding("?", text + course.beside, course.name, FindingId.LOSS_STANDS)
    if end.is_above(lowest) and end.value > RISEN * lowest.value > 0:
        text = f"{what} has fallen {course.between()}; its lowest was {lowest.value:.3g}, at step {lowest.step}"
        return Finding("?", text + course.beside, course.name, FindingId.RISK_ABOVE_ITS_LOWEST)
    text = f"{what} has fallen {course.between()}{course.beside}"
    return Finding("✓", text, course.name, FindingId.LEARNED)


def _what(course: Course) -> str:
    return "the risk" if course.name == RISK else "the loss of the batches"


def _lost(course: Course, what: str) -> Finding:
    """Say that the end is no better than a constant guess after the course was lower: by a leap now, or for longer."""
    lowest, before, end = course.lowest, course.before, course.end
    now = f"{end.value:.3g} at step {end.step}{course.beside}"
    if before.value < (1 - LEARNED) * course.guess:
        text = (
            f"{what} has leapt from {before.value:.3g} at step {before.step} to {now}: a spike, or the loss of what "
            "was learned, which the next records tell"
        )
        return Finding("!", text, course.name, FindingId.LEAPT)
    text = (
        f"what was learned is lost: {what} was {lowest.value:.3g} at step {lowest.step} and is {now}. Go back to a "
        "checkpoint, with a smaller step"
    )
    return Finding("!", text, course.name, FindingId.FORGOTTEN)
