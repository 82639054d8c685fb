"""A fixed matrix that mixes positions: ``P K Pᵀ`` and ``P Θ Pᵀ``."""

import jax.numpy as jnp
import numpy as np

from steepest.kernels.wide._rule import (
    Diagonal,
    Mixing,
    Presence,
    Step,
    everywhere,
    present,
    rule_for,
)
from steepest.nn.layers._masks import behind_matrix
from steepest.nn.layers._nodes import Mix


@rule_for(Mix)
class OfMatrix(Mixing[Mix]):
    """Positions in one line, multiplied from both sides."""

    meets = True

    def needs(self, behind, shape):
        """Read all displacements."""
        return everywhere(behind, shape)

    def presence(self, read, space, xp) -> Presence:
        """Follow the matrix's entries that are not zero."""
        return present(behind_matrix(read[0], self.node.array, space, xp), xp)

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Mix means, and bounds by ``|Σ P_pa ΔK_ab P_qb| ≤ (|P| √g)_p (|P| √g)_q``."""
        (read,) = step.read
        xp = step.xp
        count = read.k.shape[-1]

        def mix(matrix, values):
            return (matrix @ values.reshape(-1, count)).reshape(*step.space, count)

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
        count = int(np.prod(space))
        square = k.reshape(count, count, *k.shape[2 * len(space) :])
        matrix = jnp.asarray(self.node.array, k.dtype)
        mixed = jnp.einsum("pa,ab...,qb->pq...", matrix, square, matrix)
        return mixed.reshape(*after, *after, *k.shape[2 * len(space) :])
