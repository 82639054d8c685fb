"""Tangent kernels of networks of layers, one layer's weights after the other.

Of the weights of a layer each output position p of an input reads a vector a_p (a window of the signal, times the
multiplier), and ∂f/∂z_p = δ_p. So their derivative is J = Σ_p δ_p a_pᵀ, and their part of Θ can be had in several ways,
of which the cheapest is counted out for each layer (``Way``). Signals and slopes are computed for a few inputs at a
time, so that what is needed in between stays in the processor's cache, and little memory is taken from the system.
"""

import itertools
import math
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from steepest.kernels.finite._blocks import Inputs, cut, in_blocks
from steepest.nn.layers._linear import WATCH, Use, at_tap, with_edges
from steepest.nn.layers._window import Window
from steepest.nn.types import Params

MEMORY = 2**30  # bytes that a block of inputs may take
IN_CACHE = 2**20  # bytes of signals, slopes and windows that are computed at a time on a processor
ON_DEVICE = 2**28  # the same elsewhere
PARTS = 8  # at least, so that what is needed in between takes little beside what is kept
PIECE = 2**21  # bytes of derivatives that are formed at a time
PAIR = 8.0  # what a pair of positions costs beside its products, in multiplications
LONG_PAIRS = 2.0  # a multiplication of theirs, in those of large products of matrices

Arrays = dict[str, Array]
"""What is kept of a layer for all inputs: ``derivatives``, or ``x`` and ``slopes``; ``biases`` where it has some."""


class Way(Enum):
    """How a layer's part of the kernel is computed."""

    FORMED = (
        "the derivatives of all inputs are kept, where they are smaller than signals and slopes"
    )
    PIECES = "they are formed and contracted some taps and channels at a time"
    PAIRS = "Σ_{p,q} (a_p·a'_q)(δ_p·δ'_q), where positions are few and channels many"
    EQUAL = "the same for p = q alone, where every position has weights of its own"


class Place(NamedTuple):
    """A layer with weights, at its place in a network.

    Attributes:
        multiplier: of the parameterization.
        window: of a convolution; None where each position is read for itself.
        bias: whether there are biases.
        shared: whether all positions have the same weights.
        signal: shape of what it reads, of one input.
        space: numbers of positions behind it.
        width: channels behind it.
    """

    multiplier: float
    window: Window | None
    bias: bool
    shared: bool
    signal: tuple[int, ...]
    space: tuple[int, ...]
    width: int

    @property
    def positions(self) -> int:
        """Count the output positions."""
        return math.prod(self.space)

    @property
    def inputs(self) -> int:
        """Count the numbers that an output position reads."""
        return self.signal[-1] * (1 if self.window is None else self.window.volume)

    def kept(self, k: int) -> int:
        """Count the numbers of signals and slopes of one input with k outputs."""
        return math.prod(self.signal) + k * self.positions * self.width

    def way(self, n: int, m: int, k: int, *, same: bool, traced: bool) -> Way:
        """Choose the cheapest way by multiplications, then by memory."""
        if not self.shared:
            return Way.EQUAL
        weights = self.inputs * self.width
        meeting = k if traced else k**2  # pairs of outputs
        # Σ_p δ_p a_pᵀ for each input and output, then one inner product a pair
        formed = (n if same else n + m) * k * self.positions * weights + n * m * meeting * weights
        # a_p·a'_q once, δ_p·δ'_q for each pair of outputs, of all P² pairs of positions
        pairs = n * m * self.positions**2 * (self.inputs + meeting * (self.width + PAIR))
        if LONG_PAIRS * pairs < formed:
            return Way.PAIRS
        return Way.FORMED if k * weights <= self.kept(k) else Way.PIECES


@partial(jax.jit, static_argnames=("apply", "traced", "memory"))
def structured_ntk(
    apply: Callable[..., Array],
    params: Params,
    x: Inputs,
    other: Inputs | None,
    traced: bool,
    memory: int = MEMORY,
) -> Array:
    """Compute Θ of a network of layers, in blocks of inputs that take about ``memory`` bytes.

    Args:
        apply: of the network: maps parameters and inputs to outputs ``(n,)`` or ``(n, k)``; examples do not interact.
        params: of the network.
        x: inputs ``(n, …)``, and a mask if there is one.
        other: a second set.
        traced: whether the kernel is summed over outputs.
        memory: bytes.

    Returns:
        Shape ``(n, m)``, summed over outputs, if ``traced``, else ``(n, k, m, k)``.
    """
    places, outputs = _places(apply, params, x)
    k = outputs.shape[1]
    n = len(x[0])
    m = len(x[0] if other is None else other[0])
    ways = [place.way(n, m, k, same=other is None, traced=traced) for place in places]
    size = sum(place.kept(k) for place in places) * outputs.dtype.itemsize
    room = IN_CACHE if jax.default_backend() == "cpu" else ON_DEVICE
    windows = sum(
        place.positions * place.inputs
        for place, way in zip(places, ways, strict=True)
        if way is Way.FORMED and place.window is not None
    )
    chunk = min(room // (size + windows * outputs.dtype.itemsize), n // PARTS)

    def rows(inputs: Inputs) -> list[Arrays]:
        return _some_at_a_time(partial(_layers, apply, params, places, ways), inputs, max(chunk, 1))

    def contract(left: list[Arrays], right: list[Arrays]) -> Array:
        shape = (_count(left), k, _count(right), k)
        total = jnp.zeros(shape[::2] if traced else shape, outputs.dtype)
        for place, way, one, two in zip(places, ways, left, right, strict=True):
            total = ADD[way](total, place, one, two, traced)
            if place.bias:
                pattern = "iap,jap->ij" if traced else "iap,jbp->iajb"
                total = total + jnp.einsum(pattern, one["biases"], two["biases"])
        return total

    return in_blocks(rows, contract, x, other, memory // size)


def _places(
    apply: Callable[..., Array], params: Params, inputs: Inputs
) -> tuple[list[Place], jax.ShapeDtypeStruct]:
    """Return the layers with weights, and the shape ``(n, k)`` of the outputs."""
    uses: dict[int, Place] = {}

    def note(place: int, use: Use, z: Array) -> Array:
        signal = use.x.shape[1:]
        uses[place] = Place(
            use.multiplier, use.window, use.bias, use.shared, signal, z.shape[1:-1], z.shape[-1]
        )
        return z

    run = lambda p: apply(_watched(p, note), *inputs).reshape(len(inputs[0]), -1)
    outputs = jax.eval_shape(run, params)
    return [uses[place] for place in sorted(uses)], outputs


def _watched(params: Params, see: Callable[[int, Use, Array], Array]) -> Params:
    """Put a watch beside the weights of each layer, which knows the layer's place among all."""
    places = itertools.count()

    def walk(layer: Params) -> Params:
        if not isinstance(layer, dict):
            return tuple(walk(part) for part in layer)
        if "w" in layer:
            return {**layer, WATCH: partial(see, next(places))}
        return {name: walk(layer[name]) for name in sorted(layer)}

    return walk(params)


def _count(layers: list[Arrays]) -> int:
    """Count the inputs."""
    return len(next(iter(layers[0].values())))


def _some_at_a_time(
    run: Callable[[Inputs], list[Arrays]], inputs: Inputs, size: int
) -> list[Arrays]:
    """Do something with some inputs after the other."""
    n = len(inputs[0])
    if size >= n:
        return run(inputs)
    even = _divisor(n, size)  # without copies of the last input
    results = jax.lax.map(run, cut(inputs, even if 2 * even > size else size))
    return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:])[:n], results)


def _layers(
    apply: Callable[..., Array],
    params: Params,
    places: list[Place],
    ways: list[Way],
    inputs: Inputs,
) -> list[Arrays]:
    """Compute what is kept of each layer for some inputs."""

    def moved(shifts: list[Array]) -> tuple[Array, list[Array]]:
        read: dict[int, Array] = {}

        def move(place: int, use: Use, z: Array) -> Array:
            read[place] = use.x
            return z + shifts[place]

        outputs = apply(_watched(params, move), *inputs).reshape(len(inputs[0]), -1)
        return outputs, [read[place] for place in sorted(read)]

    # a shift of its own for each pre-activation: the derivative by it is that by the pre-activation
    dtype = jax.eval_shape(apply, params, *inputs).dtype
    shifts = [jnp.zeros((len(inputs[0]), *place.space, place.width), dtype) for place in places]
    outputs, back, read = jax.vjp(moved, shifts, has_aux=True)
    slopes = _slopes(back, outputs, windows=any(place.window is not None for place in places))
    return [_kept(*layer) for layer in zip(places, ways, read, slopes, strict=True)]


def _slopes(
    back: Callable[[Array], tuple[list[Array]]], outputs: Array, *, windows: bool
) -> list[Array]:
    """Follow each output back, ``(n, k, *space, width)``: as examples do not interact, that of all inputs at a time."""
    if outputs.shape[1] == 1 and not windows:
        # a batch of one takes a third longer here, and a third less where there are convolutions: both were measured
        return [slopes[:, None] for slopes in back(jnp.ones_like(outputs))[0]]
    units = jnp.eye(outputs.shape[1], dtype=outputs.dtype)
    of_unit = lambda unit: back(jnp.broadcast_to(unit, outputs.shape))[0]
    return jax.vmap(of_unit, out_axes=1)(units)


def _kept(place: Place, way: Way, x: Array, slopes: Array) -> Arrays:
    """Return what is kept of a layer."""
    n, k = slopes.shape[:2]
    slopes = slopes.reshape(n, k, place.positions, place.width)
    arrays: Arrays = {"x": x, "slopes": slopes}
    if way is Way.FORMED:
        # J = Σ_p δ_p a_pᵀ, (n, k, width, inputs)
        derivatives = jnp.einsum("iapo,ipc->iaoc", slopes, _windows(place, x))
        arrays = {"derivatives": derivatives.reshape(n, k, -1)}
    if place.bias:
        # a shared bias stands at every position: ∂f/∂b = Σ_p δ_p
        arrays["biases"] = slopes.sum(2) if place.shared else slopes.reshape(n, k, -1)
    return arrays


def _windows(place: Place, x: Array) -> Float[Array, "n positions inputs"]:
    """Return what each output position reads, times the multiplier."""
    wide = _with_edges(place, x)
    if place.window is None:
        return wide.reshape(len(x), place.positions, -1)
    taps = itertools.product(*map(range, place.window.size))
    read = [at_tap(wide, tap, place.window, place.space) for tap in taps]
    return jnp.concatenate(read, -1).reshape(len(x), place.positions, -1)


def _add_formed(total: Array, place: Place, one: Arrays, two: Arrays, traced: bool) -> Array:
    """Contract derivatives that were kept."""
    del place
    return total + _product(one["derivatives"], two["derivatives"], traced)


def _product(one: Float[Array, "n k p"], two: Float[Array, "m k p"], traced: bool) -> Array:
    """Multiply derivatives, as one product of matrices."""
    n, k = one.shape[:2]
    if traced:
        return one.reshape(n, -1) @ two.reshape(len(two), -1).T
    product = one.reshape(n * k, -1) @ two.reshape(len(two) * k, -1).T
    return product.reshape(n, k, len(two), k)


def _add_pieces(total: Array, place: Place, one: Arrays, two: Arrays, traced: bool) -> Array:
    """Form the derivatives for a row of taps and some channels behind the weights at a time, and contract them."""
    sides = [one] if one is two else [one, two]
    wide = [_with_edges(place, side["x"]) for side in sides]
    rows = _rows(place)
    numbers = sum(math.prod(side["slopes"].shape[:2]) for side in sides) * place.inputs // len(rows)
    size = _divisor(place.width, PIECE // (numbers * total.dtype.itemsize))
    starts = np.arange(0, place.width, size)

    def add(total: Array, at: tuple[Array, Array]) -> tuple[Array, None]:
        row, start = at
        pieces = []
        for side, x in zip(sides, wide, strict=True):
            some = jax.lax.dynamic_slice_in_dim(side["slopes"], start, size, -1)
            piece = jnp.einsum("iapo,ipc->iaoc", some, _row(place, x, row))
            pieces.append(piece.reshape(*piece.shape[:2], -1))
        return total + _product(pieces[0], pieces[-1], traced), None

    repeated = np.repeat(rows, len(starts), axis=0)
    all_pieces = (jnp.asarray(repeated), jnp.asarray(np.tile(starts, len(rows))))
    return jax.lax.scan(add, total, all_pieces)[0]


def _rows(place: Place) -> NDArray[np.int64]:
    """List the rows of taps along the last dimension of a window by the taps of the others, ``(rows, rank - 1)``."""
    if place.window is None:
        return np.zeros((1, 0), int)
    sizes = place.window.size[:-1]
    rows = list(itertools.product(*map(range, sizes)))
    return np.array(rows, int).reshape(len(rows), len(sizes))


def _with_edges(place: Place, x: Array) -> Array:
    """Return the signal times the multiplier, with what windows read beyond its edges."""
    x = place.multiplier * x
    return x if place.window is None else with_edges(x, place.window)


def _row(place: Place, wide: Array, row: Array) -> Float[Array, "n positions inputs"]:
    """Return what a row of taps reads at each output position."""
    window = place.window
    if window is None:
        return wide.reshape(len(wide), place.positions, -1)
    reach = [(n - 1) * step + 1 for n, step in zip(place.space, window.steps, strict=True)]
    lengths = (len(wide), *reach[:-1], *wide.shape[-2:])
    lead = jax.lax.dynamic_slice(wide, (0, *row, 0, 0), lengths)
    lead = lead[(slice(None), *(slice(None, None, step) for step in window.steps[:-1]))]
    taps = [
        lead[..., tap : tap + reach[-1] : window.steps[-1], :] for tap in range(window.size[-1])
    ]
    return jnp.concatenate(taps, -1).reshape(len(wide), place.positions, -1)


def _divisor(number: int, most: int) -> int:
    """Return the largest divisor that is not above ``most``, at least 1."""
    return max(d for d in range(1, number + 1) if number % d == 0 and d <= max(most, 1))


def _add_pairs(total: Array, place: Place, one: Arrays, two: Arrays, traced: bool) -> Array:
    """Sum over pairs of positions, one position of the first inputs after the other."""
    pattern = "iao,jaqo->ijq" if traced else "iao,jbqo->iajbq"
    second = _windows(place, two["x"])

    def at(position: tuple[Array, Array]) -> Array:
        a, slopes = position
        # (a_p·a'_q)(δ_p·δ'_q) for one p and all q
        inputs = jnp.einsum("ic,jqc->ijq", a, second)
        through = jnp.einsum(pattern, slopes, two["slopes"])
        return (through * (inputs if traced else inputs[:, None, :, None])).sum(-1)

    by_position = (
        jnp.moveaxis(_windows(place, one["x"]), 1, 0),
        jnp.moveaxis(one["slopes"], 2, 0),
    )
    add = lambda total, position: (total + at(position), None)
    return jax.lax.scan(add, total, by_position)[0]


def _add_equal(total: Array, place: Place, one: Arrays, two: Arrays, traced: bool) -> Array:
    """Sum over positions that have weights of their own."""
    windows = [_windows(place, side["x"]) for side in (one, two)]
    pattern = "iao,jao->ij" if traced else "iao,jbo->iajb"

    def at(position: tuple[Array, ...]) -> Array:
        a, b, slopes, slopes_too = position
        inputs = a @ b.T
        return jnp.einsum(pattern, slopes, slopes_too) * (
            inputs if traced else inputs[:, None, :, None]
        )

    arrays = [jnp.moveaxis(read, 1, 0) for read in windows]
    arrays += [jnp.moveaxis(side["slopes"], 2, 0) for side in (one, two)]
    add = lambda total, position: (total + at(position), None)
    return jax.lax.scan(add, total, tuple(arrays))[0]


ADD = {
    Way.FORMED: _add_formed,
    Way.PIECES: _add_pieces,
    Way.PAIRS: _add_pairs,
    Way.EQUAL: _add_equal,
}
"""What adds a layer's part to the kernel. It needs the sum of the others, so that one layer is at work at a time."""
