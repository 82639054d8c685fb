"""Checkpoints from the user's files."""

from pathlib import Path
from typing import Any

import numpy as np

from steepest.core.errors import UserError
from steepest.measurement._building import first_line


def load_checkpoint(file: Path) -> Any:
    """Load named arrays of an ``.npz``, or the state dict of a ``.pt``; nothing in the file is executed.

    Raises:
        UserError: no such file, another kind of file, a damaged one.
    """
    if not file.is_file():
        raise UserError(f"there is no checkpoint {file}")
    if file.suffix not in (".npz", ".pt", ".pth"):
        raise UserError(
            f"a checkpoint is an .npz with named arrays or a .pt with a state dict, got {file.name}"
        )
    try:
        if file.suffix == ".npz":
            with np.load(file, allow_pickle=False) as arrays:
                return dict(arrays)
        import torch

        stored = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as trouble:
        raise UserError(f"{file.name} cannot be read: {first_line(trouble)}") from trouble
    return stored.get("state_dict", stored) if isinstance(stored, dict) else stored
