"""Points of sweeps on disk: one folder a point, written whole, checked when it is read.

``results/<claim>/points/<hash>/point.json`` is one line of JSON with its own checksum in front. Every sweep of a claim
keeps its points in the same place, so that sweeps that overlap share them.
"""

import gc
import hashlib
import json
import os
import stat
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steepest.core.words import CRASHED, Verdict
from steepest.core.writing import move_into_place, remove_leftovers, temporary
from steepest.engine.store import Damaged

FILE = "point.json"
_HEAD = b'{"digest": "0123456789abcdef", "point": '
_SPAN = slice(12, 28)  # where the digest stands in the head
VERDICTS = (*Verdict, CRASHED)
MOST = 2**1023
"""Whole numbers beyond have no float."""
MENTIONED = 10
"""So many damaged points are named; the rest is counted."""


@dataclass(frozen=True)
class Points:
    """The points of one claim.

    Attributes:
        folder: ``results/<claim>/points``; made when the first point is written.
    """

    folder: Path

    def there(self) -> set[str]:
        """The names of all points, sound or not."""
        try:
            with os.scandir(self.folder) as folders:
                return {folder.name for folder in folders if folder.name[0] != "."}
        except FileNotFoundError:
            return set()

    def write(self, key: str, record: Mapping[str, Any]) -> None:
        """Write a point; its folder appears whole or not at all, and replaces one that is there."""
        record = {"key": key, **record}
        text = json.dumps(record, separators=(",", ":"), allow_nan=False).encode()
        final = self.folder / key
        self.folder.mkdir(parents=True, exist_ok=True)
        with temporary(final, folder=True) as fresh:
            (fresh / FILE).write_bytes(_HEAD.replace(_HEAD[_SPAN], _digest(text)) + text + b"}")
            # it may be there: a damaged point, one that is computed again, or another process has just written it
            move_into_place(fresh, final)

    def read(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The sound points among those named; damaged ones are reported once, with a :class:`Damaged` warning."""
        records = {}
        damaged = []
        root = os.fspath(self.folder)
        with _uncollected():
            for key in keys:
                try:
                    records[key] = _parse(_bytes(f"{root}/{key}/{FILE}"), key)
                except FileNotFoundError:
                    if os.path.lexists(f"{root}/{key}"):
                        damaged.append((key, "its file is missing"))
                except (OSError, ValueError, RecursionError) as trouble:
                    damaged.append((key, str(trouble)))
        if damaged:
            names = "; ".join(f"{key} ({why})" for key, why in damaged[:MENTIONED])
            more = f"; and {len(damaged) - MENTIONED} more" * (len(damaged) > MENTIONED)
            what = f"{len(damaged)} point{'s' * (len(damaged) != 1)} in {self.folder}"
            warnings.warn(
                f"{what} cannot be trusted and will be computed again: {names}{more}",
                Damaged,
                stacklevel=3,
            )
        return records

    def sweep_up(self) -> None:
        """Remove what killed runs left behind."""
        remove_leftovers(self.folder)


def _bytes(path: str) -> bytes:
    """A small file's content, without the layers of ``open``, which cost as much as the reading; a pipe is not."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ValueError(f"{FILE} is no regular file")
        return b"".join(iter(lambda: os.read(file, 1 << 16), b""))
    finally:
        os.close(file)


@contextmanager
def _uncollected() -> Iterator[None]:
    """The garbage collector looks at every record again and again while 10⁵ of them are read: twice the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _parse(text: bytes, key: str) -> dict[str, Any]:
    """The record of a file, if its checksum says that it is whole and it is the point that was asked for."""
    record = text[len(_HEAD) : -1]
    if not text.endswith(b"}") or _digest(record) != text[_SPAN]:
        raise ValueError("its checksum does not match")
    point = json.loads(record)
    if not isinstance(point, dict) or point.pop("key", None) != key:
        raise ValueError("it is another point")
    if not _has_form(point):
        raise ValueError("it has not the form of a point")
    return point


def _has_form(point: dict[str, Any]) -> bool:
    """Whether a point holds what its readers use: a checksum says nothing of that, as anybody can make one."""
    match point:
        case {
            "verdict": str(verdict),
            "reason": str(),
            "checks": list(checks),
            "quantities": dict(quantities),
        } if verdict in VERDICTS:
            return all(map(_is_check, checks)) and all(map(_is_number, quantities.values()))
    return False


def _is_check(check: Any) -> bool:
    match check:
        case {
            "id": str(),
            "name": str(),
            "measured": measured,
            "predicted": predicted,
            "interval": {"low": low, "high": high},
            "margin": {"low": least, "high": most},
        }:
            return all(map(_is_number, (measured, predicted, low, high, least, most)))
    return False


def _is_number(value: Any) -> bool:
    return value is None or type(value) is float or (type(value) is int and abs(value) < MOST)


def _digest(record: bytes) -> bytes:
    return hashlib.sha256(record).hexdigest()[:16].encode()
