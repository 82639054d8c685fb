"""Trainings of a reader's networks at several widths and step sizes, with the same random numbers at every step."""

import math
import time
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.measurement._building import Built
from steepest.measurement.adapters import Subject, is_torch_module, random_states
from steepest.measurement.adapters import subject as attach
from steepest.measurement.widths._check import RISEN
from steepest.measurement.widths._coordinates import evaluated
from steepest.measurement.widths._step_size import StepSize

READS = 5  # of the risk, over the last fifth of a training
TIMED = 8  # steps by which one training that is timed is longer than another
SAME = 0.01  # by which the logarithms of risks of one training that is run twice may differ


class Plan(NamedTuple):
    """What is about to be run, as it is said before it starts.

    Attributes:
        trainings: how many.
        steps: of each, at most.
        seconds: about how long they take here.
    """

    trainings: int
    steps: int
    seconds: float


class Start(NamedTuple):
    """A network before its training.

    Attributes:
        subject: the network on its examples.
        weights: ``(p,)``.
        risk: on all examples.
        sizes: the usual step sizes of its optimizer, one a group; none where a knob is turned.
        unseen: the network on its held-out examples, or None.
    """

    subject: Subject
    weights: NDArray
    risk: float
    sizes: tuple[float, ...]
    unseen: Subject | None


class Training(NamedTuple):
    """How one training ended.

    Attributes:
        risk: on all examples, mean of the readings at its end; infinite where it diverged.
        held_out: on the held-out examples, likewise; NaN where there are none.
        steps: that it took.
        sizes: largest step size of its optimizer after each step; none where a knob is turned.
    """

    risk: float
    held_out: float
    steps: int
    sizes: tuple[float, ...]


def start_of(step: StepSize, width: float, seed: int | None) -> Start:
    """Build a network to be read before its training, and never trained.

    Raises:
        UserError: a risk that is not above 0, of which there is no logarithm.
    """
    with random_states(seed or 0):
        built = step.built(1.0, width, seed)
        with evaluated(built.model) as model:
            subject = attach(model, built.loss, built.data, check=False)
            risk = subject.risk()
            unseen = None
            if built.held_out is not None:
                unseen = attach(model, built.loss, built.held_out, check=False)
    _check_positive(risk, "at the start")
    return Start(subject, subject.values(), risk, step.sizes(built), unseen)


def planned(
    step: StepSize,
    starts: Sequence[Start],
    widths: Sequence[float],
    seed: int | None,
    *,
    factors: int,
    seeds: int,
    steps: int,
) -> Plan:
    """Time short trainings at each width, and say what all will take."""
    seconds = 0.0
    for start, width in zip(starts, widths, strict=True):
        _seconds(step, start, width, seed, 1)  # what is done for the first time takes longer
        shortest = _seconds(step, start, width, seed, 1)
        more = min(TIMED, steps - 1)
        longer = _seconds(step, start, width, seed, 1 + more)
        more_reads = len(reading_steps(steps)) - 1
        each_step = max(0.0, longer - shortest) / max(1, more)
        training = shortest + (steps - 1) * each_step + more_reads * _seconds_of_reading(start)
        seconds += seeds * factors * training
    return Plan(len(widths) * seeds * factors, steps, seconds)


def _seconds(step: StepSize, start: Start, width: float, seed: int | None, steps: int) -> float:
    """Return how long one training of so many steps takes, with all that goes with it."""
    begun = time.perf_counter()
    trained(step, start, 1.0, width, seed, steps)
    return time.perf_counter() - begun


def _seconds_of_reading(start: Start) -> float:
    """Return how long it takes to read the risks of a network."""
    begun = time.perf_counter()
    start.subject.risk()
    if start.unseen is not None:
        start.unseen.risk()
    return time.perf_counter() - begun


def trained(
    step: StepSize, start: Start, factor: float, width: float, seed: int | None, steps: int
) -> Training:
    """Train one network with ``factor`` times its usual step sizes.

    Before it is built and trained the random states of Python, NumPy and torch are those of its seed, so that batches
    that come from them are the same at every factor.

    Raises:
        UserError: a network that does not start like the others of its seed; a training that ends before its first
            step, or that fails though its risk is finite.
    """
    sizes: list[float] = []
    trouble: UserError | None = None
    with random_states(seed or 0):
        built = step.built(factor, width, seed)
        with evaluated(built.model) as untrained:
            begun = _attached(untrained, built, built.data, start.subject)
            unseen = None
            if start.unseen is not None:
                unseen = _attached(untrained, built, built.held_out, start.unseen)
        if not np.array_equal(begun.values(), start.weights):
            raise UserError(
                f"{step.builder.where} starts from other weights when it is called again"
                f"{'' if seed is None else f' with seed={seed}'}; make the model inside of the function, and draw its "
                "initial weights from the seed"
            )
        ending = _Ending(begun, unseen)
        read_at = reading_steps(steps)
        now = built.model
        try:
            for taken, now in enumerate(islice(built.steps(), 1, steps + 1), 1):
                sizes.append(max(step.sizes(built), default=math.nan))
                if taken in read_at:
                    ending.read(now)
        except UserError as failed:
            trouble = failed
        if len(sizes) not in read_at or trouble is not None:
            ending.read(now)
        risk = ending.risk(start.risk)
        if trouble is not None and math.isfinite(risk):
            raise trouble
        if not sizes and trouble is None:
            raise UserError(
                "'train' ends before its first step; let it take one step of the optimizer before each yield"
            )
    turned = () if step.usual is not None else tuple(sizes)
    return Training(risk, ending.held_out(risk), len(sizes), turned)


def reading_steps(steps: int) -> tuple[int, ...]:
    """Return after which steps the risk is read: up to five of the last fifth of a training, with its last step.

    Where steps are large the risk goes up and down by a third from step to step, as much as the best steps differ.

    >>> reading_steps(5), reading_steps(20), reading_steps(100)
    ((5,), (17, 18, 19, 20), (81, 85, 90, 95, 100))
    """
    last = max(1, steps // 5)
    return tuple(int(step) for step in np.linspace(steps - last + 1, steps, min(READS, last)))


class _Ending:
    """Risks that are read at the end of a training, on all examples and on held-out ones."""

    def __init__(self, begun: Subject, unseen: Subject | None) -> None:
        self.subjects = [begun] if unseen is None else [begun, unseen]
        self.risks: list[list[float]] = []

    def read(self, now: Any) -> None:
        """Read the risks of a model as it is now."""
        with evaluated(now) as model, np.errstate(all="ignore"):
            self.risks.append([subject.now(model).risk() for subject in self.subjects])

    def risk(self, at_start: float) -> float:
        """Return the mean risk on all examples; infinite if one is not finite, or for ten times that of the start."""
        risk = _mean([risks[0] for risks in self.risks])
        return math.inf if risk > RISEN * at_start else risk

    def held_out(self, risk: float) -> float:
        """Return that on held-out examples; infinite where training diverged, NaN where there are none."""
        if len(self.subjects) == 1:
            return math.nan
        return math.inf if math.isinf(risk) else _mean([risks[1] for risks in self.risks])


def _mean(risks: Sequence[float]) -> float:
    """Return the mean of risks above 0; infinite if one is not finite."""
    if not np.isfinite(risks).all():
        return math.inf
    mean = float(np.mean(risks))
    _check_positive(mean, "after training")
    return mean


def _attached(model: Any, built: Built, data: Any, at_start: Subject) -> Subject:
    """Return an untrained network on its examples: of JAX by the functions of the start, which are compiled already.

    A loss of torch may belong to its module.
    """
    if is_torch_module(model):
        return attach(model, built.loss, data, check=False)
    return at_start.now(model)


def _check_positive(risk: float, when: str) -> None:
    if risk <= 0:
        raise UserError(
            f"the risk is {risk:.4g} {when}, and best steps are read from its logarithm: give a loss above 0, and "
            "fewer steps where a training fits its examples exactly"
        )


def check_turned(step: StepSize, trainings: Sequence[Training]) -> None:
    """Refuse a step size that changes nothing, and a schedule that sets it back, by one network's trainings."""
    risks = {training.risk for training in trainings}
    if len(risks) == 1 and not math.isinf(trainings[0].risk):
        what = "lr" if step.usual is not None else "the step size of the 'optimizer'"
        raise UserError(
            f"{step.builder.where} ends at the risk {trainings[0].risk:.6g} whatever {what} is; let 'train' step with "
            "it"
        )
    smallest = trainings[0].sizes
    largest = trainings[-1].sizes
    if any(low == high > 0 for low, high in zip(smallest, largest, strict=False)):
        raise UserError(
            f"a schedule of {step.builder.where} sets the step size of the optimizer back to its own; make the "
            "schedule inside of 'train', or write def build(seed=0, width=1.0, lr=0.001)"
        )


def is_repeated(first: float, second: float) -> bool:
    """Tell whether two trainings of one network with one step ended alike: whether all random numbers were the same.

    >>> is_repeated(0.5, 0.501), is_repeated(0.5, 0.6), is_repeated(math.inf, math.inf)
    (True, False, True)
    """
    return first == second or abs(math.log(first / second)) < SAME
