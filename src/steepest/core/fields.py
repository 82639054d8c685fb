"""Fields of a claim: which values they take, and the one reader of values for command line, ranges and Python.

A field's type is a number, a word, a truth value or a tuple of one of these, with limits in ``Annotated``.
"""

import math
import numbers
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any

from steepest.core.errors import UserError, nearest

LARGEST = 2**63 - 1
"""Whole numbers end here, as they do in every array."""
LARGEST_SEED = 2**31 - 1
"""Seeds end here, in single precision too."""


@dataclass(frozen=True)
class Within:
    """The values a field may take: ``low <= value <= high``, or ``low < value`` where ``open`` is set."""

    low: float
    high: float = float("inf")
    open: bool = False

    def __contains__(self, value: float) -> bool:
        return (self.low < value if self.open else self.low <= value) and value <= self.high

    def __str__(self) -> str:
        low = f"{'above' if self.open else 'at least'} {self.low:g}"
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
class FieldType:
    """The type of one field, resolved.

    Attributes:
        name: of the field.
        base: ``int``, ``float``, ``str`` or ``bool``: of the value, or of a tuple's elements.
        many: whether the value is a tuple.
        length: how many elements a tuple must have; None for any number above zero.
        words: the words that are allowed, where they are listed.
        limits: what every number must be within.
        default: the field's default.
    """

    name: str
    base: type
    many: bool
    length: int | None
    words: tuple[Any, ...]
    limits: tuple[Within, ...]
    default: Any

    def read(self, words: Sequence[str]) -> Any:
        """Return the value that words on a command line stand for.

        Raises:
            UserError: too few or too many words, or one that cannot be read.
        """
        if not words:
            raise UserError(f"{self.name} needs a value, such as {_spell(self.default)}")
        if not self.many and len(words) > 1:
            raise UserError(f"{self.name} takes one value, got {len(words)}: {' '.join(words)}")
        values = tuple(self.read_one(word) for word in words)
        return self.check(values if self.many else values[0])

    def read_one(self, word: str) -> Any:
        """Return the number, word or truth value of one word."""
        try:
            if self.base is bool:
                return {"true": True, "false": False}[word.lower()]
            return self.base(word)
        except (KeyError, ValueError):
            raise UserError(f"{self.name} takes {self.kind}, got {word!r}; {self._try}") from None

    def check(self, value: Any) -> Any:
        """Return a value from Python as the field holds it, of its type and within its limits.

        Lists and arrays become tuples, whole numbers become floats where floats are wanted; nothing else is converted.

        Raises:
            UserError: a value of another type, not finite, or outside the limits.
        """
        if not self.many:
            return self.check_one(value)
        if isinstance(value, str) or not hasattr(value, "__iter__"):
            raise UserError(
                f"{self.name} takes several values of {self.kind}, got {value!r}; {self._try}"
            )
        values = tuple(self.check_one(element) for element in value)
        if (not values and self.default != ()) or self.length not in (None, len(values)):
            wanted = "at least one value" if self.length is None else f"{self.length} values"
            raise UserError(f"{self.name} takes {wanted}, got {len(values)}; {self._try}")
        return values

    def check_one(self, value: Any) -> Any:
        """Return one number, word or truth value as the field holds it."""
        if not self._fits(value):
            raise UserError(f"{self.name} takes {self.kind}, got {value!r}; {self._try}")
        value = self.base(value)
        if self.base is int and abs(value) > LARGEST:
            raise UserError(
                f"{self.name} must be a whole number of at most 64 bits, got {value}; {self._try}"
            )
        if self.base is float and not math.isfinite(value):
            raise UserError(f"{self.name} must be a finite number, got {value}; {self._try}")
        for limits in self.limits:
            if value not in limits:
                raise UserError(f"{self.name} must be {limits}, got {value}; {self._try}")
        return value

    def _fits(self, value: Any) -> bool:
        """Whether a value is of the field's type, as NumPy's scalars are too."""
        if self.words:
            return isinstance(value, str) and value in self.words
        if self.base is str:
            return isinstance(value, str)
        truth = isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")  # NumPy's too
        if self.base is bool:
            return truth
        return (
            isinstance(value, numbers.Integral if self.base is int else numbers.Real) and not truth
        )

    @property
    def kind(self) -> str:
        """What the field takes, in words."""
        if self.words:
            return f"one of {', '.join(map(str, self.words))}"
        return {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}[
            self.base
        ]

    @property
    def _try(self) -> str:
        return f"try {_spell(self.default)}"


@cache
def field_types(kind: type) -> Mapping[str, FieldType]:
    """Return the resolved type of every field of a dataclass, by name, in order.

    Raises:
        UserError: a field that is no number, word, truth value or tuple of them.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Example:
    ...     widths: tuple[Count, ...] = (64, 256)
    >>> field_types(Example)["widths"].read(["8", "16"])
    (8, 16)
    """
    hints = typing.get_type_hints(kind, include_extras=True)
    return {
        field.name: _resolve(kind, field.name, hints[field.name], field.default)
        for field in fields(kind)
    }


def field_type(kind: type, name: str, also: Sequence[str] = ()) -> FieldType:
    """Return the resolved type of one field.

    Args:
        kind: the dataclass.
        name: the field.
        also: other words that are allowed in its place, for the hint.

    Raises:
        UserError: for an unknown field, with the nearest one.
    """
    kinds = field_types(kind)
    if name not in kinds:
        raise UserError(f"{kind.__name__} has no field {name!r}; {nearest(name, [*kinds, *also])}")
    return kinds[name]


def _resolve(kind: type, name: str, hint: Any, default: Any) -> FieldType:
    whole, limits = _unwrapped(hint)
    many = typing.get_origin(whole) is tuple
    length = None
    element = whole
    if many:
        parts = typing.get_args(whole)
        length = None if parts[-1] is Ellipsis else len(parts)
        element, more = _unwrapped(parts[0])
        limits = (*limits, *more)
    words: tuple[Any, ...] = ()
    if typing.get_origin(element) is typing.Literal:
        words = typing.get_args(element)
        element = str
    if element not in (int, float, str, bool):
        raise UserError(
            f"{name} of {kind.__name__} is {hint}; a field is a number, a word or a tuple of them"
        )
    return FieldType(name, element, many, length, words, limits, default)


def _unwrapped(hint: Any) -> tuple[Any, tuple[Within, ...]]:
    """A hint without its limits and without None, and the limits."""
    limits: tuple[Within, ...] = ()
    while typing.get_origin(hint) is Annotated:
        inner, *notes = typing.get_args(hint)
        limits = (*limits, *(note for note in notes if isinstance(note, Within)))
        hint = inner
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        options = [option for option in typing.get_args(hint) if option is not type(None)]
        if len(options) == 1:
            return _unwrapped(options[0])
    return hint, limits


def _spell(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
