"""Which claims there are: those of this package, of installed packages, and of the reader's own files.

The sources are read and not imported, so that a list needs no JAX and a broken claim takes nothing else down.
"""

import ast
import hashlib
import importlib
import importlib.util
import re
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from steepest.cache import Table, file_state
from steepest.core.errors import UserError
from steepest.core.hints import near
from steepest.core.reading import read_bytes, read_text
from steepest.files import import_file, raised, where

if TYPE_CHECKING:
    from steepest.kit import Claim

ROOT = Path(__file__).parent / "claims"
CHAPTERS = (
    "signals",
    "kernels",
    "descent",
    "noise",
    "curvature",
    "implicit_bias",
    "margins",
    "features",
    "expressivity",
    "bayes_and_transfer",
    "training",
)
"""The chapters of this package, in the order of the book."""
GROUP = "steepest.claims"
"""The entry-point group under which packages register their claims."""
HERE = "steepest"
"""Where the claims of this package come from."""


class Broken(UserWarning):
    """A claim could not be read; it is left out of the list."""


@dataclass(frozen=True)
class Entry:
    """One line of the catalogue.

    Attributes:
        name: as on the command line, such as ``edge-of-stability``.
        chapter: the folder it lives in; of other packages the package's name, of a file ``"files"``.
        says: the statement in one sentence.
        origin: where it comes from: ``"steepest"``, a package with its version, or the file as it was named.
        path: its source.
        module: dotted path of its module; empty for a file.
    """

    name: str
    chapter: str
    says: str
    origin: str
    path: Path
    module: str = ""

    @property
    def target(self) -> str:
        """What finds the claim again, in another process too: its name, or the absolute path of its file."""
        return self.name if self.module else str(self.path)


@cache
def built_in() -> dict[str, Entry]:
    """Return the claims of this package by name, in the order of chapters and names."""
    return _readable(_own(path) for chapter in _chapters() for path in _files(ROOT / chapter))


@cache
def registered() -> dict[str, Entry]:
    """Return the claims that installed packages register, by name; one whose name is taken is left out and said."""
    entries: dict[str, Entry] = {}
    sentences = _Sentences()
    _spec_of.cache_clear()  # packages may have been installed since
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        package, version = _package_of(point.dist)
        try:
            if not is_name(point.name):
                raise UserError(f"{NAMED}; its package must give it another")
            path, module = _source_of(point)
            taken = built_in().get(point.name) or entries.get(point.name)
            if taken is not None:
                raise UserError(f"the name is taken by {taken.origin}")
            says = sentences.of(path)
            entries[point.name] = Entry(point.name, package, says, package + version, path, module)
        except (UserError, OSError, SyntaxError, ValueError) as trouble:
            warnings.warn(
                f"the claim {point.name!r} of {package} is left out: {where(trouble)}",
                Broken,
                stacklevel=2,
            )
    sentences.keep()
    return entries


def catalogue() -> dict[str, Entry]:
    """Return every claim by name: those of this package in the order of the book, then those of others.

    >>> catalogue()["catapult"].chapter
    'descent'
    """
    return {**built_in(), **registered()}


def entry(target: str | Path) -> Entry:
    """Return the catalogue's line for a claim's name, or for a file that holds a claim.

    Raises:
        UserError: for an unknown name, with the nearest one; for a file that is not there or cannot be read.
    """
    name = str(target)
    if not name.endswith(".py"):
        lines = catalogue()
        if name in lines:
            return lines[name]
        file = f"; for a claim of your own name its file, {name}.py" * Path(f"{name}.py").is_file()
        raise UserError(f"there is no claim {name!r}; {near(name, lines, LISTED)}{file}") from None
    path = Path(name)
    if not path.is_file():
        raise UserError(f"there is no file {path}; steepest new {path.name} writes one")
    own = claim_name(path)
    if not is_name(own):
        raise UserError(
            f"a claim is called like its file, in lower-case words, got {path.name}; try my_claim.py"
        )
    if own in catalogue():
        origin = catalogue()[own].origin
        raise UserError(f"the name {own!r} is taken by {origin}; give the file {path} another name")
    try:
        says = first_sentence(path)
    except (SyntaxError, ValueError, OSError) as trouble:
        raise UserError(f"cannot read {path}: {where(trouble)}") from None
    return Entry(own, "files", says, str(target), path.absolute())


def claim_name(path: Path) -> str:
    """Return what a claim is called: like its file, or like its folder where the file is ``claim.py``.

    >>> claim_name(Path("my_claim.py")), claim_name(Path("papers/my_claim/claim.py"))
    ('my-claim', 'my-claim')
    """
    called = path.absolute().parent.name if path.name == "claim.py" else path.stem
    return called.replace("_", "-")


NAME = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"
NAMED = (
    "a claim's name is lower-case words joined by hyphens, as folders and pages are called like it"
)
LISTED = "steepest list shows all of them"
LONGEST = 100
"""Letters of a name: file systems take twice as many."""


def is_name(name: str) -> bool:
    """Whether a claim may be called so.

    >>> is_name("edge-of-stability"), is_name("../edge"), is_name("javascript:edge")
    (True, False, False)
    """
    return len(name) <= LONGEST and re.fullmatch(NAME, name) is not None


def load(target: "str | Path | Entry") -> "type[Claim]":
    """Import a claim's class (this imports JAX).

    Raises:
        UserError: for an unknown name, with the nearest one; for a file that cannot be imported or has no claim.
    """
    line = target if isinstance(target, Entry) else entry(target)
    if line.module:
        module = _import_module(line)
    else:
        module = import_file(line.path)
        _remember(line.path)
    base = importlib.import_module("steepest.kit").Claim
    classes = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, base) and kind.__module__ == module.__name__
    ]
    if len(classes) != 1:
        names = ", ".join(kind.__name__ for kind in classes) or "none"
        raise UserError(
            f"{line.path} must define exactly one claim, a subclass of Claim; got {names}"
        )
    (kind,) = classes
    if missing := sorted(kind.__abstractmethods__):
        raise UserError(
            f"{kind.__name__} of {line.path} lacks {' and '.join(missing)}: a claim defines predict, observe and "
            "judge; steepest new my_claim.py writes one that does"
        )
    return kind


def was_imported(path: Path) -> bool:
    """Whether a file, as it is now, was imported before because a reader named it.

    Results name files too, and may be somebody else's: such a file is not imported for their sake.
    """
    return _imported().get(str(path.absolute())) == _digest(path)


def _remember(path: Path) -> None:
    """Remember that a reader's file was imported, and what was in it."""
    table = _imported()
    name = str(path.absolute())
    if table.get(name) != (digest := _digest(path)):
        table.put(name, digest)


def _imported() -> Table:
    return Table("imported", "1")


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(read_bytes(path)).hexdigest()
    except OSError:
        return ""


def first_sentence(path: Path) -> str:
    """Return the first paragraph of a file's docstring, on one line; empty where there is none."""
    text = ast.get_docstring(ast.parse(read_text(path))) or ""
    return text.split("\n\n")[0].replace("\n", " ")


def chapter_title(chapter: str) -> str:
    """Return a chapter's name in words.

    >>> chapter_title("implicit_bias")
    'implicit bias'
    """
    return chapter.replace("_", " ")


def _chapters() -> list[str]:
    folders = [path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] not in "._"]
    rank = {chapter: place for place, chapter in enumerate(CHAPTERS)}
    return sorted(folders, key=lambda name: (rank.get(name, len(rank)), name))


def _files(chapter: Path) -> list[Path]:
    """The claims' own files of a chapter: ``name/claim.py``, or ``name.py``."""
    single = chapter.glob("[a-z]*.py")
    folders = chapter.glob("[a-z]*/claim.py")
    return sorted([*single, *folders], key=claim_name)


def _own(path: Path) -> tuple[str, Path, str, str, str]:
    parts = path.relative_to(ROOT).with_suffix("").parts
    module = ".".join(("steepest", "claims", *parts))
    return claim_name(path), path, parts[0], HERE, module


def _readable(lines: Iterable[tuple[str, Path, str, str, str]]) -> dict[str, Entry]:
    """Entries of the files that can be parsed; the others are said."""
    entries = {}
    sentences = _Sentences()
    for name, path, chapter, origin, module in lines:
        try:
            entries[name] = Entry(name, chapter, sentences.of(path), origin, path, module)
        except (SyntaxError, ValueError, OSError) as trouble:
            warnings.warn(f"the claim {name!r} is left out: {where(trouble)}", Broken, stacklevel=2)
    sentences.keep()
    return entries


class _Sentences:
    """First sentences of files, kept between runs: to parse a hundred claims takes half a second."""

    def __init__(self) -> None:
        self._table = Table("sentences", sys.version)  # which source can be parsed depends on it
        self._fresh: dict[str, list[str]] = {}

    def of(self, path: Path) -> str:
        """Return the first sentence of a file; errors as of :func:`first_sentence`."""
        state = file_state(path)
        match self._table.get(str(path)):
            case [str(earlier), str(says)] if state and earlier == state:
                return says
        says = first_sentence(path)
        if state:
            self._fresh[str(path)] = [state, says]
        return says

    def keep(self) -> None:
        """Keep what had to be read."""
        if self._fresh:
            self._table.update(self._fresh)


@cache
def _package_of(distribution: Distribution | None) -> tuple[str, str]:
    """The name of an installed package, and its version behind a space; read once for all its claims."""
    if distribution is None:
        return "a package", ""
    said = distribution.metadata
    return said["Name"], f" {said['Version']}"


@cache
def _spec_of(top: str) -> ModuleSpec | None:
    """Where a package lies; nothing of it is imported."""
    try:
        return importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None


def _source_of(point: EntryPoint) -> tuple[Path, str]:
    """The file and the module that an entry point names, without importing anything of the package."""
    if EntryPoint.pattern.match(point.value) is None:
        raise UserError(
            f"its entry point {point.value!r} names no module; install the package again"
        )
    top, *inner = point.module.split(".")
    spec = _spec_of(top)
    if spec is None:
        raise UserError(f"there is no module {top}; install the package again")
    if not inner and spec.origin:
        return Path(spec.origin), point.module
    for folder in spec.submodule_search_locations or ():
        base = Path(folder, *inner)
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                return path, point.module
    raise UserError(f"{top} has no module {point.module}; install the package again")


def _import_module(line: Entry) -> ModuleType:
    """Import a claim's module; one of another package that breaks off is said in a sentence."""
    try:
        return importlib.import_module(line.module)
    except (Exception, SystemExit) as trouble:
        if line.origin == HERE:  # a defect of ours, with all that belongs to it
            raise
        reason = raised(trouble, line.path)
        raise UserError(f"cannot import {line.name} of {line.origin}: {reason}") from trouble
