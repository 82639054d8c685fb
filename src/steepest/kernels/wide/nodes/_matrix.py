"""A fixed matrix that mixes positions, all of them or those along a dimension: ``P K Pᵀ`` and ``P Θ Pᵀ``."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from steepest.kernels.wide._rule import (
    Diagonal,
    Mixing,
    Presence,
    Step,
    everywhere,
    present,
    rule_for,
)
from steepest.nn.layers._masks import behind_matrix, in_line
from steepest.nn.layers._nodes import Mix


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


def _times_each(matrix: Array, lines: Array) -> Array:
    """Multiply arrays ``(x, a, y)`` by a matrix ``(p, a)`` from the left; as a batch no axes are moved."""
    copies = jnp.broadcast_to(matrix, (len(lines), *matrix.shape))
    return copies @ lines
