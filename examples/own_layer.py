"""A layer of one's own with its kernels, in one file: each position of a sequence counts less than the one before it.

    python examples/own_layer.py

Position p is multiplied by ``w_p = r^p``. So its covariance and its tangent kernel with position q are multiplied by
``w_p w_q``. The layer says what it is to a finite network (``build``) and to a limit (a node, with a rule); then
``check_layer`` compares the limit with finite networks, and with itself in other precision, order and pairs.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from steepest.kernels import check_layer, gram
from steepest.kernels.wide import Local, rule_for
from steepest.nn.layers import (
    Coefficients,
    Layer,
    Signal,
    conv,
    dense,
    global_pool,
    network,
    without_weights,
)


@dataclass(frozen=True)
class Fading(Layer):
    """Multiplies position p of a sequence by r^p."""

    r: float

    word = "fading"

    def build(self, signal: Signal, scheme, *, last: bool):
        """Build the finite layer, and say how it extends a limit."""
        (positions,) = signal.space
        factors = self.r ** np.arange(positions)

        def extend(draft, source: int) -> int:
            node = Fade((source,), tuple(factors.tolist()))
            return draft.add(node, draft.kinds[source], draft.spaces[source])

        return without_weights(lambda x, mask: jnp.asarray(factors)[:, None] * x, signal, extend)


@dataclass(frozen=True)
class Fade(Coefficients):
    """``K[p, q] → w_p w_q K[p, q]``, and Θ alike.

    Attributes:
        sources: the node that it reads.
        factors: w.
    """

    sources: tuple[int]
    factors: tuple[float, ...]


@rule_for(Fade)
class OfFade(Local[Fade]):
    """The rule of a node that acts on each position for itself."""

    def arrays(self, dual) -> int:
        """Count the numbers that pairs need at each position: w."""
        return 1

    def numbers(self, step):
        """Return w at each position of each input, shape ``(positions, n)``."""
        factors = step.xp.asarray(np.array(self.node.factors))[:, None]
        return [factors * step.xp.ones_like(step.read[0].k)]

    def diagonal(self, step, numbers):
        """Multiply what is known of each input with itself by w², and means of channels by w."""
        (before,) = step.read
        (w,) = numbers
        return before.each(lambda kernel: w**2 * kernel)._replace(mean=w * before.mean)

    def pairs(self, read, index, layout, one, two, pairing):
        """Multiply both kernels by the numbers of both positions."""
        return read[0].map(lambda kernel: one[0] * two[0] * kernel)


def main() -> None:
    """Check the layer, and take the kernels of a network with it."""
    print(check_layer(Fading(0.8), (5, 2), jax.random.key(0)))
    net = network(
        conv(64), "relu", Fading(0.8), global_pool(), dense(1), shape=(5, 2), parameterized="ntk"
    )
    x = np.random.default_rng(0).normal(size=(3, 5, 2))
    print(gram(net.limit(), x).ntk.round(4))


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
