"""What a sweep will cost, from one timed point and from the operations of the others."""

import time
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

import jax
import numpy as np

from steepest.errors import UserError
from steepest.running import build
from steepest.sweeping._axes import SEED
from steepest.sweeping._batch import compute, seeded_keys
from steepest.sweeping._cost import MEMORY, Cost, cost
from steepest.sweeping._plan import Plan
from steepest.sweeping._sweep import Work

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
        each = f"first point {_duration(run_time)}" + f" after {_duration(compile_time)} of compiling" * (
            compile_time > 0
        )
        memory = f", {max(1, self.bytes >> 20)} MB a process" if self.bytes else ""
        return f"about {_duration(self.seconds)} in one process{memory} ({each})"


def estimate(left: Work) -> Estimate:
    """Time the first point that is missing, and scale it to the others by the operations that each group needs.

    Args:
        left: what is left of a sweep; not empty. A whole claim that was run for its time is kept.
    """
    plan, first = left.plan, int(left.tasks[0][0])
    alone = plan.request(left.tasks[0][:1]) | {"size": 1}
    start = time.perf_counter()
    records = compute(alone)
    both = time.perf_counter() - start
    if plan.cell is None:
        points = len(left.missing)
        left.finish([first], records)
        return Estimate(points, points, both * points, 0, (0.0, both))
    start = time.perf_counter()
    compute(alone)
    each = time.perf_counter() - start
    numbers = plan.groups[[task[0] for task in left.tasks]]
    groups, where = np.unique(numbers, return_index=True)
    points = np.bincount(np.searchsorted(groups, numbers), [len(task) for task in left.tasks])
    some = np.unique(np.linspace(0, len(groups) - 1, min(TRACED, len(groups))).round().astype(int))
    costs = [_cost(plan, int(left.tasks[where[i]][0])) for i in some]
    near = [costs[i] for i in np.abs(np.arange(len(groups))[:, None] - some).argmin(1)]
    base = near[int(np.searchsorted(groups, numbers[0]))].work or 1.0
    run = each * sum(count * cost.work / base for count, cost in zip(points, near, strict=True))
    largest = max(min(int(plan.sizes[g]) * cost.bytes, MEMORY) for g, cost in zip(groups, near, strict=True))
    compiling = max(0.0, both - each)
    return Estimate(int(points.sum()), len(groups), run + compiling * len(groups), largest, (compiling, each))


def _at(plan: Plan, point: int) -> tuple[Any, Any, Any]:
    """Cell, setting and key of a point."""
    fields, seed = plan.at(point)
    assert plan.cell is not None
    cell = plan.cell(build(plan.kind, plan.preset, {**plan.fixed, **fields}))
    for_setting, for_observation = seeded_keys([seed])
    return cell, cell.setting(for_setting[0]), for_observation[0]


def _cost(plan: Plan, point: int) -> Cost:
    """The cost of a point; nothing where it cannot be traced, for then it will be recorded as failed."""
    with suppress(Exception), jax.enable_x64(plan.kind.precision == "float64"):
        cell, setting, key = _at(plan, point)
        return cost(cell, plan.request(np.array([point]))["batched"], setting, key)
    return Cost(0, 0.0)


def check(plan: Plan) -> None:
    """Refuse a swept field that no part of the cell looks at: all its points would be the same.

    Raises:
        UserError: with the fields that can be swept.
    """
    if plan.cell is None:
        return
    looked: set[str] = set()
    try:
        with jax.enable_x64(plan.kind.precision == "float64"):
            _look(plan, looked)
    except Exception:  # what breaks off here may have read more later; the points will say what is wrong
        return
    for axis in plan.axes:
        if axis.field not in (*looked, SEED):
            known = ", ".join(sorted(looked & {each.name for each in fields(plan.kind)}))
            raise UserError(
                f"{axis.field} cannot be swept: a point of {plan.claim}'s diagram does not depend on it, only on "
                f"{known}; sweep one of them, or the whole claim with --whole"
            )


def _look(plan: Plan, looked: set[str]) -> None:
    """Go through the first point without computing it, and write down what is read of the claim."""
    base: Any = plan.kind

    class Watched(base):
        def __getattribute__(self, name: str) -> Any:
            looked.add(name)
            return super().__getattribute__(name)

    cell, _, key = _at(plan, 0)
    claim = Watched(**{each.name: getattr(cell.claim, each.name) for each in fields(cell.claim)})
    looked.clear()  # making it read them all
    cell = type(cell)(claim)
    setting = cell.setting(key)
    predicted = cell.predict(setting)
    shapes = jax.eval_shape(cell.observe, setting, key)
    seen = {name: np.ones(shape.shape, shape.dtype) for name, shape in shapes.items()}  # only what is read counts
    cell.premises(seen)
    cell.quantities(predicted, seen)
    cell.judge(predicted, seen)


def _duration(seconds: float) -> str:
    """Seconds in words, to two digits.

    >>> _duration(0.004), _duration(0.516), _duration(75), _duration(9000)
    ('4 ms', '520 ms', '1.2 min', '2.5 h')
    """
    size, unit = next((each for each in UNITS if seconds >= each[0]), UNITS[-1])
    return f"{float(f'{seconds / size:.2g}'):g} {unit}"
