"""Layers that act on each position for itself, without weights."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.activations import Activation
from steepest.nn.layers._layer import Layer, Part, Scheme, Signal, need_space, without_weights
from steepest.nn.layers._masks import Mask
from steepest.nn.layers._nodes import (
    Activate,
    Concatenate,
    Draft,
    Kind,
    Normalize,
    NormalizeTogether,
)


@dataclass(frozen=True)
class Activated(Layer):
    """An activation; its name alone stands for it in a network."""

    activation: Activation

    @property
    def name(self) -> str:
        """Return the activation's name."""
        return self.activation.name

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it."""

        def extend(draft: Draft, source: int) -> int:
            beside = draft.nodes[source]
            if draft.kinds[source] is Kind.BRANCHES and isinstance(beside, Concatenate):
                # a mean over channels of several variances is one over branches, each with its own expectation
                ends = tuple(extend(draft, branch) for branch in beside.sources)
                return draft.add(replace(beside, sources=ends), Kind.OTHER, draft.spaces[source])
            if draft.kinds[source] is not Kind.GAUSSIAN:
                raise draft.refuse(
                    self.activation.name,
                    f"it reads {draft.kinds[source].value}",
                    "put dense() or conv() before it",
                )
            return draft.add(Activate((source,), self.activation), Kind.OTHER, draft.spaces[source])

        return without_weights(lambda x, mask: self.activation.function(x), signal, extend)


@dataclass(frozen=True)
class Identity(Layer):
    """Passes on what it reads: the other branch of a residual one."""

    word = "identity"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it."""
        return without_weights(lambda x, mask: x, signal, lambda draft, source: source)


@dataclass(frozen=True)
class LayerNorm(Layer):
    """Normalizes channels, of each position or of several together; build it with :func:`layer_norm`."""

    space: Literal["all"] | tuple[int, ...] | None = None

    word = "layer_norm"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it."""
        dimensions = self._dimensions(signal)
        axes = (*(1 + d for d in dimensions), len(signal.space) + 1)

        def apply(x: Array, mask: Mask) -> Array:
            exists = jnp.ones(x.shape[:-1], bool) if mask is None else mask
            counts = jnp.maximum(exists.sum(axes[:-1], keepdims=True), 1)[..., None]
            mean = lambda values: values.sum(axes, keepdims=True) / (counts * x.shape[-1])
            centred = jnp.where(exists[..., None], x - mean(x), 0)
            spread = mean(centred**2)
            if mask is not None:  # zeros where no position exists have no spread
                there = exists.any(axes[:-1], keepdims=True)[..., None]
                spread = jnp.where(there, spread, 1.0)
            return centred / jnp.sqrt(spread)

        def extend(draft: Draft, source: int) -> int:
            node = Normalize((source,))
            if dimensions:
                node = NormalizeTogether((source,), dimensions)
            return draft.add(node, draft.kinds[source], draft.spaces[source])

        return without_weights(apply, signal, extend)

    def _dimensions(self, signal: Signal) -> tuple[int, ...]:
        """Return the dimensions of space that are normalized together, none of them negative or twice."""
        if self.space is None:
            return ()
        need_space(self.word, signal)
        rank = len(signal.space)
        if self.space == "all":
            return tuple(range(rank))
        assert not isinstance(self.space, str)
        if not all(-rank <= d < rank for d in self.space):
            raise UserError(
                f"layer_norm normalizes dimensions {self.space} of space together, but space has {rank}; "
                'take numbers below that, or "all"'
            )
        return tuple(sorted({d % rank for d in self.space}))


@checked
def layer_norm(space: Literal["all"] | int | Sequence[int] | None = None) -> LayerNorm:
    """Make a layer normalization without parameters: mean zero and variance one over channels, of each position.

    Args:
        space: dimensions of space whose positions are normalized together, with one mean and variance for all their
            channels: ``"all"``, one or several dimensions; None for each position by itself. Positions that a mask
            leaves out do not count.

    Raises:
        UserError: another word.

    >>> layer_norm("all").space
    'all'
    """
    if space is None or isinstance(space, str):
        return LayerNorm(space)
    return LayerNorm((space,) if isinstance(space, int) else tuple(space))


identity = Identity()
"""Passes on what it reads."""
