"""What is kept between runs to save time, in the user's cache folder.

Nothing there is needed: all of it may be deleted.
"""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from steepest.core.reading import read_text
from steepest.core.writing import remove_leftovers, temporary

ROOT = Path(__file__).parent
TICK = 2 * 10**9
"""Nanoseconds within which a file system may give two versions of a file the same times."""


def cache_folder() -> Path:
    """Return the folder of steepest's caches, which need not exist: ``steepest`` in the user's cache folder."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "steepest"


def file_state(path: Path) -> str:
    """Return what tells whether a file is still the same without reading it; empty where nothing can tell.

    A file that was written a moment ago may be written again without a trace in its times, so nothing can tell yet.

    Raises:
        OSError: there is no such file.
    """
    status = path.stat()
    if time.time_ns() - status.st_ctime_ns < TICK:
        return ""
    return f"{status.st_mtime_ns} {status.st_ctime_ns} {status.st_size} {status.st_ino}"


class Table:
    """Values by key, kept in one file for as long as a state is the same.

    A file that is damaged, of another state, or that cannot be written costs time and nothing else. Every installation
    of steepest has tables of its own.

    Args:
        name: of the file, without its ending.
        state: what all values depend on; values of another state are forgotten.
    """

    def __init__(self, name: str, state: str) -> None:
        installation = hashlib.sha256(os.fsencode(ROOT)).hexdigest()[:8]
        self.path = cache_folder() / f"{name}-{installation}.json"
        self.state = state
        self.values: dict[str, Any] = self._read()

    def get(self, key: str) -> Any:
        """Return the value of a key, None where there is none."""
        return self.values.get(key)

    def put(self, key: str, value: Any) -> None:
        """Keep a value that JSON can hold, beside what other processes have kept meanwhile."""
        self.update({key: value})

    def update(self, values: Mapping[str, Any]) -> None:
        """Keep several values, like :meth:`put`."""
        self._write({**self._read(), **self.values, **values})

    def replace(self, values: Mapping[str, Any]) -> None:
        """Keep these values and forget all others."""
        self._write(dict(values))

    def _write(self, values: dict[str, Any]) -> None:
        self.values = values
        text = json.dumps({"state": self.state, "values": values})
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(self.path.parent)
            with temporary(self.path) as fresh:
                fresh.write_text(text, "utf-8")
                os.replace(fresh, self.path)

    def _read(self) -> dict[str, Any]:
        with suppress(OSError, ValueError, RecursionError):
            match json.loads(read_text(self.path)):
                case {"state": self.state, "values": dict(values)}:
                    return values
        return {}
