"""Import a reader's file with its neighbours, and say in a sentence what is wrong with it."""

import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from steepest.core.errors import UserError
from steepest.core.reading import check_regular, read_bytes


def import_file(path: Path, *, anew: bool = False) -> ModuleType:
    """Import a reader's file, whatever it is called: ``json.py`` takes no module's place.

    Neighbours that it imports are found in its folder. What else was imported, and where Python looks, stays as it was.

    Args:
        path: the file, absolute.
        anew: run it again even if neither it nor a neighbour that it imports has changed.

    Raises:
        UserError: it does not import; the exception is its cause.
    """
    name = "steepest_file_" + hashlib.sha256(os.fsencode(path)).hexdigest()[:8] + f"_{path.stem}"
    module = sys.modules.get(name)
    if module is not None and not anew and not _changed(module):
        return module
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        with _neighbours(path.parent) as names:
            check_regular(path)
            page = path.with_name("page.toml")  # which a claim reads as it is defined
            sources = {path: _digest(path), page: _digest(page)}
            spec.loader.exec_module(module)
            sources |= {source: _digest(source) for source in _loaded(names).values()}
    except (Exception, SystemExit) as trouble:
        del sys.modules[name]
        raise UserError(f"cannot import {path}: {raised(trouble, path)}") from trouble
    module.__dict__["_steepest_sources"] = tuple(sources.items())
    return module


_BROUGHT: set[str] = set()
"""Names of the neighbours that readers' files have brought along."""


@contextmanager
def _neighbours(folder: Path) -> Iterator[set[str]]:
    """Let a file import its neighbours by their names, and not those of another folder that are loaded already."""
    names = {source.stem for source in folder.glob("*.py")}
    names |= {source.parent.name for source in folder.glob("*/__init__.py")}
    names -= {*sys.stdlib_module_names, "steepest"}
    others: dict[str, ModuleType] = {}
    for name in _loaded(names):
        module = sys.modules.pop(name)
        if name not in _BROUGHT:
            others[name] = module
    finder = _OfFolder(folder, names)
    sys.meta_path.insert(0, finder)
    sys.path.append(str(folder))  # behind what is installed, for whoever else looks for a neighbour
    importlib.invalidate_caches()
    # bytecode knows its source by seconds and size, and would hide a quick change of a neighbour
    keeps_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        yield names
    finally:
        sys.dont_write_bytecode = keeps_bytecode
        sys.meta_path.remove(finder)
        del sys.path[len(sys.path) - 1 - sys.path[::-1].index(str(folder))]
        for name in _loaded(names):
            if _is_installed(name.partition(".")[0], folder):
                del sys.modules[name]
            else:
                _BROUGHT.add(name)
        _BROUGHT.difference_update(others)
        sys.modules.update(others)


def _is_installed(name: str, folder: Path) -> bool:
    """Whether an import anywhere else means another module than the neighbour of this name."""
    spec = PathFinder.find_spec(name)
    return spec is not None and not Path(spec.origin or folder).is_relative_to(folder)


class _OfFolder:
    """Finds neighbours for the files of their folder alone, so that no package gets them instead of its own."""

    def __init__(self, folder: Path, names: set[str]) -> None:
        self._folder = folder
        self._names = names

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return where a neighbour is, if one of them asks for it."""
        if path is not None or name not in self._names or not self._is_asked():
            return None
        return PathFinder.find_spec(name, [str(self._folder)])

    def _is_asked(self) -> bool:
        """Whether the import stands in a file of the folder."""
        frame = sys._getframe(2)
        while frame is not None:
            if not frame.f_globals.get("__name__", "").startswith("importlib"):
                return Path(frame.f_code.co_filename).is_relative_to(self._folder)
            frame = frame.f_back
        return False


def _loaded(names: set[str]) -> dict[str, Path]:
    """The file of every loaded module that is called like a neighbour, or lies in one, and is no installed package."""
    files = {
        name: Path(file)
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in names and (file := getattr(module, "__file__", None))
    }
    return {name: file for name, file in files.items() if "site-packages" not in file.parts}


def _changed(module: ModuleType) -> bool:
    """Whether a source of a file's module, its own or a neighbour's, is another than when it was imported."""
    return any(_digest(source) != digest for source, digest in module._steepest_sources)


def _digest(source: Path) -> str:
    try:
        return hashlib.sha256(read_bytes(source)).hexdigest()
    except OSError:
        return ""


def raised(trouble: BaseException, path: Path) -> str:
    """Return an error of a file in one sentence, with the line."""
    if isinstance(trouble, SyntaxError):
        return where(trouble)
    line = ""
    step = trouble.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == str(path):
            line = f" in line {step.tb_lineno}"
        step = step.tb_next
    text = str(trouble).splitlines()
    return f"{type(trouble).__name__}{line}: {text[0] if text else ''}".rstrip(": ")


def where(trouble: Exception) -> str:
    """Return what is wrong with a source, and where, in a few words."""
    if isinstance(trouble, SyntaxError):
        return f"{trouble.msg} in line {trouble.lineno}"
    return str(trouble)
