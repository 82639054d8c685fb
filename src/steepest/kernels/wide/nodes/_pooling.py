"""Positions that become fewer: averages over windows or over all, and positions that become channels."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from steepest.kernels.wide._layouts import pool_share, pooled_shares
from steepest.kernels.wide._rule import (
    Diagonal,
    Displaced,
    Displacements,
    Pairs,
    Presence,
    Step,
    everywhere,
    nowhere_else,
    present,
    rule_for,
    strided,
    window_mean,
)
from steepest.nn.layers._masks import behind_pool, counted
from steepest.nn.layers._nodes import AllPositions, Average, EqualPositions
from steepest.nn.layers._window import Window


@rule_for(Average)
class OfAverage(Displaced[Average]):
    """The mean over both windows."""

    meets = True

    def degree(self, read):
        """Keep the degree: the node is linear."""
        return read[0]

    @property
    def window(self) -> Window | None:
        """Return the window."""
        return self.node.window

    @property
    def omits_edges(self) -> bool:
        """Tell whether windows at the edge are divided by the positions inside."""
        return self.node.divisor == "existing" and self.node.window.padding == "zero"

    def needs(self, behind, shape):
        """Read every displacement of positions in both windows."""
        return strided(behind, shape, self.node.window, self.node.window.size)

    def presence(self, read, space, xp) -> Presence:
        """Count the positions that exist in each window."""
        exists = behind_pool(read[0], self.node.window, xp)
        if self.node.divisor == "volume":
            return present(exists, xp)
        counts = counted(read[0], self.node.window, xp)
        # windows are averaged over volume positions, existing ones over count: γ is the ratio
        gain = xp.where(exists, self.node.window.volume / xp.maximum(counts, 1), 0.0)
        return Presence(exists, xp.moveaxis(gain, 0, -1))

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Average means and bounds; kernels of each input with itself come from pairs."""
        mean = partial(window_mean, window=self.node.window, space=step.source_space, xp=step.xp)
        return averaged(step, mean)

    def all_pairs(self, k, index, layout, one, two):
        """Average over both windows."""
        return layout.pool(k, self.node.window, self.node.sources[0])

    def displaced(self, at: Displacements) -> Pairs:
        """Add each displacement's pairs to the displacements behind the pooling that they count in."""
        window = self.node.window
        sizes = at.plan.sizes[at.index]
        starts = window.starts(at.space)

        def share(pairs: Pairs, start: tuple, sums: Pairs) -> Pairs:
            shares = pooled_shares(at.plan, at.index, window, start)
            for slot, weights in zip(shares.slot, shares.weights, strict=True):
                part = pairs.map(partial(pool_share, window, weights, starts, sizes))
                sums = sums.merge(part, partial(_add_at, slot))
            return sums

        # one place more for displacements that nobody needs
        return _scanned(at, share, (len(at.plan.needed[at.index]) + 1, *sizes))


@rule_for(AllPositions)
class OfAllPositions(Displaced[AllPositions]):
    """The mean over all p and q."""

    meets = True

    def degree(self, read):
        """Keep the degree: the node is linear."""
        return read[0]

    @property
    def weighs(self) -> bool:
        """Tell whether the mean is over the positions that exist."""
        return self.node.divisor == "existing"

    def needs(self, behind, shape):
        """Read all displacements."""
        return everywhere(behind, shape)

    def presence(self, read, space, xp) -> Presence:
        """Count the positions that exist."""
        if not self.weighs:
            return Presence(None, None)
        count = read[0].reshape(len(read[0]), -1).sum(1)
        return Presence(None, read[0][0].size / count)

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Average means and bounds; kernels of each input with itself come from pairs."""
        return averaged(step, partial(_over_space, space=step.source_space))

    def all_pairs(self, k, index, layout, one, two):
        """Compute ``(1/P²) Σ_{p,q} K[p, q]``."""
        return in_lines(k, layout.plan.limit.spaces[self.node.sources[0]]).mean((0, 1))

    def displaced(self, at: Displacements) -> Pairs:
        """Add up all displacements, with pairs of which both positions exist."""
        sizes = at.plan.sizes[at.source]
        axes = tuple(range(len(at.space)))
        count = int(np.prod(at.space)) ** 2

        def share(pairs: Pairs, start: tuple, sums: Pairs) -> Pairs:
            inside = _inside(at.space, sizes, start)
            total = pairs.map(lambda k: (k if inside is None else k * inside).sum(axes) / count)
            return sums.merge(total, jnp.add)

        return _scanned(at, share, ())


@rule_for(EqualPositions)
class OfEqualPositions(Displaced[EqualPositions]):
    """Positions become channels: the mean over p = q."""

    def degree(self, read):
        """Keep the degree: the node is linear."""
        return read[0]

    def needs(self, behind, shape):
        """Read equal positions."""
        return nowhere_else(behind, shape)

    def presence(self, read, space, xp) -> Presence:
        """Tell that no positions are left."""
        return Presence(None, None)

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Average over positions."""
        (read,) = step.read
        return read.each(partial(_over_space, space=step.source_space))

    def all_pairs(self, k, index, layout, one, two):
        """Take the mean of the diagonal."""
        square = in_lines(k, layout.plan.limit.spaces[self.node.sources[0]])
        return jnp.trace(square) / len(square)

    def displaced(self, at: Displacements) -> Pairs:
        """Run the displacement zero."""
        whole = tuple(slice(n) for n in at.space)
        axes = tuple(range(len(at.space)))
        return at.run((0,) * len(at.space)).map(lambda kernel: kernel[whole].mean(axes))


def averaged(step: Step, mean: Any) -> Diagonal:
    """Average means and bounds; kernels come from pairs of an input with itself, and err as the bound says."""
    (read,) = step.read
    behind = Diagonal(*step.itself(), mean(read.mean))
    if not step.bounded:
        return behind
    g = mean(read.g)
    return behind._replace(g=g, h=None if read.h is None else mean(read.h), v=g)


def in_lines(k: Array, space: tuple[int, ...]) -> Array:
    """Put positions in one line each, ``(P, P, b, b')``."""
    count = int(np.prod(space))
    return k.reshape(count, count, *k.shape[2 * len(space) :])


def _over_space(values: Any, space: tuple[int, ...]) -> Any:
    return values.mean(tuple(range(len(space))))


def _scanned(at: Displacements, share: Any, lead: tuple[int, ...]) -> Pairs:
    """Run all displacements that are needed, one after the other, and add up what each contributes."""
    needed = np.array(at.plan.needed[at.source])
    start = tuple(jnp.asarray(column) for column in needed.T)
    shapes = jax.eval_shape(at.run, tuple(column[0] for column in start))
    zeros = shapes.map(lambda k: jnp.zeros((*lead, *k.shape[len(at.space) :]), k.dtype))
    add = lambda sums, displacement: (share(at.run(displacement), displacement, sums), None)
    return jax.lax.scan(add, zeros, start)[0]


def _add_at(slot: Array, total: Array, part: Array) -> Array:
    return total.at[slot].add(part)


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
