"""Whether modules are read as they are in evaluation mode, and of which package a class is; imports no framework."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_evaluation: ContextVar[bool] = ContextVar("evaluation", default=False)


@contextmanager
def read_in_evaluation() -> Iterator[None]:
    """Let modules of JAX be read as copies in evaluation mode; the modules themselves stay in theirs."""
    token = _evaluation.set(True)
    try:
        yield
    finally:
        _evaluation.reset(token)


def is_in_evaluation() -> bool:
    """Tell whether modules are to be read so."""
    return _evaluation.get()


def is_of(value: Any, package: str, name: str) -> bool:
    """Tell whether a value is of a class of this name that a package defines, or of a subclass of one.

    >>> is_of(True, "builtins", "int"), is_of(1.0, "builtins", "int")
    (True, False)
    """
    return any(
        kind.__name__ == name and kind.__module__.startswith(package)
        for kind in type(value).__mro__
    )
