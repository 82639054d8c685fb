"""What a claim says besides its program: ``page.toml`` beside its ``claim.py``.

Statement, source, corrections, remarks, the question of its exercise, versions, ties to other claims. The program does
not depend on any of it, but for the number of the version and for what the data are known not to tell.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from steepest.core.errors import UserError
from steepest.core.hints import near
from steepest.core.reading import read_text

NAME = "page.toml"
"""What the file is called."""
PROGRAM = "claim.py"
"""What the program is called whose page it is."""
TIES = ("uses", "extends", "limits")
"""How a claim may rest on another."""


@dataclass(frozen=True)
class Version:
    """What changed in a claim after its results were seen.

    Attributes:
        number: of the version.
        changed: what is different from the one before.
        because: what was seen that made it necessary.
        seeds: verdicts on the fresh seeds of this version, such as ``"20 of 20 hold"``; empty where none were run.
    """

    number: int
    changed: str
    because: str = ""
    seeds: str = ""


@dataclass(frozen=True)
class Page:
    """What a claim says besides its program.

    Attributes:
        statement: the statement in LaTeX.
        source: where it is stated.
        question: what the claim answers, as a question that does not give the answer away.
        corrections: what the source gets wrong, one sentence each, with what is right.
        remarks: scope and caveats, one sentence each.
        uses: claims whose statement is a step of this one, each with a sentence that says how.
        extends: claims of which this one says more, or of more cases.
        limits: claims whose end this one shows.
        not_told: nulls that these data cannot reject, as ``"array.axis.kind"``, each with the reason.
        shared: functions that prediction and observation both call, each with the reason why a mistake would show.
        history: the versions, oldest first, once settings changed after results were seen.
    """

    statement: str
    source: str
    question: str = ""
    corrections: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    uses: Mapping[str, str] = field(default_factory=dict)
    extends: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    not_told: Mapping[str, str] = field(default_factory=dict)
    shared: Mapping[str, str] = field(default_factory=dict)
    history: tuple[Version, ...] = ()

    @property
    def version(self) -> int:
        """Return the number of the last version; 1 where nothing has changed."""
        return self.history[-1].number if self.history else 1

    @property
    def ties(self) -> dict[str, Mapping[str, str]]:
        """Return the claims on which this one rests, by how it does."""
        return {how: getattr(self, how) for how in TIES}

    @property
    def judged(self) -> tuple[str, ...]:
        """Return what a judgement depends on: the version, and the names of what is accepted."""
        return (str(self.version), *sorted(self.not_told), *sorted(self.shared))


def page_of(program: Path) -> Page | None:
    """Return the page of a program; None of one that has none and says all itself.

    Args:
        program: the file of a claim; only one that is called ``claim.py`` has a page.

    Raises:
        UserError: the page is no TOML, lacks its statement or source, or has what no page has.
    """
    if program.name != PROGRAM or not (path := program.with_name(NAME)).is_file():
        return None
    state = path.stat()
    return _page(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=512)
def _page(path: Path, changed: int, size: int) -> Page:
    """Return what a file says, which is kept as long as the file is the same."""
    del changed, size
    where = f"{path.parent.name}/{path.name}"
    try:
        text = tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as trouble:
        raise UserError(f"cannot read {where}: {trouble}") from None
    known = [part.name for part in fields(Page)]
    for name, value in text.items():
        if name not in known:
            raise UserError(f"{where} has {name!r}; {near(name, known)}")
        if not _fits(name, value):
            raise UserError(f"{where}: {name} is {_FORMS[_form(name)]}, got {value!r}")
    if missing := [name for name in ("statement", "source") if not text.get(name)]:
        raise UserError(f"{where} lacks {' and '.join(missing)}: every claim says what and whose")
    return Page(**{name: _plain(name, value) for name, value in text.items()})


_FORMS = {
    "text": "a text",
    "texts": "a list of texts",
    "table": "a table of texts by name",
    "history": "a list of tables with number, changed and, where known, because and seeds",
}


def _form(name: str) -> str:
    if name in ("statement", "source", "question"):
        return "text"
    if name in ("corrections", "remarks"):
        return "texts"
    return "history" if name == "history" else "table"


def _fits(name: str, value: Any) -> bool:
    """Whether a value has the form that its name asks for."""
    match _form(name), value:
        case "text", str():
            return True
        case "texts", list():
            return all(isinstance(one, str) for one in value)
        case "table", dict():
            return all(isinstance(one, str) for one in value.values())
        case "history", list():
            return all(isinstance(one, dict) and _is_version(one) for one in value)
    return False


def _is_version(one: Mapping[str, Any]) -> bool:
    number = one.get("number")
    words = [value for name, value in one.items() if name != "number"]
    return (
        isinstance(number, int)
        and "changed" in one
        and set(one) <= {part.name for part in fields(Version)}
        and all(isinstance(word, str) for word in words)
    )


def _plain(name: str, value: Any) -> Any:
    """Return texts on one line each: the file folds them where it likes."""
    match _form(name):
        case "text":
            return _line(value)
        case "texts":
            return tuple(map(_line, value))
        case "table":
            return {key: _line(text) for key, text in value.items()}
    lines = [{key: _line(word) for key, word in one.items() if key != "number"} for one in value]
    return tuple(Version(one["number"], **line) for one, line in zip(value, lines, strict=True))


def _line(text: str) -> str:
    return " ".join(text.split())
