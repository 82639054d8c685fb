"""Layers that act on each position for itself, without weights."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array

from steepest.nn.activations import Activation
from steepest.nn.layers._layer import Layer, Part, Scheme, Signal, without_weights
from steepest.nn.layers._nodes import Activate, Draft, Kind, Normalize


@dataclass(frozen=True)
class Activated(Layer):
    """An activation; its name alone stands for it in a network."""

    activation: Activation

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it."""

        def extend(draft: Draft, source: int) -> int:
            if draft.kinds[source] is not Kind.GAUSSIAN:
                raise draft.refuse(
                    self.activation.name,
                    f"it reads {draft.kinds[source].value}",
                    "put dense() or conv() before it",
                )
            return draft.add(Activate((source,), self.activation), Kind.OTHER, draft.spaces[source])

        return without_weights(self.activation.function, signal, extend)


@dataclass(frozen=True)
class Identity(Layer):
    """Passes on what it reads: the other branch of a residual one."""

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it."""
        return without_weights(lambda x: x, signal, lambda draft, source: source)


@dataclass(frozen=True)
class LayerNorm(Layer):
    """Normalizes the channels of each position; build it with :func:`layer_norm`."""

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it."""

        def apply(x: Array) -> Array:
            centred = x - x.mean(-1, keepdims=True)
            return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True))

        def extend(draft: Draft, source: int) -> int:
            return draft.add(Normalize((source,)), draft.kinds[source], draft.spaces[source])

        return without_weights(apply, signal, extend)


def layer_norm() -> LayerNorm:
    """Make a layer normalization: mean zero and variance one over the channels of each position, without parameters."""
    return LayerNorm()


identity = Identity()
"""Passes on what it reads."""
