"""Which results an atlas shows: by claim, the one to show first in front."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steepest import catalogue
from steepest.catalogue import CHAPTERS, Entry
from steepest.core.errors import UserError
from steepest.engine.fingerprint import entry_of, sources_now, staleness
from steepest.engine.results import Result
from steepest.engine.store import Store


@dataclass(frozen=True)
class Run:
    """A stored result without its arrays.

    Attributes:
        folder: where it is stored.
        result: the record with its panels.
        page: its page, relative to the atlas.
        stale: why its verdict may not be that of the code that is here; empty where it is.
    """

    folder: Path
    result: Result
    page: str
    stale: str = ""

    @property
    def changed(self) -> Mapping[str, Any]:
        """The parameters that differ from the preset."""
        return self.result.changes


def entries(results: Iterable[Result] = ()) -> list[Entry]:
    """Return the lines of the atlas in its order: the catalogue's, and those of results from files."""
    lines = catalogue.catalogue()
    for result in results:
        if result.claim not in lines:
            lines[result.claim] = entry_of(result)
    rank = {chapter: place for place, chapter in enumerate(CHAPTERS)}
    key = lambda line: (rank.get(line.chapter, len(rank)), line.chapter, line.name)
    return sorted(lines.values(), key=key)


def gather(results: Path) -> dict[str, list[Run]]:
    """Return all sound results by claim, in the order of the atlas; the one to show first in front, then newest first.

    Raises:
        UserError: where there is no folder.
    """
    if not results.is_dir():
        raise UserError(
            f"there is no folder of results at {results}; make one with `steepest run --out {results}`"
        )
    stored: dict[str, list[tuple[Path, Result]]] = {}
    for folder, result in Store(results).each(arrays=False):
        stored.setdefault(result.claim, []).append((folder, result))
    lines = entries(result for runs in stored.values() for _, result in runs)
    sources = sources_now()
    return {
        line.name: _ordered(stored[line.name], sources) for line in lines if line.name in stored
    }


def _ordered(stored: list[tuple[Path, Result]], sources: str) -> list[Run]:
    newest_first = [
        (folder, result, staleness(entry_of(result), result, sources=sources))
        for folder, result in reversed(stored)
    ]
    # sorting keeps the order of those that are equal
    ranked = sorted(newest_first, key=lambda run: (bool(run[2]), not _usual(run[1])))
    runs = []
    for place, (folder, result, stale) in enumerate(ranked):
        page = "index" if place == 0 else folder.name
        runs.append(Run(folder, result, f"{result.claim}/{page}.html", stale))
    return runs


def _usual(result: Result) -> bool:
    """Whether a result is what the claim gives when nothing is said."""
    return result.preset == "quick" and result.seed == 0 and not result.changes
