"""The map of the sources: every statement of theirs, and the checks that test it.

The statements are data, in ``statements.toml`` among the book's sources; a page shows them with the signs of results.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from steepest.core.errors import UserError
from steepest.sources import sources


class State(StrEnum):
    """How far a statement is tested."""

    BUILT = "built"
    PART = "part"
    NONE = "none"
    UNTESTABLE = "untestable"


class Outcome(StrEnum):
    """What became of a statement as its source puts it."""

    YES = "yes"
    CORRECTED = "corrected"
    NO = "no"
    OPEN = ""


@dataclass(frozen=True)
class Statement:
    """A statement of a source.

    Attributes:
        number: its place in the list, from 1.
        source: key of the work in the bibliography.
        place: where it stands in the work.
        says: the statement, in our words.
        state: how far it is tested.
        holds: what became of it.
        checks: claim and id of each check that tests it.
        note: which clause has no check and why, or what is so instead.
    """

    number: int
    source: str
    place: str
    says: str
    state: State
    holds: Outcome
    checks: tuple[tuple[str, str], ...]
    note: str


@dataclass(frozen=True)
class StatementMap:
    """All statements of the sources.

    Attributes:
        statements: in the order of the list.
        elsewhere: by claim, where it comes from if from none of the sources.
    """

    statements: tuple[Statement, ...]
    elsewhere: Mapping[str, str]

    def of(self, source: str) -> tuple[Statement, ...]:
        """Return the statements of one source."""
        return tuple(row for row in self.statements if row.source == source)

    @property
    def sources(self) -> tuple[str, ...]:
        """The keys of the sources, in the order of their first statements."""
        return tuple(dict.fromkeys(row.source for row in self.statements))

    @property
    def checks(self) -> Iterator[tuple[Statement, str, str]]:
        """Yield every statement with a claim and an id of a check of its."""
        return ((row, *check) for row in self.statements for check in row.checks)


def read_statements(path: Path) -> StatementMap:
    """Return the map in a file.

    Raises:
        UserError: the file is missing or no TOML, or a statement in it is not as it must be.
    """
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as trouble:
        raise UserError(f"cannot read the statements in {path}: {trouble}") from None
    rows = tuple(_statement(entry, place) for place, entry in enumerate(data["statement"], 1))
    return StatementMap(rows, data.get("elsewhere", {}))


def counts(statements: Sequence[Statement]) -> dict[State, int]:
    """Return how many statements are in each state."""
    return {state: sum(row.state is state for row in statements) for state in State}


def _statement(entry: Mapping[str, Any], place: int) -> Statement:
    try:
        row = Statement(
            number=entry["number"],
            source=entry["source"],
            place=entry["place"],
            says=entry["says"],
            state=State(entry["state"]),
            holds=Outcome(entry["holds"]),
            checks=tuple(_check(text) for text in entry["checks"]),
            note=entry.get("note", ""),
        )
    except (KeyError, ValueError) as trouble:
        raise UserError(f"statement {place} of the map: {trouble}") from None
    _validate(row, place)
    return row


def _check(text: str) -> tuple[str, str]:
    claim, _, id = text.partition(" ")
    if not id:
        raise ValueError(
            f"a check is a claim and an id, such as 'catapult threshold', got {text!r}"
        )
    return claim, id


def _validate(row: Statement, place: int) -> None:
    """Refuse what would make the map say something that is not so."""
    tested = row.state in (State.BUILT, State.PART)
    faults = {
        f"is number {row.number}, expected {place}": row.number != place,
        f"names the source {row.source!r}, which the bibliography lacks": row.source
        not in sources(),
        f"is {row.state} and names no check": tested and not row.checks,
        f"is {row.state} and names checks": not tested and bool(row.checks),
        f"is {row.state} and does not say why": row.state is not State.BUILT and not row.note,
        "does not hold as said, and does not say what is so": row.holds
        in (Outcome.NO, Outcome.CORRECTED)
        and not row.note,
    }
    for fault, is_so in faults.items():
        if is_so:
            raise UserError(f"statement {place} of the map {fault}")
