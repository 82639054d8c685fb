"""Layers that leave fewer positions, without weights."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array

from steepest.core.fields import Count
from steepest.core.signatures import checked
from steepest.nn.layers._layer import Layer, Part, Scheme, Signal, need_space, without_weights
from steepest.nn.layers._masks import Mask, counted
from steepest.nn.layers._nodes import AllPositions, Average, Draft, EqualPositions, Kind
from steepest.nn.layers._window import one_or_several, window_of


@dataclass(frozen=True)
class Pool(Layer):
    """Average pooling; build it with :func:`pool`."""

    window: int | tuple[int, ...]
    stride: int | tuple[int, ...]

    word = "pool"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it."""
        need_space("pool", signal)
        window = window_of(self.window, self.stride, "none", len(signal.space))
        output = signal._replace(space=window.outputs(signal.space))

        def apply(x: Array, mask: Mask) -> Array:
            sums = jax.lax.reduce_window(
                x, 0.0, jax.lax.add, (1, *window.size, 1), (1, *window.stride, 1), "VALID"
            )
            if mask is None:
                return sums / window.volume
            # the mean over positions that exist: what does not is zero in the sum
            return sums / jnp.maximum(counted(mask, window, jnp), 1)[..., None]

        def extend(draft: Draft, source: int) -> int:
            return draft.add(Average((source,), window), draft.kinds[source], output.space)

        return without_weights(apply, output, extend, lambda mask: counted(mask, window, jnp) > 0)


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
def pool(window: Count | Sequence[Count], stride: Count | Sequence[Count] | None = None) -> Pool:
    """Make an average pooling without padding: positions that no full window reaches are dropped.

    Args:
        window: its size, one number or one for each dimension of space.
        stride: positions from one window to the next; by default the size, so that windows do not overlap.
    """
    return Pool(one_or_several(window), one_or_several(window if stride is None else stride))


def global_pool() -> GlobalPool:
    """Make the mean over all positions."""
    return GlobalPool()


def flatten() -> Flatten:
    """Make channels of all positions, for a ``dense`` layer that reads them all."""
    return Flatten()
