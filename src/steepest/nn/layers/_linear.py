"""Layers with weights: one matrix for all positions, or a filter for all windows."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from steepest.core.errors import UserError
from steepest.core.fields import Count
from steepest.core.signatures import checked
from steepest.nn.layers._beside import Beside
from steepest.nn.layers._layer import Layer, Part, Scheme, Signal, need_space, same
from steepest.nn.layers._masks import behind_convolution
from steepest.nn.layers._nodes import Draft, Kind, Linear
from steepest.nn.layers._window import Window, one_or_several, times, window_of
from steepest.nn.networks._parameterization import _check_variances, check_limit, width_factor
from steepest.nn.types import Key, Params

WATCH = "watch"
"""The name beside a layer's weights of a function that sees each use of them: of a ``Use`` and the pre-activations
``(batch, *outputs, width)``, which it returns, moved or not."""


class Use(NamedTuple):
    """What a layer with weights reads: its pre-activations are ``multiplier · w x``, with biases perhaps.

    Attributes:
        x: the signal, ``(batch, *space, channels)``.
        multiplier: of the parameterization.
        window: of a convolution; None where each position is read for itself.
        shared: whether all positions have the same weights.
        bias: whether there are biases.
    """

    x: Array
    multiplier: float
    window: Window | None
    shared: bool
    bias: bool


class Weights(Layer):
    """A layer with weights of its own."""

    width: int

    @property
    def name(self) -> str:
        """Return the function that makes it, with the number of channels."""
        return f"{self.word}({self.width})"

    @property
    def weighted(self) -> bool:
        """Tell that it has weights."""
        return True


@dataclass(frozen=True)
class Dense(Weights):
    """One matrix that acts on the channels of each position; build it with :func:`dense`."""

    width: int
    c_w: float | None = None
    c_b: float | None = None

    word = "dense"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it; parameters are ``{"w": (width, channels), "b": (width,)}``."""

        def product(w: Array, x: Array) -> Array:
            return x @ w.T

        return _weights(self, None, product, signal, scheme, last)


@dataclass(frozen=True)
class Conv(Weights):
    """A filter that slides over the positions, or one for each of them; build it with :func:`conv`."""

    width: int
    window: int | tuple[int, ...] = 3
    stride: int | tuple[int, ...] = 1
    padding: str = "zero"
    shared: bool = True
    transposed: bool = False
    c_w: float | None = None
    c_b: float | None = None

    word = "conv"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it; parameters are ``{"w": (width, channels, *window), "b": (width,)}``.

        Those of each output position have its axes in front.
        """
        need_space(self.name, signal)
        rank = len(signal.space)
        window = window_of(self.window, self.stride, self.padding, rank, transposed=self.transposed)
        outputs = window.outputs(signal.space)

        def product(w: Array, x: Array) -> Array:
            """Sum a product of matrices for each tap, or one product for each position with weights of its own.

            Inside compiled loops on the CPU XLA's own convolution is many times slower than this, and the gradients of
            many networks at once are such a loop. Outside of loops it is faster where a batch does not fit the cache.
            """
            x = with_edges(x, window)
            taps = list(itertools.product(*map(range, window.size)))
            if not self.shared:
                read = jnp.stack([at_tap(x, tap, window, outputs) for tap in taps], axis=-1)
                flat = w.reshape(*outputs, self.width, -1)
                return jnp.einsum("n...i,...oi->n...o", read.reshape(*read.shape[:-2], -1), flat)
            total = jnp.zeros((), x.dtype)
            for tap in taps:
                total = total + at_tap(x, tap, window, outputs) @ w[(..., *tap)].T
            return total

        return _weights(
            self,
            window,
            product,
            signal,
            scheme,
            last,
            positions=() if self.shared else outputs,
        )


@checked
def dense(width: Count, *, c_w: float | None = None, c_b: float | None = None) -> Dense:
    """Make one matrix for the channels of each position; behind ``flatten()`` that is the usual last layer.

    Args:
        width: channels of the output.
        c_w: C_W of this layer instead of the network's.
        c_b: C_b of this layer instead of the network's.

    Raises:
        UserError: a variance that is negative.
    """
    _check_variances(c_w=c_w, c_b=c_b)
    return Dense(width, c_w, c_b)


@checked
def conv(
    width: Count,
    window: Count | Sequence[Count] = 3,
    *,
    stride: Count | Sequence[Count] = 1,
    padding: str = "zero",
    shared: bool = True,
    transposed: bool = False,
    c_w: float | None = None,
    c_b: float | None = None,
) -> Conv:
    """Make a convolution: one filter for all windows, or a filter and biases for each of them; also a transposed one.

    Its weights have variance C_W over channels times positions of the window, those beyond the edge included.

    Args:
        width: channels of the output.
        window: its size, one number or one for each dimension of space.
        stride: positions from one window to the next.
        padding: ``"zero"`` or ``"circular"`` (as many outputs as inputs, over the stride), or ``"none"``.
        shared: False for weights and biases of its own at each output: a locally connected layer.
        transposed: True for outputs that are more than inputs by the stride, as in decoders: inputs lie that far apart
            among zeros.
        c_w: C_W of this layer instead of the network's.
        c_b: C_b of this layer instead of the network's.

    Raises:
        UserError: filters of its own that are transposed, a variance that is negative.

    >>> conv(64, stride=2).stride
    2
    """
    _check_variances(c_w=c_w, c_b=c_b)
    if transposed and not shared:
        raise UserError("a transposed convolution has one filter; leave out shared=False")
    size = one_or_several(window)
    steps = one_or_several(stride)
    return Conv(width, size, steps, padding, shared, transposed, c_w, c_b)


def with_edges(x: Array, window: Window) -> Array:
    """Return a signal ``(batch, *space, channels)`` with what windows read beyond its edges, for ``at_tap``."""
    edges = window.edges(x.shape[1:-1])
    mode = "wrap" if window.padding == "circular" else "constant"
    x = _among_zeros(x, window.stride) if window.transposed else x
    return jnp.pad(x, [(0, 0), *edges, (0, 0)], mode=mode)


def _among_zeros(x: Array, stride: tuple[int, ...]) -> Array:
    """Put inputs ``stride`` apart and zeros between, ``(batch, *(n r), channels)``."""
    space = x.shape[1:-1]
    wide = tuple(n * r for n, r in zip(space, stride, strict=True))
    at = tuple(slice(None, None, r) for r in stride)
    return jnp.zeros((len(x), *wide, x.shape[-1]), x.dtype).at[(slice(None), *at)].set(x)


def at_tap(x: Array, tap: tuple[int, ...], window: Window, outputs: tuple[int, ...]) -> Array:
    """Return what one tap of a window reads at each output, ``(batch, *outputs, channels)``; x is with its edges."""
    reach = [(n - 1) * r + 1 for n, r in zip(outputs, window.steps, strict=True)]
    at = [slice(t, t + n, r) for t, n, r in zip(tap, reach, window.steps, strict=True)]
    return x[(slice(None), *at)]


def _weights(
    layer: Dense | Conv,
    window: Window | None,
    product,
    signal,
    scheme,
    last,
    *,
    positions: tuple[int, ...] = (),
) -> Part:
    """Return the part of a linear layer: its multiplier, its first scale, its node; ``positions`` have own weights."""
    c_w = scheme.c_w if layer.c_w is None else layer.c_w
    c_b = (scheme.c_b if layer.c_b is None else layer.c_b) * scheme.bias
    abc = scheme.parameterized
    place = "first" if not signal.weighted else "last" if last else "hidden"
    # the width that the exponents refer to: of the first layer its own, unless it is the last as well
    width = signal.channels if signal.weighted else 1 if last else layer.width
    taps = 1 if window is None else window.volume
    fan = taps * (1 if signal.weighted else signal.channels)
    # C_W over the fan-in, channels times taps; of inner layers the width factor has the channels
    constant = c_w / taps / (1 if signal.weighted else signal.channels)
    in_multiplier = constant if abc.constants_in_multiplier else 1.0
    in_scale = 1.0 if abc.constants_in_multiplier else constant
    multiplier = width_factor(getattr(abc.multiplier, place), width) * in_multiplier**0.5
    scale = width_factor(getattr(abc.scale, place), width) * in_scale**0.5
    size = () if window is None else window.size
    space = signal.space if window is None else window.outputs(signal.space)

    def init(key: Key) -> Params:
        for_weights, for_biases = jax.random.split(key)
        shape = (*positions, layer.width, signal.channels, *size)
        w = scale * jax.random.normal(for_weights, shape)
        if not scheme.bias:
            return {"w": w}
        widths = (*positions, layer.width)
        b = jax.random.normal(for_biases, widths) if c_b else jnp.zeros(widths)
        return {"w": w, "b": c_b**0.5 * b}

    def apply(params: Params, x: Array, beside: Beside, key: Key | None) -> Array:
        del beside, key  # what does not exist is zero, and nothing is drawn
        z = multiplier * product(params["w"], x)
        z = z + params["b"] if scheme.bias else z
        watch = params.get(WATCH)
        if watch is None:
            return z
        return watch(Use(x, multiplier, window, not positions, scheme.bias), z)

    def extend(draft: Draft, source: int) -> int:
        check_limit(abc)
        # multiplier² scale² = C_W/fan-in, so that t_w = multiplier² fan-in is C_W/scale², in which C_W may cancel
        of_one = width_factor(getattr(abc.scale, place), width) ** 2
        t_w = c_w / of_one if abc.constants_in_multiplier else fan / of_one
        shared = not positions
        node = Linear((source,), c_w, c_b, t_w, float(scheme.bias), window, shared)
        return draft.add(node, Kind.GAUSSIAN, space)

    if window is not None and 0 in space:
        raise UserError(f"{layer.name} leaves no positions of {times(signal.space)}")
    exists = same if window is None else partial(behind_convolution, window=window, xp=jnp)
    return Part(init, apply, Signal(space, layer.width, weighted=True), extend, exists)
