"""Branches that are joined: weighted sums, channels side by side, products."""

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import jax.numpy as jnp

from steepest.kernels.wide._rule import ROUNDING, Diagonal, Local, Pairs, Step, rule_for
from steepest.nn.layers._nodes import Concatenate, Product, Sum


@rule_for(Sum)
class OfSum(Local[Sum]):
    """``Σ r_i² K_i`` and ``Σ r_i² Θ_i``, with means by r_i."""

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Add branches, whose means have other weights than all else."""
        return _added(step, self.node.squares, self.node.weights)

    def pairs(self, read, index, layout, one, two, pairing) -> Pairs:
        """Add branches."""
        return _sum(self.node.squares, read)


@rule_for(Concatenate)
class OfConcatenate(Local[Concatenate]):
    """``Σ π_i K_i`` and ``Σ π_i Θ_i``, with means by π_i too."""

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Average over branches by their shares of the channels."""
        return _added(step, self.node.shares, self.node.shares)

    def pairs(self, read, index, layout, one, two, pairing) -> Pairs:
        """Average over branches."""
        return _sum(self.node.shares, read)


@rule_for(Product)
class OfProduct(Local[Product]):
    """``Π K_i`` and ``Σ_i Θ_i Π_{j≠i} K_j``."""

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
