"""Which results an atlas shows: by claim, the one to show first in front."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from steepest import claims
from steepest.arrays import Observation, Prediction
from steepest.claims import Entry
from steepest.errors import UserError
from steepest.results import Result
from steepest.store import Store, identity

# In the order of the theory; the words that head each chapter. Other folders follow with their own names.
CHAPTERS = {
    "initialization": "Initialization",
    "kernels": "Kernels",
    "optimization": "Optimization",
    "structure": "Structure",
    "implicit_bias": "Implicit bias",
    "margins": "Margins",
}


def entries() -> list[Entry]:
    """The catalogue in the order of the atlas."""
    place = {name: i for i, name in enumerate(CHAPTERS)}
    return sorted(claims.catalogue().values(), key=lambda e: (place.get(e.chapter, len(place)), e.chapter, e.name))


def chapter_title(folder: str) -> str:
    """The words that head a chapter."""
    return CHAPTERS.get(folder, folder.replace("_", " ").capitalize())


@dataclass(frozen=True)
class Run:
    """A stored result without its arrays.

    Attributes:
        folder: where it is stored.
        result: the record alone.
        page: its page, relative to the atlas.
        changed: the parameters that differ from the preset, by name.
    """

    folder: Path
    result: Result
    page: str
    changed: Mapping[str, Any]


def gather(results: Path) -> dict[str, list[Run]]:
    """All sound results by claim, in the order of the atlas; the one to show first in front, then newest first.

    Results of another version of a claim, or of none that is known, are left out with a warning.

    Raises:
        UserError: where there is no folder.
    """
    if not results.is_dir():
        raise UserError(f"there is no folder of results at {results}; make one with `steepest run --out {results}`")
    found: dict[str, list[tuple[Path, Result]]] = {entry.name: [] for entry in entries()}
    for folder, result in Store(results):
        light = replace(result, predicted=Prediction(), observed=Observation())
        if reason := _outdated(result):
            warnings.warn(f"the result in {folder} is left out: {reason}", stacklevel=2)
        else:
            found[result.claim].append((folder, light))
    return {name: _ordered(name, stored) for name, stored in found.items() if stored}


def _outdated(result: Result) -> str:
    """Why a result cannot be shown, else empty."""
    if result.claim not in claims.catalogue():
        return f"there is no claim {result.claim!r} in this version of steepest"
    kind = claims.load(result.claim)
    if result.claim_version != kind.version:
        return f"it is of version {result.claim_version} of the claim, which is now at {kind.version}"
    return ""


def _ordered(name: str, stored: Sequence[tuple[Path, Result]]) -> list[Run]:
    kind = claims.load(name)
    usual = identity(name, kind.version, asdict(kind()), "quick", 0)
    newest_first = list(reversed(stored))
    first = next((one for one in newest_first if one[0].name == usual), newest_first[0])
    rest = [one for one in newest_first if one is not first]
    return [
        Run(
            folder,
            result,
            f"{name}/index.html" if folder is first[0] else f"{name}/{folder.name}.html",
            _changed(kind, result),
        )
        for folder, result in (first, *rest)
    ]


def _changed(kind: type, result: Result) -> dict[str, Any]:
    usual = asdict(kind(**(kind.full if result.preset == "full" else {})))
    return {name: value for name, value in result.params.items() if usual.get(name) != value}
