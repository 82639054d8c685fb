"""The file to which a monitor appends its records, one JSON object a line."""

import json
import os
import time
from pathlib import Path
from typing import Any

from steepest.core.errors import UserError
from steepest.core.reading import check_regular

SYNC = 10.0  # seconds between two times that the log is written through to the disk


class LogFile:
    """A log that survives a kill of the process.

    Args:
        path: of the file, which is appended to.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._synced = time.perf_counter()

    def unwritable(self) -> UserError | None:
        """Return why it cannot be written, so that this can be said before hours of training."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists() and not self.path.is_char_device():  # such as /dev/null
                check_regular(self.path)  # to open a pipe that nobody reads would never end
            with self.path.open("ab"):
                return None
        except OSError as trouble:
            reason = trouble.strerror or trouble
            return UserError(f"cannot write the log {self.path} ({reason}); choose another file")

    def append(self, record: dict[str, Any]) -> None:
        """Write a record, on a line of its own also after one that a kill cut off."""
        with self.path.open("ab+") as log:
            if log.tell():  # a line that a kill cut off is closed, so that it costs only itself
                log.seek(-1, os.SEEK_END)
                torn = log.read(1) != b"\n"
                log.write(b"\n" if torn else b"")
            log.write(json.dumps(record).encode() + b"\n")
            log.flush()  # a kill of the process costs nothing that has been written
            # a failure of the machine may, and to wait for a disk takes as long as a step
            now = time.perf_counter()
            if now - self._synced > SYNC:
                os.fsync(log.fileno())
                self._synced = now
