"""What a sweep goes over: ranges and lists of values for a claim's fields, as words or as Python values."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import qmc

from steepest.core.errors import UserError
from steepest.core.fields import LARGEST_SEED, FieldType, Within, field_type

SEED = "seed"
"""The one thing besides a claim's fields that can be swept: the seed of every random number."""
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
WHOLE = r"[+-]?\d{1,18}"
EXAMPLE = "such as lr=log:0.01:1:20, width=64,256 or seed=0:8"
MOST = 10_000_000
"""Points of the largest sweep: its plan alone takes some gigabytes."""
SEED_TYPE = FieldType(SEED, int, False, None, (), (Within(0, LARGEST_SEED),), 0)


@dataclass(frozen=True)
class Axis:
    """The values of one field.

    Attributes:
        field: a claim's field, or ``"seed"``.
        values: numbers, words or truth values, in order; for a field that is a tuple, what its one element becomes.
        scale: ``"linear"`` or ``"log"`` for ranges, ``"list"`` for values named one by one.
        sobol: whether the values belong to a Sobol sequence, point by point, instead of to a grid.
        words: the range as one would type it.
    """

    field: str
    values: tuple[Any, ...]
    scale: str = "list"
    sobol: bool = False
    words: str = ""

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers, so that they have places on a figure's axis."""
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values)

    def __str__(self) -> str:
        count = f"{len(self.values)} value{'s' * (len(self.values) != 1)}"
        if not self.numeric or len(self.values) <= 8:
            return f"{self.field}: {', '.join(_word(v) for v in self.values)}"
        how = "Sobol points" if self.sobol else count
        spaced = {"log": ", logarithmic", "linear": ", linear", "list": ""}[self.scale]
        return (
            f"{self.field}: {_word(min(self.values))} to {_word(max(self.values))}, {how}{spaced}"
        )


def axes(kind: type, over: Mapping[str, Any], sobol: int | None = None) -> tuple[Axis, ...]:
    """Read what a sweep goes over.

    Args:
        kind: the claim's class.
        over: for each field its range in words (``"log:0.01:1:20"``, ``"linear:0:1:5"``, ``"64,256"``, ``"0:8"``), or
            a sequence of values.
        sobol: how many points to draw in the ranges that name no number of points.

    Raises:
        UserError: an unknown field, a range that cannot be read, or more points than any machine holds.

    >>> from steepest.catalogue import load
    >>> [str(axis) for axis in axes(load("catapult"), {"multiple": "linear:1:4:4", "seed": "0:3"})]
    ['multiple: 1, 2, 3, 4', 'seed: 0, 1, 2']
    """
    if not over:
        raise UserError(f"nothing to sweep over: name a field and its values, {EXAMPLE}")
    chosen = [_axis(_type(kind, field), values) for field, values in over.items()]
    drawn = [axis for axis in chosen if axis.sobol]
    if sobol is None and drawn:
        words = over[drawn[0].field]
        raise UserError(
            f"{drawn[0].field}={words} names no number of points; write {words}:20, or draw points with --sobol 256"
        )
    if sobol is not None:
        chosen = _draw(kind, chosen, drawn, sobol)
    _affordable(math.prod(len(axis.values) for axis in chosen if not axis.sobol) * (sobol or 1))
    return tuple(chosen)


def _draw(kind: type, chosen: Sequence[Axis], drawn: Sequence[Axis], sobol: int) -> list[Axis]:
    """Give the ranges without a number of points their Sobol points."""
    if sobol < 1:
        raise UserError(f"the number of Sobol points is at least 1, got {sobol}; try 256")
    _affordable(sobol)
    if not drawn:
        raise UserError(
            "--sobol draws points in ranges without a number of points, such as lr=log:0.01:1; there are none"
        )
    places = dict(zip((axis.field for axis in drawn), _sobol(len(drawn), sobol).T, strict=True))
    axes = []
    for axis in chosen:
        if axis.sobol:
            values = _typed(_type(kind, axis.field), _between(axis, places[axis.field]))
            axis = Axis(axis.field, values, axis.scale, True, axis.words)
        axes.append(axis)
    return axes


def _affordable(points: int) -> None:
    """Refuse a sweep by what its plan would need, before anything is allocated."""
    if points > MOST:
        raise UserError(
            f"the sweep would have {points:.3g} points, and a plan holds at most {MOST:.3g}; name fewer values"
        )


def design(chosen: Sequence[Axis]) -> np.ndarray:
    """Which value of each axis each point has, shape ``(points, axes)``: the product of all axes, the first slowest.

    Sobol axes move together, as one.

    >>> design([Axis("a", (1, 2)), Axis("b", (3, 4, 5))]).T.tolist()
    [[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]]
    """
    drawn = [axis for axis in chosen if axis.sobol]
    blocks = [axis for axis in chosen if not axis.sobol or axis is drawn[0]]
    sizes = [len(axis.values) for axis in blocks]
    grid = np.indices(sizes, np.int32).reshape(len(blocks), -1)
    place = {id(axis): i for i, axis in enumerate(blocks)}
    owners = [drawn[0] if axis.sobol else axis for axis in chosen]
    return np.stack([grid[place[id(owner)]] for owner in owners], 1)


def _axis(kind: FieldType, values: Any) -> Axis:
    """An axis from words or values; one with ``sobol`` set still lacks its points and holds the two ends."""
    if not isinstance(values, str):
        listed = values if isinstance(values, Iterable) else [values]
        plain = [value.item() if isinstance(value, np.generic) else value for value in listed]
        return _listed(kind, plain, "list", ",".join(map(str, plain)))
    scaled = re.fullmatch(rf"(log|linear):({NUMBER}):({NUMBER})(?::([^:]*))?", values)
    if scaled:
        return _range(kind, values, *scaled.groups())
    whole = re.fullmatch(rf"({WHOLE}):({WHOLE})(?::([+-]?[1-9]\d{{0,17}}))?", values)
    if whole:
        counted = range(*(int(word) for word in whole.groups() if word))
        if len(counted) == 1 and abs(counted.step) > abs(counted.stop - counted.start):
            low, high, points = whole.groups()
            raise UserError(
                f"{kind.name}={values} are steps of {points} from {low} and stop before {high}: one value. Write "
                f"linear:{low}:{high}:{points.lstrip('+-')} for so many values between them"
            )
        _affordable(max(0, -(-(counted.stop - counted.start) // counted.step)))
        return _listed(kind, list(counted), "list", values)
    if ":" in values:
        raise UserError(
            f"cannot read {kind.name}={values}; a range is log:LOW:HIGH:POINTS, linear:LOW:HIGH:POINTS or 0:8"
        )
    words = [word.strip() for word in values.split(",") if word.strip()]
    return _listed(kind, [kind.read_one(word) for word in words], "list", values)


def _range(kind: FieldType, words: str, scale: str, low: str, high: str, count: str | None) -> Axis:
    field = kind.name
    ends = (float(low), float(high))
    if not (ends[0] < ends[1] and math.isfinite(ends[1] - ends[0])):
        raise UserError(
            f"{field}={words} must go from a smaller to a larger finite number, got {low} and {high}"
        )
    if scale == "log" and ends[0] <= 0:
        raise UserError(
            f"{field}={words} passes through zero, where there is no logarithm; start above zero or use linear:"
        )
    if kind.base not in (int, float):
        raise UserError(
            f"{field} is no number, so it has no range; name its values, separated by commas"
        )
    if count is None:
        return Axis(field, ends, scale, True, words)
    if not re.fullmatch(r"[0-9]{1,12}", count) or int(count) < 2:
        raise UserError(
            f"{field}={words} needs at least 2 points, got {count!r}; write {scale}:{low}:{high}:20"
        )
    _affordable(int(count))
    places = np.linspace(0, 1, int(count))
    return _listed(kind, _between(Axis(field, ends, scale), places), scale, words)


def _between(axis: Axis, places: np.ndarray) -> list[float]:
    """Values at places from 0 to 1 between the ends of an axis, evenly in its scale."""
    low, high = axis.values
    if axis.scale == "log":
        values = low ** (1 - places) * high**places  # high / low may be past all numbers
    else:
        values = low + (high - low) * places
    # 0.1, not 0.10000000000000002
    return [float(np.clip(float(f"{value:.12g}"), low, high)) for value in values]


def _sobol(dimensions: int, points: int) -> np.ndarray:
    """The first points of the Sobol sequence, the origin left out, shape ``(points, dimensions)``."""
    # the sequence is balanced at powers of two, and is cut after it is drawn
    rounded = 1 << (points + 1).bit_length()
    return qmc.Sobol(dimensions, scramble=False).random(rounded)[1 : points + 1]


def _listed(kind: FieldType, values: Sequence[Any], scale: str, words: str) -> Axis:
    distinct = tuple(dict.fromkeys(_typed(kind, values)))
    if not distinct:
        raise UserError(f"{kind.name}={words} has no values; name some, {EXAMPLE}")
    return Axis(kind.name, distinct, scale, words=words)


def _typed(kind: FieldType, values: Sequence[Any]) -> tuple[Any, ...]:
    """Values as the field's own type; numbers of a range are rounded where whole ones are wanted."""
    whole = kind.base is int
    rounded = (round(v) if whole and isinstance(v, float) and v == v else v for v in values)
    return tuple(kind.check_one(value) for value in rounded)


def _type(kind: type, field: str) -> FieldType:
    """The type of a field's values; of a tuple's elements."""
    if field == SEED:
        return SEED_TYPE
    return field_type(kind, field, also=(SEED,))


def _word(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
