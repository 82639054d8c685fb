"""The form of an experiment, and of a point of its diagram."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from steepest.core.errors import UserError
from steepest.core.fields import field_types

if TYPE_CHECKING:  # what an experiment gives does not depend on how it is judged or drawn
    from collections.abc import Iterable

    from steepest.core.arrays import Prediction
    from steepest.core.checks import Check
    from steepest.core.hypotheses import Hypothesis
    from steepest.core.panels import Curve
    from steepest.nn.types import Key

Arrays = Mapping[str, np.ndarray]
"""Named arrays, such as an :class:`Observation` or what one point's experiment gave."""


@dataclass(frozen=True)
class Experiment(ABC):
    """An experiment at one setting of its fields, with what theory says of it.

    A frozen dataclass: its *fields* are the experiment's parameters. Its *methods* run in this order, and data flow
    only this way::

        setting(key) ──► hypotheses(setting)
                    ├──► predict(setting) ─────────┐
                    └──► observe(setting, key) ────┴──► run_conditions(observed), judge(predicted, observed)

    ``setting`` is what theory and experiment may both see: the data, the initial network. ``predict`` never sees the
    observation and ``observe`` never sees the prediction.

    The attributes say how a sweep maps the experiment over a plane of its fields.

    Attributes:
        precision: ``"float64"`` or ``"float32"``.
        diagram: the experiment's own phase diagram: a range for each field, as on the command line; horizontal first.
        batched: fields that may differ inside one compiled computation: numbers that shape no array of ``observe``,
            which is then pure JAX. Everything else runs point by point.
        base: fields that the diagram and every other sweep change from the preset, to be quick.
        labels: what the columns of :meth:`quantities` are called in figures, by id.
        contours: boundaries where a column such as ``"ID_predicted"`` takes a value: value and label of each.
        diagram_remarks: what a reader of the diagram should know, one sentence each.
    """

    precision: ClassVar[str] = "float64"
    diagram: ClassVar[Mapping[str, str]] = {}
    batched: ClassVar[tuple[str, ...]] = ()
    base: ClassVar[Mapping[str, Any]] = {}
    labels: ClassVar[Mapping[str, str]] = {}
    contours: ClassVar[Mapping[str, tuple[float, str]]] = {}
    diagram_remarks: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name, kind in field_types(type(self)).items():
            object.__setattr__(self, name, kind.check(getattr(self, name)))
        self.check_fields()

    def check_fields(self) -> None:
        """Refuse fields that contradict each other, such as lists of different lengths, with a ``UserError``."""
        return

    def setting(self, key: "Key") -> Any:
        """Make what theory and experiment may both see, such as the data and the initial network."""
        del key

    def hypotheses(self, setting: Any) -> "Iterable[Hypothesis]":
        """Yield what the theorem assumes, checked on the actual setting."""
        del setting
        return ()

    @abstractmethod
    def predict(self, setting: Any) -> "Prediction":
        """Return the numbers that theory gives."""

    @abstractmethod
    def observe(self, setting: Any, key: "Key") -> Any:
        """Run the experiment and return its numbers, an :class:`Observation`; of a point, a dict of arrays."""

    def run_conditions(self, observed: Any) -> "Iterable[Hypothesis]":
        """Yield what the theory assumes of the run itself, such as zero training error, checked on what was seen."""
        del observed
        return ()

    @abstractmethod
    def judge(self, predicted: "Prediction", observed: Any) -> "Iterable[Check]":
        """Compare prediction and observation: the checks that decide, under the same ids wherever they apply."""

    def checks(self, predicted: "Prediction", observed: Any) -> "tuple[Check, ...]":
        """Return the checks of some arrays."""
        return tuple(self.judge(predicted, observed))

    def quantities(self, predicted: "Prediction", observed: Any) -> dict[str, float]:
        """Return other measured numbers that a sweep maps and nothing judges, by id."""
        del predicted, observed
        return {}

    def boundaries(self, x: str, y: str) -> "tuple[Curve, ...]":
        """Return predicted boundaries in the plane of two fields, with abscissae in ``x``; empty where none."""
        del x, y
        return ()

    def traced(self, values: Mapping[str, Any]) -> Self:
        """Return a twin whose fields may be traced numbers, whose limits were checked when they were planned."""
        twin = copy(self)
        for name, value in values.items():
            object.__setattr__(twin, name, value)
        return twin


@dataclass(frozen=True)
class Point(Experiment):
    """One point of a claim's diagram: the experiment at one setting, small enough to be repeated over a plane.

    Its fields are some of its claim's fields, under the same names and without defaults of their own; where the claim's
    field is a tuple, the point's may be one element of it.
    """

    @classmethod
    def of(cls, claim: Experiment) -> Self:
        """Return the point of a claim: each field is the claim's, or the first element of the claim's tuple."""
        values = {}
        for field in fields(cls):
            value = getattr(claim, field.name)
            single = isinstance(value, tuple) and not field_types(cls)[field.name].many
            values[field.name] = value[0] if single else value
        return cls(**values)


def same_lengths(claim: Experiment, *names: str) -> None:
    """Refuse tuples of different lengths that must go together, element by element.

    Raises:
        UserError: with the lengths.
    """
    lengths = {name: len(getattr(claim, name)) for name in names}
    if len(set(lengths.values())) > 1:
        given = ", ".join(f"{length} of {name}" for name, length in lengths.items())
        raise UserError(f"{' and '.join(names)} go together, one to one; got {given}")


def seeded(seed: int) -> "tuple[Key, Key]":
    """Return the keys of a run's setting and of its observation."""
    import jax

    for_setting, for_observation = jax.random.split(jax.random.key(seed))
    return for_setting, for_observation
