"""Two layouts of pairs of positions: all of them at once, or those of one displacement.

A layout knows how averages over windows and numbers at single positions act on its arrays, whose last two axes are
pairs of inputs ``(b, b')``. The rules of the nodes (``_rules.py``) are the same for both.
"""

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from steepest.kernels.wide._plan import Plan
from steepest.nn.layers._window import Window


class Layout(Protocol):
    """What the rules need."""

    @property
    def plan(self) -> Plan:
        """Return the plan whose nodes the pairs are of."""
        ...

    @property
    def itself(self) -> Array | float:
        """Return one for pairs of an input with itself, zero for the others, to be multiplied with pairs."""
        ...

    def one(self, numbers: Array, node: int) -> Array:
        """Spread numbers of the first inputs, ``(…, *space, b, 1)``, over the pairs of a node's positions."""
        ...

    def two(self, numbers: Array, node: int) -> Array:
        """Spread numbers of the second inputs, ``(…, *space, 1, b')``."""
        ...

    def means(
        self, arrays: tuple[Array, ...], window: Window, source: int, node: int
    ) -> tuple[Array, ...]:
        """Return ``(M K)[p, q] = mean_δ K[r p + δ, r q + δ]`` of several arrays K."""
        ...

    def equal(self, node: int) -> Array | float:
        """Return one for pairs of equal positions, zero for the others, to be multiplied with pairs of a node."""
        ...

    def between(self, matrix: np.ndarray, node: int) -> Array:
        """Spread a matrix of a node's positions, ``(P, P)``, over its pairs."""
        ...

    def settle(self, *arrays: Array) -> tuple[Array, ...]:
        """Have arrays computed once, not again by each who reads them."""
        ...


def gains(layout: Layout, node: int, one: Mapping, two: Mapping) -> Array:
    """Return ``γ_p γ'_q`` of a node: the last of its numbers at single positions, of first and second inputs."""
    return layout.one(one[node][-1], node) * layout.two(two[node][-1], node)


class AllPairs(NamedTuple):
    """All pairs: arrays of shape ``(*space, *space, b, b')``. Simple, for any window; memory grows with P².

    Attributes:
        plan: of the limit.
        itself: one for pairs of an input with itself, zero for the others: a number, or ``(b, b')``.
    """

    plan: Plan
    itself: Array | float = 0.0

    def one(self, numbers: Array, node: int) -> Array:
        """Put the second position's axes behind the first's."""
        rank = len(self.plan.limit.spaces[node])
        return jnp.expand_dims(numbers, tuple(range(numbers.ndim - 2, numbers.ndim - 2 + rank)))

    def two(self, numbers: Array, node: int) -> Array:
        """Put the first position's axes before the second's."""
        rank = len(self.plan.limit.spaces[node])
        start = numbers.ndim - 2 - rank
        return jnp.expand_dims(numbers, tuple(range(start, start + rank)))

    def means(
        self, arrays: tuple[Array, ...], window: Window, source: int, node: int
    ) -> tuple[Array, ...]:
        """Read both positions of each tap, one dimension after the other."""
        return tuple(self._mean(k, window, source) for k in arrays)

    def _mean(self, k: Array, window: Window, source: int) -> Array:
        space = self.plan.limit.spaces[source]
        for d, taps in enumerate(window.taps(space)):
            total = jnp.zeros((), k.dtype)
            for column in taps.T:
                # both positions at the same tap δ: the diagonal of the two windows
                total = total + _taken(_taken(k, column, d), column, d + len(space))
            k = total
        return k / window.volume

    def pool(self, k: Array, window: Window, source: int) -> Array:
        """Average over both windows."""
        space = self.plan.limit.spaces[source]
        for d, taps in enumerate(window.taps(space)):
            for axis in (d, d + len(space)):
                # the mean over both windows, one axis after the other: volume² pairs
                k = sum((_taken(k, column, axis) for column in taps.T), jnp.zeros((), k.dtype))
        return k / window.volume**2

    def equal(self, node: int) -> Array:
        """Return the identity matrix of positions."""
        space = self.plan.limit.spaces[node]
        return jnp.eye(int(np.prod(space))).reshape(*space, *space, 1, 1)

    def between(self, matrix: np.ndarray, node: int) -> Array:
        """Give each position its axes."""
        space = self.plan.limit.spaces[node]
        return jnp.asarray(matrix).reshape(*space, *space, 1, 1)

    def settle(self, *arrays: Array) -> tuple[Array, ...]:
        """Leave it to the compiler."""
        return arrays


def _taken(k: Array, index: np.ndarray, axis: int) -> Array:
    """Take these positions along an axis; −1 stands for zeros."""
    values = jnp.take(k, np.maximum(index, 0), axis=axis)
    inside = (index >= 0).reshape((-1,) + (1,) * (k.ndim - axis - 1))
    return values if inside.all() else values * inside.astype(k.dtype)


class Displacement(NamedTuple):
    """The pairs (p, p + s mod N) of one displacement: arrays of shape ``(*N, b, b')``.

    Attributes:
        plan: with the sizes N.
        start: the displacement at ``anchor``, one number a dimension: plain ones, or traced.
        anchor: the node at which it is that.
        once: the number one as an argument of the program, so that the compiler does not see through ``settle``.
        itself: one for pairs of an input with itself, zero for the others.
    """

    plan: Plan
    start: tuple
    anchor: int
    once: Array
    itself: Array | float = 0.0

    def at(self, node: int) -> tuple:
        """Return the displacement at a node: displacements grow with strides as sizes do."""
        sizes = self.plan.sizes
        return tuple(
            s * n // m for s, n, m in zip(self.start, sizes[node], sizes[self.anchor], strict=False)
        )

    def one(self, numbers: Array, node: int) -> Array:
        """Take them as they are: the first position is the index."""
        return numbers

    def two(self, numbers: Array, node: int) -> Array:
        """Move them, so that at the index p stands the number of p + s."""
        start = numbers.ndim - 2 - len(self.plan.sizes[node])
        moved = numbers
        for d, s in enumerate(self.at(node)):
            if not (isinstance(s, int) and s == 0):
                moved = jnp.roll(moved, -s, axis=start + d)
        # else each pair of inputs would look for its place again
        return numbers if moved is numbers else self.settle(moved)[0]

    def means(
        self, arrays: tuple[Array, ...], window: Window, source: int, node: int
    ) -> tuple[Array, ...]:
        """Sum shifted images, one dimension after the other; a pair counts where both positions are inside."""
        starts = window.starts(self.plan.limit.spaces[source])
        shifts = self.at(node)
        for d, s in enumerate(shifts):
            arrays = tuple(self._slide(k, window, starts[d], d, s, source, node) for k in arrays)
            if d + 1 < len(shifts):  # the last sum is part of whatever reads it, entry by entry
                arrays = self.settle(*arrays)
        return tuple(k / window.volume for k in arrays)

    def _slide(self, k: Array, window: Window, start: int, d: int, s, source: int, node: int):
        space = self.plan.limit.spaces[source][d]
        outputs = self.plan.limit.spaces[node][d]
        full = self.plan.sizes[source][d]
        size = self.plan.sizes[node][d]
        stride = window.stride[d]
        total = jnp.zeros((), k.dtype)
        for offset in range(start, start + window.size[d]):
            reads = np.arange(size) * stride + offset
            term = _at_offset(k, offset, window, size, d)
            if window.padding == "circular":
                total = total + term
                continue
            inside = (reads >= 0) & (reads < space)
            if isinstance(s, int) and s == 0 and space == full:
                total = total + term  # both are inside together, and outside are zeros
            elif inside[:outputs].all():
                total = total + term
            else:
                both = jnp.asarray(inside, k.dtype)
                # position p and position p + s, both inside
                both = both * jnp.roll(both, -s)
                total = total + term * both.reshape((-1,) + (1,) * (k.ndim - d - 1))
        return total

    def equal(self, node: int) -> Array | float:
        """Compare the displacement with zero."""
        shifts = self.at(node)
        if all(isinstance(s, int) for s in shifts):
            return float(not any(shifts))
        return jnp.where(jnp.stack([jnp.asarray(s) == 0 for s in shifts]).all(), 1.0, 0.0)

    def between(self, matrix: np.ndarray, node: int) -> Array:
        """Take the entries (p, p + s mod N); zeros where positions are filled up."""
        space = self.plan.limit.spaces[node]
        sizes = self.plan.sizes[node]
        filled = [(0, size - n) for size, n in zip(sizes, space, strict=True)]
        square = jnp.asarray(np.pad(matrix.reshape(*space, *space), filled * 2))
        first = jnp.meshgrid(*map(jnp.arange, sizes), indexing="ij")
        shifted = zip(first, self.at(node), sizes, strict=True)
        second = [(p + s) % size for p, s, size in shifted]
        return square[(*first, *second)][..., None, None]

    def settle(self, *arrays: Array) -> tuple[Array, ...]:
        """Hand them through a loop of one turn, whose end the compiler cannot foresee."""
        return _settled(self.once, arrays)


@jax.custom_jvp
def _settled(once: Array, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    empty = tuple(jnp.zeros(array.shape, array.dtype) for array in arrays)
    return jax.lax.fori_loop(0, once, lambda _, old: arrays, empty)


@_settled.defjvp
def _settled_jvp(at, change):
    """Pass on the derivatives as they are: a loop of unknown length has none backwards."""
    return _settled(*at), change[1]


def _at_offset(k: Array, offset: int, window: Window, count: int, axis: int) -> Array:
    """Return what a window reads at an offset from each of its steps; beyond the edge zeros, or the other side."""
    if window.padding == "circular":
        return _strided(jnp.roll(k, -offset, axis=axis), 0, window.stride[axis], count, axis)
    return _strided(k, offset, window.stride[axis], count, axis)


def _strided(k: Array, start: int, stride: int, count: int, axis: int) -> Array:
    """Return every stride-th entry from ``start`` on, zeros where there is none."""
    last = start + stride * (count - 1)
    before = max(0, -start)
    after = max(0, last - (k.shape[axis] - 1))
    if before or after:
        pads = [(0, 0)] * k.ndim
        pads[axis] = (before, after)
        k = jnp.pad(k, pads)
    first = start + before
    return jax.lax.slice_in_dim(k, first, first + stride * (count - 1) + 1, stride, axis)


class Pooled(NamedTuple):
    """How the pairs of one displacement count in the displacements behind a pooling.

    Attributes:
        slot: where the result of each share is added, indices into the displacements that are needed behind it.
        weights: for each share, which taps of each dimension count, ``(outputs, size)`` each; one row for all outputs
            where no window reaches beyond the edge.
    """

    slot: list
    weights: list


def pooled_shares(plan: Plan, node: int, window: Window, start: tuple) -> Pooled:
    """Split the displacement ``start`` of a pooling's source among those of the pooling.

    With ``s = r s' + δ``, the pair (r p + α, r p + α + s) is in both windows where 0 ≤ α < w and 0 ≤ α + δ < w.
    """
    sizes = plan.sizes[node]
    slots = jnp.asarray(plan.slots(node))  # one more than are needed, for what nobody needs
    dimensions = []
    space = plan.limit.spaces[plan.limit.nodes[node].sources[0]]
    for d, (s, size, stride, width) in enumerate(
        zip(start, sizes, window.stride, window.size, strict=True)
    ):
        rest = s % stride
        reach = range(-((width - 1 + stride - 1) // stride), (width - 1) // stride + 1)
        shares = []
        for turn in reach:
            # all δ = s mod r among which |δ| < w
            delta = rest + stride * turn
            behind = ((s - delta) // stride) % size
            counts = _within(jnp.arange(width) + delta, width)[None]
            if window.padding == "zero":
                counts = counts & _both_inside(window, d, space, size, behind, delta)
            shares.append((behind, counts))
        dimensions.append(shares)
    combinations = list(itertools.product(*dimensions))
    return Pooled(
        [slots[tuple(behind for behind, _ in shares)] for shares in combinations],
        [[counts for _, counts in shares] for shares in combinations],
    )


def _both_inside(
    window: Window, d: int, space: tuple[int, ...], size: int, behind: Array, delta: Array
) -> Array:
    """Mark where both positions of a pair are inside the space, in one dimension, ``(outputs, taps)``.

    An output reads the first at each of its taps, the output that is ``behind`` away the second, ``delta`` taps later.
    """
    start = window.starts(space)[d]
    outputs = np.arange(size)[:, None]
    taps = np.arange(window.size[d])
    first = outputs * window.stride[d] + start + taps
    second = (outputs + behind) % size * window.stride[d] + start + taps + delta
    return _within(first, space[d]) & _within(second, space[d])


def _within(numbers: Any, count: int) -> Any:
    return (numbers >= 0) & (numbers < count)


def pool_share(
    window: Window, weights: list, starts: tuple[int, ...], sizes: tuple[int, ...], k: Array
) -> Array:
    """Sum the taps of a pooling that count, one dimension after the other."""
    for d, counts in enumerate(weights):
        total = jnp.zeros((), k.dtype)
        for tap in range(window.size[d]):
            column = counts[:, tap].reshape((-1,) + (1,) * (k.ndim - d - 1))
            total = total + column * _at_offset(k, starts[d] + tap, window, sizes[d], d)
        k = total
    return k / window.volume**2
