"""What is known of the claims of this package before anything runs: the verdict of each at its quick preset and seed 0.

The record lies in ``record.json`` beside this file, a block for each claim. ``python -m tests.contract.green`` writes
it from runs; a reader's own run is compared with it. Nothing here imports JAX.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from steepest.catalogue import HERE, Entry
from steepest.core.page import page_of
from steepest.core.words import Verdict

PATH = Path(__file__).with_name("record.json")
PRESET = "quick"
"""The preset of recorded verdicts."""
SEED = 0
"""The seed of recorded verdicts."""
VERSION = re.compile(r"^    version(?:\s*:[^=\n]+)?\s*=\s*\(?\s*(\d+)", re.MULTILINE)
"""Where a claim's source states its version."""
IN_HISTORY = re.compile(r"\bVersion\(\s*(\d+)")
"""Where a claim of one file states its versions, of which the last is its own."""


@dataclass(frozen=True)
class HoldRate:
    """How often a claim came to each verdict when it was run many times.

    Attributes:
        holds: runs in which it held.
        fails: runs in which it failed.
        undecided: runs that were inconclusive.
        out_of_range: runs in which a hypothesis was not true.
    """

    holds: int = 0
    fails: int = 0
    undecided: int = 0
    out_of_range: int = 0

    @property
    def runs(self) -> int:
        """How many runs there were."""
        return self.holds + self.fails + self.undecided + self.out_of_range

    def to_json(self) -> dict[str, int]:
        """Return the counts by name."""
        return {count.name: getattr(self, count.name) for count in fields(self)}


@dataclass(frozen=True)
class Record:
    """What is known of one claim.

    Attributes:
        version: the version of the claim that ran.
        verdict: its verdict at the quick preset and seed 0.
        date: the day of that verdict, UTC, as 2026-11-23; empty where it is not known.
        versions: those of jax and numpy in that run; empty where they are not known.
        seeds: its verdicts at fresh seeds; None where nobody has counted.
        settings: its verdicts at other settings, drawn from where it says that it holds; None where nobody has counted.
    """

    version: int
    verdict: Verdict
    date: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    seeds: HoldRate | None = None
    settings: HoldRate | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what is known; what is not is left out."""
        record: dict[str, Any] = {"version": self.version, "verdict": str(self.verdict)}
        if self.date:
            record["date"] = self.date
        if self.versions:
            record["versions"] = dict(self.versions)
        if self.seeds is not None:
            record["seeds"] = self.seeds.to_json()
        if self.settings is not None:
            record["settings"] = self.settings.to_json()
        return record

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Record":
        """Return the inverse of :meth:`to_json`."""
        return cls(
            version=record["version"],
            verdict=Verdict(record["verdict"]),
            date=record.get("date", ""),
            versions=record.get("versions", {}),
            seeds=_rate(record.get("seeds")),
            settings=_rate(record.get("settings")),
        )


@cache
def records() -> Mapping[str, Record]:
    """Return the record of each claim of this package by its name, whatever version is installed."""
    blocks = json.loads(PATH.read_text("utf-8"))
    return {name: Record.from_json(block) for name, block in blocks.items()}


def recorded(claim: Entry) -> Record | None:
    """Return the record of a claim; None of another version than the installed one, and of claims of others."""
    record = records().get(claim.name) if claim.origin == HERE else None
    if record is None or record.version != installed_version(claim.path):
        return None
    return record


def installed_version(source: Path) -> int:
    """Return the version that a claim's source states; 1 where it states none. Nothing is imported."""
    if page := page_of(source):
        return page.version
    text = source.read_text("utf-8")
    if history := IN_HISTORY.findall(text):
        return int(history[-1])
    stated = VERSION.search(text)
    return int(stated[1]) if stated else 1


def renewed(earlier: Record | None, fresh: Record) -> Record:
    """Return the record after another run: counts of the same version stay, as a single run does not change them."""
    if earlier is None or earlier.version != fresh.version:
        return fresh
    return replace(fresh, seeds=earlier.seeds, settings=earlier.settings)


def spelled(whole: Mapping[str, Record]) -> str:
    """Return the text of ``record.json``: claims by name, one to a block, so that a difference is easy to read."""
    blocks = {name: whole[name].to_json() for name in sorted(whole)}
    return json.dumps(blocks, indent=1) + "\n"


def _rate(counts: Mapping[str, int] | None) -> HoldRate | None:
    return None if counts is None else HoldRate(**counts)
