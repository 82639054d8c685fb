"""Import a reader's file with its neighbours, and say in a sentence what is wrong with it."""

import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from steepest.core.errors import UserError


def import_file(path: Path) -> ModuleType:
    """Import a reader's file, anew whenever it or a neighbour that it imports has changed."""
    name = "steepest_file_" + hashlib.sha256(os.fsencode(path)).hexdigest()[:8] + f"_{path.stem}"
    module = sys.modules.get(name)
    if module is not None and not _changed(module):
        return module
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        with _neighbours(path.parent) as names:
            sources = {path: _digest(path)}
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
    for name, source in _loaded(names).items():
        module = sys.modules.pop(name)
        if name not in _BROUGHT and not source.is_relative_to(folder):
            others[name] = module
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    # bytecode knows its source by seconds and size, and would hide a quick change of a neighbour
    keeps_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        yield names
    finally:
        sys.dont_write_bytecode = keeps_bytecode
        sys.path.remove(str(folder))
        _BROUGHT.update(_loaded(names))
        _BROUGHT.difference_update(others)
        sys.modules.update(others)


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
        return hashlib.sha256(source.read_bytes()).hexdigest()
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
