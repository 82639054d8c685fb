"""Embeddings of positions: the same covariance ``c R`` for all pairs of inputs."""

import jax.numpy as jnp
import numpy as np

from steepest.kernels.wide._rule import ROUNDING, Diagonal, Local, Pairs, Step, rule_for
from steepest.nn.layers._nodes import Embed


@rule_for(Embed)
class OfEmbedding(Local[Embed]):
    """Both kernels are ``c R``: embeddings are trained, and their parameters are standard normal."""

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Take the variances; they are known up to rounding."""
        (read,) = step.read
        ones = step.xp.ones_like(read.k)
        variances = self.node.c * ones
        if self.node.covariance is not None:
            relative = np.diag(np.array(self.node.covariance)).reshape(*step.space, 1)
            variances = variances * step.xp.asarray(relative, ones.dtype)
        behind = Diagonal(variances, variances, 0 * ones)
        if not step.bounded:
            return behind
        bound = ROUNDING * step.eps * variances
        return behind._replace(g=bound, h=bound, v=0 * ones)

    def pairs(self, read, index, layout, one, two, pairing) -> Pairs:
        """Take the covariance of both positions, whatever the inputs are."""
        node = self.node
        if node.covariance is None:
            between = layout.equal(index)
        else:
            between = layout.between(np.array(node.covariance), index)
        k = read[0].k
        embedded = jnp.broadcast_to(jnp.asarray(node.c * between, k.dtype), k.shape)
        return Pairs(embedded, embedded)
