"""The point of a law that a chapter discusses: which it is, its numbers, and its place in letters and words."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from steepest.core.checks import Check
from steepest.core.errors import UserError
from steepest.core.intervals import Interval
from steepest.core.laws import At, LawCheck
from steepest.site.pages import number

LETTERS = {"step_size": "η", "lr": "η", "c_w": "C_W", "c_b": "C_b"}
"""Letters of axes whose names in programs are neither words nor letters of their own."""
_ROW = re.compile(r"(\w+)(?:\[(\d+)\])?")


@dataclass(frozen=True)
class Row:
    """A row of a chapter's table.

    Attributes:
        check: the id of a check.
        place: which of its points, counted from 0; None for the worst.
    """

    check: str
    place: int | None = None

    def __str__(self) -> str:
        return self.check if self.place is None else f"{self.check}[{self.place}]"


def read_row(word: str) -> Row:
    """Read a row as authors write it, in the notation of numbers in the prose.

    >>> read_row("late_sharpness[1]"), read_row("movement")
    (Row(check='late_sharpness', place=1), Row(check='movement', place=None))

    Raises:
        UserError: the word is neither a check nor one of its points.
    """
    match = _ROW.fullmatch(word)
    if match is None:
        raise UserError(
            f"a row of a table is a check, such as movement, or one of its points, such as movement[0]; got {word!r}"
        )
    return Row(match[1], None if match[2] is None else int(match[2]))


def at_row(check: Check, place: int | None) -> Check:
    """Return a check as a chapter's table shows it: with the numbers of one point, and notes which point that is.

    Args:
        check: of a result.
        place: which of its points, counted from 0; None for the worst.

    Raises:
        UserError: the check has no such point.
    """
    points = check.points if isinstance(check, LawCheck) else ()
    if place is None:
        return replace(check, note=_joined(_plain_note(check), _worst_of(check, points)))
    if place >= len(points):
        such = f"points 0 to {len(points) - 1}" if points else "no points"
        raise UserError(f"the check {check.id} has {such}; got {check.id}[{place}]")
    point = points[place]
    shown = {
        "predicted": point.predicted,
        "measured": point.measured,
        "interval": replace(check.interval, low=point.low, high=point.high),
        "margin": Interval(point.least, point.most, check.margin.how),
        "verdict": point.verdict,
    }
    worst = _worst(check, points)
    about = f"the worst of {len(points)} points" if worst is point else _elsewhere(worst, point)
    note = _joined(f"at {in_words(point.where)}", _plain_note(check), about)
    return replace(check, note=note, **shown)


def in_words(where: Mapping[str, Any]) -> str:
    """Return a point's place: letters for axes that have one, words for all others.

    >>> in_words({"step_size": 0.276923, "width": 512})
    'η = 0.2769, width = 512'
    >>> in_words({"beta": 8.0, "hidden_layers": 2, "activation": "mean_field"})
    'β = 8, hidden layers = 2, activation: mean field'
    """
    return ", ".join(_coordinate(axis, value) for axis, value in where.items())


def _coordinate(axis: str, value: Any) -> str:
    if isinstance(value, str):
        return f"{_axis(axis)}: {value.replace('_', ' ')}"
    return f"{_axis(axis)} = {number(value)}"


def _axis(name: str) -> str:
    if name in LETTERS:
        return LETTERS[name]
    try:
        return unicodedata.lookup(f"GREEK SMALL LETTER {name.replace('lambda', 'lamda').upper()}")
    except KeyError:
        return name.replace("_", " ")


def _worst(check: Check, points: Sequence[At]) -> At | None:
    """Return the point whose numbers a check has."""
    numbers = (check.predicted, check.measured, check.interval.low, check.interval.high)
    return next((point for point in points if _numbers(point) == numbers), None)


def _numbers(point: At) -> tuple[float, float, float, float]:
    return point.predicted, point.measured, point.low, point.high


def _worst_of(check: Check, points: Sequence[At]) -> str:
    worst = _worst(check, points)
    return f"the worst of {len(points)} points, {in_words(worst.where)}" if worst else ""


def _elsewhere(worst: At | None, shown: At) -> str:
    """Say what the worst point has, where the point that is shown has other numbers."""
    if worst is None or _numbers(worst) == _numbers(shown):
        return ""
    numbers = f"{number(worst.predicted)} predicted, {number(worst.measured)} measured"
    return f"worst point: {in_words(worst.where)}, {numbers}"


def _plain_note(check: Check) -> str:
    """Return the note of a check without the place of its worst point, which is written here for readers."""
    points = check.points if isinstance(check, LawCheck) else ()
    begins = tuple(f"worst at {axis} = " for axis in (points[0].where if points else ()))
    parts = check.note.split("; ")
    return "; ".join(part for part in parts if not (begins and part.startswith(begins)))


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
