"""A whole folder put in the place of another."""

import os
import shutil
from pathlib import Path


def replace_folder(fresh: Path, out: Path) -> None:
    """Move a folder into place; what was there comes back if that fails, and goes if it does not.

    Args:
        fresh: the new folder, beside its place.
        out: its place.

    Raises:
        OSError: it cannot be moved; then everything is as before.
    """
    if not out.exists():
        os.rename(fresh, out)
        return
    stale = out.parent / f".{out.name}-old-{os.getpid()}"
    os.rename(out, stale)
    try:
        os.rename(fresh, out)
    except OSError:
        os.rename(stale, out)
        raise
    shutil.rmtree(stale)
