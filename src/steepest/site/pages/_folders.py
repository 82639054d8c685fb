"""A whole folder put in the place of another, which loses nothing that is not ours."""

import os
import shutil
from pathlib import Path

from steepest.core.errors import UserError


def list_files(folder: Path, marker: str) -> None:
    """Write the marker of a folder: its files, one a line."""
    files = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    (folder / marker).write_text("".join(f"{path}\n" for path in files), "utf-8")


def refuse_folder(out: Path, marker: str, what: str, results: Path | None = None) -> None:
    """Refuse a place where something would be lost that is not ours.

    Args:
        out: the place.
        marker: the file in it that lists ours.
        what: what is to be written there, such as ``"atlas"``.
        results: a folder of results, which must not lie inside.

    Raises:
        UserError: a folder with other files, something that is no folder, or a folder around the results.
    """
    out = out.absolute()
    if results and Path(os.path.realpath(results)).is_relative_to(os.path.realpath(out)):
        raise UserError(
            f"the results in {results} lie inside {out}, which the {what} would replace; choose another --out"
        )
    if not (out.exists() or out.is_symlink()):
        return
    if not out.is_dir() or out.is_symlink():
        raise UserError(f"{out} is not a folder; choose another place for the {what} with --out")
    ours = []
    if (out / marker).is_file():
        ours = (out / marker).read_text("utf-8", "replace").splitlines()
    files = sorted(
        str(path.relative_to(out))
        for path in out.rglob("*")
        if path.is_symlink() or not path.is_dir()
    )
    names = {*ours, marker}
    if strange := [path for path in files if Path(path).as_posix() not in names]:
        article = "an" if what[0] in "aeiou" else "a"
        why = f"is not {article} {what}" if not ours else f"holds a file that is not the {what}'s"
        raise UserError(
            f"{out} {why} ({strange[0]}), and nothing in it was touched; choose another place with --out"
        )


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
