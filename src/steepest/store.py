"""Results on disk: one folder a run, written under a temporary name and moved into place.

``results/<claim>/<hash>/`` holds ``result.json``, ``arrays.npz`` and ``figure.svg``. A folder is there whole or not at
all; checksums tell a damaged one, which is reported and never trusted. No pickle is ever read or written.
"""

import hashlib
import json
import os
import shutil
import time
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steepest.arrays import Observation, Prediction, Quantities
from steepest.errors import UserError
from steepest.results import Result

DAY = 86_400


class Damaged(UserWarning):
    """A stored result could not be trusted; it is left out and will be recomputed."""


def identity(claim: str, version: int, params: Mapping[str, Any], preset: str, seed: int) -> str:
    """The name of a run: a hash of claim, claim version, parameters, preset and seed.

    >>> identity("catapult", 1, {"width": 10}, "quick", 0) != identity("catapult", 1, {"width": 11}, "quick", 0)
    True
    """
    parts = {"claim": claim, "version": version, "params": dict(params), "preset": preset, "seed": seed}
    return canonical_digest(parts)[:16]


def canonical_digest(value: Any) -> str:
    """The SHA-256 of a JSON-ready value, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@dataclass(frozen=True)
class Store:
    """A folder of results.

    Attributes:
        root: the folder; made when first needed.
    """

    root: Path

    def prepare(self) -> None:
        """Make the folder and see that it can be written, before any work is done.

        Raises:
            UserError: where it cannot.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            probe = self.root / f".probe-{os.getpid()}"
            probe.write_text("")
            probe.unlink()
        except OSError as trouble:
            reason = trouble.strerror or trouble
            raise UserError(f"cannot write to the folder {self.root} ({reason}); choose another with --out") from None

    def find(self, claim: str, key: str) -> Result | None:
        """The stored result, or None where there is none or it is damaged (then a :class:`Damaged` warning)."""
        folder = self.root / claim / key
        if not folder.is_dir():
            return None
        try:
            return _read(folder)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile) as trouble:
            warnings.warn(f"the result in {folder} is damaged ({trouble}); it is not used", Damaged, stacklevel=2)
            return None

    def save(self, result: Result, key: str) -> Path:
        """Write a result, replacing what was there; the folder appears whole or not at all."""
        from steepest.drawing import svg

        parent = self.root / result.claim
        parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(parent)
        temporary = parent / f".new-{key}-{os.getpid()}"
        temporary.mkdir(exist_ok=True)
        np.savez(temporary / "arrays.npz", **result.arrays)
        (temporary / "figure.svg").write_text(svg(result.panels()), "utf-8")
        record = result.to_json()
        record["axes"] = {**_axes("predicted", result.predicted), **_axes("observed", result.observed)}
        record["files"] = {name: _digest(temporary / name) for name in ("arrays.npz", "figure.svg")}
        record["digest"] = canonical_digest(record)
        (temporary / "result.json").write_text(json.dumps(record, indent=1), "utf-8")
        final = parent / key
        if final.exists():
            os.rename(final, stale := parent / f".old-{key}-{os.getpid()}")
            os.rename(temporary, final)
            shutil.rmtree(stale)
        else:
            os.rename(temporary, final)
        return final

    def __iter__(self) -> Iterator[tuple[Path, Result]]:
        """Every sound result with its folder, claims in alphabetical order, oldest first."""
        for folder in sorted(self.root.glob("*/[0-9a-f]*"), key=lambda p: (p.parent.name, p.stat().st_mtime, p.name)):
            if found := self.find(folder.parent.name, folder.name):
                yield folder, found


def _read(folder: Path) -> Result:
    record = json.loads((folder / "result.json").read_text("utf-8"))
    digest = record.pop("digest")
    if canonical_digest(record) != digest:
        raise ValueError("result.json does not match its checksum")
    for name, expected in record["files"].items():
        if _digest(folder / name) != expected:
            raise ValueError(f"{name} does not match its checksum")
    sides: dict[str, dict[str, Any]] = {"predicted": {}, "observed": {}}
    with np.load(folder / "arrays.npz", allow_pickle=False) as arrays:
        for path, (dims, unit) in record["axes"].items():
            side, name = path.split("/", 1)
            sides[side][name] = (tuple(dims), arrays[path], unit)
    return Result.from_json(record, Prediction(**sides["predicted"]), Observation(**sides["observed"]))


def _axes(side: str, found: Quantities) -> dict[str, Any]:
    return {f"{side}/{name}": [list(found.quantity(name).dims), found.quantity(name).unit] for name in found}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def remove_leftovers(parent: Path) -> None:
    """Remove what killed runs left behind; a day old, so that no running neighbour loses its folder."""
    for leftover in parent.glob(".*-*"):
        if time.time() - leftover.stat().st_mtime > DAY:
            shutil.rmtree(leftover, ignore_errors=True)
