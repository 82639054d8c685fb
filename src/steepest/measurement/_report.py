"""Reports of measurements: numbers with their errors, what theory says, and one plain sentence each."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from steepest.core import given
from steepest.core.errors import UserError
from steepest.core.extras import exporter
from steepest.core.panels import Panel, panels_from_json
from steepest.core.reading import read_text
from steepest.core.records import number as read_number

if TYPE_CHECKING:
    from steepest.measurement._compare import Comparison

ALIASES = {"signals": "signal-propagation", "levels": "class-decomposition"}
"""Former ids of quantities, which keep working."""

ERRORS = {
    "residual": "residual of Lanczos, no confidence interval",
    "probes": "95 % over random probes, for these examples",
    "examples": "95 % for other examples like these",
    "batches": "95 % over random batches of these examples",
    "rounding": "rounding",
    "seeds": "95 % over networks of other seeds",
    "fit": "95 % of the fit over the widths",
}
"""What an interval is about, by its source of error."""

BRIEF = {
    "residual": "residual",
    "probes": "95 %, probes",
    "examples": "95 %, examples",
    "batches": "95 %, batches",
    "rounding": "rounding",
    "seeds": "95 %, seeds",
    "fit": "95 %, fit",
}
"""The same where there is little room; ``ERRORS`` explains them."""

BEYOND = {"lowest-curvature": "beyond it"}
"""Where an eigenvalue lies that the search has missed, by the id of the quantity; above its interval for all else."""


class Regime(StrEnum):
    """Whether training has left the kernel of the start."""

    LAZY = "lazy"
    BETWEEN = "between"
    RICH = "rich"
    UNKNOWN = "unknown"
    """The network has hardly moved, so that nothing follows."""


@dataclass(frozen=True)
class Reading:
    """One measured number.

    Attributes:
        name: what was measured.
        value: the number; NaN when it does not exist here, and ``interpretation`` says why.
        interval: where it lies: a 95 % interval; or, for a largest eigenvalue, from the value less its residual to the
            bound that ``missed`` is about, and for the smallest the other way round; None for exact arithmetic.
        source_of_error: what the interval is about: ``"residual"``, ``"probes"``, ``"examples"``, ``"batches"``,
            ``"seeds"``, ``"fit"`` or ``"rounding"``.
        theory: what the value is compared with, or nothing.
        compared: the number that theory gives, if it gives one.
        assumes: what theory assumes, and whether it holds on this model; None where that is unknown.
        interpretation: one sentence for readers who do not know the papers.
        parts: the same for parts of the model, such as its layers.
        over_examples: 95 % interval of where the number would lie for other examples like these, if that is known.
        panel: a picture, as data, if one number does not tell.
        id: of the quantity that it belongs to; a quantity may have several readings.
        regime: of training, where the reading tells it.
        layer: the layer or array of weights that it is about, where there is a reading for each.
        missed: for an extreme eigenvalue, the probability at most that a more extreme one lies beyond the interval,
            over random starts of the search; None for all else.
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
    regime: Regime | None = None
    layer: str = ""
    missed: float | None = None


class FindingId(StrEnum):
    """What a finding is about, whatever its words."""

    # of one measurement
    DEAD = "dead"
    NOTHING_LEARNED = "nothing-learned"
    LEARNED = "learned"
    NOT_STATIONARY = "not-stationary"
    STEP_NOT_COMPARED = "step-not-compared"
    STEP_NOT_GIVEN = "step-not-given"
    STEP_TOO_LARGE = "step-too-large"
    STEP_AT_THE_EDGE = "step-at-the-edge"
    STEP_SMALL = "step-small"
    """In reports that were stored: nothing says so any more."""
    STEP_STABLE = "step-stable"
    STEP_TO_TRY = "step-to-try"
    STEP_TO_LOWER = "step-to-lower"
    STEP_TO_START_WITH = "step-to-start-with"
    STEP_TRIED = "step-tried"
    NO_STEP_DESCENDS = "no-step-descends"
    DEAD_UNITS = "dead-units"
    SIGNALS = "signals"
    SATURATED = "saturated"
    START_TOO_LARGE = "start-too-large"
    FROZEN = "frozen"
    NOT_HELD = "not-held"
    MEMORIZED = "memorized"
    OVERFITS = "overfits"
    ERROR_RATES = "error-rates"
    HELD_OUT_RISK = "held-out-risk"
    LEAKING = "leaking"
    REPEATED = "repeated"
    REGIME = "regime"
    RUNNING_STATISTICS = "running-statistics"
    BATCH_NOISE = "batch-noise"
    ROUNDED_AWAY = "rounded-away"
    ADAPTERS = "adapters"
    # of a training, besides these
    DIVERGED = "diverged"
    WARNED = "warned"
    NO_LONGER_WARNED = "no-longer-warned"
    RISK_RISEN = "risk-risen"
    RISK_ABOVE_ITS_LOWEST = "risk-above-its-lowest"
    RISK_APART = "risk-apart"
    LOSS_STANDS = "loss-stands"
    LOSS_WENT = "loss-went"
    STALE = "stale"
    LEAPT = "leapt"
    FORGOTTEN = "forgotten"
    MOVED = "moved"
    NOT_MEASURED = "not-measured"
    # of networks of several widths
    NOT_PROPORTIONAL = "not-proportional"
    UNSTABLE = "unstable"
    SLOWER = "slower"
    LAZY = "lazy"
    LAYERS_THAT_DO_NOT_LEARN = "layers-that-do-not-learn"
    TRANSFERS = "transfers"
    NOT_DECIDED = "not-decided"
    START_OF_A_LAYER = "start-of-a-layer"
    START_OF_THE_LAST_LAYER = "start-of-the-last-layer"
    LEARNING_RATE = "learning-rate"
    LAYERS_NOT_SEEN = "layers-not-seen"
    STEP_TRANSFERS = "step-transfers"
    STEP_GOES_WITH_WIDTH = "step-goes-with-width"
    STEP_NOT_DECIDED = "step-not-decided"
    STEP_COSTS = "step-costs"
    GRID_OF_STEPS = "grid-of-steps"
    # of two reports
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Finding:
    """One line to act on.

    Attributes:
        sign: ``"!"`` to act on, ``"?"`` to know, ``"✓"`` for what is as it should be.
        text: what was found and what to try, in one sentence or two.
        evidence: name of the reading that it rests on.
        id: what it is about, a ``FindingId`` or a ``Fault`` of a training; None in reports that were stored without.
    """

    sign: str
    text: str
    evidence: str
    id: StrEnum | None = None


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
        data: a digest of the examples, whatever their order, so that reports of the same examples are known; empty
            where there is none.
        held_out: the same of the held-out examples.
    """

    model: str
    weights: int
    examples: int
    quantities: tuple[Reading, ...]
    passes: int
    seconds: float
    findings: tuple[Finding, ...] = ()
    data: str = ""
    held_out: str = ""

    def __repr__(self) -> str:
        size = f"{self.weights} weights, {self.examples} examples, {len(self.quantities)} readings"
        return (
            f"<{self.model}: {size}{''.join(f'; {one.sign} {one.text}' for one in self.findings)}>"
        )

    def __getitem__(self, name: str) -> Reading:
        """Return the first reading of a quantity by its id, or one reading by its name."""
        for reading in self.quantities:
            if name in (reading.id, reading.name):
                return reading
        readings = self.readings(name)
        if readings:
            return readings[0]
        ids = [reading.id for reading in self.quantities]
        names = [reading.name for reading in self.quantities]
        measured = dict.fromkeys(filter(None, [*ids, *names]))
        raise KeyError(f"{name!r} was not measured; measured were: {', '.join(measured)}")

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

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Return the inverse of :meth:`to_json`, but for infinite values, which JSON does not hold: they are NaN.

        Raises:
            UserError: a record that is no report; ``read_report`` says of which file.

        >>> report = Report("Net", 3, 5, (Reading("risk", 0.5, (0.4, 0.6), "examples"),), 1, 0.1)
        >>> Report.from_json(report.to_json()) == report
        True
        """
        try:
            return cls(
                model=_kept(record["model"], str),
                weights=_kept(record["weights"], int),
                examples=_kept(record["examples"], int),
                quantities=tuple(_reading(entry) for entry in record["quantities"]),
                passes=_kept(record["passes"], int),
                seconds=_kept(record["seconds"], float | int),
                findings=tuple(_finding(entry) for entry in record.get("findings", ())),
                data=_kept(record.get("data", ""), str),
                held_out=_kept(record.get("held_out", ""), str),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as trouble:
            lacking = f"it has no {trouble}" if isinstance(trouble, KeyError) else str(trouble)
            raise UserError(
                f"this is no report of steepest measure: {lacking}; write one with steepest measure … --json"
            ) from trouble

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` with one row a reading; an end or a number that it lacks is NaN.

        The columns are ``id``, ``name``, ``layer``, ``value``, ``low`` and ``high`` of the interval,
        ``source_of_error``, ``compared`` and ``theory``; see :class:`Reading`.

        Raises:
            UserError: without the extra ``export``.
        """
        pandas = exporter("pandas")
        unknown = (math.nan, math.nan)
        intervals = [reading.interval or unknown for reading in self.quantities]
        compared = [reading.compared for reading in self.quantities]
        columns = {
            "id": [reading.id for reading in self.quantities],
            "name": [reading.name for reading in self.quantities],
            "layer": [reading.layer for reading in self.quantities],
            "value": np.array([reading.value for reading in self.quantities], float),
            "low": np.array([low for low, _ in intervals], float),
            "high": np.array([high for _, high in intervals], float),
            "source_of_error": [reading.source_of_error for reading in self.quantities],
            "compared": np.array(compared, float),
            "theory": [reading.theory for reading in self.quantities],
        }
        return pandas.DataFrame(columns)

    def compare(self, after: "Report") -> "Comparison":
        """Compare with a later report, or another model's; see ``steepest.compare``."""
        from steepest.measurement._compare import compare

        return compare(self, after)

    def _repr_html_(self) -> str:
        listed = "".join(f"<li>{finding.sign} {finding.text}</li>" for finding in self.findings)
        rows = "".join(
            f"<tr><td>{q.name}</td><td>{'<br>'.join([number(q), *errors(q)])}</td>"
            f"<td>{q.interpretation}</td></tr>"
            for q in self.quantities
        )
        return f"<ul>{listed}</ul><table><caption>{self.model}, {self.weights} weights</caption>{rows}</table>"


def read_report(file: str | Path) -> Report:
    """Read what ``steepest measure … --json`` has written.

    Raises:
        UserError: no such file, or one that holds something else.
    """
    path = given.file("a report", file)
    if not path.is_file():
        raise UserError(
            f"there is no report {path}; write one with steepest measure … --json > {path}"
        )
    try:
        record = json.loads(read_text(path))
    except OSError as trouble:
        raise UserError(f"cannot read the report {path} ({trouble.strerror or trouble})") from None
    except (ValueError, RecursionError) as trouble:
        raise UserError(
            f"{path} holds no JSON; write a report with steepest measure … --json > {path}"
        ) from trouble
    try:
        return Report.from_json(record)
    except UserError as trouble:
        raise UserError(f"{path}: {trouble}") from trouble


def number(reading: Reading) -> str:
    """Return the value as text, without its errors.

    >>> number(Reading("trace", 10.0, (9.0, 11.0)))
    '10'
    """
    return "–" if math.isnan(reading.value) else f"{reading.value:.4g}"


def ends(reading: Reading) -> str:
    """Return the interval of a value as text; as a distance where its ends and the value look alike.

    >>> ends(Reading("sharpness", 2.0, (2 - 1e-6, 2 + 3e-6), "residual"))
    '± 3e-06'
    """
    assert reading.interval is not None
    low, high = reading.interval
    if reading.source_of_error == "residual" and f"{low:.4g}" == f"{high:.4g}":
        return f"± {max(high - reading.value, reading.value - low):.2g}"
    return f"[{low:.4g}, {high:.4g}]"


def about(reading: Reading, words: Mapping[str, str] = ERRORS) -> str:
    """Say what the interval of a value is about, in the words for each source of error."""
    what = words[reading.source_of_error]
    if reading.missed is None:
        return what
    beyond = BEYOND.get(reading.id, "larger")
    return f"{what}; {beyond} with a probability below {100 * reading.missed:g} %"


def errors(reading: Reading, words: Mapping[str, str] = ERRORS) -> list[str]:
    """Return each error of a value as a line that says what it is about; nothing where a value has none.

    Args:
        reading: the value with its errors.
        words: what each source of error is called: ``ERRORS`` or ``BRIEF``.

    >>> errors(Reading("sharpness", 2.0, (1.5, 2.5), "residual", over_examples=(1.0, 3.0)))
    ['[1.5, 2.5] (residual of Lanczos, no confidence interval)', '[1, 3] (95 % for other examples like these)']
    """
    lines = []
    if reading.interval is not None and not math.isnan(reading.value):
        lines.append(f"{ends(reading)} ({about(reading, words)})")
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


def _reading(entry: Mapping[str, Any]) -> Reading:
    """Return one reading from its record."""
    source = entry["source_of_error"]
    if source not in ERRORS:
        raise ValueError(f"the source of error {source!r} is not known")
    compared = entry["compared"]
    panel = entry["panel"]
    return Reading(
        name=_kept(entry["name"], str),
        value=_real(entry["value"]),
        interval=_ends(entry["interval"]),
        source_of_error=source,
        theory=_kept(entry["theory"], str),
        compared=None if compared is None else _real(compared),
        assumes=tuple((_kept(text, str), holds) for text, holds in entry["assumes"]),
        interpretation=_kept(entry["interpretation"], str),
        parts={name: _real(part) for name, part in entry["parts"].items()},
        over_examples=_ends(entry["over_examples"]),
        panel=None if panel is None else panels_from_json([panel])[0],
        id=_kept(entry.get("id", ""), str),
        regime=None if entry.get("regime") is None else Regime(entry["regime"]),
        layer=_kept(entry.get("layer", ""), str),
        missed=None if entry.get("missed") is None else _real(entry["missed"]),
    )


def _finding(entry: Mapping[str, Any]) -> Finding:
    if entry["sign"] not in ("!", "?", "✓"):
        raise ValueError(f"a finding has the sign {entry['sign']!r}")
    id = None if entry.get("id") is None else FindingId(entry["id"])
    return Finding(entry["sign"], _kept(entry["text"], str), _kept(entry["evidence"], str), id)


def _ends(pair: Any) -> tuple[float, float] | None:
    """Return an interval; an end that is null is infinite."""
    if pair is None:
        return None
    low, high = pair
    return _real(low, -math.inf), _real(high, math.inf)


def _real(value: Any, missing: float = math.nan) -> float:
    return float(_kept(read_number(value, missing), float | int))


def _kept(value: Any, kind: Any) -> Any:
    """Return a value of the expected type."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{str(value)[:40]!r} is of type {type(value).__name__}")
    return value
