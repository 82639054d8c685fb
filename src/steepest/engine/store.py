"""Results on disk: one folder a result, written under a temporary name and moved into place.

``results/<claim>/<hash>/`` holds ``result.json``, ``arrays.npz`` and ``panels.json``. A folder is there whole or not at
all; checksums tell a damaged one, which is reported and never trusted. No pickle is ever read or written.
"""

import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steepest.core.arrays import Observation, Prediction, Quantities, Quantity
from steepest.core.checks import Rival
from steepest.core.errors import UserError
from steepest.core.panels import panels_from_json, panels_to_json
from steepest.core.reading import read_bytes, read_text
from steepest.core.records import canonical_digest
from steepest.core.writing import move_into_place, remove_leftovers, sync, temporary
from steepest.engine.records import (
    DAMAGE,
    FORMAT,
    LARGEST,
    is_key,
    read_record,
    say_damage,
)
from steepest.engine.records import Damaged as Damaged
from steepest.engine.records import Question as Question
from steepest.engine.results import Result


class UnwritableError(UserError):
    """The folder of results cannot be written, so that nothing else need be run.

    Attributes:
        result: what was to be written.
    """

    result: Result | None = None


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
            UserError: if it cannot.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with temporary(self.root / "probe"):
                pass
        except OSError as trouble:
            reason = trouble.strerror or trouble
            raise UserError(
                f"cannot write to the folder {self.root} ({reason}); choose another with --out"
            ) from None

    def find(self, question: Question) -> Result | None:
        """Return the stored result of a question, or None where there is none or it is damaged.

        Damage is said in a :class:`Damaged` warning: a result that answers another question is damaged too.
        """
        return self.read(self.root / question.claim / question.key)

    def of_claim(self, claim: str) -> Iterator[Result]:
        """Yield every sound result of a claim."""
        for folder in sorted((self.root / claim).glob("[0-9a-f]*")):
            result = self.read(folder) if is_key(folder.name) else None
            if result is not None:
                yield result

    def save(self, result: Result, question: Question) -> Path:
        """Write a result, replacing what was there; the folder appears whole or not at all.

        Raises:
            UnwritableError: if it cannot be written.
        """
        parent = self.root / result.claim
        final = parent / question.key
        try:
            refuse_links(self.root, result.claim)
            parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(parent, below=True)
            with temporary(final, folder=True) as fresh:
                _write(result, fresh)
                for path in [*fresh.iterdir(), fresh]:
                    sync(path)
                move_into_place(fresh, final)
            sync(parent)
            return final
        except OSError as trouble:
            reason = trouble.strerror or trouble
            unwritable = UnwritableError(
                f"cannot write the result of {result.claim} to {parent} ({reason}); make room, or choose another "
                "folder with --out"
            )
            unwritable.result = result
            raise unwritable from None

    def __iter__(self) -> Iterator[tuple[Path, Result]]:
        """Yield every sound result with its folder, claims in alphabetical order, oldest first."""
        return self.each()

    def each(self, arrays: bool = True) -> Iterator[tuple[Path, Result]]:
        """Yield every sound result like the store itself, on request without its arrays."""
        folders = [path for path in self.root.glob("*/[0-9a-f]*") if is_key(path.name)]
        for folder in sorted(
            folders, key=lambda path: (path.parent.name, _age(path / "result.json"), path.name)
        ):
            result = self.read(folder, arrays)
            if result is not None:
                yield folder, result

    def read(self, folder: Path, arrays: bool = True) -> Result | None:
        """Return the result in a folder, or None where there is none or it is damaged, which is said.

        Args:
            folder: of the result.
            arrays: whether to unpack the arrays too; their checksum is checked in any case.
        """
        if not (folder.exists() or folder.is_symlink()):
            return None
        try:
            return _read(folder, arrays)
        except DAMAGE as trouble:
            say_damage(folder, trouble)
            return None


def _write(result: Result, folder: Path) -> None:
    arrays, axes = _flat(result)
    contents: Any = arrays
    np.savez(folder / "arrays.npz", **contents)
    text = json.dumps(panels_to_json(result.panels), allow_nan=False)
    (folder / "panels.json").write_text(text, "utf-8")
    record = result.to_json()
    record["format"] = FORMAT
    record["axes"] = axes
    record["rival_predictions"] = [
        {"id": rival.id, "label": rival.label, "why": rival.why, "accepted": rival.accepted}
        for rival in result.rival_predictions
    ]
    record["files"] = {name: _digest(folder / name) for name in ("arrays.npz", "panels.json")}
    record["digest"] = canonical_digest(record)
    (folder / "result.json").write_text(json.dumps(record, indent=1, allow_nan=False), "utf-8")


def _read(folder: Path, with_arrays: bool) -> Result:
    record = read_record(folder)
    for name in ("arrays.npz", "panels.json"):
        if _digest(folder / name) != record["files"][name]:
            raise ValueError(f"{name} does not match its checksum")
    panels = panels_from_json(json.loads(read_text(folder / "panels.json", LARGEST // 8)))
    if not with_arrays:
        return Result.from_json(record, panels=panels)
    arrays = _arrays(folder / "arrays.npz", record["axes"])
    predicted = Prediction(**arrays.get("predicted", {}))
    rivals = tuple(
        Rival(
            rival["id"],
            predicted.replace(**arrays.get(f"rival:{rival['id']}", {})),
            rival["why"],
            rival["label"],
            rival["accepted"],
        )
        for rival in record["rival_predictions"]
    )
    return Result.from_json(
        record,
        predicted=predicted,
        observed=Observation(**arrays.get("observed", {})),
        rival_predictions=rivals,
        panels=panels,
    )


def _flat(result: Result) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """All arrays under one name each, and their axes; of rivals what differs from the prediction."""
    parts = {
        **_under("predicted", result.predicted),
        **_under("observed", result.observed),
    }
    for rival in result.rival_predictions:
        if isinstance(rival.prediction, Quantities):
            parts |= _under(f"rival:{rival.id}", rival.prediction, but=result.predicted)
    arrays = {path: quantity.values for path, quantity in parts.items()}
    axes = {path: [list(quantity.dims), quantity.unit] for path, quantity in parts.items()}
    return arrays, axes


def _under(
    side: str, quantities: Quantities, but: Mapping[str, np.ndarray] | None = None
) -> dict[str, Quantity]:
    """Return quantities by ``side/name``, without those that are the same in other ones."""
    return {
        f"{side}/{name}": quantities.quantity(name)
        for name in quantities
        if but is None or not _same(but, name, quantities[name])
    }


def _same(predicted: Mapping[str, np.ndarray], name: str, values: np.ndarray) -> bool:
    return name in predicted and np.array_equal(predicted[name], values, equal_nan=True)


def _arrays(path: Path, axes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > LARGEST:
            raise ValueError("arrays.npz says that it holds more than 2 GB")
    sides: dict[str, dict[str, Any]] = {}
    with np.load(path, allow_pickle=False) as arrays:
        for name, (dims, unit) in axes.items():
            side, _, quantity = name.partition("/")
            sides.setdefault(side, {})[quantity] = (tuple(dims), arrays[name], unit)
    return sides


def refuse_links(root: Path, *parts: str) -> None:
    """Refuse to write where a link below a folder of results leads: the folder may be somebody else's.

    Raises:
        UnwritableError: one of the parts is a link.
    """
    place = root
    for part in parts:
        place /= part
        if place.is_symlink():
            raise UnwritableError(
                f"{place} is a link, and nothing is written where it leads; remove it, or choose another folder "
                "with --out"
            )


def _digest(path: Path) -> str:
    return hashlib.sha256(read_bytes(path, LARGEST)).hexdigest()


def _age(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0
