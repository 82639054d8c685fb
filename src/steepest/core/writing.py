"""Files and folders that appear whole or not at all: written under a temporary name, then moved into place.

A temporary name is held by a lock for as long as its process lives. So what a killed process left behind is told from
what a neighbour is writing, whatever the clock says. What this process is writing is listed, so that a command which is
ended where it stands leaves nothing either.
"""

import hashlib
import os
import platform
import re
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # of Windows: leftovers are told by their age there
    fcntl = None

DAY = 86_400
"""Seconds after which what cannot be locked, as on some network disks, is taken for a killed run's."""
NAMES = (".new-*-*", ".old-*-*", ".drawn.json-*")
LONGEST = 150
"""Bytes of a name beyond which a temporary one has its digest: systems allow 255."""
_OPEN: set[Path] = set()
_ASIDE: dict[Path, Path] = {}
"""What was moved out of its place until another has taken it, and that place."""
_SHARED: set[Path] = set()


@contextmanager
def temporary(final: Path, folder: bool = False) -> Iterator[Path]:
    """Make an empty file or folder beside a path, to be filled and moved there; what is not moved is removed.

    Args:
        final: what it will become; its folder must exist.
        folder: whether it is a folder.

    Raises:
        OSError: it cannot be made.
    """
    path = _hidden("new", final)
    _OPEN.add(path)
    holder = -1
    try:
        holder = _made(path, folder)
        yield path
    finally:
        if holder >= 0:
            os.close(holder)
        remove(path)
        _OPEN.discard(path)


def _hidden(kind: str, final: Path) -> Path:
    """Return a temporary name beside a path."""
    return final.with_name(f"{_start(kind, final)}{os.getpid()}-{threading.get_ident()}")


def _start(kind: str, final: Path) -> str:
    """Return what all temporary names of a path begin with that are given on this machine."""
    name = os.fsencode(final.name)
    short = final.name if len(name) <= LONGEST else hashlib.sha256(name).hexdigest()[:16]
    return f".{kind}-{short}-{platform.node()}-"


def _made(path: Path, folder: bool) -> int:
    """Make a file or folder and hold its lock; a neighbour may take it for a leftover before it is held."""
    while True:
        remove(path)
        path.mkdir() if folder else path.touch()
        try:
            holder = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        _lock(holder, wait=True)
        with suppress(OSError):
            if os.path.samestat(os.fstat(holder), path.stat()):
                return holder
        os.close(holder)


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold what is there already, so that nobody takes it for a leftover under its next name."""
    try:
        holder = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:  # nothing is there, or a link to nowhere
        yield
        return
    try:
        _lock(holder, wait=False)
        yield
    finally:
        os.close(holder)


def move_into_place(fresh: Path, final: Path) -> Path:
    """Put a finished file or folder in its place; what was there, a link too, is replaced and not followed.

    Where that fails the old one comes back. Where another process was quicker its folder stays: it is the same answer.

    Raises:
        OSError: it cannot be moved.
    """
    try:
        os.rename(fresh, final)
        return final
    except OSError:
        if not os.path.lexists(final):
            raise
    stale = _hidden("old", final)
    _ASIDE[stale] = final
    try:
        with held(final):
            with suppress(FileNotFoundError):
                os.rename(final, stale)
            try:
                os.rename(fresh, final)
            except BaseException as trouble:
                if not os.path.lexists(final):
                    os.rename(stale, final)
                    raise
                remove(fresh)
                if not isinstance(trouble, OSError):  # a stop
                    remove(stale)
                    raise
            remove(stale)
    finally:
        _ASIDE.pop(stale, None)
    return final


def move_where_nothing_is(fresh: Path, final: Path) -> Path:
    """Put a finished file in a place that must be free, whoever takes it meanwhile.

    Raises:
        FileExistsError: something is there.
        OSError: it cannot be moved.
    """
    try:
        os.link(fresh, final)
    except FileExistsError:
        raise
    except OSError:  # a disk without links
        if os.path.lexists(final):
            raise FileExistsError(final) from None
        os.rename(fresh, final)
    return final


@contextmanager
def shared(*folders: Path) -> Iterator[None]:
    """Remove the leftovers in folders that other processes of this command write to, when they have ended."""
    _SHARED.update(folders)
    try:
        yield
    finally:
        for folder in folders:
            remove_leftovers(folder, below=True)
        _SHARED.difference_update(folders)


def abandon() -> None:
    """Remove everything that this process has begun to write, and what its workers left: it is about to end."""
    for stale, final in list(_ASIDE.items()):
        with suppress(OSError):
            remove(stale) if os.path.lexists(final) else os.rename(stale, final)
    for path in list(_OPEN):
        with suppress(OSError):
            remove(path)
    for folder in list(_SHARED):
        with suppress(OSError):
            remove_leftovers(folder, below=True)


def remove_leftovers(parent: Path, below: bool = False) -> None:
    """Remove what killed runs left in a folder, and on request in the folders of results below it."""
    folders = [parent, *(parent.glob("[0-9a-f]*/") if below else ())]
    ours = [folder for folder in folders if not folder.is_symlink()]
    for leftover in [path for folder in ours for name in NAMES for path in folder.glob(name)]:
        with suppress(OSError):  # another process was quicker
            if _abandoned(leftover):
                remove(leftover)


def remove_leftovers_of(final: Path) -> None:
    """Remove what killed runs left beside a path in a reader's own folder: names that only this program gives."""
    forms = [re.compile(rf"{re.escape(_start(kind, final))}\d+-\d+") for kind in ("new", "old")]
    with suppress(OSError):
        for leftover in list(final.parent.iterdir()):
            if any(form.fullmatch(leftover.name) for form in forms) and _abandoned(leftover):
                remove(leftover)


def _abandoned(path: Path) -> bool:
    """Tell whether no living process holds a temporary name; where no lock can tell, by its age."""
    kind = path.lstat().st_mode
    if stat.S_ISLNK(kind):
        return time.time() - path.lstat().st_mtime > DAY
    ours = path.name.startswith((".new-", ".old-"))
    if ours and (stat.S_ISDIR(kind) or stat.S_ISREG(kind)):
        holder = os.open(path, os.O_RDONLY)
        try:
            free = _lock(holder, wait=False)
        finally:
            os.close(holder)
        if free is not None:
            return free
    return time.time() - path.lstat().st_mtime > DAY


def _lock(holder: int, wait: bool) -> bool | None:
    """Lock what is open, until it is closed; False where another has it, None where nothing can be locked."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(holder, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return True
    except BlockingIOError:
        return False
    except OSError:
        return None


def remove(path: Path) -> None:
    """Remove a folder, a file or a link; never what a link points to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Let the disk have a file, or the names in a folder, before anything refers to it.

    Raises:
        OSError: the disk is full, or fails.
    """
    if os.name != "posix" and path.is_dir():  # folders cannot be opened there
        return
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
