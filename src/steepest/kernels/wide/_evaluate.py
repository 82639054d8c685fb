"""The recursion of a limit for some pairs of inputs: along displacements, or for all pairs of positions at once."""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from steepest.kernels.wide._duals import Dual
from steepest.kernels.wide._layouts import (
    AllPairs,
    Displacement,
    Layout,
    gains,
    pool_share,
    pooled_shares,
)
from steepest.kernels.wide._plan import MIXING, Plan
from steepest.kernels.wide._rules import Pairs, Sides, through
from steepest.nn.layers._nodes import AllPositions, Attend, Average, EqualPositions, Mix

PROGRAMS = 24  # limits whose programs are held at a time: each takes 10 to 30 MB
MANY_CHANNELS = 16  # from which on a product of matrices is faster than a sum


def evaluate(plan: Plan, duals: tuple[Dual | None, ...], end: int, one: Sides, two: Sides) -> Pairs:
    """Compute the kernels of a node without positions, or of an ``Average`` at equal positions, the faster way.

    Args:
        plan: of the limit.
        duals: of the nodes; None for those without activation.
        end: the node.
        one: numbers of the first inputs by node, arrays ``(…, *space, b, 1)``; node 0 has the inputs, channels first.
        two: numbers of the second inputs: ``(…, *space, 1, b')`` for all pairs, ``(…, *space, b, 1)`` pair by pair.

    Returns:
        arrays ``(b, b')`` or ``(b, 1)``; of an ``Average`` ``(*space, b, …)``.
    """
    if plan.apart:
        return by_displacement(plan, duals, end, one, two, jnp.asarray(1))
    pairs = by_all_pairs(plan, duals, end, one, two)
    space = plan.limit.spaces[end]
    count = int(np.prod(space))

    def equal(kernel: Array) -> Array:
        square = kernel.reshape(count, count, *kernel.shape[2 * len(space) :])
        return square[np.arange(count), np.arange(count)].reshape(*space, *square.shape[2:])

    return pairs.map(equal) if space else pairs


def by_displacement(
    plan: Plan, duals: tuple[Dual | None, ...], end: int, one: Sides, two: Sides, once: Array
) -> Pairs:
    """Evaluate one displacement after the other; ``once`` is the number one, as in ``Displacement``."""
    return _program(_by_displacement, plan, duals, end)(one, two, once)


@lru_cache(maxsize=PROGRAMS)
def _program(function: Callable, plan: Plan, duals: tuple[Dual | None, ...], end: Any) -> Callable:
    """Compile for one limit; JAX frees a program when the function that it made is forgotten here."""
    return jax.jit(partial(function, plan, duals, end))


def _by_displacement(
    plan: Plan, duals: tuple[Dual | None, ...], end: int, one: Sides, two: Sides, once: Array
) -> Pairs:
    one = _padded(plan, one)
    two = _padded(plan, two)
    # what stands behind each mixing node: kernels without positions, or those of all displacements that are needed
    behind: dict[int, Pairs] = {}
    for index in plan.mixing():
        if index > end:
            break
        behind[index] = _mixed(plan, duals, index, behind, one, two, once)
        if not isinstance(
            plan.limit.nodes[index], Average
        ):  # there displacements differ in their numbers
            apart = Displacement(plan, (), index, once)
            behind[index] = gained(behind[index], index, apart, one, two)
    if end in behind and isinstance(plan.limit.nodes[end], Average):
        zero = (0,) * len(plan.sizes[end])
        origin = plan.needed[end].index(zero)
        whole = tuple(slice(n) for n in plan.limit.spaces[end])
        equal = behind[end].map(lambda kernel: kernel[origin])
        at_zero = gained(equal, end, Displacement(plan, zero, end, once), one, two)
        return at_zero.map(lambda kernel: kernel[whole])
    if end in behind:
        return behind[end]
    layout = Displacement(plan, (), end, once)
    return _segment(plan, duals, end, behind, layout, one, two)


def by_all_pairs(
    plan: Plan, duals: tuple[Dual | None, ...], end: int, one: Sides, two: Sides
) -> Pairs:
    """Compute the kernels of any node for all pairs of its positions: ``(*space, *space, b, b')``."""
    return at_nodes(plan, duals, (end,), one, two)[0]


def at_nodes(
    plan: Plan, duals: tuple[Dual | None, ...], ends: tuple[int, ...], one: Sides, two: Sides
) -> tuple[Pairs, ...]:
    """Compute the kernels of several nodes for all pairs of their positions, in one pass."""
    return _program(_at_nodes, plan, duals, ends)(one, two)


def _at_nodes(
    plan: Plan, duals: tuple[Dual | None, ...], ends: tuple[int, ...], one: Sides, two: Sides
) -> tuple[Pairs, ...]:
    layout = AllPairs(plan)
    nodes = plan.limit.nodes
    computed: dict[int, Pairs] = {0: Pairs(_products(layout, one, two), None)}
    for index in range(1, max(ends) + 1):
        node = nodes[index]
        read = [computed[source] for source in node.sources]
        computed[index] = behind_node(layout, index, read, one, two, duals[index])
    return tuple(computed[end] for end in ends)


def behind_node(
    layout: AllPairs, index: int, read: list[Pairs], one: Sides, two: Sides, dual: Dual | None
) -> Pairs:
    """Apply the rule of any node to all pairs of positions; ``read`` has the pairs of its sources."""
    node = layout.plan.limit.nodes[index]
    if not node.sources:
        return Pairs(_products(layout, one, two), None)
    if not isinstance(node, MIXING):
        pairs = through(node, index, read, layout, one, two, dual)
    else:
        mix = partial(_mix_all_pairs, layout, index)
        if isinstance(node, Attend):
            mix = partial(_attend, one[index][0], two[index][0])
        pairs = read[0].map(mix)
    return gained(pairs, index, layout, one, two)


def gained(pairs: Pairs, index: int, layout: Layout, one: Sides, two: Sides) -> Pairs:
    """Multiply by γ_p γ'_q where some positions do not exist."""
    if not layout.plan.gained(index):
        return pairs
    factor = gains(layout, index, one, two)
    return pairs.map(lambda kernel: kernel * factor)


def attention_weights(
    plan: Plan, duals: tuple[Dual | None, ...], index: int, sides: Sides
) -> Array:
    """Return ζ[p, q] of an attention node for each input, ``(positions q, *space p, b)``.

    Args:
        plan: of the limit.
        duals: of the nodes before.
        index: the node.
        sides: numbers of the inputs by node, for the nodes before, arrays ``(…, *space, b, 1)``.
    """
    node = plan.limit.nodes[index]
    assert isinstance(node, Attend)
    keys = node.sources[1]
    space = plan.limit.spaces[keys]
    count = int(np.prod(space))
    k = by_all_pairs(plan, duals, keys, sides, sides).k[..., 0]
    # of one input K° is symmetric, so that either axis may be that of the keys
    logits = node.sharpness * k.reshape(count, *space, -1)
    if plan.gained(keys):
        exists = sides[keys][-1].reshape(count, *(1 for _ in space), -1) > 0
        logits = jnp.where(exists, logits, -jnp.inf)
    return jax.nn.softmax(logits, axis=0)


def _attend(one: Array, two: Array, k: Array) -> Array:
    """Compute ``ζ K ζ'ᵀ`` for all pairs of positions, ``(*space, *space, b, b')``.

    Args:
        one: ζ of the first inputs, ``(q, *space p, b, 1)``.
        two: ζ of the second inputs, ``(q, *space p, 1, b')``, or ``(q, *space p, b, 1)`` pair by pair.
        k: of the values.
    """
    count = len(one)
    inputs = k.shape[-2:]
    square = k.reshape(count, count, *inputs)
    # ζ[q, p] with keys first, (P, P, b): ζ K, then the other side
    first = one.reshape(count, count, -1)
    second = two.reshape(count, count, -1)
    # one first input with several second ones is no such case
    pair_by_pair = two.shape[-1] == 1 and two.shape[-2] == inputs[0]
    half = jnp.einsum("apb,acbd->pcbd", first, square)
    mixed = jnp.einsum("cqb,pcbd->pqbd" if pair_by_pair else "cqd,pcbd->pqbd", second, half)
    return mixed.reshape(k.shape)


def _mix_all_pairs(layout: AllPairs, index: int, k: Array) -> Array:
    """Apply a mixing node to all pairs of positions."""
    node = layout.plan.limit.nodes[index]
    after = layout.plan.limit.spaces[index]
    source = node.sources[0]
    if isinstance(node, Average):
        return layout.pool(k, node.window, source)
    space = layout.plan.limit.spaces[source]
    count = int(np.prod(space))
    square = k.reshape(count, count, *k.shape[2 * len(space) :])
    if isinstance(node, AllPositions):
        # (1/P²) Σ_{p,q} K[p, q]
        return square.mean((0, 1))
    if isinstance(node, Mix):
        matrix = jnp.asarray(node.array, k.dtype)
        mixed = jnp.einsum("pa,ab...,qb->pq...", matrix, square, matrix)
        return mixed.reshape(*after, *after, *k.shape[2 * len(space) :])
    # positions become channels: the mean over p = q
    return jnp.trace(square) / count


def _mixed(plan, duals, index: int, behind, one, two, once) -> Pairs:
    """Run all displacements that a mixing node needs from its source, and mix them."""
    node = plan.limit.nodes[index]
    source = node.sources[0]
    needed = plan.needed[source]
    space = plan.limit.spaces[source]
    sizes = plan.sizes[source]

    def run(start: tuple) -> Pairs:
        layout = Displacement(plan, start, source, once)
        return _segment(plan, duals, source, behind, layout, one, two)

    axes = tuple(range(len(space)))
    if isinstance(node, EqualPositions):
        whole = tuple(slice(n) for n in space)
        return run((0,) * len(space)).map(lambda kernel: kernel[whole].mean(axes))

    def share(pairs: Pairs, start: tuple, sums: Pairs) -> Pairs:
        """Add what the pairs of one displacement contribute."""
        if isinstance(node, AllPositions):
            inside = _inside(space, sizes, start)
            count = int(np.prod(space)) ** 2
            total = pairs.map(lambda k: (k if inside is None else k * inside).sum(axes) / count)
            return sums.merge(total, jnp.add)
        assert isinstance(node, Average)
        shares = pooled_shares(plan, index, node.window, start)
        for slot, weights in zip(shares.slot, shares.weights, strict=True):
            part = pairs.map(partial(pool_share, node.window, weights, plan.sizes[index]))
            sums = sums.merge(part, partial(_add_at, slot))
        return sums

    start = tuple(jnp.asarray(column) for column in np.array(needed).T)
    shapes = jax.eval_shape(run, tuple(column[0] for column in start))
    lead = ()
    if isinstance(node, Average):  # one place more for displacements that nobody needs
        lead = (len(plan.needed[index]) + 1, *plan.sizes[index])
    zeros = shapes.map(lambda k: jnp.zeros((*lead, *k.shape[len(space) :]), k.dtype))
    step = lambda sums, start: (share(run(start), start, sums), None)
    return jax.lax.scan(step, zeros, start)[0]


def _add_at(slot: Array, total: Array, part: Array) -> Array:
    return total.at[slot].add(part)


def _segment(plan, duals, end: int, behind: Mapping[int, Pairs], layout, one, two) -> Pairs:
    """Run one displacement from the last mixing nodes, or the inputs, to a node."""
    nodes = plan.limit.nodes
    computed: dict[int, Pairs] = {}

    def read(index: int) -> Pairs:
        if index in computed or not isinstance(nodes[index], MIXING):
            return computed[index]
        if not isinstance(nodes[index], Average):
            return behind[index]
        slot = jnp.asarray(plan.slots(index))[layout.at(index)]
        chosen = behind[index].map(lambda kernel: kernel[slot])
        return gained(chosen, index, layout, one, two)

    if isinstance(nodes[end], MIXING):
        return read(end)
    for index in plan.segment(end):
        node = nodes[index]
        if not node.sources:
            computed[index] = Pairs(_products(layout, one, two), None)
            continue
        sources = [read(source) for source in node.sources]
        pairs = through(node, index, sources, layout, one, two, duals[index])
        computed[index] = gained(pairs, index, layout, one, two)
    return computed[end]


def _products(layout: Layout, one: Sides, two: Sides) -> Array:
    """Return ``<x_p, x'_q>/channels``."""
    x = layout.one(one[0][0], 0)
    y = layout.two(two[0][0], 0)
    channels = len(x)
    if channels < MANY_CHANNELS or x.shape[-1] == y.shape[-1]:  # pair by pair there is no matrix
        return sum((x[c] * y[c] for c in range(channels)), jnp.zeros((), x.dtype)) / channels
    return jnp.moveaxis(x, 0, -1)[..., 0, :] @ jnp.moveaxis(y, 0, -2)[..., 0, :, :] / channels


def _padded(plan: Plan, sides: Sides) -> dict[int, list[Array]]:
    """Fill up positions to the size N by repeating the last; nobody reads them."""

    def padded(numbers: Array, index: int) -> Array:
        space = plan.limit.spaces[index]
        missing = [size - n for size, n in zip(plan.sizes[index], space, strict=True)]
        if not any(missing):
            return numbers
        start = numbers.ndim - 2 - len(space)
        pads = [(0, 0)] * start + [(0, m) for m in missing] + [(0, 0)] * 2
        return jnp.pad(numbers, pads, mode="edge")

    return {index: [padded(a, index) for a in arrays] for index, arrays in sides.items()}


def _inside(space: tuple[int, ...], sizes: tuple[int, ...], start: tuple) -> Array | None:
    """Mark the pairs whose positions both exist, shape ``(*N, 1, 1)``; None where all do."""
    if space == sizes:
        return None
    marks = jnp.ones(())
    for d, (n, size, s) in enumerate(zip(space, sizes, start, strict=True)):
        exists = jnp.asarray(np.arange(size) < n, float)
        both = exists * jnp.roll(exists, -s)
        marks = marks * both.reshape((-1,) + (1,) * (len(sizes) - d - 1))
    return marks[..., None, None]
