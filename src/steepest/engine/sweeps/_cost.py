"""What a point costs, read from the experiment's own operations: memory, and work relative to another point."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
from jax.extend.core import jaxprs_in_params

from steepest.core.experiment import Experiment

MEMORY = 2**30
"""Bytes that the arrays of one compiled computation may take, about."""


class Cost(NamedTuple):
    """The cost of one point.

    Attributes:
        bytes: arrays that it holds at once, about: what it returns and the operands of its largest operation.
        work: multiplications and array elements; loops without a known number of rounds count once.
    """

    bytes: int
    work: float


def cost(experiment: Experiment, batched: Sequence[str], setting: Any, key: Any) -> Cost:
    """Return the cost of one point from its operations, without compiling or running anything.

    Args:
        experiment: at the point.
        batched: the fields that a batch traces.
        setting: the point's setting.
        key: its random key.
    """
    values = {name: getattr(experiment, name) for name in batched}
    one = lambda values, setting, key: dict(experiment.traced(values).observe(setting, key))
    program = jax.make_jaxpr(one)(values, setting, key)
    largest, work = _walk(program.jaxpr)
    return Cost(largest + sum(_size(var.aval) for var in program.jaxpr.outvars), work)


def lanes(size: int, most: int) -> int:
    """Return how many points fit in one compiled computation: the largest of most, most/2, most/4, … within the memory.

    >>> lanes(2**20, 64), lanes(2**26, 64), lanes(2**40, 64)
    (64, 16, 1)
    """
    halvings = math.ceil(math.log2(max(1.0, most * size / MEMORY)))
    return max(1, math.ceil(most / 2**halvings))


def _walk(jaxpr: Any) -> tuple[int, float]:
    """Return bytes of the largest operation, and the work, of a program; into loops and branches."""
    largest = 0
    work = 0.0
    for operation in jaxpr.eqns:
        rounds = operation.params.get("length", 1) if operation.primitive.name == "scan" else 1
        inner = [_walk(part) for part in jaxprs_in_params(operation.params)]
        size = sum(_size(var.aval) for var in (*operation.invars, *operation.outvars))
        largest = max([largest, size, *(bytes for bytes, _ in inner)])
        own = (
            0.0
            if inner
            else float(sum(math.prod(getattr(v.aval, "shape", ())) for v in operation.outvars))
        )
        if operation.primitive.name == "dot_general":
            (contracted, _), _ = operation.params["dimension_numbers"]
            own *= math.prod(operation.invars[0].aval.shape[axis] for axis in contracted)
        work += own + rounds * sum(count for _, count in inner)
    return largest, work


def _size(aval: Any) -> int:
    shape = getattr(aval, "shape", ())
    dtype = getattr(aval, "dtype", None)
    return math.prod(shape) * (getattr(dtype, "itemsize", 8) or 8)
