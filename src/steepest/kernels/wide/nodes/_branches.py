"""Branches that are joined: weighted sums, channels side by side, products."""

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from steepest.kernels.wide._rule import (
    ROUNDING,
    Diagonal,
    Local,
    Pairs,
    Presence,
    Step,
    common,
    present,
    rule_for,
)
from steepest.nn.layers._nodes import Concatenate, Product, Stack, Sum


@rule_for(Sum)
class OfSum(Local[Sum]):
    """``Σ r_i² K_i`` and ``Σ r_i² Θ_i``, with means by r_i."""

    def degree(self, read):
        """Return the degree that all branches have."""
        return common(read)

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Add branches, whose means have other weights than all else."""
        return _added(step, self.node.squares, self.node.weights)

    def pairs(self, read, index, layout, one, two, pairing) -> Pairs:
        """Add branches."""
        return _sum(self.node.squares, read)


@rule_for(Concatenate)
class OfConcatenate(Local[Concatenate]):
    """``Σ π_i K_i`` and ``Σ π_i Θ_i``, with means by π_i too."""

    def degree(self, read):
        """Return the degree that all branches have."""
        return common(read)

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Average over branches by their shares of the channels."""
        return _added(step, self.node.shares, self.node.shares)

    def pairs(self, read, index, layout, one, two, pairing) -> Pairs:
        """Average over branches."""
        return _sum(self.node.shares, read)


@rule_for(Stack)
class OfStack(Local[Stack]):
    """Blocks of pairs: K_i and Θ_i on the diagonal, zero elsewhere."""

    whole = True

    def degree(self, read):
        """Return the degree that all branches have."""
        return common(read)

    def presence(self, read, space, xp) -> Presence:
        """Put masks side by side."""
        return present(xp.concatenate(read, axis=1 + self.node.axis), xp)

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Put what is known of positions side by side."""
        join = partial(step.xp.concatenate, axis=self.node.axis)
        columns = zip(*step.read, strict=True)
        # all have a tangent kernel, as Gaussian branches have weights; where JAX traces none has bounds
        return Diagonal(*(None if column[0] is None else join(column) for column in columns))

    def pairs(self, read, index, layout, one, two, pairing) -> Pairs:
        """Put blocks into zeros, for both positions along the dimension."""
        axis = self.node.axis
        space = layout.plan.limit.spaces[index]
        rank = len(space)
        shape = (*space, *space, *read[0].k.shape[2 * rank :])
        whole = Pairs(jnp.zeros(shape, read[0].k.dtype), jnp.zeros(shape, read[0].k.dtype))
        start = 0
        for pairs in read:
            block = slice(start, start + pairs.k.shape[axis])
            at = [slice(None)] * len(shape)
            at[axis] = at[axis + rank] = block
            whole = whole.merge(pairs, partial(_put, tuple(at)))
            start = block.stop
        return whole


def _put(at: tuple[slice, ...], whole: Array, block: Array) -> Array:
    return whole.at[at].set(block)


@rule_for(Product)
class OfProduct(Local[Product]):
    """``Π K_i`` and ``Σ_i Θ_i Π_{j≠i} K_j``."""

    def degree(self, read):
        """Add the degrees of the branches."""
        return sum(read)

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Multiply branches."""
        return reduce(partial(_multiplied, step), step.read)

    def pairs(self, read, index, layout, one, two, pairing) -> Pairs:
        """Multiply branches."""
        return reduce(_times, read)


def _times(one: Pairs, two: Pairs) -> Pairs:
    """Compute ``K K'`` and ``Θ K' + K Θ'``; no branch is without Θ, as the raw input is refused."""
    assert one.theta is not None and two.theta is not None
    return Pairs(one.k * two.k, one.theta * two.k + one.k * two.theta)


def _multiplied(step: Step, one: Diagonal, two: Diagonal) -> Diagonal:
    """Multiply branches; a product of two that err by rank one errs by ``(k + g)(k' + g') − k k'`` at most."""
    assert one.theta is not None and two.theta is not None
    k = one.k * two.k
    # product rule: Θ K' + K Θ'
    theta = one.theta * two.k + one.k * two.theta
    behind = Diagonal(k, theta, one.mean * two.mean)
    if not step.bounded:
        return behind
    above = (one.k + one.g, two.k + two.g)
    highest = (one.theta + one.h) * above[1] + above[0] * (two.theta + two.h)
    g = above[0] * above[1] - k + ROUNDING * step.eps * k
    h = highest - theta + ROUNDING * step.eps * theta
    return behind._replace(g=g, h=h, v=(one.k + one.v) * (two.k + two.v) - k)


def _sum(weights: Sequence[Any], read: list[Pairs]) -> Pairs:
    """Compute ``Σ r K`` and ``Σ r Θ``; a branch without weights behind the input has no Θ."""
    weighted = list(zip(weights, read, strict=True))
    k = jnp.stack([r * pairs.k for r, pairs in weighted]).sum(0)
    thetas = [r * pairs.theta for r, pairs in weighted if pairs.theta is not None]
    return Pairs(k, jnp.stack(thetas).sum(0) if thetas else None)


def _added(step: Step, shares: Sequence[Any], of_means: Sequence[Any]) -> Diagonal:
    """Add branches: ``Σ r √(g_p g_q) ≤ √(Σ r g_p) √(Σ r g_q)``, so that bounds of rank one add up."""

    def total(name: str, weights: Sequence[Any] = shares):
        rows = [(r, getattr(branch, name)) for r, branch in zip(weights, step.read, strict=True)]
        # a branch without weights behind the input has no tangent kernel
        rows_there = [r * row for r, row in rows if row is not None]
        return sum(rows_there[1:], rows_there[0]) if rows_there else None

    return Diagonal(
        *(total(name, of_means if name == "mean" else shares) for name in Diagonal._fields)
    )
