"""Which claims there are, read from the files alone: listing them imports neither JAX nor the claims."""

import ast
import importlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from steepest.errors import UserError, nearest

ROOT = Path(__file__).parent


@dataclass(frozen=True)
class Entry:
    """One line of the catalogue.

    Attributes:
        name: as on the command line, such as ``edge-of-stability``.
        chapter: the folder it lives in.
        says: the statement in one sentence.
        module: dotted path of its file.
    """

    name: str
    chapter: str
    says: str
    module: str


@cache
def catalogue() -> dict[str, Entry]:
    """Every claim by name, in the order of chapters and names.

    >>> catalogue()["catapult"].chapter
    'optimization'
    """
    entries = {}
    for path in sorted(ROOT.glob("*/[a-z]*.py")):
        chapter, name = path.parent.name, path.stem.replace("_", "-")
        says = (
            (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n\n")[0].replace("\n", " ")
        )
        entries[name] = Entry(name, chapter, says, f"steepest.claims.{chapter}.{path.stem}")
    return entries


def entry(name: str) -> Entry:
    """The catalogue's line for a name.

    Raises:
        UserError: for an unknown name, with the nearest one.
    """
    try:
        return catalogue()[name]
    except KeyError:
        raise UserError(f"there is no claim {name!r}; {nearest(name, catalogue())}") from None


def load(name: str) -> type:
    """Import a claim's class (this imports JAX).

    Raises:
        UserError: for an unknown name, with the nearest one.
    """
    found = entry(name)
    module = importlib.import_module(found.module)
    base = importlib.import_module("steepest.claims._claim").Claim
    classes = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, base)]
    (claim,) = [c for c in classes if c.__module__ == found.module]
    return claim
