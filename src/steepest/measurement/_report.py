"""Reports of measurements: numbers with their errors, what theory says, and one plain sentence each."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from steepest.core.panels import Panel

ALIASES = {"signals": "signal-propagation", "levels": "class-decomposition"}
"""Former ids of quantities, which keep working."""

ERRORS = {
    "residual": "residual of Lanczos, no confidence interval",
    "probes": "95 % over random probes, for these examples",
    "examples": "95 % for other examples like these",
    "batches": "95 % over random batches of these examples",
    "rounding": "rounding",
}
"""What an interval is about, by its source of error."""

BRIEF = {
    "residual": "residual",
    "probes": "95 %, probes",
    "examples": "95 %, examples",
    "batches": "95 %, batches",
    "rounding": "rounding",
}
"""The same where there is little room; ``ERRORS`` explains them."""


@dataclass(frozen=True)
class Reading:
    """One measured number.

    Attributes:
        name: what was measured.
        value: the number; NaN when it does not exist here, and ``interpretation`` says why.
        interval: where it lies: a 95 % interval, or value ± residual of an iteration; None for exact arithmetic.
        source_of_error: what the interval is about: ``"residual"``, ``"probes"``, ``"examples"``, ``"batches"`` or
            ``"rounding"``.
        theory: what the value is compared with, or nothing.
        compared: the number that theory gives, if it gives one.
        assumes: what theory assumes, and whether it holds on this model; None where that is unknown.
        interpretation: one sentence for readers who do not know the papers.
        parts: the same for parts of the model, such as its layers.
        over_examples: 95 % interval of where the number would lie for other examples like these, if that is known.
        panel: a picture, as data, if one number does not tell.
        id: of the quantity that it belongs to; a quantity may have several readings.
    """

    name: str
    value: float
    interval: tuple[float, float] | None = None
    source_of_error: str = "rounding"
    theory: str = ""
    compared: float | None = None
    assumes: tuple[tuple[str, bool | None], ...] = ()
    interpretation: str = ""
    parts: dict[str, float] = field(default_factory=dict)
    over_examples: tuple[float, float] | None = None
    panel: Panel | None = None
    id: str = ""


@dataclass(frozen=True)
class Finding:
    """One line to act on.

    Attributes:
        sign: ``"!"`` to act on, ``"?"`` to know, ``"✓"`` for what is as it should be.
        text: what was found and what to try, in one sentence or two.
        evidence: name of the reading that it rests on.
    """

    sign: str
    text: str
    evidence: str


@dataclass(frozen=True)
class Report:
    """The result of ``steepest.measure``; a table in the terminal and in a notebook.

    Attributes:
        model: its name.
        weights: number of weights.
        examples: number of examples.
        quantities: the readings, in the order in which they were asked for.
        passes: passes over the data that measuring took.
        seconds: wall time.
        findings: at most five lines to act on, each with its evidence among the readings.
    """

    model: str
    weights: int
    examples: int
    quantities: tuple[Reading, ...]
    passes: int
    seconds: float
    findings: tuple[Finding, ...] = ()

    def __getitem__(self, name: str) -> Reading:
        """Return the first reading of a quantity by its id, or one reading by its name."""
        for reading in self.quantities:
            if name in (reading.id, reading.name):
                return reading
        readings = self.readings(name)
        if readings:
            return readings[0]
        measured = [*dict.fromkeys(reading.id for reading in self.quantities)]
        names = [reading.name for reading in self.quantities]
        raise KeyError(
            f"{name!r} was not measured; measured were: {', '.join(filter(None, [*measured, *names]))}"
        )

    def readings(self, id: str) -> tuple[Reading, ...]:
        """Return all readings of a quantity by its id."""
        id = ALIASES.get(id, id)
        return tuple(reading for reading in self.quantities if reading.id == id)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready object; numbers that are not finite become null.

        Each quantity has ``errors`` besides, its errors as sentences.
        """
        plain = _plain(asdict(self))
        for entry, reading in zip(plain["quantities"], self.quantities, strict=True):
            entry["errors"] = errors(reading)
        return plain

    def _repr_html_(self) -> str:
        listed = "".join(f"<li>{finding.sign} {finding.text}</li>" for finding in self.findings)
        rows = "".join(
            f"<tr><td>{q.name}</td><td>{'<br>'.join([number(q), *errors(q)])}</td>"
            f"<td>{q.interpretation}</td></tr>"
            for q in self.quantities
        )
        return f"<ul>{listed}</ul><table><caption>{self.model}, {self.weights} weights</caption>{rows}</table>"


def number(reading: Reading) -> str:
    """Return the value as text, without its errors.

    >>> number(Reading("trace", 10.0, (9.0, 11.0)))
    '10'
    """
    return "–" if math.isnan(reading.value) else f"{reading.value:.4g}"


def errors(reading: Reading, words: Mapping[str, str] = ERRORS) -> list[str]:
    """Return each error of a value as a line that says what it is about; nothing where a value has none.

    A residual is half of its interval: an eigenvalue lies that near. It is no confidence interval.

    Args:
        reading: the value with its errors.
        words: what each source of error is called: ``ERRORS`` or ``BRIEF``.

    >>> errors(Reading("sharpness", 2.0, (1.5, 2.5), "residual", over_examples=(1.0, 3.0)))
    ['± 0.5 (residual of Lanczos, no confidence interval)', '[1, 3] (95 % for other examples like these)']
    """
    lines = []
    if reading.interval is not None and not math.isnan(reading.value):
        low, high = reading.interval
        what = words[reading.source_of_error]
        ends = f"[{low:.4g}, {high:.4g}]"
        if reading.source_of_error == "residual":
            ends = f"± {(high - low) / 2:.2g}"
        lines.append(f"{ends} ({what})")
    if reading.over_examples is not None:
        low, high = reading.over_examples
        if math.isfinite(low) and math.isfinite(high):
            lines.append(f"[{low:.4g}, {high:.4g}] ({words['examples']})")
        else:
            lines.append(f"unknown ({words['examples']})")
    return lines


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
