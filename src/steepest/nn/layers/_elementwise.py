"""Layers that act on each position for itself, without weights."""

from dataclasses import dataclass, replace

import jax.numpy as jnp
from jaxtyping import Array

from steepest.nn.activations import Activation
from steepest.nn.layers._layer import Layer, Part, Scheme, Signal, without_weights
from steepest.nn.layers._masks import Mask
from steepest.nn.layers._nodes import Activate, Concatenate, Draft, Kind, Normalize


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
    """Normalizes the channels of each position; build it with :func:`layer_norm`."""

    word = "layer_norm"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it."""

        def apply(x: Array, mask: Mask) -> Array:
            centred = x - x.mean(-1, keepdims=True)
            spread = (centred**2).mean(-1, keepdims=True)
            if mask is not None:  # zeros where no position exists have no spread
                spread = jnp.where(mask[..., None], spread, 1.0)
            return centred / jnp.sqrt(spread)

        def extend(draft: Draft, source: int) -> int:
            return draft.add(Normalize((source,)), draft.kinds[source], draft.spaces[source])

        return without_weights(apply, signal, extend)


def layer_norm() -> LayerNorm:
    """Make a layer normalization: mean zero and variance one over the channels of each position, without parameters."""
    return LayerNorm()


identity = Identity()
"""Passes on what it reads."""
