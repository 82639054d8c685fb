"""One rule a node: how it changes the covariance K and the tangent kernel Θ of pairs of positions."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from steepest.kernels.wide._duals import Dual
from steepest.kernels.wide._layouts import Layout
from steepest.nn.layers._nodes import (
    Activate,
    Concatenate,
    Linear,
    Node,
    Normalize,
    Product,
    Sum,
)


class Pairs(NamedTuple):
    """Covariance and tangent kernel of some pairs; no tangent kernel before the first weights."""

    k: Array
    theta: Array | None

    def map(self, change: Callable[[Array], Array]) -> "Pairs":
        """Change both kernels alike."""
        return Pairs(change(self.k), None if self.theta is None else change(self.theta))

    def merge(self, other: "Pairs", change: Callable[[Array, Array], Array]) -> "Pairs":
        """Change both kernels, each with that of other pairs."""
        if self.theta is None or other.theta is None:
            return Pairs(change(self.k, other.k), None)
        return Pairs(change(self.k, other.k), change(self.theta, other.theta))


Sides = Mapping[int, Sequence[Any]]
"""Numbers at single positions that a node needs, by its index."""


def through(
    node: Node,
    index: int,
    read: list[Pairs],
    layout: Layout,
    one: Sides,
    two: Sides,
    dual: Dual | None,
) -> Pairs:
    """Apply the rule of a node that keeps displacements apart.

    Args:
        node: the node.
        index: its place in the limit.
        read: the pairs of its sources.
        layout: of the pairs.
        one: numbers of the first inputs.
        two: numbers of the second inputs.
        dual: the expectations of its activation, if it is one.
    """
    if isinstance(node, Linear):
        return _linear(node, index, read[0], layout)
    if isinstance(node, Sum):
        return _sum(node.squares, read)
    if isinstance(node, Concatenate):
        return _sum(node.shares, read)
    if isinstance(node, Product):
        return reduce(_times, read)
    first = [layout.one(numbers, index) for numbers in one[index]]
    second = [layout.two(numbers, index) for numbers in two[index]]
    k, theta = read[0]
    if isinstance(node, Activate):
        assert dual is not None
        value, slope = dual.pair(k, first, second)
        if theta is None:
            return Pairs(layout.settle(value)[0], None)
        settled = layout.settle(value, slope * theta)
        return Pairs(settled[0], settled[1])
    assert isinstance(node, Normalize)
    scale = first[1] * second[1]
    # E (z − m)(z' − m') = K − m m'; Θ is divided alone
    centred = Pairs(k - first[0] * second[0], theta)
    return centred.map(lambda kernel: kernel * scale)


def _times(one: Pairs, two: Pairs) -> Pairs:
    """Compute ``K K'`` and ``Θ K' + K Θ'``; no branch is without Θ, as the raw input is refused."""
    assert one.theta is not None and two.theta is not None
    return Pairs(one.k * two.k, one.theta * two.k + one.k * two.theta)


def _sum(weights: Sequence[float], read: list[Pairs]) -> Pairs:
    """Compute ``Σ r K`` and ``Σ r Θ``; a branch without weights behind the input has no Θ."""
    weighted = list(zip(weights, read, strict=True))
    k = jnp.stack([r * pairs.k for r, pairs in weighted]).sum(0)
    thetas = [r * pairs.theta for r, pairs in weighted if pairs.theta is not None]
    return Pairs(k, jnp.stack(thetas).sum(0) if thetas else None)


def _linear(node: Linear, index: int, read: Pairs, layout: Layout) -> Pairs:
    """Compute ``c_b + c_w M K`` and ``t_b + t_w M K + c_w M Θ``."""
    (source,) = node.sources
    arrays = (read.k,) if read.theta is None else (read.k, read.theta)
    if node.window is not None:
        arrays = layout.means(arrays, node.window, source, index)
    average, *carried = arrays
    k = node.c_w * average + node.c_b if node.c_b else node.c_w * average
    theta = node.t_w * average + node.t_b if node.t_b else node.t_w * average
    pairs = Pairs(k, theta + node.c_w * carried[0] if carried else theta)
    if node.shared:
        return pairs
    equal = layout.equal(index)
    # weights of different positions are independent: only p = q is left
    return pairs.map(lambda kernel: kernel * jnp.asarray(equal, kernel.dtype))
