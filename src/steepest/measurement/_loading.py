"""Checkpoints from the user's files."""

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from steepest.core import given
from steepest.core.errors import UserError
from steepest.measurement._building import first_line

SPREAD = 20
"""Times its own size that a checkpoint may unpack to: weights hardly shrink when they are packed."""
FREE = 2**27
"""Bytes that any checkpoint may unpack to: zeros do shrink."""


def load_checkpoint(file: Path) -> Any:
    """Load named arrays of an ``.npz``, or the state dict of a ``.pt``; nothing in the file is executed.

    Raises:
        UserError: no such file, another kind of file, a damaged one, or one that unpacks to more than it could hold.
    """
    file = given.file("a checkpoint", file)
    if not file.is_file():
        raise UserError(f"there is no checkpoint {file}; give the name of an .npz or a .pt")
    if file.suffix not in (".npz", ".pt", ".pth"):
        raise UserError(
            f"a checkpoint is an .npz with named arrays or a .pt with a state dict, got {file.name}"
        )
    try:
        _affordable(file)
        if file.suffix == ".npz":
            with np.load(file, allow_pickle=False) as arrays:
                return dict(arrays)
        import torch

        stored = torch.load(file, map_location="cpu", weights_only=True)
    except UserError:
        raise
    except Exception as trouble:
        raise UserError(f"{file.name} cannot be read: {first_line(trouble)}") from trouble
    return stored.get("state_dict", stored) if isinstance(stored, dict) else stored


def _affordable(file: Path) -> None:
    """Refuse a checkpoint by what its archive says of itself, before anything of it is unpacked."""
    packed = file.stat().st_size
    size = packed
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            size = sum(member.file_size for member in archive.infolist())
    if size > max(SPREAD * packed, FREE):
        raise UserError(
            f"{file.name} would unpack from {_said(packed)} to {_said(size)}, and no more than {SPREAD} times its size "
            "is read; save the checkpoint again without compression"
        )
    if size > (memory := _memory()):
        raise UserError(
            f"{file.name} holds {_said(size)}, and this machine has {_said(memory)} of memory; measure the drift where "
            "the checkpoint fits"
        )


def _memory() -> float:
    """Bytes of memory of this machine; infinite where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # there is no sysconf on Windows
        return float("inf")


def _said(size: float) -> str:
    return f"{size / 1e9:.3g} GB" if size >= 1e9 else f"{size / 1e6:.3g} MB"
