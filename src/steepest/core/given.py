"""Numbers, names and files as callers give them, refused in one sentence where they are none."""

import math
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from steepest.core.errors import UserError


def real(name: str, value: Any) -> float:
    """Return a finite real number.

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
    raise UserError(f"{name} is a finite number, got {shown(value)}; try {name}=0.1")


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
            words = tuple(value)
        except TypeError:
            words = (None,)
        if all(isinstance(word, str) for word in words):
            return words  # pyright: ignore
    raise UserError(f"{name} is a list of words, got {shown(value)}; try {name}=['risk']")


def function(name: str, value: Any) -> Callable[..., Any]:
    """Return what can be called.

    Raises:
        UserError: it cannot.
    """
    if callable(value):
        return value
    raise UserError(f"{name} is a function, got {shown(value)}; try {name}=lambda v: A @ v")


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
    if not isinstance(value, str | bytes):
        held = getattr(value, "dtype", None)
        try:
            kind = np.dtype(held if held is not None else np.asarray(value).dtype).kind
        except (
            TypeError,
            ValueError,
        ):  # lists of different lengths, or a type of NumPy's extensions
            kind = "f" if held is not None else "O"
        if kind in "fiubV":  # the last is that of bfloat16 and its like
            return value
    raise UserError(
        f"{name} must be real numbers in an array, got {shown(value)}; try np.ones((4, 2))"
    )


def generator(name: str, value: Any) -> np.random.Generator:
    """Return a generator of NumPy.

    Raises:
        UserError: it is none.
    """
    if isinstance(value, np.random.Generator):
        return value
    raise UserError(
        f"{name} is a generator of NumPy, got {shown(value)}; try {name}=np.random.default_rng(0)"
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


def shown(value: Any) -> str:
    """Return what was given in a few letters: its value where that is short, or its kind.

    >>> shown(2.5), shown(object())
    ('2.5', 'object')
    """
    if isinstance(value, int | float | complex | str | bytes | list | tuple | None):
        said = repr(value)
        if len(said) <= 40:
            return said
    held = getattr(value, "dtype", None)
    return type(value).__name__ if held is None else f"{type(value).__name__} of {held}"
