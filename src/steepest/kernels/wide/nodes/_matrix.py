"""Matrices that mix positions: one for all inputs, ``P K Pᵀ`` and ``P Θ Pᵀ``, or one beside each, ``A K A'ᵀ``."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from steepest.kernels.wide._rule import (
    ROUNDING,
    Diagonal,
    Mixing,
    Presence,
    Step,
    Values,
    everywhere,
    present,
    rule_for,
)
from steepest.kernels.wide.nodes._weights import Weighing, weighed
from steepest.nn.layers._masks import behind_matrix, in_line
from steepest.nn.layers._nodes import Mix, MixGiven


@rule_for(Mix)
class OfMatrix(Mixing[Mix]):
    """Positions in lines, multiplied from both sides."""

    meets = True

    def degree(self, read):
        """Keep the degree: the node is linear."""
        return read[0]

    def needs(self, behind, shape):
        """Read all displacements."""
        return everywhere(behind, shape)

    def presence(self, read, space, xp) -> Presence:
        """Follow the matrix's entries that are not zero."""
        node = self.node
        return present(behind_matrix(read[0], node.array, node.axis, space, xp), xp)

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Mix means, and bounds by ``|Σ P_pa ΔK_ab P_qb| ≤ (|P| √g)_p (|P| √g)_q``."""
        (read,) = step.read
        xp = step.xp
        before, along, behind_it = in_line(step.source_space, self.node.axis)
        count = read.k.shape[-1]

        def mix(matrix, values):
            lines = values.reshape(before, along, behind_it * count)
            return (matrix @ lines).reshape(*step.space, count)

        mean = mix(xp.asarray(self.node.array, read.mean.dtype), read.mean)
        behind = Diagonal(*step.itself(), mean)
        if not step.bounded:
            return behind
        bound = lambda values: mix(np.abs(self.node.array), np.sqrt(values)) ** 2
        g = bound(read.g)
        return behind._replace(g=g, h=None if read.h is None else bound(read.h), v=g)

    def all_pairs(self, k, index, layout, one, two):
        """Multiply by the matrix at both positions."""
        space = layout.plan.limit.spaces[self.node.sources[0]]
        after = layout.plan.limit.spaces[index]
        before, along, behind = in_line(space, self.node.axis)
        inputs = k.shape[2 * len(space) :]
        matrix = jnp.asarray(self.node.array, k.dtype)
        # of both positions: before the dimension, along it, behind it and the inputs
        behind_inputs = behind * math.prod(inputs)
        lines = k.reshape(before, along, math.prod(space) * behind_inputs)
        half = _times_each(matrix, lines)
        mixed = _times_each(matrix, half.reshape(-1, along, behind_inputs))
        return mixed.reshape(*after, *after, *inputs)


@rule_for(MixGiven)
class OfGraphs(Weighing[MixGiven]):
    """Positions in one line, multiplied from both sides by the graphs of both inputs."""

    def degree(self, read):
        """Keep the degree: the node is linear."""
        return read[0]

    def numbers(self, step: Step) -> list[Values]:
        """Return the graphs, ``(q, *space p, n)``."""
        assert step.graphs is not None  # a network that reads graphs refuses calls without
        return [step.graphs.reshape(len(step.graphs), *step.space, -1)]

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Mix means, and bounds by ``|Σ A_pa ΔK_ab A'_qb| ≤ (|A| √g)_p (|A'| √g')_q``."""
        (read,) = step.read
        (weights,) = numbers
        behind = Diagonal(*step.itself(), weighed(weights, read.mean, step.xp))
        if not step.bounded:
            return behind

        def bound(errors: Values, sizes: Values) -> Values:
            mixed = [weighed(np.abs(weights), np.sqrt(part), np) ** 2 for part in (errors, sizes)]
            # weights and sums are rounded: |A_pa K_ab A'_qb| ≤ |A_pa| √k_a √k'_b |A'_qb|
            return mixed[0] + ROUNDING * step.eps * mixed[1]

        g = bound(read.g, read.k)
        return behind._replace(g=g, h=None if read.h is None else bound(read.h, read.theta), v=g)


def _times_each(matrix: Array, lines: Array) -> Array:
    """Multiply arrays ``(x, a, y)`` by a matrix ``(p, a)`` from the left; as a batch no axes are moved."""
    copies = jnp.broadcast_to(matrix, (len(lines), *matrix.shape))
    return copies @ lines
