"""Models and checkpoints from the user's files."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np

from steepest.core.errors import UserError, nearest


def load_model(where: str) -> tuple[Any, Any, Any, Any, Any]:
    """Call ``FUNCTION`` of ``FILE.py:FUNCTION``: its ``(model, loss, data)``, the optimizer and held-out data or None.

    The function may return the optimizer with which the model was trained as a fourth part, and data that were held
    out as a fifth.

    The file's folder is importable while it runs, as it is when Python runs the file.

    Raises:
        UserError: no such file or function, a file that does not import, a function that fails or returns something
            else.
    """
    path, colon, name = where.rpartition(":")
    file = Path(path)
    if not colon or not name.isidentifier() or file.suffix != ".py":
        raise UserError(f"expected FILE.py:FUNCTION, got {where!r}; for example model.py:build")
    if not file.is_file():
        raise UserError(f"there is no file {path}")
    module = _module(file)
    if not callable(getattr(module, name, None)):
        functions = [
            function
            for function, value in vars(module).items()
            if callable(value) and not function.startswith("_")
        ]
        raise UserError(f"{file.name} has no function {name!r}; {nearest(name, functions)}")
    try:
        built = getattr(module, name)()
    except UserError:
        raise
    except (Exception, SystemExit) as trouble:
        raise UserError(f"{where} failed: {_line(trouble)}") from trouble
    if not (isinstance(built, tuple) and 3 <= len(built) <= 5):
        got = f"a tuple of {len(built)}" if isinstance(built, tuple) else type(built).__name__
        raise UserError(
            f"{where} must return (model, loss, data), or these and the optimizer, and data held out; got {got}"
        )
    model, loss, data, *more = built
    optimizer, held_out = [*more, None, None][:2]
    return model, loss, data, optimizer, held_out


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
        raise UserError(f"{file.name} cannot be read: {_line(trouble)}") from trouble
    return stored.get("state_dict", stored) if isinstance(stored, dict) else stored


def _module(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise UserError(f"{file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.resolve().parent))
    sys.modules[file.stem] = module
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as trouble:
        advice = (
            "pip install 'steepest[torch]'"
            if trouble.name == "torch"
            else f"install {trouble.name}"
        )
        raise UserError(f"{file.name} does not import: {trouble}; {advice}") from trouble
    except (Exception, SystemExit) as trouble:
        raise UserError(f"{file.name} does not import: {_line(trouble)}") from trouble
    finally:
        sys.path.pop(0)
    return module


def _line(trouble: BaseException) -> str:
    said = str(trouble).strip().splitlines()
    return f"{type(trouble).__name__}: {said[0]}" if said else type(trouble).__name__
