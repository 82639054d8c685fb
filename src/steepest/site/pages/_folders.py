"""A whole folder put in the place of another, which loses nothing that is not ours."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from steepest.core.errors import UserError
from steepest.core.reading import read_bytes
from steepest.core.writing import remove_leftovers_of, temporary


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Make a folder beside a place, to be filled and moved there; what is not moved is removed.

    Raises:
        OSError: it cannot be made.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers_of(out)
    with temporary(out, folder=True) as fresh:
        yield fresh


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
        ours = read_bytes(out / marker).decode("utf-8", "replace").splitlines()
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
