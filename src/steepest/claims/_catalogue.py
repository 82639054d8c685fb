"""Which claims there are, read from the files alone: listing them imports neither JAX nor the claims."""

import ast
import importlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from steepest.errors import UserError, nearest

ROOT = Path(__file__).parent
CHAPTERS = ("initialization", "kernels", "optimization", "structure", "implicit_bias", "margins")
TEMPLATE = ROOT / "_template.py"


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
    rank = {chapter: i for i, chapter in enumerate(CHAPTERS)}
    paths = ROOT.glob("*/[a-z]*.py")
    for path in sorted(paths, key=lambda p: (rank.get(p.parent.name, len(rank)), p.parent.name, p.name)):
        chapter, name = path.parent.name, path.stem.replace("_", "-")
        says = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n\n")[0].replace("\n", " ")
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


def write_template(name: str, chapter: str, root: Path | None = None) -> Path:
    """Write a new claim from the template into the catalogue's folders and return its path.

    Raises:
        UserError: a name that is no plain word, or that is taken.
    """
    for what, word in (("a claim's name", name), ("a chapter", chapter)):
        if not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", word):
            raise UserError(f"{what} is lower-case words joined by hyphens, got {word!r}; try my-claim")
    path = (root or ROOT) / chapter.replace("-", "_") / f"{name.replace('-', '_')}.py"
    if name in catalogue() or path.exists():
        raise UserError(f"there is a claim {name!r} already; choose another name")
    title = "".join(word.capitalize() for word in re.split("[-_]", name))
    text = TEMPLATE.read_text("utf-8").replace("class Template", f"class {title}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as trouble:
        raise UserError(f"cannot write {path} ({trouble.strerror}); install steepest from a checkout") from None
    return path
