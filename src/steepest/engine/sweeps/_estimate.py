"""What a sweep will cost, from one timed point and from the operations of the others."""

import time
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from steepest.core.precision import arithmetic
from steepest.engine.run import build
from steepest.engine.sweeps._batch import compute, seeded_keys
from steepest.engine.sweeps._cost import MEMORY, Cost, cost
from steepest.engine.sweeps._plan import Plan, experiment_at
from steepest.engine.sweeps._sweep import Work

UNITS = ((3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"))
TRACED = 6
"""Groups whose operations are counted; those between cost what the nearest of these costs."""


@dataclass(frozen=True)
class Estimate:
    """What is left of a sweep, about.

    Attributes:
        points: how many are computed.
        programs: how many programs are compiled.
        seconds: in one process, if a batch took as long as its points one by one; usually it is quicker.
        bytes: arrays of the largest compiled computation.
        timed: what the first point took: seconds to compile, seconds to run.
    """

    points: int
    programs: int
    seconds: float
    bytes: int
    timed: tuple[float, float]

    def __str__(self) -> str:
        compile_time, run_time = self.timed
        first = f"first point {_duration(run_time)}"
        if compile_time > 0:
            first += f" after {_duration(compile_time)} of compiling"
        memory = f", {max(1, self.bytes >> 20)} MB a process" if self.bytes else ""
        return f"about {_duration(self.seconds)} in one process{memory} ({first})"


def estimate(left: Work[Plan]) -> Estimate:
    """Time the first point that is missing and scale it to the others by the operations that each group needs.

    Args:
        left: what is left of a sweep; not empty. A whole claim that was run for its time is kept.
    """
    plan = left.plan
    first = int(left.tasks[0][0])
    alone = plan.request(left.tasks[0][:1]) | {"size": 1}
    start = time.perf_counter()
    records = compute(alone)
    both = time.perf_counter() - start
    if plan.experiment is None:
        points = len(left.missing)
        left.finish([first], records)
        return Estimate(points, points, both * points, 0, (0.0, both))
    start = time.perf_counter()
    compute(alone)
    alone_again = time.perf_counter() - start
    numbers = plan.groups[[task[0] for task in left.tasks]]
    groups, where = np.unique(numbers, return_index=True)
    points = np.bincount(np.searchsorted(groups, numbers), [len(task) for task in left.tasks])
    some = np.unique(np.linspace(0, len(groups) - 1, min(TRACED, len(groups))).round().astype(int))
    costs = [_cost(plan, int(left.tasks[where[i]][0])) for i in some]
    near = [costs[i] for i in np.abs(np.arange(len(groups))[:, None] - some).argmin(1)]
    base = near[int(np.searchsorted(groups, numbers[0]))].work or 1.0
    run = alone_again * sum(
        count * cost.work / base for count, cost in zip(points, near, strict=True)
    )
    largest = max(
        min(int(plan.sizes[g]) * cost.bytes, MEMORY) for g, cost in zip(groups, near, strict=True)
    )
    compiling = max(0.0, both - alone_again)
    return Estimate(
        int(points.sum()),
        len(groups),
        run + compiling * len(groups),
        largest,
        (compiling, alone_again),
    )


def _cost(plan: Plan, point: int) -> Cost:
    """The cost of a point; nothing where it cannot be traced, for then it will be recorded as crashed."""
    with suppress(Exception), arithmetic(double=plan.kind.precision == "float64"):
        fields, seed = plan.at(point)
        experiment = experiment_at(build(plan.kind, plan.preset, {**plan.fixed, **fields}))
        for_setting, for_observation = seeded_keys([seed])
        setting = experiment.setting(for_setting[0])
        batched = plan.request(np.array([point]))["batched"]
        return cost(experiment, batched, setting, for_observation[0])
    return Cost(0, 0.0)


def _duration(seconds: float) -> str:
    """Return seconds in words, to two digits.

    >>> _duration(0.004), _duration(0.516), _duration(75), _duration(9000)
    ('4 ms', '520 ms', '1.2 min', '2.5 h')
    """
    size, unit = next((unit for unit in UNITS if seconds >= unit[0]), UNITS[-1])
    return f"{float(f'{seconds / size:.2g}'):g} {unit}"
