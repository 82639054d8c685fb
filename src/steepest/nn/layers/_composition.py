"""Layers that are made of layers: one after the other, or side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array

from steepest.core.errors import UserError
from steepest.nn.activations import activation
from steepest.nn.layers._elementwise import Activated
from steepest.nn.layers._layer import Layer, LayerLike, Part, Scheme, Signal
from steepest.nn.layers._nodes import Draft, Kind, Sum
from steepest.nn.types import Key, Params


@dataclass(frozen=True)
class Serial(Layer):
    """Layers one after the other; build it with :func:`serial`."""

    layers: tuple[Layer, ...]

    @property
    def weighted(self) -> bool:
        """Tell whether one of them has weights."""
        return any(layer.weighted for layer in self.layers)

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build them; parameters are a tuple, one entry a layer."""
        parts: list[Part] = []
        for i, layer in enumerate(self.layers):
            behind = any(other.weighted for other in self.layers[i + 1 :])
            parts.append(layer.build(signal, scheme, last=last and not behind))
            signal = parts[-1].output

        def init(key: Key) -> Params:
            keys = jax.random.split(key, len(parts))
            return tuple(part.init(keys[i]) for i, part in enumerate(parts))

        def apply(params: Params, x: Array) -> Array:
            for part, weights in zip(parts, params, strict=True):
                x = part.apply(weights, x)
            return x

        def extend(draft: Draft, source: int) -> int:
            for part in parts:
                source = part.extend(draft, source)
            return source

        return Part(init, apply, signal, extend)


@dataclass(frozen=True)
class Add(Layer):
    """The weighted sum of branches that read the same; build it with :func:`add`."""

    branches: tuple[Layer, ...]
    weights: tuple[float, ...]

    @property
    def weighted(self) -> bool:
        """Tell whether one of them has weights."""
        return any(branch.weighted for branch in self.branches)

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build them; parameters are a tuple, one entry a branch."""
        parts = [branch.build(signal, scheme, last=last) for branch in self.branches]
        shapes = [part.output.shape for part in parts]
        if len(set(shapes)) > 1:
            raise UserError(
                f"branches of add need one shape, got {' and '.join(map(str, shapes))}; "
                "give the shorter one a dense() or conv() of the same width and stride"
            )

        def init(key: Key) -> Params:
            keys = jax.random.split(key, len(parts))
            return tuple(part.init(keys[i]) for i, part in enumerate(parts))

        def apply(params: Params, x: Array) -> Array:
            total = jnp.zeros((), x.dtype)
            for part, own, r in zip(parts, params, self.weights, strict=True):
                total = total + r * part.apply(own, x)
            return total

        def extend(draft: Draft, source: int) -> int:
            ends = tuple(part.extend(draft, source) for part in parts)
            self._check(draft, ends)
            kinds = {draft.kinds[end] for end in ends}
            kind = Kind.GAUSSIAN if kinds == {Kind.GAUSSIAN} else Kind.OTHER
            squares = tuple(r**2 for r in self.weights)
            return draft.add(Sum(ends, squares), kind, draft.spaces[ends[0]])

        weighted = all(part.output.weighted for part in parts)
        return Part(init, apply, parts[0].output._replace(weighted=weighted), extend)

    def _check(self, draft: Draft, ends: tuple[int, ...]) -> None:
        """Raise where branches are not independent with mean zero, but for one of them."""
        if sum(not branch.weighted for branch in self.branches) > 1:
            raise draft.refuse(
                "add",
                "more than one branch has no weights of its own, so that branches are not independent",
                "end all branches but one with dense() or conv()",
            )
        if Kind.INPUT in (draft.kinds[end] for end in ends):
            raise draft.refuse(
                "add", "a branch is the raw input, whose channels stay few", "put dense() before it"
            )
        if sum(draft.kinds[end] is Kind.OTHER for end in ends) > 1:
            raise draft.refuse(
                "add",
                "more than one branch ends in an activation, whose mean is not zero",
                "end all branches but one with dense() or conv()",
            )


def serial(*layers: LayerLike) -> Serial:
    """Put layers one after the other; an activation's name or function is a layer too.

    Raises:
        UserError: no layers, or something that is no layer.

    >>> len(serial("relu", "tanh").layers)
    2
    """
    if not layers:
        raise UserError("serial needs at least one layer; identity passes on what it reads")
    return Serial(tuple(as_layer(layer) for layer in layers))


def add(*branches: LayerLike, weights: Sequence[float] | None = None) -> Add:
    """Add branches that read the same signal.

    Args:
        branches: layers; ``identity`` and one with weights make a residual block.
        weights: a factor for each branch; ones by default.

    Raises:
        UserError: fewer than two branches, or another number of weights.
    """
    factors = (1.0,) * len(branches) if weights is None else tuple(float(r) for r in weights)
    if len(branches) < 2 or len(factors) != len(branches):
        raise UserError(
            f"add needs two or more branches and one weight for each, got {len(branches)} and {len(factors)}"
        )
    return Add(tuple(as_layer(branch) for branch in branches), factors)


def as_layer(layer: LayerLike) -> Layer:
    """Return a layer: itself, or an activation by its name or function.

    Raises:
        UserError: something else, with what a layer may be.
    """
    if isinstance(layer, Layer):
        return layer
    if getattr(layer, "__module__", "").startswith("steepest.nn.layers"):
        name = getattr(layer, "__name__", "it")
        raise UserError(f"{name} makes a layer and is none; call it, as in {name}()")
    return Activated(activation(layer))
