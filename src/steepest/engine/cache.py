"""What is kept between runs to save time, in the user's cache folder.

Nothing there is needed: all of it may be deleted.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any


def cache_folder() -> Path:
    """Return the folder of steepest's caches, which need not exist: ``steepest`` in the user's cache folder."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "steepest"


class Table:
    """Values by key, kept in one file for as long as a state is the same.

    A file that is damaged, of another state, or that cannot be written costs time and nothing else.

    Args:
        name: of the file, without its ending.
        state: what all values depend on; values of another state are forgotten.
    """

    def __init__(self, name: str, state: str) -> None:
        self.path = cache_folder() / f"{name}.json"
        self.state = state
        self.values: dict[str, Any] = self._read()

    def get(self, key: str) -> Any:
        """Return the value of a key, None where there is none."""
        return self.values.get(key)

    def put(self, key: str, value: Any) -> None:
        """Keep a value that JSON can hold, beside what other processes have kept meanwhile."""
        self.values = {**self._read(), **self.values, key: value}
        fresh = self.path.with_name(f".{self.path.name}-{os.getpid()}")
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(json.dumps({"state": self.state, "values": self.values}), "utf-8")
            os.replace(fresh, self.path)

    def _read(self) -> dict[str, Any]:
        with suppress(OSError, ValueError, RecursionError):
            match json.loads(self.path.read_text("utf-8")):
                case {"state": self.state, "values": dict(values)}:
                    return values
        return {}
