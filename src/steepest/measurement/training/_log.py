"""The log of a monitor: its records, also of a file that is still growing, torn, or shared by several trainings.

A log is read line by line, and of a training of more than ``HISTORY`` records a part is kept: each 2ⁿ-th record, the
``NEWEST`` ones, the first, and those with the smallest and the largest value of each quantity, also beside what theory
compares it with. Of those in which something failed or a warning was given the newest ``NEWEST`` are kept too. So
memory has a bound, and of a training of ordinary length everything is kept.
"""

import json
import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steepest.core.errors import UserError
from steepest.core.given import file as given_file
from steepest.core.reading import check_regular
from steepest.core.text import visible

Record = dict[str, Any]
HISTORY = 20_000
"""Records of a training up to which all are kept; beyond, between half as many and so many are."""
NEWEST = 1000
"""Records at the end of a training that are kept in any case."""
LONGEST = 2**24
"""Bytes beyond which a line is none of a monitor's."""
NAMES = 1000
"""Quantities whose extremes are remembered; monitors have some dozens."""


@dataclass(frozen=True)
class Kept:
    """What is kept of a training.

    Attributes:
        records: in the order of their steps.
        left_out: how many other records it has.
    """

    records: tuple[Record, ...]
    left_out: int


def read_log(file: str | Path) -> list[Record]:
    """Read the records of a monitor's log; lines that a kill cut off are left out.

    Raises:
        UserError: if there is no such file, or it cannot be read.
    """
    return [value for value in _values(given_file("a log", file)) if value is not TORN]


def training_of(file: str | Path, training: int | None) -> tuple[Kept, int, int]:
    """Read one of the trainings that were appended to a log; return it, its number and how many there are.

    A training begins where steps start again: where a step is smaller than the one before, or a new monitor has started
    at a step that is there already. One that goes on from a checkpoint at a later step is the same training. Several
    records of one step are one: what the last says counts, beside what the others alone have.

    Args:
        file: the log.
        training: counted from 1; None for the last.

    Raises:
        UserError: no such file, an empty one, one that no monitor has written; a training that it does not hold.
    """
    path = given_file("a log", file)
    count = lines = 0
    last: Record | None = None
    now = chosen = _Thinned()
    for value in _values(path):
        lines += 1
        if not _is_record(value):
            continue
        record = _readable(value)
        step = record["step"]
        if last is None or step < last["step"] or (step == last["step"] and "started" in record):
            count += 1
            now = _Thinned()
            if training in (None, count):
                chosen = now
        elif step > last["step"]:
            now.add(last)
        else:
            record = _together(last, record)
        last = record
        now.last = record
    if last is None:
        _refuse(path, lines)
    number = count if training is None else training
    if not 1 <= number <= count:
        several = f"{count} trainings" if count > 1 else "one training"
        raise UserError(f"{file} holds {several}, counted from 1; got training {training}")
    return chosen.kept(), number, count


def _together(earlier: Record, later: Record) -> Record:
    """Return one record of two of a step, such as its first-order numbers and its measurement at the end."""
    quantities = {**earlier["quantities"], **later["quantities"]}
    return {**earlier, **later, "quantities": quantities}


class _Extremes:
    """The records with the smallest and the largest value of a quantity, and the largest beside its limit."""

    __slots__ = ("above", "high", "least", "low", "most", "ratio")

    def __init__(self, value: float, place: int, record: Record) -> None:
        self.low = self.high = value
        self.ratio = -math.inf
        self.least = self.most = self.above = (place, record)


class _Thinned:
    """A training of which a bounded number of records is kept.

    Attributes:
        last: its last record, which another of the same step may replace.
    """

    def __init__(self) -> None:
        self.last: Record | None = None
        self._count = 0
        self._stride = 1
        self._history: dict[int, Record] = {}
        self._newest: deque[tuple[int, Record]] = deque(maxlen=NEWEST)
        self._special: deque[tuple[int, Record]] = deque(maxlen=NEWEST)
        self._extremes: dict[str, _Extremes] = {}

    def add(self, record: Record) -> None:
        """Take the next record, which is of a later step."""
        place = self._count
        self._count += 1
        if place % self._stride == 0:
            self._history[place] = record
            if len(self._history) > HISTORY:
                self._stride *= 2
                doubled = self._history.items()
                self._history = {at: one for at, one in doubled if at % self._stride == 0}
        self._newest.append((place, record))
        if "trouble" in record or "warnings" in record:
            self._special.append((place, record))
        for name, entry in record["quantities"].items():
            self._compare(name, entry, place, record)

    def _compare(self, name: str, entry: Record, place: int, record: Record) -> None:
        value = entry["value"]
        if value is None or not math.isfinite(value):
            return
        ends = self._extremes.get(name)
        if ends is None:
            if len(self._extremes) == NAMES:
                return
            ends = self._extremes[name] = _Extremes(value, place, record)
        compared = entry.get("compared")
        if value < ends.low:
            ends.low, ends.least = value, (place, record)
        if value > ends.high:
            ends.high, ends.most = value, (place, record)
        if compared and value > ends.ratio * compared:
            ends.ratio, ends.above = value / compared, (place, record)

    def kept(self) -> Kept:
        """Return what is kept, with the last record."""
        if self.last is not None:
            self.add(self.last)
            self.last = None
        ends = self._extremes.values()
        extremes = dict(pair for end in ends for pair in (end.least, end.most, end.above))
        kept = {**self._history, **dict(self._newest), **dict(self._special), **extremes}
        records = tuple(kept[place] for place in sorted(kept))
        return Kept(records, self._count - len(records))


TORN = object()
"""In place of a line that holds no JSON."""


def _values(path: Path) -> Iterator[Any]:
    """Yield what the lines of a file hold."""
    if not path.exists():
        raise UserError(f"there is no log {path}")
    try:
        check_regular(path)
        with path.open("rb") as file:
            yield from map(_value, _lines(file))
    except OSError as trouble:
        reason = trouble.strerror or trouble
        raise UserError(
            f"cannot read the log {path} ({reason}); give the file of a monitor"
        ) from None


def _lines(file: Any) -> Iterable[bytes]:
    """Yield the lines of a file that are not blank; one that is too long is empty."""
    while line := file.readline(LONGEST):
        long = len(line) == LONGEST and not line.endswith(b"\n")
        while long and (line := file.readline(LONGEST)) and not line.endswith(b"\n"):
            pass
        if long:
            yield b""
        elif not line.isspace():
            yield line


def _value(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8", "replace"))
    except (
        ValueError,
        RecursionError,
    ):  # a number of thousands of digits is a ValueError of its own
        return TORN


def _refuse(path: Path, lines: int) -> None:
    """Refuse a log without any record.

    Raises:
        UserError: in any case.
    """
    if not lines:
        raise UserError(
            f"the log {path} is empty: no measurement has been written yet; a monitor writes its first one when it "
            "is called"
        )
    raise UserError(
        f"{path} is no log of a monitor: no line of it is an object with a step and quantities; give the file "
        "that Monitor(file, …) writes"
    )


def _is_record(line: Any) -> bool:
    """Tell whether this is a record as a monitor writes it; files of other programs have JSON lines too."""
    if not isinstance(line, dict) or not isinstance(line.get("quantities"), dict):
        return False
    step = line.get("step")
    return (
        _is_count(step)
        and all(_is_number(line.get(name)) for name in ("lr", "momentum"))
        and all(_is_entry(entry) for entry in line["quantities"].values())
    )


def _readable(record: Record) -> Record:
    """Spell out what no terminal can show, in names and sentences that somebody else may have written."""
    names = record["quantities"]
    for name, entry in names.items():
        theory = entry.get("theory")
        if theory is not None and not theory.isprintable():
            entry["theory"] = _on_a_line(theory)
        if not name.isprintable():
            record["quantities"] = {_on_a_line(name): entry for name, entry in names.items()}
    for key in ("trouble", "not_measured"):
        if isinstance(record.get(key), str):
            record[key] = _on_a_line(record[key])
    if isinstance(record.get("warnings"), list):
        said = record["warnings"]
        record["warnings"] = [_on_a_line(text) for text in said if isinstance(text, str)]
    return record


def _on_a_line(text: str) -> str:
    """Return a text without what no terminal shows, or what would begin another line."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _is_count(step: Any) -> bool:
    return isinstance(step, int) and not isinstance(step, bool) and abs(step) < 2**63


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or "value" not in entry:
        return False
    return (
        _is_number(entry["value"])
        and _is_number(entry.get("compared"))
        and _is_pair(entry.get("interval"))
        and _is_pair(entry.get("over_examples"))
        and isinstance(entry.get("theory", ""), str)
    )


def _is_pair(pair: Any) -> bool:
    if pair is None:
        return True
    return type(pair) is list and len(pair) == 2 and _is_number(pair[0]) and _is_number(pair[1])


def _is_number(value: Any) -> bool:
    """Tell whether this is a number that a float can hold, or null."""
    if value is None or type(value) is float:
        return True
    return type(value) is int and abs(value) < 2**1023
