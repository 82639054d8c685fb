"""Which functions of the library, or of the claim, both its sides call: a mistake in one of them could cancel."""

import cProfile
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any

import steepest

ROOT = Path(steepest.__file__).parent
CLAIMS = ROOT / "claims"
FORM = ("claim", "kit", "core", "claims", "engine", "app", "statistics")
"""Rooms that hold the form of a claim, which computes no law, and claims, whose code is traced as their own."""
INSTALLED = {"site-packages", "dist-packages"}
"""Folders in which the packages of others lie, also where they are below the folder of a reader's file."""


class Shared:
    """Listens to both sides of a claim.

    What JAX has compiled before is not called again, and so is not seen, and nothing is where the reader profiles the
    run: a list that is empty is no proof. What ``setting`` computes is given to both sides and not listed.

    Args:
        claim: the claim, whose own functions are listed beside those of the library; None for the library's alone.
    """

    def __init__(self, claim: Any = None) -> None:
        self._home = _home_of(claim)
        self._sides: dict[str, set[CodeType]] = {"axes": set(), "predict": set(), "observe": set()}
        if hasattr(claim, "axes"):
            with self._listening("axes"):
                claim.axes()

    def predicting(self) -> Any:
        """Return a context in which calls belong to the prediction."""
        return self._listening("predict")

    def observing(self) -> Any:
        """Return a context in which calls belong to the observation."""
        return self._listening("observe")

    @property
    def functions(self) -> list[str]:
        """The functions that both sides called, sorted by name.

        Public ones of the library, such as ``steepest.kernels._gram.gram``, and all of the claim's own code, such as
        ``theory.rate`` of ``theory.py`` beside the claim, but for what its ``axes`` call too: that names the places at
        which both sides look.
        """
        both = self._sides["predict"] & self._sides["observe"]
        library = {_name(code) for code in both if _in_library(code)}
        public = {name for name in library if not name.rpartition(".")[2].startswith("_")}
        return sorted(
            public
            | {self._own_name(code) for code in both - self._sides["axes"] if self._is_own(code)}
        )

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

    def _is_own(self, code: CodeType) -> bool:
        """Whether a function is a named one of the claim's files, or of those that claims of a chapter share."""
        if _is_nameless(code) or _is_special(code):
            return False
        path = Path(code.co_filename)
        if path.is_relative_to(ROOT):
            return path.is_relative_to(CLAIMS)
        if self._home is None or not path.is_relative_to(self._home):
            return False
        return not INSTALLED & set(path.relative_to(self._home).parts)

    def _own_name(self, code: CodeType) -> str:
        path = Path(code.co_filename)
        if self._home is None or not path.is_relative_to(self._home):
            return _name(code)
        return ".".join((*path.relative_to(self._home).with_suffix("").parts, code.co_qualname))


def _home_of(claim: Any) -> Path | None:
    """Return the folder of a claim's own files; None where its class was typed in a notebook."""
    if claim is None:
        return None
    try:
        return Path(inspect.getfile(type(claim))).parent
    except (TypeError, OSError):
        return None


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
    path = Path(code.co_filename)
    if _is_nameless(code) or not path.is_relative_to(ROOT):
        return False
    return path.relative_to(ROOT).parts[0].removesuffix(".py") not in FORM


def _is_nameless(code: CodeType) -> bool:
    """Whether a function is a lambda, a comprehension, or defined within another."""
    return "<" in code.co_qualname


def _is_special(code: CodeType) -> bool:
    """Whether Python calls a function by itself, such as ``__init__``."""
    return code.co_name.startswith("__") and code.co_name.endswith("__")


def _name(code: CodeType) -> str:
    path = Path(code.co_filename).relative_to(ROOT).with_suffix("")
    return ".".join(("steepest", *path.parts, code.co_qualname))
