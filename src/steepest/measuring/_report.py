"""What a measurement says: numbers with their errors, what theory has to say, and one plain sentence each."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from steepest.panels import Panel


@dataclass(frozen=True)
class Quantity:
    """One measured number.

    Attributes:
        name: what was measured.
        value: the number; NaN when it does not exist here, and ``means`` says why.
        interval: where it lies: a 95 % interval, or value ± residual of an iteration; None for exact arithmetic.
        source_of_error: what the interval is about: ``"residual"``, ``"probes"``, ``"examples"`` or ``"rounding"``.
        theory: what the value is compared with, or nothing.
        compared: the number that theory gives, if it gives one.
        assumes: what theory assumes, and whether it holds on this model; None where that cannot be told.
        means: the sentence for somebody who has not read the papers.
        parts: the same for parts of the model, such as its layers.
        over_examples: 95 % interval of where the number would lie for other examples like these, if that is known.
        panel: a picture, as data, if one number does not tell.
    """

    name: str
    value: float
    interval: tuple[float, float] | None = None
    source_of_error: str = "rounding"
    theory: str = ""
    compared: float | None = None
    assumes: tuple[tuple[str, bool | None], ...] = ()
    means: str = ""
    parts: dict[str, float] = field(default_factory=dict)
    over_examples: tuple[float, float] | None = None
    panel: Panel | None = None


@dataclass(frozen=True)
class Report:
    """What ``steepest.measure`` returns; a table in the terminal and in a notebook.

    Attributes:
        model: its name.
        weights: number of weights.
        examples: number of examples.
        quantities: in the order in which they were asked for.
        passes: passes over the data that measuring took.
        seconds: wall time.
    """

    model: str
    weights: int
    examples: int
    quantities: tuple[Quantity, ...]
    passes: int
    seconds: float

    def __getitem__(self, name: str) -> Quantity:
        """One quantity by its name."""
        for each in self.quantities:
            if each.name == name:
                return each
        raise KeyError(f"{name!r} was not measured; measured were: {', '.join(each.name for each in self.quantities)}")

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready object; numbers that are not finite become null."""
        return _plain(asdict(self))

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{q.name}</td><td>{number(q)}</td><td>{q.means}</td></tr>" for q in self.quantities)
        return f"<table><caption>{self.model}, {self.weights} weights</caption>{rows}</table>"


def number(quantity: Quantity) -> str:
    """The value with its error as text.

    >>> number(Quantity("trace", 10.0, (9.0, 11.0)))
    '10 [9, 11]'
    """
    if math.isnan(quantity.value):
        return "–"
    value = f"{quantity.value:.4g}"
    if quantity.interval is None:
        return value
    low, high = quantity.interval
    return f"{value} [{low:.4g}, {high:.4g}]"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
