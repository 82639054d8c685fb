"""Which pairs of positions a limit needs, node by node, and in which order they are computed.

A pair (p, q) has the displacement q − p. Convolutions, activations and sums keep displacements apart; pooling mixes
them. So each displacement can run from the inputs to the next pooling by itself, and only those that the output
depends on are needed: one for a network that ends in ``flatten()``, (2w − 1)² where a pooling of width w stands before.

Displacements are counted modulo a size N of space, which at every node is at least the number n of positions: for
N = n the displacements s > 0 and s − n share the n rows of one image without waste.

Where displacements cannot stay apart, all pairs of positions are computed at once: behind a matrix that mixes them, in
attention, behind transposed convolutions, at circular padding where N > n, and where branches of different strides
meet.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.kernels.wide._rule import Displaced, Mixing, Rule, rule_of
from steepest.nn.layers import WideLimit


@dataclass(frozen=True)
class Plan:
    """What is computed. Plans of one architecture are equal (``plan_of``), so that its programs are found again.

    Attributes:
        architecture: stands for what does not depend on coefficients.
        limit: the network, with its coefficients.
        sizes: N of each node in each dimension; all multiples along strides.
        needed: displacements of each node, sorted, shape ``(count, dimensions)`` each, as tuples.
        apart: whether displacements stay apart; else all pairs of positions are computed at once.
        masked: whether some positions of some inputs, or behind edges, do not exist.
    """

    architecture: object
    limit: WideLimit = field(compare=False)
    sizes: tuple[tuple[int, ...], ...] = field(compare=False)
    needed: tuple[tuple[tuple[int, ...], ...], ...] = field(compare=False)
    apart: bool = field(compare=False)
    masked: bool = field(default=False, compare=False)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """Return the rules of the nodes, with their coefficients."""
        return tuple(rule_of(node) for node in self.limit.nodes)

    def with_coefficients(self, coefficients: tuple[dict[str, Any], ...]) -> "Plan":
        """Return the plan of the same architecture with other coefficients."""
        return replace(self, limit=self.limit.with_coefficients(coefficients))

    def gained(self, node: int) -> bool:
        """Tell whether kernels behind a node are multiplied by numbers of its positions (``_presence.py``)."""
        return self.masked and (self.rules[node].weighs or len(self.limit.spaces[node]) > 0)

    @property
    def cells(self) -> int:
        """Count the pairs of positions of the largest node that are in memory at a time: one displacement, or all."""
        positions = max(int(np.prod(size)) for size in self.sizes)
        return positions if self.apart else positions**2

    def slots(self, node: int) -> NDArray[np.int64]:
        """Return each displacement's place among those that a node needs, shape N; their number for the others."""
        needed = np.array(self.needed[node])
        slots = np.full(self.sizes[node], len(needed))
        slots[tuple(needed.T)] = np.arange(len(needed))
        return slots

    def segment(self, end: int) -> list[int]:
        """List the nodes from the last mixing ones, which are not among them, up to this one."""
        reached: set[int] = set()
        ahead = [end]
        while ahead:
            index = ahead.pop()
            if index in reached or (isinstance(self.rules[index], Mixing) and index != end):
                continue
            reached.add(index)
            ahead += self.limit.nodes[index].sources
        return sorted(reached)

    def mixing(self) -> list[int]:
        """List the nodes that mix displacements, in order."""
        return [i for i, rule in enumerate(self.rules) if isinstance(rule, Mixing)]


def plan_of(
    limit: WideLimit, *, positions: bool = False, masked: bool = False, drawn: bool = False
) -> Plan:
    """Plan a limit: sizes forwards from the strides, needed displacements backwards from the output.

    Args:
        limit: the network.
        positions: whether all pairs of positions of the output are wanted.
        masked: whether some positions of some inputs do not exist.
        drawn: whether heads of attention will be drawn where there is no kernel without.

    Raises:
        UserError: an output that keeps its positions, where they are not wanted; attention over √d, if not drawn.

    >>> from steepest.nn.layers import conv, dense, flatten, network, pool
    >>> net = network(conv(8), "relu", pool(2), flatten(), dense(1), shape=(8, 8, 3), parameterized="ntk")
    >>> plan = plan_of(net.limit())
    >>> [len(displacements) for displacements in plan.needed]  # of 64
    [9, 9, 9, 1, 1, 1]
    """
    if limit.spaces[-1] and not positions:
        raise UserError(
            f"the output of the {limit.name} has positions of its own; end with flatten() or global_pool(), "
            "or take gram_positions"
        )
    random = [i for i, node in enumerate(limit.nodes) if rule_of(node).drawn]
    if random and not drawn:
        raise UserError(
            f"attention with products over √d (node {random[0]}) has a kernel only in the mean over heads; "
            "gram_over_heads(limit, x, key) estimates it, or divide by d, scale='1/d'"
        )
    # edges that do not count are positions that do not exist
    masked = masked or any(rule_of(node).omits_edges for node in limit.nodes)
    return replace(_planned(limit.structure, masked), limit=limit)


@lru_cache(maxsize=64)
def _planned(limit: WideLimit, masked: bool) -> Plan:
    rules = [rule_of(node) for node in limit.nodes]
    architecture = object()
    if any(rule.whole or _is_transposed(rule) or _mixes_all(rule) for rule in rules):
        none = ((),) * len(limit.nodes)
        return Plan(architecture, limit, limit.spaces, none, apart=False, masked=masked)
    strides = _total_strides(limit, rules)
    sizes = _sizes(limit, strides)
    needed = _needed(limit, rules, sizes)
    whole = zip(rules, limit.nodes, strict=True)
    apart = all(_keeps_apart(rule, node.sources, limit, strides, sizes) for rule, node in whole)
    lists = tuple(tuple(map(tuple, np.argwhere(mask).tolist())) for mask in needed)
    return Plan(architecture, limit, sizes, lists, apart, masked)


def _is_transposed(rule: Rule) -> bool:
    """Tell whether outputs of a node are more than inputs: a displacement then goes on in several ways."""
    return rule.window is not None and rule.window.transposed


def _mixes_all(rule: Rule) -> bool:
    """Tell whether a node mixes positions for which all pairs must be there."""
    return isinstance(rule, Mixing) and not isinstance(rule, Displaced)


def _keeps_apart(
    rule: Rule, sources: tuple[int, ...], limit: WideLimit, strides: list, sizes: tuple
) -> bool:
    """Tell whether what a node does to a displacement depends on it alone."""
    if len({strides[source] for source in sources}) > 1:
        return False
    if rule.window is None or rule.window.padding != "circular":
        return True
    return sizes[sources[0]] == limit.spaces[sources[0]]


def _total_strides(limit: WideLimit, rules: list[Rule]) -> list[tuple[int, ...]]:
    """Return the product of the strides from the input to each node, in each dimension."""
    strides: list[tuple[int, ...]] = []
    for node, rule, space in zip(limit.nodes, rules, limit.spaces, strict=True):
        if not node.sources:
            strides.append((1,) * len(space))
            continue
        before = strides[node.sources[0]]
        if rule.window is not None:
            before = tuple(a * r for a, r in zip(before, rule.window.stride, strict=True))
        strides.append(before if space else ())
    return strides


def _sizes(limit: WideLimit, strides: list[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Return N of each node: the smallest for which all nodes divide one size and have room."""
    sizes = []
    for d in range(len(limit.spaces[0])):
        total = int(np.lcm.reduce([stride[d] for stride in strides if stride]))
        room = max(
            space[d] * stride[d]
            for space, stride in zip(limit.spaces, strides, strict=True)
            if space
        )
        sizes.append(-(-room // total) * total)
    return tuple(tuple(n // r for n, r in zip(sizes, stride, strict=False)) for stride in strides)


def _needed(
    limit: WideLimit, rules: list[Rule], sizes: tuple[tuple[int, ...], ...]
) -> list[NDArray[np.bool_]]:
    """Mark the displacements that the output depends on, from the last node back to the first."""
    masks = [np.zeros(size, bool) for size in sizes]
    masks[-1] |= True  # a single entry, unless the output keeps its positions
    for node, rule, mask in reversed(list(zip(limit.nodes, rules, masks, strict=True))):
        for source in node.sources:
            masks[source] |= rule.needs(mask, sizes[source])
    return masks
