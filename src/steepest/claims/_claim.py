"""The form of a claim: hypotheses, prediction, observation, judgement, rivals."""

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, get_type_hints

import jax

from steepest.arrays import Observation, Prediction
from steepest.claims._cell import Cell
from steepest.errors import UserError
from steepest.judging import Check, Hypothesis, Rival
from steepest.panels import Panel
from steepest.types import Key


@dataclass(frozen=True)
class Within:
    """The values a field may take: ``low <= value <= high``, or ``low < value`` where ``open`` is set."""

    low: float
    high: float = float("inf")
    open: bool = False

    def __contains__(self, value: float) -> bool:
        return (self.low < value if self.open else self.low <= value) and value <= self.high

    def __str__(self) -> str:
        low = f"{'>' if self.open else 'at least'} {self.low:g}"
        return low if self.high == float("inf") else f"{low} and at most {self.high:g}"


Count = Annotated[int, Within(1)]
"""A whole number, at least one."""
Seeds = Annotated[int, Within(3, 10_000)]
"""How many independent repetitions: at least three, for an interval."""
Positive = Annotated[float, Within(0, open=True)]
"""A positive number."""
Fraction = Annotated[float, Within(0, 1)]
"""A number from 0 to 1."""
NonNegative = Annotated[float, Within(0)]
"""A number that is at least zero."""


@dataclass(frozen=True)
class Claim(ABC):
    """One statement of the theory, ready to be tested.

    A claim is a frozen dataclass in a file of its own. Its *fields* are the experiment's parameters with the quick
    preset as defaults; the comment behind each field is its documentation, with the unit in brackets. Its *methods*
    run in this order, and data flow only this way::

        setting(key) ──► hypotheses(setting)
                    ├──► predict(setting) ─────────┐
                    └──► observe(setting, key) ────┴──► judge(predicted, observed)

    ``setting`` is what theory and experiment may both see: the data, the initial network. ``predict`` never sees the
    observation and ``observe`` never sees the prediction. The same ``judge`` is applied to every rival's prediction.

    Attributes:
        statement: the statement in LaTeX, for the page.
        source: where it is stated.
        corrections: what the source gets wrong, one sentence each, with what is right.
        remarks: what a reader of the page should know about protocol or result, one sentence each.
        full: fields that the full preset changes.
        beyond: fields that take the claim out of its theorem's range, so that OUT_OF_RANGE can be seen (and tested).
        version: raise it when a change makes stored results obsolete.
        precision: ``"float64"`` or ``"float32"``.
        cell: what a sweep computes at each point instead of the whole claim, a :class:`Cell`; None for the whole.
    """

    statement: ClassVar[str]
    source: ClassVar[str]
    corrections: ClassVar[tuple[str, ...]] = ()
    remarks: ClassVar[tuple[str, ...]] = ()
    full: ClassVar[Mapping[str, Any]] = {}
    beyond: ClassVar[Mapping[str, Any]] = {}
    version: ClassVar[int] = 1
    precision: ClassVar[str] = "float64"
    cell: ClassVar[type[Cell] | None] = None

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self), include_extras=True)
        for field in fields(self):
            value = getattr(self, field.name)
            for limits in getattr(hints[field.name], "__metadata__", ()):
                for one in value if isinstance(value, tuple) else (value,):
                    if isinstance(limits, Within) and one not in limits:
                        raise UserError(f"{field.name} must be {limits}, got {one}; try {field.default}")

    def setting(self, key: Key) -> Any:
        """What theory and experiment may both see, such as the data and the initial network."""
        del key

    def hypotheses(self, setting: Any) -> list[Hypothesis]:
        """What the theorem assumes, checked on the actual setting."""
        del setting
        return []

    @abstractmethod
    def predict(self, setting: Any) -> Prediction:
        """The numbers that theory gives."""

    @abstractmethod
    def observe(self, setting: Any, key: Key) -> Observation:
        """The numbers that the experiment gives."""

    def premises(self, observed: Observation) -> list[Hypothesis]:
        """Hypotheses about the run itself, such as zero training error, checked on the observation."""
        del observed
        return []

    @abstractmethod
    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        """The checks that decide."""

    @abstractmethod
    def rivals(self, setting: Any, predicted: Prediction) -> list[Rival]:
        """Wrong theories that the same observation must reject."""

    @abstractmethod
    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        """What the figure shows."""


def documentation(claim: type[Claim]) -> dict[str, str]:
    """The comment behind each field of a claim, by field name."""
    source = inspect.getsource(claim)
    found = re.findall(r"^    (\w+):[^#\n]*#\s*(.+)$", source, flags=re.MULTILINE)
    known = {field.name for field in fields(claim)}
    return {name: text.strip() for name, text in found if name in known}


def keys(key: Key, seeds: int) -> Key:
    """One key a seed, shape ``(seeds,)``."""
    return jax.random.split(key, seeds)
