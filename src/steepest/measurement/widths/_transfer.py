"""Whether the step size that is best for a narrow network is best for a wide one: trainings at several steps."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.core.intervals import mean_interval
from steepest.core.panels import Panel, observed_curve, panel
from steepest.measurement._building import Builder
from steepest.measurement._fingerprint import digest_of
from steepest.measurement._report import Reading, Report
from steepest.measurement.adapters import quick_threads, states_kept
from steepest.measurement.widths._best_step import (
    Minimum,
    carried,
    minimum,
    power_of_width,
)
from steepest.measurement.widths._knobs import (
    check_counts,
    check_growth,
    check_seed,
    ordered,
    runs_of,
)
from steepest.measurement.widths._step_size import StepSize
from steepest.measurement.widths._trainings import (
    Plan,
    Start,
    Training,
    check_turned,
    is_repeated,
    planned,
    start_of,
    trained,
)
from steepest.measurement.widths._transfer_findings import (
    BEST,
    CARRIED,
    POWER,
    Transfer,
    transfer_findings,
)

TRANSFER_WIDTHS = (0.5, 1.0, 2.0)
FACTORS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0, 16.0)
SEEDS = 3
STEPS = 100
ROUNDS = 2  # in which the spacing of factors around the best one is halved
FEWEST = 3  # factors that a minimum inside needs


class Trainings(NamedTuple):
    """All that was trained.

    Attributes:
        widths: multipliers.
        factors: by which step sizes were multiplied.
        starts: of the first seed, by width.
        by_network: trainings by width and seed, each by its factor; those between the ``factors`` are around the best.
        is_repeated: whether one training, run twice, ended alike.
        usual: the default of the knob ``lr``, or None.
    """

    widths: tuple[float, ...]
    factors: NDArray
    starts: list[Start]
    by_network: list[list[dict[float, Training]]]
    is_repeated: bool
    usual: float | None

    @property
    def risks(self) -> NDArray:
        """Return risks, ``(widths, seeds, factors)``."""
        return self.of_grid(lambda end: end.risk)

    @property
    def held_out(self) -> NDArray:
        """Return risks on held-out examples, ``(widths, seeds, factors)``."""
        return self.of_grid(lambda end: end.held_out)

    def of_grid(self, risk: Callable[[Training], float]) -> NDArray:
        """Return one number of each training with one of the ``factors``, ``(widths, seeds, factors)``."""
        at_factors = itemgetter(*self.factors.tolist())
        rows = []
        for of_width in self.by_network:
            rows.append([list(map(risk, at_factors(ends))) for ends in of_width])
        return np.array(rows)

    @property
    def ends(self) -> list[Training]:
        """Return how all trainings ended."""
        return [end for of_width in self.by_network for ends in of_width for end in ends.values()]

    @property
    def steps(self) -> tuple[int, int]:
        """Return the fewest and the most steps of trainings that did not diverge."""
        counts = [end.steps for end in self.ends if math.isfinite(end.risk)]
        return min(counts, default=0), max(counts, default=0)

    def usual_step(self, place: int) -> float | None:
        """Return the reader's own step size at a width, if all weights have the same at every width."""
        if self.usual is not None:
            return self.usual
        if any(len(set(start.sizes)) > 1 for start in self.starts):
            return None
        return self.starts[place].sizes[0]

    @property
    def is_scaled(self) -> bool:
        """Return whether the function gives its optimizer other step sizes at other widths."""
        return len({start.sizes for start in self.starts}) > 1


@states_kept()
def step_transfer(
    build: Any,
    widths: Sequence[float] = TRANSFER_WIDTHS,
    *,
    factors: Sequence[float] = FACTORS,
    seeds: int = SEEDS,
    steps: int = STEPS,
    seed: int = 0,
    announce: Callable[[Plan], None] = lambda plan: None,
    watch: Callable[[str], None] = lambda stage: None,
) -> Report:
    """Find the best step size of your own training at several widths, and the power of the width that it goes with.

    At each width, seed and factor your network is built and trained by its ``train`` with ``factor`` times your step
    sizes, from the same weights and with the same batches at every factor. The best factor is where the risk on all
    examples, mean of up to five readings over the last fifth of the training, is least: at the minimum of a parabola
    in the logarithms of risk and step.

    Args:
        build: your function, or ``"FILE.py:FUNCTION"``: ``build(seed=0, width=1.0)``, where the width multiplies every
            hidden size. It returns the untrained model with ``train``, and either the ``optimizer`` of torch that
            ``train`` uses, whose groups are multiplied, or it takes ``lr=0.001`` besides, whose default is. See
            ``steepest.measurement.Built``.
        widths: multipliers, at least three.
        factors: of your step sizes, at least three, such as powers of two.
        seeds: networks of each width. A function without ``seed`` gives one, and the interval is that of the fit.
        steps: of each training, at most. The best step depends on it: take as many as you train for.
        seed: the first seed.
        announce: called before it starts with what it will take; it may raise.
        watch: called with what is being done.

    Returns:
        a report: the best step at each width (``best-step``) with a picture, its power of the width
        (``best-step-power``) and what the narrowest network's best step costs at the widest (``carried-step``), the
        same on held-out examples where there are some, and findings. A best step at the end of the grid is no number.

    Raises:
        UserError: a function without ``width`` or ``train``, whose step size cannot be turned, or that does not start
            from the same weights again; fewer than three widths or factors; a risk that is not above 0.

    Source: Yang et al. 2022, "Tensor Programs V", section 4 and figure 1, where the best step under µP is that of
    every width.
    """
    started = time.perf_counter()
    builder = Builder.of(build)
    widths = ordered(widths)
    multiples = _factors(factors)
    check_counts(seeds=seeds, steps=steps)
    runs = runs_of(builder, seed, seeds)
    watch("building")
    step = StepSize.of(builder, widths[0], runs[0])
    check_seed(builder, widths[0], runs)
    starts = [start_of(step, width, runs[0]) for width in widths]
    check_growth([start.subject.size for start in starts], widths, builder.where)
    with quick_threads(starts[0].subject):
        watch("timing")
        plan = planned(
            step,
            starts,
            widths,
            runs[0],
            factors=len(multiples) + 2 * ROUNDS,
            seeds=len(runs),
            steps=steps,
        )
        announce(plan)
        trainings = _trainings(step, widths, multiples, runs, starts, steps, watch)
    report = _report(trainings)
    return replace(
        report,
        seconds=round(time.perf_counter() - started, 3),
        data=digest_of(starts[0].subject.batches),
        held_out="" if starts[0].unseen is None else digest_of(starts[0].unseen.batches),
    )


def _factors(factors: Sequence[float]) -> NDArray:
    """Return the factors in order."""
    different = sorted({float(factor) for factor in factors})
    if len(different) < FEWEST or not all(0 < factor < math.inf for factor in different):
        raise UserError(
            f"a best step needs at least {FEWEST} different factors above 0, got "
            f"{' '.join(f'{factor:g}' for factor in factors) or 'none'}; try 0.125 0.25 0.5 1 2 4 8"
        )
    return np.array(different)


def _trainings(
    step: StepSize,
    widths: tuple[float, ...],
    factors: NDArray,
    seeds: Sequence[int | None],
    starts: list[Start],
    steps: int,
    watch: Callable[[str], None],
) -> Trainings:
    """Train all networks; the first one twice with its best factor."""
    by_network = []
    alike = True
    for place, width in enumerate(widths):
        of_width = []
        for seed in seeds:
            start = starts[place] if seed == seeds[0] else start_of(step, width, seed)
            train = partial(_trained_with, step, start, width, seed, steps, watch)
            ends = {factor: train(factor) for factor in factors.tolist()}
            if not by_network and not of_width:
                check_turned(step, list(ends.values()))
                best = sorted(ends)[_lowest(ends)]
                alike = is_repeated(ends[best].risk, train(best).risk)
            add_between(ends, train)
            of_width.append(ends)
        by_network.append(of_width)
    return Trainings(widths, factors, starts, by_network, alike, step.usual)


def _trained_with(
    step: StepSize,
    start: Start,
    width: float,
    seed: int | None,
    steps: int,
    watch: Callable[[str], None],
    factor: float,
) -> Training:
    """Train one network with a factor, and say so."""
    which = f"width {width:g}" + ("" if seed is None else f", seed {seed}")
    watch(f"{which}, {factor:.3g} times your step")
    return trained(step, start, factor, width, seed, steps)


def _lowest(ends: dict[float, Training]) -> int:
    """Return the place among the sorted factors of the training that ended lowest."""
    return int(np.argmin([ends[factor].risk for factor in sorted(ends)]))


def add_between(ends: dict[float, Training], train: Callable[[float], Training]) -> None:
    """Train with the factors halfway from the best one to its neighbours, again and again.

    Risk rises steeply where steps grow too large, and a parabola through points that lie far apart takes the minimum
    to be further from there than it is. Nothing is added where the best factor lies at the end.

    Args:
        ends: trainings by factor, which are added to.
        train: how to train with a factor.
    """
    for _ in range(ROUNDS):
        tried = sorted(ends)
        best = _lowest(ends)
        if best in (0, len(tried) - 1):
            return
        for neighbour in (tried[best - 1], tried[best + 1]):
            between = math.sqrt(tried[best] * neighbour)
            ends[between] = train(between)


# ------------------------------------------------------------------------------------------- the report


def _report(trainings: Trainings) -> Report:
    """Read minima, powers and what is lost, and draw the findings."""
    on_examples = _transfer(trainings, lambda end: end.risk)
    readings = _readings(trainings, on_examples, "")
    if not np.isnan(trainings.held_out).any():
        unseen = _transfer(trainings, lambda end: end.held_out)
        readings += _readings(trainings, unseen, ", held out")
    shown = " ".join(f"{width:g}" for width in trainings.widths)
    widest = trainings.starts[-1].subject
    first = trainings.starts[0].subject
    return Report(
        f"{first.name} at widths {shown}, best steps",
        widest.size,
        sum(count for _, count in first.batches),
        tuple(readings),
        len(trainings.ends) + 1 + len(trainings.starts) * trainings.risks.shape[1],
        0.0,
        transfer_findings(on_examples),
    )


def _transfer(trainings: Trainings, risk: Callable[[Training], float]) -> Transfer:
    """Read everything from one kind of risk."""
    log_risks = np.log(trainings.of_grid(risk))
    minima = [[_minimum(ends, risk) for ends in of_width] for of_width in trainings.by_network]
    by_seed = [list(of_seed) for of_seed in zip(*minima, strict=True)]
    return Transfer(
        trainings.widths,
        trainings.factors,
        minima,
        power_of_width(trainings.widths, by_seed),
        carried(log_risks[0], log_risks[-1]),
        trainings.is_scaled,
    )


def _minimum(ends: dict[float, Training], risk: Callable[[Training], float]) -> Minimum:
    """Return where the risk of one network is least."""
    tried = sorted(ends)
    return minimum(np.log(tried), np.log([risk(ends[factor]) for factor in tried]))


def _readings(trainings: Trainings, transfer: Transfer, on: str) -> list[Reading]:
    """Return the readings of one kind of risk; ``on`` is added to their names."""
    return [
        *_best_steps(trainings, transfer, on),
        _power(trainings, transfer, on),
        _carried(trainings, transfer, on),
    ]


def _best_steps(trainings: Trainings, transfer: Transfer, on: str) -> list[Reading]:
    """Return the best step at each width, in multiples of the reader's; the first has the picture."""
    picture = _picture(trainings, transfer, on)
    readings = []
    for place, width in enumerate(transfer.widths):
        name = f"{BEST.format(width)}{on}"
        shown = picture if place == 0 else None
        network_minima = transfer.minima[place]
        logs = np.array([network.at for network in network_minima])
        if np.isnan(logs).any():
            why = f"no number: {transfer.ends(place)}"
            readings.append(
                Reading(name, math.nan, interpretation=why, panel=shown, id="best-step")
            )
            continue
        interval = None
        if len(logs) > 1:
            within = float(np.mean([network.within for network in network_minima]))
            ends = mean_interval(logs)
            interval = (math.exp(ends.low - within), math.exp(ends.high + within))
        readings.append(
            Reading(
                name,
                math.exp(logs.mean()),
                interval,
                "rounding" if interval is None else "seeds",
                interpretation=_in_words(trainings, place, network_minima),
                panel=shown,
                id="best-step",
            )
        )
    return readings


def _in_words(trainings: Trainings, place: int, minima: Sequence[Minimum]) -> str:
    """Say what a best step is a multiple of, how far the seeds' lie apart, and the risk there."""
    logs = [network.at for network in minima]
    usual = trainings.usual_step(place)
    multiple = math.exp(np.mean(logs))
    what = (
        "times your step sizes"
        if usual is None
        else f"times your step {usual:g}: {usual * multiple:.3g}"
    )
    risk = math.exp(np.mean([network.log_risk for network in minima]))
    words = f"{what}; the risk there is {risk:.3g}"
    if len(logs) > 1:
        words += f"; by seed {math.exp(min(logs)):.3g} to {math.exp(max(logs)):.3g}"
    return words


def _power(trainings: Trainings, transfer: Transfer, on: str) -> Reading:
    """Return the power of the width that the best step goes with."""
    fewest, most = trainings.steps
    assumes = (
        ("batches and random numbers are the same at every step size", trainings.is_repeated),
        ("all trainings that end take as many steps", fewest == most),
    )
    after = f"after {fewest} steps" if fewest == most else f"after {fewest} to {most} steps"
    power = transfer.power
    name = f"{POWER}{on}"
    theory = "power 0: the same step at every width"
    if math.isnan(power.value):
        return Reading(
            name,
            math.nan,
            theory=theory,
            assumes=assumes,
            interpretation="no power, as the best step of some network lies at the end of the grid",
            id="best-step-power",
        )
    return Reading(
        name,
        power.value,
        power.interval,
        "seeds" if len(power.sizes) > 1 else "fit",
        theory,
        0.0,
        assumes,
        f"{after}: {transfer.verdict}",
        id="best-step-power",
    )


def _carried(trainings: Trainings, transfer: Transfer, on: str) -> Reading:
    """Return by how much the risk at the widest is higher with the narrowest's best step."""
    name = f"{CARRIED}{on}"
    lost = transfer.lost
    if not np.isfinite(lost).all():
        return Reading(name, math.nan, interpretation=transfer.price, id="carried-step")
    interval = None
    if len(lost) > 1:
        ends = mean_interval(lost)
        interval = (float(ends.low), float(ends.high))
    return Reading(
        name,
        float(lost.mean()),
        interval,
        "rounding" if interval is None else "seeds",
        interpretation=transfer.price,
        id="carried-step",
    )


def _picture(trainings: Trainings, transfer: Transfer, on: str) -> Panel:
    """Draw risk against step for each width, and the minima."""
    risks = trainings.held_out if on else trainings.risks
    risks = np.where(np.isfinite(risks), risks, np.nan)
    last = max(1, len(transfer.widths) - 1)
    curves = [
        observed_curve(transfer.factors, risks[i], f"width {width:g}", shade=i / last)
        for i, width in enumerate(transfer.widths)
    ]
    marks = []
    for i, of_width in enumerate(transfer.minima):
        logs = np.array([(network.at, network.log_risk) for network in of_width])
        if np.isnan(logs).any():
            continue
        at, risk = np.exp(logs.mean(0))
        label = "" if marks else "best step"
        marks.append(observed_curve([at], [risk], label, kind="points", shade=i / last))
    return panel(
        f"Risk after training against step size{on}",
        "step, in multiples of yours",
        "risk",
        *curves,
        *marks,
        log="xy",
    )
