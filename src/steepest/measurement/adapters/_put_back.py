"""What a forward pass changes in a reader's own Python objects is put back after it."""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from torch import Generator, Tensor, nn, strided

from steepest.measurement.adapters._generators import (
    FEW,
    is_generator,
    set_states,
    states_of,
)

LARGE = (
    2**20
)  # numbers of an array that an object other than a module holds, beyond which it is data
LIBRARIES = ("site-packages", "dist-packages")
OURS = __name__.partition(".")[0]


@contextmanager
def put_back(module: nn.Module, loss: Any, seed: int | None = None) -> Iterator[None]:
    """Put back what a pass binds or writes, in a module, its hooks, its loss, and the objects that these hold.

    Lists, dictionaries, sets and attributes have their contents again; small arrays are written on as copies, since to
    copy their numbers back would break the graph of what was calculated with them; generators have their states again.
    Objects of installed libraries are left alone, but for modules of torch.

    Args:
        module: whose buffers are copies already.
        loss: a function, a module or another callable.
        seed: of the generators meanwhile; None leaves them as they are.
    """
    keeper = _Keeper(seed)
    try:
        keeper.keep_module(module, buffers=False)
        keeper.kept(loss)
        yield
    finally:
        keeper.restore()


def _reseed(generator: Any, seed: int) -> None:
    if isinstance(generator, Generator):
        generator.manual_seed(seed)
    elif isinstance(generator, np.random.Generator):
        bits = type(generator.bit_generator)
        generator.bit_generator.state = bits(seed).state
    else:
        generator.seed(seed)


class _Keeper:
    """Walks what can be reached, and keeps how it was."""

    def __init__(self, seed: int | None) -> None:
        self.seed = seed
        self.seen: dict[int, Any] = {}  # what stands for an object meanwhile, by its identity
        self.alive: list[Any] = []  # so that identities stay theirs
        self.undo: list[Callable[[], None]] = []

    def restore(self) -> None:
        for undo in reversed(self.undo):
            undo()
        self.undo.clear()

    def keep_module(self, module: nn.Module, buffers: bool = True) -> None:
        """Keep the parts of a module, and let them write on copies of their buffers if these are not copies."""
        for part in module.modules():
            if id(part) in self.seen:
                continue
            self._mark(part, part)
            attributes = vars(part)
            for name in ("_parameters", "_modules", *(() if buffers else ("_buffers",))):
                if isinstance(attributes.get(name), dict):
                    self._mark(attributes[name], attributes[name])
                    self._keep_bindings(attributes[name])
            self._keep_dict(attributes, whole=True)

    def kept(self, thing: Any, whole: bool = False) -> Any:
        """Keep an object; return what stands for it meanwhile, a copy of an array or the object itself.

        Args:
            thing: anything.
            whole: whether an array is kept whatever its size.
        """
        if isinstance(thing, int | float | str | type | ModuleType | BuiltinFunctionType | None):
            return thing
        if id(thing) in self.seen:
            return self.seen[id(thing)]
        if isinstance(thing, Tensor | np.ndarray):
            return self._mark(thing, _copied(thing, whole))
        self._mark(thing, thing)
        if isinstance(thing, nn.Module):
            del self.seen[id(thing)]
            self.keep_module(thing)
        elif isinstance(thing, dict):
            self._keep_dict(thing, whole)
        elif isinstance(thing, list):
            self._keep_list(thing, whole)
        elif isinstance(thing, set | deque):
            self._keep_entries(thing)
        elif isinstance(thing, tuple):
            for part in thing[:FEW]:
                self.kept(part)
        elif is_generator(thing):
            self.undo.append(partial(set_states, states_of([thing])))
            if self.seed is not None:
                _reseed(thing, self.seed)
        else:
            self._keep_object(thing)
        return thing

    def _mark(self, thing: Any, instead: Any) -> Any:
        self.alive.append(thing)
        self.seen[id(thing)] = instead
        return instead

    def _keep_bindings(self, thing: dict) -> dict:
        before = dict(thing)

        def undo() -> None:
            if list(thing) != list(before) or any(thing[key] is not before[key] for key in before):
                thing.clear()
                thing.update(before)

        self.undo.append(undo)
        return before

    def _keep_dict(self, thing: dict, whole: bool) -> None:
        for key, value in self._keep_bindings(thing).items():
            instead = self.kept(value, whole)
            if instead is not value:
                thing[key] = instead

    def _keep_list(self, thing: list, whole: bool) -> None:
        before = list(thing)

        def undo() -> None:
            thing[:] = before

        self.undo.append(undo)
        if len(thing) <= FEW:
            thing[:] = [self.kept(part, whole) for part in before]

    def _keep_entries(self, thing: Any) -> None:
        before = list(thing)

        def undo() -> None:
            thing.clear()
            (thing.update if isinstance(thing, set) else thing.extend)(before)

        self.undo.append(undo)

    def _keep_object(self, thing: Any) -> None:
        """Keep what a function has bound, or the attributes of an object of the reader's own."""
        if isinstance(thing, MethodType):
            self.kept(thing.__self__)
        elif isinstance(thing, partial):
            for part in (thing.func, *thing.args, *thing.keywords.values()):
                self.kept(part)
        elif isinstance(thing, FunctionType):
            if not _is_library(thing.__module__):
                self._keep_function(thing)
        elif hasattr(thing, "__dict__") and not _is_library(type(thing).__module__):
            self._keep_dict(vars(thing), whole=False)

    def _keep_function(self, function: FunctionType) -> None:
        for cell in function.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # of a name that is bound later
                continue
            self.undo.append(partial(setattr, cell, "cell_contents", value))
            cell.cell_contents = self.kept(value)
        names = function.__globals__
        for name in function.__code__.co_names:
            if isinstance(names.get(name), int | float | list | dict | set | deque):
                self.undo.append(partial(names.__setitem__, name, names[name]))
                self.kept(names[name])


def _copied(array: Any, whole: bool) -> Any:
    """Return a copy of an array that a pass might write on; the array where it cannot, or is data."""
    if isinstance(array, np.ndarray):
        return array.copy() if whole or array.size <= LARGE else array
    is_plain = type(array) is Tensor and array.layout is strided and not array.is_meta
    if not is_plain or array.requires_grad or not (whole or array.numel() <= LARGE):
        return array
    return array.clone()


@cache
def _is_library(module: str | None) -> bool:
    """Tell whether a module of Python is installed or ours, and none of the reader's own."""
    top = (module or "builtins").partition(".")[0]
    if top == "__main__":
        return False
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    return top in (*sys.stdlib_module_names, OURS) or any(name in file for name in LIBRARIES)
