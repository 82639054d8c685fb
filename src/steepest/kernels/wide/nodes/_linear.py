"""Weights: ``K' = c_b + c_w M K`` and ``Θ' = t_b + t_w M K + c_w M Θ``."""

import jax.numpy as jnp

from steepest.kernels.wide._rule import (
    ROUNDING,
    Diagonal,
    Local,
    Pairs,
    Presence,
    Step,
    nowhere_else,
    present,
    rule_for,
    window_mean,
)
from steepest.nn.layers._masks import behind_convolution
from steepest.nn.layers._nodes import Linear
from steepest.nn.layers._window import Window


@rule_for(Linear)
class OfLinear(Local[Linear]):
    """A matrix for each position, or a filter for each window."""

    def degree(self, read):
        """Keep the degree without biases."""
        return None if self.node.c_b or self.node.t_b else read[0]

    @property
    def window(self) -> Window | None:
        """Return the filter's window."""
        return self.node.window

    def needs(self, behind, shape):
        """Read displacements times the stride, or equal positions where each has weights of its own."""
        return super().needs(behind, shape) if self.node.shared else nowhere_else(behind, shape)

    def presence(self, read, space, xp) -> Presence:
        """Follow the windows."""
        if self.window is None:
            return super().presence(read, space, xp)
        return present(behind_convolution(read[0], self.window, xp), xp)

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Average over windows; bounds of rank one survive that by Cauchy and Schwarz."""
        node = self.node
        (first,) = step.read
        mean = lambda values: (
            values
            if node.window is None
            else window_mean(values, node.window, step.source_space, step.xp)
        )
        average = mean(first.k)
        # Θ' = t_b + t_w M K + c_w M Θ on the diagonal
        theta = node.t_b + node.t_w * average
        carried = None
        if first.theta is not None:
            carried = mean(first.theta)
            theta = theta + node.c_w * carried
        behind = Diagonal(node.c_b + node.c_w * average, theta, step.xp.zeros_like(average))
        if not step.bounded:
            return behind
        rounding = ROUNDING * step.eps
        g = mean(first.g) + rounding * average
        h = node.t_w * g
        if carried is not None:
            h = h + node.c_w * (mean(first.h) + rounding * carried)
        return behind._replace(g=node.c_w * g, h=h, v=node.c_w * mean(first.v))

    def pairs(self, read, index, layout, one, two, pairing) -> Pairs:
        """Average over windows at both positions."""
        node = self.node
        (first,) = read
        arrays = (first.k,) if first.theta is None else (first.k, first.theta)
        if node.window is not None:
            arrays = layout.means(arrays, node.window, node.sources[0], index)
        average, *carried = arrays
        theta = node.t_w * average + node.t_b
        theta = theta + node.c_w * carried[0] if carried else theta
        pairs = Pairs(node.c_w * average + node.c_b, theta)
        if node.shared:
            return pairs
        equal = layout.equal(index)
        # weights of different positions are independent: only p = q is left
        return pairs.map(lambda kernel: kernel * jnp.asarray(equal, kernel.dtype))
