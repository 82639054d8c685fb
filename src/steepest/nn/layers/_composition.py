"""Layers that are made of layers: one after the other, or side by side."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import jax
import jax.numpy as jnp
from jaxtyping import Array

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.activations import activation
from steepest.nn.layers._beside import Beside
from steepest.nn.layers._elementwise import Activated
from steepest.nn.layers._layer import Layer, LayerLike, Part, Scheme, Signal, keys_for
from steepest.nn.layers._masks import Mask, blanked
from steepest.nn.layers._nodes import Concatenate, Draft, Kind, Product, Stack, Sum
from steepest.nn.networks._parameterization import _number_or_traced
from steepest.nn.types import Key, Params


@dataclass(frozen=True)
class Serial(Layer):
    """Layers one after the other; build it with :func:`serial`."""

    layers: tuple[Layer, ...]

    word = "serial"

    @property
    def weighted(self) -> bool:
        """Tell whether one of them has weights."""
        return any(layer.weighted for layer in self.layers)

    @property
    def independent(self) -> bool:
        """Tell whether one of them forgets what it reads."""
        return any(layer.independent for layer in self.layers)

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

        def apply(params: Params, x: Array, beside: Beside, key: Key | None) -> Array:
            for part, weights, of_part in zip(parts, params, keys_for(parts, key), strict=True):
                x = part.apply(weights, x, beside, of_part)
                mask = None if beside.mask is None else part.exists(beside.mask)
                beside = beside._replace(mask=mask)
                x = x if mask is None else blanked(x, mask, jnp)
            return x

        def exists(mask: Array) -> Mask:
            behind: Mask = mask
            for part in parts:
                behind = None if behind is None else part.exists(behind)
            return behind

        def extend(draft: Draft, source: int) -> int:
            for layer, part in zip(self.layers, parts, strict=True):
                source = part.extend(draft, source)
                if not isinstance(layer, Serial):  # its layers are stages themselves
                    draft.mark(layer.name, source)
            return source

        return Part(init, apply, signal, extend, exists, _graphs_of(parts))


@dataclass(frozen=True)
class Branched(Layer):
    """Branches that read the same signal; parameters are a tuple, one entry a branch."""

    branches: tuple[Layer, ...]

    @property
    def weighted(self) -> bool:
        """Tell whether one of them has weights."""
        return any(branch.weighted for branch in self.branches)

    @property
    def independent(self) -> bool:
        """Tell whether all of them forget what they read: one that does not shows in what they are joined to."""
        return all(branch.independent for branch in self.branches)

    @abstractmethod
    def join(self, parts: list[Part]) -> tuple[Callable[[list[Array]], Array], int]:
        """Return how the branches' signals become one, and the number of its channels; raise where they cannot."""

    def space(self, parts: list[Part]) -> tuple[int, ...]:
        """Return the numbers of positions behind the branches."""
        return parts[0].output.space

    def exists(self, masks: list[Array]) -> Array:
        """Return which positions exist behind branches, of which there is at least one."""
        return reduce(jnp.logical_and, masks)

    @abstractmethod
    def extend(self, draft: Draft, parts: list[Part], ends: tuple[int, ...]) -> int:
        """Add the node that joins the branches' last nodes and return its index."""

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build the branches, and what joins them."""
        parts = [branch.build(signal, scheme, last=last) for branch in self.branches]
        joined, channels = self.join(parts)

        def init(key: Key) -> Params:
            keys = jax.random.split(key, len(parts))
            return tuple(part.init(keys[i]) for i, part in enumerate(parts))

        def apply(params: Params, x: Array, beside: Beside, key: Key | None) -> Array:
            branches = zip(parts, params, keys_for(parts, key), strict=True)
            return joined([part.apply(weights, x, beside, k) for part, weights, k in branches])

        def exists(mask: Array) -> Mask:
            masks = [part.exists(mask) for part in parts]
            with_positions = [m for m in masks if m is not None]
            return self.exists(with_positions) if with_positions else None

        def extend(draft: Draft, source: int) -> int:
            with draft.branches():
                ends = tuple(part.extend(draft, source) for part in parts)
            if Kind.INPUT in (draft.kinds[end] for end in ends):
                why = "a branch is the raw input, whose channels stay few"
                raise draft.refuse(self.name, why, "put dense() before it")
            return self.extend(draft, parts, ends)

        weighted = all(part.output.weighted for part in parts)
        output = Signal(self.space(parts), channels, weighted)
        return Part(init, apply, output, extend, exists, _graphs_of(parts))

    def _need_one_shape(self, parts: list[Part]) -> None:
        shapes = [part.output.shape for part in parts]
        if len(set(shapes)) > 1:
            raise UserError(
                f"branches of {self.name} need one shape, got {' and '.join(map(str, shapes))}; "
                "give the shorter one a dense() or conv() of the same width and stride"
            )

    def _need_independence(self, draft: Draft) -> None:
        """Raise where several branches pass on, as a whole or in part, what they read."""
        if sum(not branch.independent for branch in self.branches) > 1:
            raise draft.refuse(
                self.name,
                "more than one branch passes on what it reads, without weights of its own or beside them, so that "
                "branches are not independent",
                "end all branches but one with dense() or conv()",
            )


@dataclass(frozen=True)
class Add(Branched):
    """The weighted sum of branches; build it with :func:`add`."""

    weights: tuple[float, ...]

    word = "add"

    def join(self, parts: list[Part]) -> tuple[Callable[[list[Array]], Array], int]:
        """Add signals of one shape."""
        self._need_one_shape(parts)

        def total(signals: list[Array]) -> Array:
            weighted = [r * x for r, x in zip(self.weights, signals, strict=True)]
            return reduce(jnp.add, weighted)

        return total, parts[0].output.channels

    def extend(self, draft: Draft, parts: list[Part], ends: tuple[int, ...]) -> int:
        """Add a ``Sum``; branches must be independent, and have mean zero but for one of them."""
        self._need_independence(draft)
        kinds = [draft.kinds[end] for end in ends]
        if kinds.count(Kind.OTHER) > 1:
            raise draft.refuse(
                self.name,
                "more than one branch ends in an activation, whose mean is not zero",
                "end all branches but one with dense() or conv()",
            )
        kind = Kind.GAUSSIAN if set(kinds) == {Kind.GAUSSIAN} else Kind.OTHER
        return draft.add(Sum(ends, self.weights), kind, draft.spaces[ends[0]])


@dataclass(frozen=True)
class Concatenated(Branched):
    """The channels of branches side by side; build it with :func:`concatenate`."""

    word = "concatenate"

    def join(self, parts: list[Part]) -> tuple[Callable[[list[Array]], Array], int]:
        """Put channels one behind the other, at the same positions."""
        spaces = {part.output.space for part in parts}
        if len(spaces) > 1:
            shapes = " and ".join(str(part.output.shape) for part in parts)
            raise UserError(
                f"branches of concatenate need the same positions, got shapes {shapes}; "
                "give them the same strides and pools"
            )
        channels = sum(part.output.channels for part in parts)
        return partial(jnp.concatenate, axis=-1), channels

    def extend(self, draft: Draft, parts: list[Part], ends: tuple[int, ...]) -> int:
        """Add a ``Concatenate``; branches need not be independent, as no channel meets that of another branch."""
        counts = [part.output.channels for part in parts]
        shares = tuple(count / sum(counts) for count in counts)
        kinds = {draft.kinds[end] for end in ends}
        kind = Kind.BRANCHES if kinds <= {Kind.GAUSSIAN, Kind.BRANCHES} else Kind.OTHER
        return draft.add(Concatenate(ends, shares), kind, draft.spaces[ends[0]])


@dataclass(frozen=True)
class Stacked(Branched):
    """The positions of branches side by side, along a dimension of space; build it with :func:`concatenate`."""

    dimension: int

    word = "concatenate"

    def join(self, parts: list[Part]) -> tuple[Callable[[list[Array]], Array], int]:
        """Put positions one behind the other."""
        shapes = [part.output.shape for part in parts]
        rank = len(parts[0].output.space)
        if not -rank <= self.dimension < rank:
            raise UserError(
                f"concatenate joins dimension {self.dimension} of space, but branches have {rank}; "
                "leave out space to join channels"
            )
        axis = self._axis(parts)
        if len({(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}) > 1:
            raise UserError(
                f"branches of concatenate need shapes that differ in dimension {axis} of space only, "
                f"got {' and '.join(map(str, shapes))}"
            )
        return partial(jnp.concatenate, axis=1 + axis), parts[0].output.channels

    def space(self, parts: list[Part]) -> tuple[int, ...]:
        """Add up the positions along the dimension."""
        axis = self._axis(parts)
        before = parts[0].output.space
        total = sum(part.output.space[axis] for part in parts)
        return (*before[:axis], total, *before[axis + 1 :])

    def exists(self, masks: list[Array]) -> Array:
        """Put masks one behind the other."""
        return jnp.concatenate(masks, axis=1 + self.dimension % (masks[0].ndim - 1))

    def extend(self, draft: Draft, parts: list[Part], ends: tuple[int, ...]) -> int:
        """Add a ``Stack`` of independent Gaussian branches."""
        self._need_independence(draft)
        if {draft.kinds[end] for end in ends} != {Kind.GAUSSIAN}:
            raise draft.refuse(
                f"{self.name} along space",
                "channels of a branch are not Gaussian with mean zero, so that branches are correlated",
                "end all branches with dense() or conv()",
            )
        return draft.add(Stack(ends, self._axis(parts)), Kind.GAUSSIAN, self.space(parts))

    def _axis(self, parts: list[Part]) -> int:
        return self.dimension % len(parts[0].output.space)


@dataclass(frozen=True)
class Multiply(Branched):
    """The product of branches, channel by channel; build it with :func:`multiply`."""

    word = "multiply"

    def join(self, parts: list[Part]) -> tuple[Callable[[list[Array]], Array], int]:
        """Multiply signals of one shape."""
        self._need_one_shape(parts)
        return partial(reduce, jnp.multiply), parts[0].output.channels

    def extend(self, draft: Draft, parts: list[Part], ends: tuple[int, ...]) -> int:
        """Add a ``Product`` of independent branches."""
        self._need_independence(draft)
        if sum(map(draft.several_laws, ends)) > 1:
            # a product's mean over channels is the product of means only where one of them is alike in all channels
            raise draft.refuse(
                self.name,
                "channels of more than one branch have several laws, by concatenate or flatten, so that kernels "
                "depend on which channels meet",
                "end all branches but one with dense() or conv()",
            )
        return draft.add(Product(ends), Kind.OTHER, draft.spaces[ends[0]])


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


@checked
def add(*branches: LayerLike, weights: Sequence[float] | None = None) -> Add:
    """Add branches that read the same signal.

    Args:
        branches: layers; ``identity`` and one with weights make a residual block.
        weights: a factor for each branch; ones by default.

    Raises:
        UserError: fewer than two branches, or another number of weights.
    """
    layers = _several("add", branches)
    factors = (1.0,) * len(layers) if weights is None else tuple(map(_number_or_traced, weights))
    if len(factors) != len(layers):
        raise UserError(
            f"add needs one weight for each of {len(layers)} branches, got {len(factors)}"
        )
    return Add(layers, factors)


@checked
def concatenate(*branches: LayerLike, space: int | None = None) -> Concatenated | Stacked:
    """Put branches that read the same signal side by side: their channels, or their positions.

    Channels stand side by side in inception and dense networks. An activation may follow: it acts on each branch for
    itself. In the limit the numbers of channels grow in proportion. Positions of branches have a limit where branches
    are independent and Gaussian, as behind ``dense`` and ``conv``: no kernel is left between two of them.

    Args:
        branches: layers.
        space: the dimension of space along which positions stand side by side; None for channels.

    Raises:
        UserError: fewer than two branches.

    >>> concatenate("relu", "tanh", space=0).dimension
    0
    """
    layers = _several("concatenate", branches)
    return Concatenated(layers) if space is None else Stacked(layers, int(space))


def multiply(*branches: LayerLike) -> Multiply:
    """Multiply branches that read the same signal, channel by channel: gates.

    Raises:
        UserError: fewer than two branches.

    >>> gated = multiply(serial("tanh"), serial("relu"))
    >>> len(gated.branches)
    2
    """
    return Multiply(_several("multiply", branches))


def _graphs_of(parts: list[Part]) -> frozenset[int]:
    """Return the numbers of positions of all graphs that parts read."""
    return frozenset().union(*(part.graphs for part in parts))


def _several(name: str, branches: tuple[LayerLike, ...]) -> tuple[Layer, ...]:
    if len(branches) < 2:
        raise UserError(f"{name} needs two or more branches, got {len(branches)}")
    return tuple(as_layer(branch) for branch in branches)


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
