"""Files of others, and our own that may be damaged: only regular ones are read, as a pipe would never end."""

import os
import stat
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path

DAMAGE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    EOFError,
    MemoryError,
    RuntimeError,  # of JSON that is nested too deeply, and of archives that say they are encrypted
    AssertionError,
    SyntaxError,  # NumPy's, of a header that is no literal
    tokenize.TokenError,  # the same, where its brackets do not close
    ArithmeticError,  # of a shape beyond all numbers
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
)
"""What reading a damaged file may raise."""


def check_regular(path: str | Path) -> None:
    """Refuse a pipe, a socket, a device, a folder; a link to a file is a file.

    Raises:
        FileNotFoundError: nothing is there.
        OSError: it is no regular file, or a link to itself.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(f"{os.path.basename(path)} is no regular file")


def read_bytes(path: str | Path, largest: int | None = None) -> bytes:
    """Return what a regular file holds.

    Args:
        path: the file.
        largest: bytes beyond which it is none of ours, which a link is not either; None of a reader's own files.

    Raises:
        OSError: it is no regular file, or cannot be read.
        ValueError: it is too large.
    """
    check_regular(path)
    if largest is not None and os.path.islink(
        path
    ):  # ours are files: a copied folder may lead anywhere
        raise OSError(f"{os.path.basename(path)} is a link, and no file of ours")
    opened = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        state = os.fstat(opened)
        if not stat.S_ISREG(state.st_mode):  # it was exchanged in between
            raise OSError(f"{os.path.basename(path)} is no regular file")
        if largest is not None and state.st_size > largest:
            raise ValueError(f"{os.path.basename(path)} is larger than any of ours")
        return b"".join(iter(lambda: os.read(opened, 1 << 20), b""))
    finally:
        os.close(opened)


def read_text(path: str | Path, largest: int | None = None) -> str:
    """Return the text of a regular file, UTF-8; errors as of :func:`read_bytes`.

    Raises:
        UnicodeDecodeError: it is no text.
    """
    return read_bytes(path, largest).decode()
