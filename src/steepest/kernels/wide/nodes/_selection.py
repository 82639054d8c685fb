"""Some of the positions: kernels and all that is known of single positions are taken there."""

from functools import partial

import jax.numpy as jnp
import numpy as np

from steepest.core.errors import UserError
from steepest.kernels.wide._rule import (
    Diagonal,
    Mixing,
    Presence,
    Step,
    everywhere,
    present,
    rule_for,
)
from steepest.nn.layers._masks import taken
from steepest.nn.layers._nodes import Select


@rule_for(Select)
class OfSelection(Mixing[Select]):
    """Positions that are taken, in their order."""

    @property
    def weighs(self) -> bool:
        """Tell whether a single position is taken: an input that lacks it has no kernel."""
        return all(isinstance(positions, int) for positions in self.node.taken)

    def degree(self, read):
        """Keep the degree: the node is linear."""
        return read[0]

    def needs(self, behind, shape):
        """Read all displacements."""
        return everywhere(behind, shape)

    def presence(self, read, space, xp) -> Presence:
        """Take the masks there.

        Raises:
            UserError: the only position that is taken does not exist in some input.
        """
        exists = taken(read[0], self.node.taken, xp, 1)
        if space:
            return present(exists, xp)
        if xp is np and not exists.all():
            raise UserError(
                f"select takes a position that input {int(np.argmin(exists))} lacks; drop this input, or take "
                "another position"
            )
        # where JAX traces masks no error can be raised: kernels are NaN
        return Presence(None, xp.where(exists, 1.0, xp.nan))

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Take numbers and bounds."""
        (read,) = step.read
        return read.each(partial(taken, positions=self.node.taken, xp=step.xp, start=0))

    def all_pairs(self, k, index, layout, one, two):
        """Take both positions of each pair."""
        rank = len(self.node.taken)
        at_second = taken(k, self.node.taken, jnp, rank)
        return taken(at_second, self.node.taken, jnp, 0)
