"""What a layer is: data that builds its part of a network, and of the limit."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import jax
from jaxtyping import Array

from steepest.core.errors import UserError
from steepest.nn.activations import Activation
from steepest.nn.layers._beside import Beside
from steepest.nn.layers._masks import Mask
from steepest.nn.layers._nodes import Draft
from steepest.nn.networks import Parameterization
from steepest.nn.types import Key, Params


class Signal(NamedTuple):
    """What flows from one layer to the next.

    Attributes:
        space: numbers of positions, one for each dimension; empty for plain vectors.
        channels: at each position.
        weighted: whether weights have acted on it, so that its channels grow with the width.
    """

    space: tuple[int, ...]
    channels: int
    weighted: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of one example, channels last."""
        return (*self.space, self.channels)


class Scheme(NamedTuple):
    """How widths and variances enter, the same in all layers that do not say otherwise.

    Attributes:
        parameterized: exponents of the width.
        c_w: C_W.
        c_b: C_b.
        bias: whether there are biases.
    """

    parameterized: Parameterization
    c_w: float
    c_b: float
    bias: bool


class Part(NamedTuple):
    """A layer at its place in a network.

    Attributes:
        init: draws its parameters from a key.
        apply: maps parameters and a signal ``(batch, *space, channels)`` to the next one; the mask beside it says which
            positions of the signal exist, and the others are zero. Dropout draws from the key, and drops nothing
            without one.
        output: the signal behind it.
        extend: adds its nodes behind a node of a draft and returns the index of the last; raises where the limit of
            infinitely many channels is not known.
        exists: which positions of the output exist, by those of the signal; None where it has no positions.
        graphs: numbers of positions of the graphs that it reads beside inputs.
    """

    init: Callable[[Key], Params]
    apply: Callable[[Params, Array, Beside, Key | None], Array]
    output: Signal
    extend: Callable[[Draft, int], int]
    exists: Callable[[Array], Mask]
    graphs: frozenset[int] = frozenset()


class Layer(ABC):
    """A step of a network as data, independent of what it reads: hashable, and equal where it says the same."""

    word: ClassVar[str] = "layer"

    @property
    def name(self) -> str:
        """Return what tables call it: the function that makes it, with its channels where it has weights."""
        return self.word

    @property
    def weighted(self) -> bool:
        """Tell whether it has weights."""
        return False

    @property
    def independent(self) -> bool:
        """Tell whether weights act on all that it passes on, so that nothing is correlated with what it reads."""
        return self.weighted

    @abstractmethod
    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build the layer for this signal.

        Args:
            signal: what it reads.
            scheme: how widths and variances enter.
            last: whether no other weights stand behind it.

        Raises:
            UserError: a signal that it cannot read.
        """


LayerLike = Layer | str | Activation | Callable[[Any], Any]
"""A layer, or an activation: by name, as an ``Activation``, or as a function on arrays."""


def same(mask: Array) -> Mask:
    """Return the mask of a layer that acts on each position for itself."""
    return mask


def without_weights(
    apply: Callable[[Array, Mask], Array],
    output: Signal,
    extend: Callable[[Draft, int], int],
    exists: Callable[[Array], Mask] = same,
) -> Part:
    """Return the part of a layer that has no parameters."""
    plain = lambda params, x, beside, key: apply(x, beside.mask)
    return Part(lambda key: {}, plain, output, extend, exists)


def keys_for(parts: Sequence[Part], key: Key | None) -> Sequence[Key | None]:
    """Return a key for each part, or none."""
    return [None] * len(parts) if key is None else [*jax.random.split(key, len(parts))]


def need_space(name: str, signal: Signal) -> None:
    """Raise a UserError where there are no positions."""
    if not signal.space:
        raise UserError(
            f"{name} needs positions, got plain vectors of {signal.channels} channels; "
            "put it before flatten() or global_pool(), or give network(..., shape=(height, width, channels))"
        )
