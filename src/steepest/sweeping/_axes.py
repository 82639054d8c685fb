"""What a sweep goes over: ranges and lists of values for a claim's fields, as words or as Python values."""

import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

import numpy as np
from scipy.stats import qmc

from steepest.errors import UserError, nearest

SEED = "seed"
"""The one thing besides a claim's fields that can be swept: the seed of every random number."""
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
EXAMPLE = "such as lr=log:0.01:1:20, width=64,256 or seed=0:8"


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
        return f"{self.field}: {_word(min(self.values))} to {_word(max(self.values))}, {how}{spaced}"


def axes(kind: type, over: Mapping[str, Any], sobol: int | None = None) -> tuple[Axis, ...]:
    """Read what a sweep goes over.

    Args:
        kind: the claim's class.
        over: for each field its range in words (``"log:0.01:1:20"``, ``"linear:0:1:5"``, ``"64,256"``, ``"0:8"``), or
            a sequence of values.
        sobol: how many points to draw in the ranges that name no number of points.

    Raises:
        UserError: an unknown field, one that cannot be swept, or a range that cannot be read.

    >>> from steepest.claims import load
    >>> [str(axis) for axis in axes(load("catapult"), {"multiple": "linear:1:4:4", "seed": "0:3"})]
    ['multiple: 1, 2, 3, 4', 'seed: 0, 1, 2']
    """
    if not over:
        raise UserError(f"nothing to sweep over: name a field and its values, {EXAMPLE}")
    found = [_axis(kind, field, values) for field, values in over.items()]
    empty = [axis for axis in found if axis.sobol]
    if sobol is None:
        if empty:
            said = over[empty[0].field]
            raise UserError(
                f"{empty[0].field}={said} names no number of points; write {said}:20, or draw points with --sobol 256"
            )
        return tuple(found)
    if sobol < 1:
        raise UserError(f"the number of Sobol points is at least 1, got {sobol}")
    if not empty:
        raise UserError(
            "--sobol draws points in ranges without a number of points, such as lr=log:0.01:1; there are none"
        )
    drawn = iter(_sobol(len(empty), sobol).T)
    spread = {axis.field: _between(axis, next(drawn)) for axis in empty}
    return tuple(
        Axis(axis.field, _typed(kind, axis.field, spread[axis.field]), axis.scale, True, axis.words)
        if axis.sobol
        else axis
        for axis in found
    )


def design(chosen: Sequence[Axis]) -> np.ndarray:
    """Which value of each axis each point has, shape ``(points, axes)``: the product of all axes, the first slowest.

    Sobol axes move together, as one.

    >>> design([Axis("a", (1, 2)), Axis("b", (3, 4, 5))]).T.tolist()
    [[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]]
    """
    together = [axis for axis in chosen if axis.sobol]
    blocks = [axis for axis in chosen if not axis.sobol or axis is together[0]]
    grid = np.indices([len(axis.values) for axis in blocks], np.int32).reshape(len(blocks), -1)
    place = {id(axis): i for i, axis in enumerate(blocks)}
    return np.stack([grid[place[id(together[0] if axis.sobol else axis)]] for axis in chosen], 1)


def _axis(kind: type, field: str, values: Any) -> Axis:
    """An axis from words or values; one with ``sobol`` set still lacks its points and holds the two ends."""
    _type(kind, field)
    if not isinstance(values, str):
        listed = values if isinstance(values, Iterable) else [values]
        plain = [v.item() if isinstance(v, np.generic) else v for v in listed]
        return _listed(kind, field, plain, "list", ",".join(map(str, plain)))
    scaled = re.fullmatch(rf"(log|linear):({NUMBER}):({NUMBER})(?::([^:]*))?", values)
    if scaled:
        return _range(kind, field, values, *scaled.groups())
    if whole := re.fullmatch(r"([+-]?\d+):([+-]?\d+)(?::([+-]?[1-9]\d*))?", values):
        return _listed(kind, field, list(range(*(int(w) for w in whole.groups() if w))), "list", values)
    if ":" in values:
        raise UserError(f"cannot read {field}={values}; a range is log:LOW:HIGH:POINTS, linear:LOW:HIGH:POINTS or 0:8")
    return _listed(kind, field, [word.strip() for word in values.split(",") if word.strip()], "list", values)


def _range(kind: type, field: str, words: str, scale: str, low: str, high: str, count: str | None) -> Axis:
    ends = float(low), float(high)
    if not ends[0] < ends[1]:
        raise UserError(f"{field}={words} must go from a smaller to a larger number, got {low} and {high}")
    if scale == "log" and ends[0] <= 0:
        raise UserError(
            f"{field}={words} passes through zero, where there is no logarithm; start above zero or use linear:"
        )
    if _type(kind, field) not in (int, float):
        raise UserError(f"{field} is no number, so it has no range; name its values, separated by commas")
    if count is None:
        return Axis(field, ends, scale, True, words)
    if not re.fullmatch(r"\d+", count) or int(count) < 2:
        raise UserError(f"{field}={words} needs at least 2 points, got {count!r}; write {scale}:{low}:{high}:20")
    return _listed(kind, field, _between(Axis(field, ends, scale), np.linspace(0, 1, int(count))), scale, words)


def _between(axis: Axis, places: np.ndarray) -> list[float]:
    """Values at places from 0 to 1 between the ends of an axis, evenly in its scale."""
    low, high = axis.values
    found = low * (high / low) ** places if axis.scale == "log" else low + (high - low) * places
    return [float(np.clip(float(f"{value:.12g}"), low, high)) for value in found]  # 0.1, not 0.10000000000000002


def _sobol(dimensions: int, points: int) -> np.ndarray:
    """The first points of the Sobol sequence, the origin left out, shape ``(points, dimensions)``."""
    rounded = 1 << (points + 1).bit_length()  # the sequence is balanced at powers of two, and is cut after it is drawn
    return qmc.Sobol(dimensions, scramble=False).random(rounded)[1 : points + 1]


def _listed(kind: type, field: str, values: Sequence[Any], scale: str, words: str) -> Axis:
    found = tuple(dict.fromkeys(_typed(kind, field, values)))
    if not found:
        raise UserError(f"{field}={words} has no values; name some, {EXAMPLE}")
    return Axis(field, found, scale, words=words)


def _typed(kind: type, field: str, values: Sequence[Any]) -> tuple[Any, ...]:
    """Values as the field's own type; whole numbers are rounded from a range."""
    wanted = _type(kind, field)
    return tuple(_convert(field, wanted, value) for value in values)


def _convert(field: str, wanted: type, value: Any) -> Any:
    try:
        if wanted is bool:
            return {"true": True, "false": False}[str(value).lower()]
        if wanted is int:
            return int(value) if isinstance(value, str) else round(value)
        found = wanted(value)
        if wanted is float and not np.isfinite(found):
            raise ValueError
        return found
    except (KeyError, ValueError, TypeError, OverflowError):
        raise UserError(f"{field} takes {wanted.__name__} values, got {value!r}; {EXAMPLE}") from None


def _type(kind: type, field: str) -> type:
    """The type of a field's values; of a tuple's elements."""
    if field == SEED:
        return int
    known = [each.name for each in fields(kind)]
    if field not in known:
        raise UserError(f"{kind.__name__} has no field {field!r}; {nearest(field, [*known, SEED])}")
    hint = typing.get_type_hints(kind, include_extras=True)[field]
    whole = _bare(hint)
    plain = _bare(typing.get_args(whole)[0]) if typing.get_origin(whole) is tuple else whole
    if plain in (int, float, str, bool):
        return plain
    raise UserError(f"{field} of {kind.__name__} cannot be swept: it is {hint}, not a number, word or tuple of them")


def _bare(hint: Any) -> Any:
    """A hint without its limits and without None."""
    if typing.get_origin(hint) is Annotated:
        return _bare(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        rest = [each for each in typing.get_args(hint) if each is not type(None)]
        return _bare(rest[0]) if len(rest) == 1 else hint
    return hint


def _word(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
