"""Which functions of the library prediction and observation both call: a mistake in one of them could cancel."""

import cProfile
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any

import steepest

ROOT = str(Path(steepest.__file__).parent)
FORM = ("claim", "kit", "core", "claims", "engine", "app", "statistics")
"""Rooms that hold the form of a claim, or the claim itself: what both sides share of them computes no law."""


class Shared:
    """Listens to both sides of a claim.

    What JAX has compiled before is not called again, and so is not seen, and nothing is where the reader profiles the
    run: a list that is empty is no proof.
    """

    def __init__(self) -> None:
        self._sides: dict[str, set[CodeType]] = {"predict": set(), "observe": set()}

    def predicting(self) -> Any:
        """Return a context in which calls belong to the prediction."""
        return self._listening("predict")

    def observing(self) -> Any:
        """Return a context in which calls belong to the observation."""
        return self._listening("observe")

    @property
    def functions(self) -> list[str]:
        """The public functions of the library that both sides called, such as ``steepest.kernels._gram.gram``."""
        both = self._sides["predict"] & self._sides["observe"]
        names = {_name(code) for code in both if _in_library(code)}
        return sorted(name for name in names if not name.rpartition(".")[2].startswith("_"))

    @contextmanager
    def _listening(self, side: str) -> Iterator[None]:
        # the profiler of the standard library is written in C: a function of ours at every call of JAX's tracing
        # would take a twentieth of a run
        profiler = cProfile.Profile(subcalls=False, builtins=False)
        if not _start(profiler):
            yield
            return
        try:
            yield
        finally:
            profiler.disable()
        calls = profiler.getstats()
        self._sides[side] |= {call.code for call in calls if isinstance(call.code, CodeType)}


def _start(profiler: cProfile.Profile) -> bool:
    """Start listening, unless the reader profiles: then their profiler goes on undisturbed, and nothing is heard."""
    if sys.getprofile() is not None:
        return False
    try:
        profiler.enable()
    except ValueError:  # from Python 3.12 on there may be one that sys.getprofile does not see
        return False
    return True


def _in_library(code: CodeType) -> bool:
    """Whether a function is a named one of a room that computes."""
    if not code.co_filename.startswith(ROOT) or "<" in code.co_qualname:
        return False
    room = Path(code.co_filename).relative_to(ROOT).parts[0].removesuffix(".py")
    return room not in FORM


def _name(code: CodeType) -> str:
    path = Path(code.co_filename).relative_to(ROOT).with_suffix("")
    return ".".join(("steepest", *path.parts, code.co_qualname))
