"""Numbers, names and files as callers give them, refused in one sentence where they are none."""

import inspect
import math
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from steepest.core.errors import UserError

KEY = "k"
"""Stands for the type of random keys of JAX among the letters of NumPy's kinds of types."""


def real(name: str, value: Any, example: str = "0.1") -> float:
    """Return a finite real number.

    Args:
        name: of the argument.
        value: what was given.
        example: a value that the argument takes, for the hint.

    Raises:
        UserError: it is none, such as text, a list or NaN.

    >>> real("lr", 1)
    1.0
    """
    if not isinstance(value, str | bytes | bool) and getattr(value, "shape", ()) == ():
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
    raise UserError(f"{name} is a finite number, got {shown(value)}; try {name}={example}")


def whole(name: str, value: Any, least: int = 0) -> int:
    """Return a whole number.

    Raises:
        UserError: it is none, or too small.

    >>> whole("seeds", 3.0)
    3
    """
    number = math.nan
    with suppress(UserError):
        number = real(name, value)
    if number != number or number % 1 or number < least:
        raise UserError(
            f"{name} is a whole number of at least {least}, got {shown(value)}; try {name}={max(least, 1)}"
        )
    return int(value)


def listed(name: str, value: Any) -> tuple[str, ...]:
    """Return words.

    Raises:
        UserError: a single word, or what is no list of words.

    >>> listed("what", ["risk"])
    ('risk',)
    """
    if not isinstance(value, str | bytes):
        try:
            words = list(value)
        except TypeError:
            words = [None]
        said = tuple(word for word in words if isinstance(word, str))
        if len(said) == len(words):
            return said
    raise UserError(f"{name} is a list of words, got {shown(value)}; try {name}=['risk']")


def vector(name: str, value: Any) -> np.ndarray:
    """Return finite real numbers along one axis; their type stays.

    Raises:
        UserError: other numbers, another shape, or none.

    >>> vector("start", [1.0, 2.0]).shape
    (2,)
    """
    is_array = isinstance(value, list | tuple) or hasattr(value, "shape")
    array = np.asarray(value if is_array else None)
    if array.ndim == 1 and array.size and array.dtype.kind in "fiu" and np.isfinite(array).all():
        return array
    got = f"shape {array.shape} of {array.dtype}" if is_array else shown(value)
    raise UserError(
        f"{name} is a vector of at least one number, all of them real and finite, got {got}; try {name}=np.ones(3)"
    )


def numbers(name: str, value: Any) -> Any:
    """Return what holds real numbers, an array or lists, as it is; NaN may be among them.

    Raises:
        UserError: it holds something else, such as text, objects, or complex numbers, whose imaginary parts would be
            lost.
    """
    # NaN may be among them; types that NumPy does not know, such as a column of a table, hold numbers
    if dtype_kind(value, "f") in "fiubV":  # V is the kind of bfloat16 and its like
        return value
    raise UserError(
        f"{name} must be real numbers in an array, got {shown(value)}; try np.ones((4, 2))"
    )


def file(what: str, value: Any) -> Path:
    """Return a path.

    Raises:
        UserError: the name of no file.

    >>> file("the log", "run.jsonl").name
    'run.jsonl'
    """
    if isinstance(value, str | os.PathLike) and "\0" not in str(value) and str(value):
        return Path(value)
    raise UserError(
        f"{what} is the name of a file, got {shown(value)}; give text such as 'run.json', or a pathlib.Path"
    )


def key(name: str, value: Any) -> Any:
    """Return random keys of JAX, one or several.

    Raises:
        UserError: they are none, such as the number that a key is made of.
    """
    kind = dtype_kind(value) if hasattr(value, "dtype") else ""
    if kind == KEY or (kind == "u" and shape_of(value)[-1:] == (2,)):
        return value
    raise UserError(f"{name} is a random key of JAX, got {shown(value)}; try jax.random.key(0)")


def number(what: str, value: Any) -> Any:
    """Return what a function of the reader's gave, if that is one real number; its value may be anything.

    Raises:
        UserError: it gave something else, such as None or one number for each example.
    """
    if shape_of(value) == () and dtype_kind(value) in "fiubV":
        return value
    raise UserError(f"{what} must return one real number, got {shown(value)}; try its .mean()")


def order(name: str, value: Any) -> float:
    """Return the order of a norm, from 1 to infinity.

    Raises:
        UserError: another number, or none.

    >>> order("p", 2)
    2.0
    """
    is_number = shape_of(value) == () and dtype_kind(value) in "fiu"
    if is_number and float(value) >= 1:
        return float(value)
    raise UserError(f"{name} is the order of a norm, from 1 to np.inf, got {shown(value)}; try 2.0")


def call(what: str, function: Callable[..., Any], *values: Any) -> Any:
    """Call a function of the reader's; where it cannot take what it is given, say so.

    Raises:
        UserError: in place of Python's own kinds for wrong types and values; other errors come through.
    """
    try:
        return function(*values)
    except (TypeError, ValueError) as trouble:
        if type(trouble) not in (TypeError, ValueError):
            raise
        first = (str(trouble).splitlines() or [""])[0][:200]
        given = ", ".join(shown(value) for value in values)
        raise UserError(f"{what} cannot take {given}: {first}; give what it takes") from trouble


def traced(value: Any) -> bool:
    """Tell whether JAX traces a value, so that nothing but its shape and type is known."""
    jax = sys.modules.get("jax")  # whoever traces has imported it
    return jax is not None and isinstance(value, jax.core.Tracer)


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of an array, or of the array that lists make."""
    shape = getattr(value, "shape", None)
    if shape is None and isinstance(value, list | tuple) and any(map(traced, value)):
        return (len(value), *shape_of(value[0]))
    try:
        return tuple(np.shape(value) if shape is None else shape)
    except (TypeError, ValueError):  # lists of different lengths
        return (len(value),)


def dtype_kind(value: Any, other: str = "O") -> str:
    """Return the letter of NumPy for the type of an array's entries, or of the array that lists make.

    Args:
        value: anything.
        other: what to return for types of arrays that NumPy does not know, but for random keys.

    >>> dtype_kind([1.0]), dtype_kind([1, [2]]), dtype_kind("1")
    ('f', 'O', 'U')
    """
    held = getattr(value, "dtype", None)
    if held is None and isinstance(value, str | bytes):
        return "U"
    try:
        return np.dtype(np.asarray(value).dtype if held is None else held).kind
    except (TypeError, ValueError):  # lists of different lengths, or of what JAX traces
        if str(held).startswith("key<"):
            return KEY
        if held is None and isinstance(value, list | tuple) and any(map(traced, value)):
            return "f"
        return "O" if held is None else other


def takes(value: Callable[..., Any], count: int) -> bool:
    """Tell whether a function can be called with so many arguments; of some that are built in nobody knows.

    >>> takes(lambda a, b=1: a, 2), takes(lambda a: a, 2)
    (True, False)
    """
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


def shown(value: Any) -> str:
    """Return what was given in a few letters: its value where that is short, or its kind, and an array's shape.

    >>> shown(2.5), shown(object())
    ('2.5', 'object')
    """
    if isinstance(value, int | float | complex | str | bytes | list | tuple | None):
        said = repr(value)
        if len(said) <= 40:
            return said
    held = getattr(value, "dtype", None)
    kind = type(value).__name__
    if held is None:
        return kind
    shape = getattr(value, "shape", ())
    return f"{kind} of {held}" + f" and shape {tuple(shape)}" * bool(shape)
