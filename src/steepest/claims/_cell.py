"""One point of a phase diagram: a claim's experiment, small enough to be repeated over a plane of its fields."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from steepest.arrays import Prediction
from steepest.judging import Check, Hypothesis
from steepest.panels import Curve
from steepest.types import Key

Seen = Mapping[str, np.ndarray]
"""What one cell's experiment gave, by name."""


@dataclass(frozen=True)
class Cell(ABC):
    """What a sweep computes at each point, instead of the whole claim.

    A cell reads its claim's fields and runs as a claim does, one point at a time or many at once::

        setting(key) ──► predict(setting) ─────────┐
                    └──► observe(setting, key) ────┴──► premises(observed), judge(predicted, observed)

    ``observe`` is pure JAX: points that differ only in ``batched`` fields, in the setting's numbers and in the seed run
    as one compiled computation, in which those fields are traced scalars. Everything else runs point by point.

    A swept field that is a tuple in the claim gets a tuple of one.

    Attributes:
        claim: the claim at the point.
        batched: fields that may differ inside one compiled computation: numbers that shape no array of ``observe``.
        diagram: the claim's own phase diagram: a range for each field, as on the command line; horizontal first.
        base: fields that the diagram and every other sweep of this claim change from the preset, to be quick.
        contours: boundaries where a mapped column such as ``"NAME predicted"`` takes a value: value and label of each.
        remarks: what a reader of the diagram should know, one sentence each.
    """

    claim: Any

    batched: ClassVar[tuple[str, ...]] = ()
    diagram: ClassVar[Mapping[str, str]] = {}
    base: ClassVar[Mapping[str, Any]] = {}
    contours: ClassVar[Mapping[str, tuple[float, str]]] = {}
    remarks: ClassVar[tuple[str, ...]] = ()

    def setting(self, key: Key) -> Any:
        """Arrays that theory and experiment may both see, in any pytree; the same shapes throughout a batch."""
        del key

    @abstractmethod
    def predict(self, setting: Any) -> Prediction:
        """The numbers that theory gives."""

    @abstractmethod
    def observe(self, setting: Any, key: Key) -> dict[str, Any]:
        """The numbers that the experiment gives, by name: arrays of any shape, from traced fields, setting and key."""

    def premises(self, observed: Seen) -> list[Hypothesis]:
        """What the theory assumes about the run itself; where it fails the point is out of range."""
        del observed
        return []

    @abstractmethod
    def judge(self, predicted: Prediction, observed: Seen) -> list[Check]:
        """The checks that decide, under the same names at every point where they apply."""

    def quantities(self, predicted: Prediction, observed: Seen) -> dict[str, float]:
        """Other measured numbers to map, which nothing judges."""
        del predicted, observed
        return {}

    def boundaries(self, x: str, y: str) -> tuple[Curve, ...]:
        """Predicted boundaries in the plane of two fields, as curves with abscissae in ``x``; empty where none."""
        del x, y
        return ()


def scalar(value: Any) -> Any:
    """The number of a batched field: a tuple has one."""
    return value[0] if isinstance(value, tuple) else value


def traced(claim: Any, values: Mapping[str, Any]) -> Any:
    """A claim whose fields may be traced numbers: limits were checked when the points were planned."""
    twin = copy(claim)
    for name, value in values.items():
        tuples = isinstance(getattr(claim, name), tuple)
        object.__setattr__(twin, name, (value,) if tuples else value)
    return twin
