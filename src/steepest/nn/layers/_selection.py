"""A layer that takes some of the positions."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.layers._layer import Layer, Part, Scheme, Signal, need_space, without_weights
from steepest.nn.layers._masks import Mask, taken
from steepest.nn.layers._nodes import Draft
from steepest.nn.layers._nodes import Select as SelectNode
from steepest.nn.layers._window import times

Steps = tuple[int | None, int | None, int | None]
"""Start, stop and step of a slice."""


@dataclass(frozen=True)
class Select(Layer):
    """Takes some of the positions; build it with :func:`select`."""

    slices: tuple[int | Steps, ...]

    word = "select"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it."""
        need_space(self.word, signal)
        positions = self._positions(signal.space)
        space = tuple(len(p) for p in positions if not isinstance(p, int))

        def apply(x: Array, mask: Mask) -> Array:
            return taken(x, positions, jnp, 1)

        def extend(draft: Draft, source: int) -> int:
            return draft.add(SelectNode((source,), positions), draft.kinds[source], space)

        def exists(mask: Array) -> Mask:
            return taken(mask, positions, jnp, 1) if space else None

        return without_weights(apply, signal._replace(space=space), extend, exists)

    def _positions(self, space: tuple[int, ...]) -> tuple[int | tuple[int, ...], ...]:
        """Return the positions that are taken in each dimension, none of them negative."""
        if len(self.slices) > len(space):
            raise UserError(
                f"select takes positions in {len(self.slices)} dimensions, but space has {len(space)}"
            )
        every: Steps = (None, None, None)
        slices = (*self.slices, *(every for _ in space[len(self.slices) :]))
        return tuple(map(partial(_in_dimension, space), slices, space))


def _in_dimension(space: tuple[int, ...], steps: int | Steps, n: int) -> int | tuple[int, ...]:
    if isinstance(steps, int):
        if not -n <= steps < n:
            raise UserError(f"select takes position {steps}, but there are {times(space)}")
        return steps % n
    positions = tuple(range(n)[slice(*steps)])
    if not positions:
        raise UserError(f"select takes no position: the slice {steps} of {n} is empty")
    return positions


@checked
def select(*slices: int | slice) -> Select:
    """Take some of the positions: a part of an image, every other position, or the first of a sequence.

    Positions that a mask leaves out stay left out where they are taken. An input that lacks the only position that is
    taken has no kernel, and its signal is zero in a finite network.

    Args:
        slices: one for each dimension of space, further ones are kept whole; a number takes one position and leaves
            the dimension out.

    Raises:
        UserError: no slices, something else than numbers and slices, or slices of other numbers than whole ones.

    >>> select(0).slices  # of a sequence the token that stands first
    (0,)
    """
    if not slices or not all(map(_takes_positions, slices)):
        raise UserError(
            f"select needs a slice or a position for each dimension of space, got {slices}; "
            "as select(slice(0, 4), slice(None, None, 2))"
        )
    return Select(tuple(map(_steps, slices)))


def _takes_positions(given: Any) -> bool:
    """Tell whether this is a whole number, or a slice of whole numbers whose step is not zero."""
    if not isinstance(given, slice):
        return isinstance(given, (int, np.integer))
    steps = (given.start, given.stop, given.step)
    whole = all(number is None or isinstance(number, (int, np.integer)) for number in steps)
    return whole and given.step != 0


def _steps(given: int | slice) -> int | Steps:
    """Return a position, or start, stop and step, in numbers of Python."""
    if not isinstance(given, slice):
        return int(given)
    plain = [None if n is None else int(n) for n in (given.start, given.stop, given.step)]
    return plain[0], plain[1], plain[2]
