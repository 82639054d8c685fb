"""The recursion of a limit for some pairs of inputs: along displacements, or for all pairs of positions at once."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from steepest.kernels.wide._layouts import AllPairs, Displacement, Layout, gains
from steepest.kernels.wide._plan import Plan
from steepest.kernels.wide._rule import Displaced, Displacements, Local, Mixing, Pairs, Sides
from steepest.kernels.wide.duals import Dual, Pairing
from steepest.nn.layers._nodes import Attend, AttendEntrywise

PROGRAMS = 24  # architectures whose programs are held at a time: each takes 10 to 30 MB
MANY_CHANNELS = 16  # from which on a product of matrices is faster than a sum
Duals = tuple[Dual | None, ...]
Pairings = tuple[Pairing | None, ...]


def evaluate(
    plan: Plan, duals: Duals, end: int, one: Sides, two: Sides, itself: float = 0.0
) -> Pairs:
    """Compute the kernels of a node without positions, or of an average at equal positions, the faster way.

    Args:
        plan: of the limit.
        duals: of the nodes; None for those without activation.
        end: the node.
        one: numbers of the first inputs by node, arrays ``(…, *space, b, 1)``; node 0 has the inputs, channels first.
        two: numbers of the second inputs: ``(…, *space, 1, b')`` for all pairs, ``(…, *space, b, 1)`` pair by pair.
        itself: one where each pair is of an input with itself, zero where none is.

    Returns:
        arrays ``(b, b')`` or ``(b, 1)``; of an average ``(*space, b, …)``.
    """
    if plan.apart:
        return by_displacement(plan, duals, end, one, two, jnp.asarray(1), itself)
    return _run(_at_equal_positions, plan, duals, end, one, two, itself)


def _at_equal_positions(
    plan: Plan, pairings: Pairings, end: int, one: Sides, two: Sides, itself: Array
) -> Pairs:
    """Compute all pairs of positions up to a node, and keep equal positions, ``(*space, b, …)``."""
    (pairs,) = _at_nodes(plan, pairings, (end,), one, two, itself)
    space = plan.limit.spaces[end]
    count = int(np.prod(space))

    def equal(kernel: Array) -> Array:
        square = kernel.reshape(count, count, *kernel.shape[2 * len(space) :])
        return square[np.arange(count), np.arange(count)].reshape(*space, *square.shape[2:])

    return pairs.map(equal) if space else pairs


def by_displacement(
    plan: Plan, duals: Duals, end: int, one: Sides, two: Sides, once: Array, itself: float = 0.0
) -> Pairs:
    """Evaluate one displacement after the other; ``once`` is the number one, as in ``Displacement``."""
    return _run(_by_displacement, plan, duals, end, one, two, once, itself)


def _run(function: Callable, plan: Plan, duals: Duals, end: Any, *arrays: Any) -> Any:
    """Run the program of an architecture with the coefficients of one limit."""
    pairings = tuple(None if dual is None else dual.pairing for dual in duals)
    return _program(function, plan, pairings, end)(plan.limit.coefficients, *arrays)


@lru_cache(maxsize=PROGRAMS)
def _program(function: Callable, plan: Plan, pairings: Pairings, end: Any) -> Callable:
    """Compile for one architecture; JAX frees a program when the function that it made is forgotten here."""

    def run(coefficients: Any, *arrays: Any) -> Any:
        return function(plan.with_coefficients(coefficients), pairings, end, *arrays)

    return jax.jit(run)


def _by_displacement(
    plan: Plan,
    pairings: Pairings,
    end: int,
    one: Sides,
    two: Sides,
    once: Array,
    itself: Array,
) -> Pairs:
    one = _padded(plan, one)
    two = _padded(plan, two)
    # what stands behind each mixing node: kernels without positions, or those of all displacements that are needed
    behind: dict[int, Pairs] = {}
    keeps = lambda index: len(plan.limit.spaces[index]) > 0
    for index in plan.mixing():
        if index > end:
            break

        def run(start: tuple, source: int = plan.limit.nodes[index].sources[0]) -> Pairs:
            layout = Displacement(plan, start, source, once, itself)
            return _segment(plan, pairings, source, behind, layout, one, two)

        rule = plan.rules[index]
        assert isinstance(rule, Displaced)  # or displacements would not be apart
        behind[index] = rule.displaced(Displacements(plan, index, run))
        if not keeps(index):  # else displacements differ in their numbers
            apart = Displacement(plan, (), index, once)
            behind[index] = gained(behind[index], index, apart, one, two)
    if end in behind and keeps(end):
        zero = (0,) * len(plan.sizes[end])
        origin = plan.needed[end].index(zero)
        whole = tuple(slice(n) for n in plan.limit.spaces[end])
        equal = behind[end].map(lambda kernel: kernel[origin])
        at_zero = gained(equal, end, Displacement(plan, zero, end, once), one, two)
        return at_zero.map(lambda kernel: kernel[whole])
    if end in behind:
        return behind[end]
    layout = Displacement(plan, (), end, once, itself)
    return _segment(plan, pairings, end, behind, layout, one, two)


def by_all_pairs(
    plan: Plan, duals: Duals, end: int, one: Sides, two: Sides, itself: float = 0.0
) -> Pairs:
    """Compute the kernels of any node for all pairs of its positions: ``(*space, *space, b, b')``."""
    return at_nodes(plan, duals, (end,), one, two, itself)[0]


def at_nodes(
    plan: Plan, duals: Duals, ends: tuple[int, ...], one: Sides, two: Sides, itself: float = 0.0
) -> tuple[Pairs, ...]:
    """Compute the kernels of several nodes for all pairs of their positions, in one pass."""
    return _run(_at_nodes, plan, duals, ends, one, two, itself)


def _at_nodes(
    plan: Plan, pairings: Pairings, ends: tuple[int, ...], one: Sides, two: Sides, itself: Array
) -> tuple[Pairs, ...]:
    layout = AllPairs(plan, itself)
    nodes = plan.limit.nodes
    computed: dict[int, Pairs] = {0: Pairs(_products(layout, one, two), None)}
    for index in range(1, max(ends) + 1):
        read = [computed[source] for source in nodes[index].sources]
        computed[index] = behind_node(layout, index, read, one, two, pairings[index])
    return tuple(computed[end] for end in ends)


def behind_node(
    layout: AllPairs,
    index: int,
    read: list[Pairs],
    one: Sides,
    two: Sides,
    pairing: Pairing | None,
) -> Pairs:
    """Apply the rule of any node to all pairs of positions; ``read`` has the pairs of its sources."""
    rule = layout.plan.rules[index]
    if not rule.node.sources:
        return Pairs(_products(layout, one, two), None)
    if isinstance(rule, Mixing):
        sides = [_numbers_of(layout.plan, index, side) for side in (one, two)]
        pairs = read[0].map(lambda k: rule.all_pairs(k, index, layout, *sides))
        return gained(pairs, index, layout, one, two)
    return _apart(layout, index, read, one, two, pairing)


def _apart(
    layout: Layout,
    index: int,
    read: list[Pairs],
    one: Sides,
    two: Sides,
    pairing: Pairing | None,
) -> Pairs:
    """Apply the rule of a node that keeps displacements apart, with its numbers spread over the pairs."""
    first = [layout.one(numbers, index) for numbers in _numbers_of(layout.plan, index, one)]
    second = [layout.two(numbers, index) for numbers in _numbers_of(layout.plan, index, two)]
    rule = layout.plan.rules[index]
    assert isinstance(rule, Local)
    pairs = rule.pairs(read, index, layout, first, second, pairing)
    return gained(pairs, index, layout, one, two)


def _numbers_of(plan: Plan, index: int, side: Sides) -> list[Array]:
    """Return the numbers of a rule at single positions, without γ, which stands behind them."""
    numbers = [*side.get(index, ())]
    return numbers[:-1] if plan.gained(index) else numbers


def gained(pairs: Pairs, index: int, layout: Layout, one: Sides, two: Sides) -> Pairs:
    """Multiply by γ_p γ'_q where some positions do not exist."""
    if not layout.plan.gained(index):
        return pairs
    factor = gains(layout, index, one, two)
    return pairs.map(lambda kernel: kernel * factor)


def attention_products(plan: Plan, duals: Duals, index: int, sides: Sides) -> Array:
    """Return ``s K°[p, q]`` of an attention node for each input, ``(positions q, *space p, b)``.

    Args:
        plan: of the limit.
        duals: of the nodes before.
        index: the node.
        sides: numbers of the inputs by node, for the nodes before, arrays ``(…, *space, b, 1)``.
    """
    node = plan.limit.nodes[index]
    assert isinstance(node, (Attend, AttendEntrywise))
    keys = node.sources[1]
    space = plan.limit.spaces[keys]
    count = int(np.prod(space))
    k = by_all_pairs(plan, duals, keys, sides, sides, itself=1.0).k[..., 0]
    # of one input K° is symmetric, so that either axis may be that of the keys
    return node.sharpness * k.reshape(count, *space, -1)


def _segment(
    plan: Plan,
    pairings: Pairings,
    end: int,
    behind: Mapping[int, Pairs],
    layout: Displacement,
    one: Sides,
    two: Sides,
) -> Pairs:
    """Run one displacement from the last mixing nodes, or the inputs, to a node."""
    rules = plan.rules
    computed: dict[int, Pairs] = {}

    def read(index: int) -> Pairs:
        if index in computed or not isinstance(rules[index], Mixing):
            return computed[index]
        if not plan.limit.spaces[index]:
            return behind[index]
        slot = jnp.asarray(plan.slots(index))[layout.at(index)]
        chosen = behind[index].map(lambda kernel: kernel[slot])
        return gained(chosen, index, layout, one, two)

    if isinstance(rules[end], Mixing):
        return read(end)
    for index in plan.segment(end):
        if not rules[index].node.sources:
            computed[index] = Pairs(_products(layout, one, two), None)
            continue
        sources = [read(source) for source in rules[index].node.sources]
        computed[index] = _apart(layout, index, sources, one, two, pairings[index])
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
