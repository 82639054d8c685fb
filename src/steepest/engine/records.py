"""What stored results say of themselves, without their arrays: enough for lists, citations and a first look.

``result.json`` holds all of a result but its arrays and panels. What is in it is checked here; whoever uses the other
files checks them (:mod:`steepest.engine.store`). Nothing here imports NumPy or JAX.
"""

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from steepest.cache import Table, file_state
from steepest.catalogue import is_name
from steepest.core.reading import DAMAGE, read_text
from steepest.core.records import canonical_digest
from steepest.core.words import Verdict

FILE = "result.json"
FORMAT = 3
"""Of the files; results of another format are outdated."""
LARGEST = 2**31
"""Bytes of arrays beyond which a file is not one of ours."""
TEXTS = {
    "": "claim reason preset command observed_at judged_at",
    "about": "says explanation experiment kind statement source chapter origin target precision",
    "stamp": "experiment rivals judgement",
}
"""What must be text in a stored result, for lists and pages."""
JUDGED = "checks hypotheses run_conditions rivals controls says laws resolutions"
"""Parts of a stored result that say what was judged."""
FIELDS = {
    "number": "predicted measured low high least most value threshold error",
    "word": "id name kind how note idle law axis relation clause verdict why accepted",
    "words": "by challenged_by axes also_passed_by",
}
"""What fields of what was judged hold, by their names: each has one type wherever it stands."""
TYPES = {name: kind for kind, names in FIELDS.items() for name in names.split()}


class Damaged(UserWarning):
    """A stored result could not be trusted; it is left out and will be recomputed."""


@dataclass(frozen=True)
class Question:
    """What a result answers: a claim with all its fields, at a preset and a seed.

    Attributes:
        claim: its name.
        version: its version.
        params: every field.
        preset: ``"quick"``, ``"full"`` or ``"tiny"``.
        seed: the seed of every random number.
    """

    claim: str
    version: int
    params: Mapping[str, Any]
    preset: str
    seed: int

    @property
    def key(self) -> str:
        """What the result's folder is called.

        >>> wide = Question("catapult", 1, {"width": 10}, "quick", 0)
        >>> wide.key != Question("catapult", 1, {"width": 11}, "quick", 0).key
        True
        """
        parts = {
            "claim": self.claim,
            "version": self.version,
            "params": {name: _listed(value) for name, value in self.params.items()},
            "preset": self.preset,
            "seed": self.seed,
        }
        return canonical_digest(parts)[:16]

    @classmethod
    def of(cls, result: Any) -> "Question":
        """Return the question that a result says it answers."""
        version = result.claim_version
        return cls(result.claim, version, result.params, result.preset, result.seed)


@dataclass(frozen=True)
class Record:
    """What lists and citations need of a stored result; every attribute means what it means in ``Result``."""

    claim: str
    claim_version: int
    verdict: Verdict
    reason: str
    preset: str
    seed: int
    params: Mapping[str, Any]
    changes: Mapping[str, Any]
    about: Mapping[str, str]
    stamp: Mapping[str, str]
    versions: Mapping[str, str]
    observed_at: str
    judged_at: str

    def answers(self, preset: str, seed: int) -> bool:
        """Whether it is of a preset at a seed, with no field changed."""
        return self.preset == preset and self.seed == seed and not self.changes

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Record":
        """Read what :func:`read_record` has checked, or what was kept of a record.

        Raises:
            KeyError: something is missing.
            ValueError: there is no such verdict.
        """
        values = {name: record[name] for name in cls.__dataclass_fields__}
        about = {name: values["about"][name] for name in ("says", "chapter", "origin", "target")}
        return cls(**{**values, "about": about, "verdict": Verdict(values["verdict"])})


class Records:
    """The records of a folder of results.

    They are kept between runs, and a file is read again only if it may have changed: to parse and check a hundred of
    them takes a third of a second. Whatever is wrong with one is said in a :class:`Damaged` warning.

    Args:
        root: the folder of results.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._table = Table("records", f"{FORMAT} {root.absolute()}")
        self._fresh: dict[str, Any] = {}

    def claims(self) -> list[str]:
        """Return the names of the folders of claims, in alphabetical order."""
        return sorted(path.name for path in self.root.glob("*") if is_name(path.name))

    def of_claim(self, claim: str) -> Iterator[tuple[Path, Record]]:
        """Yield every sound record of a claim with its folder."""
        for folder in sorted((self.root / claim).glob("[0-9a-f]*")):
            record = self._read(folder) if is_key(folder.name) else None
            if record is not None:
                yield folder, record

    def keep(self) -> None:
        """Keep for the next run what had to be read."""
        if self._fresh:
            earlier = self._table.values.items()
            sound = {name: kept for name, kept in earlier if Path(name).is_dir()}
            self._table.replace({**sound, **self._fresh})
            self._fresh = {}

    def _read(self, folder: Path) -> Record | None:
        try:
            check_folder(folder)
            state = file_state(folder / FILE)
            kept = self._kept(folder, state)
            if kept is not None:
                return kept
            record = Record.from_json(read_record(folder))
            if state:
                self._fresh[str(folder.absolute())] = {"state": state, "record": asdict(record)}
            return record
        except DAMAGE as trouble:
            say_damage(folder, trouble)
            return None

    def _kept(self, folder: Path, state: str) -> Record | None:
        match self._table.get(str(folder.absolute())):
            case {"state": str(earlier), "record": dict(record)} if state and state == earlier:
                with suppress(KeyError, ValueError, TypeError):  # otherwise it is read again
                    return Record.from_json(record)
        return None


def check_folder(folder: Path) -> None:
    """Refuse what is no folder of ours, such as a link to one.

    Raises:
        ValueError: it is none.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise ValueError("it is not a folder of ours")


def read_record(folder: Path) -> dict[str, Any]:
    """Return the JSON of a result after checking it: it is whole, of this format, and answers its folder's question.

    Raises:
        one of ``DAMAGE``: it is not sound.
    """
    check_folder(folder)
    record = json.loads(read_text(folder / FILE, LARGEST // 8))
    digest = record.pop("digest")
    if canonical_digest(record) != digest:
        raise ValueError(f"{FILE} does not match its checksum")
    if record["format"] != FORMAT:
        raise ValueError(f"it is of format {record['format']}, and this is format {FORMAT}")
    check_record(record)
    question = Question.of(Record.from_json(record))
    if question.key != folder.name or record["claim"] != folder.parent.name:
        raise ValueError("it is the result of another question")
    if not is_name(record["claim"]):  # links of pages are made of it
        raise ValueError("no claim is called like its folder")
    return record


def check_record(record: Mapping[str, Any]) -> None:
    """Refuse a result that lacks what lists and pages rely on.

    Raises:
        KeyError: something is missing.
        TypeError: it is not of the type that they rely on.
    """
    for part, names in TEXTS.items():
        texts = record if part == "" else record[part]
        for name in names.split():
            if not isinstance(texts[name], str):
                raise TypeError(f"{part} {name} is no text".lstrip())
    for name in ("params", "changes", "versions"):
        if not isinstance(record[name], Mapping):
            raise TypeError(f"{name} are no mapping")
    if record["seconds"] is None:
        raise TypeError("seconds are missing")
    _check_type("seconds", record["seconds"], "number")
    for name in JUDGED.split():
        _check_fields(record.get(name, ()))
    for clause in record.get("says", ()):
        _check_type("checks", clause["checks"], "words")


def _check_fields(value: Any) -> None:
    """Refuse fields of another type than theirs, in an object, in a list of objects, and in what they hold."""
    for inner in value if isinstance(value, list) else ():
        _check_fields(inner)
    for name, inner in value.items() if isinstance(value, Mapping) else ():
        if name in TYPES:
            _check_type(name, inner, TYPES[name])
        elif name != "where":  # coordinates on axes, which a claim calls as it likes
            _check_fields(inner)


def _check_type(name: str, value: Any, kind: str) -> None:
    """Refuse what is no number or null, no word, or no list of words."""
    if kind == "number":
        right = isinstance(value, int | float | None) and not isinstance(value, bool)
    elif kind == "word":
        right = isinstance(value, str)
    else:
        right = isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)
    if not right:
        raise TypeError(f"{name}: expected {kind}, got {type(value).__name__}")


def say_damage(folder: Path, trouble: BaseException) -> None:
    """Warn in one sentence that a stored result is not used."""
    text = str(trouble) or type(trouble).__name__
    reason = text.splitlines()[0][:200]
    message = f"the result in {folder} is damaged ({reason}); it is not used"
    warnings.warn(message, Damaged, stacklevel=4)


def is_key(name: str) -> bool:
    """Whether a folder is called like a result's."""
    return len(name) == 16 and set(name) <= set("0123456789abcdef")


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
