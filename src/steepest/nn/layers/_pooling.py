"""Layers that leave fewer positions, without weights."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array

from steepest.core.fields import Count
from steepest.core.signatures import checked
from steepest.nn.layers._layer import Layer, Part, Scheme, Signal, need_space, without_weights
from steepest.nn.layers._linear import with_edges
from steepest.nn.layers._masks import Mask, behind_pool, counted
from steepest.nn.layers._nodes import (
    AllPositions,
    Average,
    Divisor,
    Draft,
    EqualPositions,
    Kind,
    Sum,
)
from steepest.nn.layers._window import Window, checked_padding, one_or_several, window_of


@dataclass(frozen=True)
class Windowed(Layer):
    """What slides a window over positions, without weights."""

    window: int | tuple[int, ...]
    stride: int | tuple[int, ...]
    padding: str = "none"

    def windowed(
        self,
        signal: Signal,
        reduced: Callable[[Window, Array, Mask], Array],
        extended: Callable[[Window, Signal, Draft, int], int],
    ) -> Part:
        """Build it from what it makes of windows, and from what it adds to a limit."""
        need_space(self.word, signal)
        window = window_of(self.window, self.stride, self.padding, len(signal.space))
        output = signal._replace(space=window.outputs(signal.space))
        exists = partial(behind_pool, window=window, xp=jnp)
        return without_weights(
            partial(reduced, window), output, partial(extended, window, output), exists
        )


@dataclass(frozen=True)
class Pool(Windowed):
    """Average pooling; build it with :func:`pool`."""

    count_edges: bool = True

    word = "pool"

    @property
    def divisor(self) -> Divisor:
        """Return by what sums are divided: what does not exist counts as what lies beyond the edge does."""
        return "volume" if self.padding == "zero" and self.count_edges else "existing"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it."""

        def means(window: Window, x: Array, mask: Mask) -> Array:
            sums = _sums(window, x)
            if self.divisor == "volume" or (mask is None and window.padding != "zero"):
                return sums / window.volume
            everywhere = jnp.ones(x.shape[:-1], bool)
            # the mean over positions that exist: what does not is zero in the sum
            counts = counted(everywhere if mask is None else mask, window, jnp)
            return sums / jnp.maximum(counts, 1)[..., None]

        def extended(window: Window, output: Signal, draft: Draft, source: int) -> int:
            node = Average((source,), window, self.divisor)
            return draft.add(node, draft.kinds[source], output.space)

        return self.windowed(signal, means, extended)


@dataclass(frozen=True)
class SumPool(Windowed):
    """Sums over windows; build it with :func:`sum_pool`."""

    word = "sum_pool"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it."""

        def extended(window: Window, output: Signal, draft: Draft, source: int) -> int:
            node = Average((source,), window, "volume")
            return _times(draft, node, window.volume, output.space)

        return self.windowed(signal, lambda window, x, mask: _sums(window, x), extended)


@dataclass(frozen=True)
class MaxPool(Windowed):
    """The largest in each window, channel by channel; build it with :func:`max_pool`."""

    word = "max_pool"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it."""

        def largest(window: Window, x: Array, mask: Mask) -> Array:
            exists = jnp.ones(x.shape[:-1], bool) if mask is None else mask
            # what does not exist is never the largest, nor what lies beyond the edge
            kept = jnp.where(with_edges(exists[..., None], window), with_edges(x, window), -jnp.inf)
            maxima = jax.lax.reduce_window(kept, -jnp.inf, jax.lax.max, *_geometry(window))
            return jnp.where(jnp.isneginf(maxima), 0, maxima)

        def extended(window: Window, output: Signal, draft: Draft, source: int) -> int:
            why = (
                "the largest of several Gaussian signals at different positions has no closed form"
            )
            raise draft.refuse(self.word, why, "take pool")

        return self.windowed(signal, largest, extended)


@dataclass(frozen=True)
class GlobalPool(Layer):
    """The mean over all positions; build it with :func:`global_pool`."""

    word = "global_pool"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it."""
        need_space("global_pool", signal)
        axes = tuple(range(1, 1 + len(signal.space)))

        def apply(x: Array, mask: Mask) -> Array:
            if mask is None:
                return jnp.mean(x, axis=axes)
            return x.sum(axes) / jnp.maximum(mask.sum(axes), 1)[:, None]

        def extend(draft: Draft, source: int) -> int:
            return draft.add(AllPositions((source,)), draft.kinds[source], ())

        return without_weights(apply, signal._replace(space=()), extend, lambda mask: None)


@dataclass(frozen=True)
class GlobalSumPool(Layer):
    """The sum over all positions; build it with :func:`global_sum_pool`."""

    word = "global_sum_pool"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it."""
        need_space(self.word, signal)
        axes = tuple(range(1, 1 + len(signal.space)))

        def extend(draft: Draft, source: int) -> int:
            node = AllPositions((source,), "volume")
            return _times(draft, node, math.prod(signal.space), ())

        apply = lambda x, mask: x.sum(axes)
        return without_weights(apply, signal._replace(space=()), extend, lambda mask: None)


@dataclass(frozen=True)
class Flatten(Layer):
    """Makes channels of positions; build it with :func:`flatten`."""

    word = "flatten"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it."""
        need_space("flatten", signal)
        output = Signal((), math.prod(signal.shape), signal.weighted)

        def extend(draft: Draft, source: int) -> int:
            # channels of different positions differ in their laws: only a linear layer may follow
            kind = Kind.INPUT if draft.kinds[source] is Kind.INPUT else Kind.OTHER
            return draft.add(EqualPositions((source,)), kind, ())

        apply = lambda x, mask: x.reshape(len(x), -1)
        return without_weights(apply, output, extend, lambda mask: None)


@checked
def pool(
    window: Count | Sequence[Count],
    stride: Count | Sequence[Count] | None = None,
    padding: str = "none",
    *,
    count_edges: bool = True,
) -> Pool:
    """Make an average pooling, by default without padding: positions that no full window reaches are dropped.

    Args:
        window: its size, one number or one for each dimension of space.
        stride: positions from one window to the next; by default the size, so that windows do not overlap.
        padding: ``"none"``, or ``"zero"`` or ``"circular"`` for as many outputs as inputs, over the stride.
        count_edges: with zeros beyond the edge, whether these zeros count in the means; without them a sum is divided
            by the number of positions inside. Positions that a mask leaves out count as what lies beyond the edge;
            with another padding they never count.

    Raises:
        UserError: an unknown padding.

    >>> pool(3, 2, "zero", count_edges=False).divisor
    'existing'
    """
    return Pool(*_sliding(window, stride, padding), count_edges)


@checked
def sum_pool(
    window: Count | Sequence[Count],
    stride: Count | Sequence[Count] | None = None,
    padding: str = "none",
) -> SumPool:
    """Make sums over windows, the means of :func:`pool` times the window's volume; what does not exist adds nothing.

    Args:
        window: its size, one number or one for each dimension of space.
        stride: positions from one window to the next; by default the size.
        padding: ``"none"``, ``"zero"`` or ``"circular"``.

    Raises:
        UserError: an unknown padding.

    >>> sum_pool(2).stride
    2
    """
    return SumPool(*_sliding(window, stride, padding))


@checked
def max_pool(
    window: Count | Sequence[Count],
    stride: Count | Sequence[Count] | None = None,
    padding: str = "none",
) -> MaxPool:
    """Make the largest of each window, channel by channel, for finite networks: it has no known limit.

    Positions that do not exist, by a mask or beyond the edge, are never the largest.

    Args:
        window: its size, one number or one for each dimension of space.
        stride: positions from one window to the next; by default the size.
        padding: ``"none"``, ``"zero"`` or ``"circular"``.

    Raises:
        UserError: an unknown padding.

    >>> max_pool((2, 1)).window
    (2, 1)
    """
    return MaxPool(*_sliding(window, stride, padding))


def global_pool() -> GlobalPool:
    """Make the mean over all positions."""
    return GlobalPool()


def global_sum_pool() -> GlobalSumPool:
    """Make the sum over all positions that exist.

    >>> global_sum_pool().name
    'global_sum_pool'
    """
    return GlobalSumPool()


def flatten() -> Flatten:
    """Make channels of all positions, for a ``dense`` layer that reads them all."""
    return Flatten()


def _sliding(
    window: int | Sequence[int], stride: int | Sequence[int] | None, padding: str
) -> tuple[int | tuple[int, ...], int | tuple[int, ...], str]:
    """Return window, stride and padding as layers keep them; windows do not overlap without a stride."""
    steps = window if stride is None else stride
    return one_or_several(window), one_or_several(steps), checked_padding(padding)


def _geometry(window: Window) -> tuple[tuple[int, ...], tuple[int, ...], str]:
    """Return what XLA asks of windows over signals that have their edges."""
    return (1, *window.size, 1), (1, *window.stride, 1), "VALID"


def _sums(window: Window, x: Array) -> Array:
    """Sum over windows, ``(batch, *outputs, channels)``."""
    return jax.lax.reduce_window(with_edges(x, window), 0.0, jax.lax.add, *_geometry(window))


def _times(draft: Draft, mean: Average | AllPositions, volume: int, space: tuple[int, ...]) -> int:
    """Add a mean and its multiple, the sum; return the index of the sum."""
    kind = draft.kinds[mean.sources[0]]
    average = draft.add(mean, kind, space)
    return draft.add(Sum((average,), (float(volume),)), kind, space)
