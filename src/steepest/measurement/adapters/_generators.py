"""Generators of random numbers that a reader's code may draw from, and their states."""

import random
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

FEW = 64  # entries of a list that is looked through
States = list[tuple[Any, Any]]
"""Generators, each with its state."""


def of_the_process() -> list[Any]:
    """List the generators that all code of the process shares: of Python, of NumPy, and of torch where it is loaded."""
    torch = sys.modules.get("torch")
    return [random, np.random] if torch is None else [random, np.random, torch.default_generator]


def is_generator(thing: Any) -> bool:
    """Tell whether this is a generator of random numbers of Python, NumPy or torch."""
    torch = sys.modules.get("torch")
    kinds = (np.random.Generator, np.random.RandomState, random.Random)
    return isinstance(thing, kinds if torch is None else (*kinds, torch.Generator))


def held_by(thing: Any, depth: int = 4) -> list[Any]:
    """List the generators that an object holds, such as a loader in its sampler or its dataset."""
    if is_generator(thing):
        return [thing]
    if isinstance(thing, list | tuple) and len(thing) <= FEW:
        parts = list(thing)
    else:
        torch = sys.modules.get("torch")
        plain: tuple[type, ...] = (type, ModuleType, FunctionType, np.ndarray)
        plain = plain if torch is None else (*plain, torch.nn.Module, torch.Tensor)
        parts = [] if isinstance(thing, plain) else list(getattr(thing, "__dict__", {}).values())
    distinct = {id(g): g for part in parts if depth for g in held_by(part, depth - 1)}
    return list(distinct.values())


def states_of(generators: Iterable[Any]) -> States:
    """Return generators of torch, NumPy or Python with their states."""
    return [(generator, _state(generator)) for generator in generators]


def _state(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.getstate() if hasattr(generator, "getstate") else generator.get_state()


def set_states(states: States) -> None:
    """Let generators have these states."""
    for generator, state in states:
        if isinstance(generator, np.random.Generator):
            generator.bit_generator.state = state
        elif hasattr(generator, "setstate"):
            generator.setstate(state)
        else:
            generator.set_state(state)


@contextmanager
def states_kept(generators: Iterable[Any] = ()) -> Iterator[None]:
    """Put back the states of the generators of the process, and of others, whatever draws from them meanwhile."""
    before = states_of([*of_the_process(), *generators])
    try:
        yield
    finally:
        set_states(before)
