"""Dropout: units are drawn for each input, so that only an input with itself sees the same ones."""

import jax.numpy as jnp

from steepest.kernels.wide._rule import Diagonal, Local, Pairs, Step, rule_for
from steepest.nn.layers._nodes import Drop


@rule_for(Drop)
class OfDropout(Local[Drop]):
    """Both kernels of an input with itself at equal positions are divided by the probability of being kept."""

    draws = True

    def degree(self, read):
        """Keep the degree: the node is linear."""
        return read[0]

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Divide variances and bounds; means stay, as what is kept is divided too."""
        (read,) = step.read
        return read.each(lambda values: values / self.node.keep)._replace(mean=read.mean)

    def pairs(self, read, index, layout, one, two, pairing) -> Pairs:
        """Change the pairs of an input with itself at equal positions: E m² = keep, while E m m' = keep²."""
        equal = layout.equal(index) * layout.itself
        factor = 1 + (1 / self.node.keep - 1) * equal
        return read[0].map(lambda kernel: kernel * jnp.asarray(factor, kernel.dtype))
