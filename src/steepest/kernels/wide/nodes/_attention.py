"""Attention: values are mixed by weights of each input, alike in all heads or drawn."""

import jax.numpy as jnp
import numpy as np

from steepest.kernels.wide._rule import (
    ROUNDING,
    Computed,
    Diagonal,
    Mixing,
    Step,
    Values,
    everywhere,
    rule_for,
)
from steepest.nn.layers._nodes import Attend, AttendAtRandom


@rule_for(Attend)
class OfAttention(Mixing[Attend]):
    """``ζ K ζ'ᵀ`` and ``ζ Θ ζ'ᵀ``, with the softmax ζ of the keys' own covariance."""

    meets = True

    def needs(self, behind, shape):
        """Read all displacements."""
        return everywhere(behind, shape)

    def arrays(self, dual) -> int:
        """Count one: ζ."""
        return 1

    def numbers(self, step: Step) -> list[Values]:
        """Return ζ, ``(keys, *space, n)``."""
        return [step.weights()]

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Mix means, and bounds: ζ is off by a factor 1 + δ at most, as its logits are by s max g.

        ``|Δ(ζKζ'ᵀ)| ≤ (1 + δ)² (ζ√g)(ζ'√g') + ((1 + δ)² − 1)(ζ√k)(ζ'√k')``, which is of rank one by Cauchy and Schwarz.
        """
        values, keys = step.read
        (weights,) = numbers
        mix = lambda numbers: step.xp.einsum(
            "q...n,qn->...n", weights, numbers.reshape(len(weights), -1)
        )
        behind = Diagonal(*step.itself(), mix(values.mean))
        if not step.bounded:
            return behind
        # logits off by s max g at most: numerator and sum of softmax by e^{±s max g} each
        off = np.expm1(2 * self.node.sharpness * keys.g.max()) + ROUNDING * step.eps
        square = (1 + off) ** 2

        def bound(errors: Values, sizes: Values) -> Values:
            return square * mix(np.sqrt(errors)) ** 2 + (square - 1) * mix(np.sqrt(sizes)) ** 2

        g = bound(values.g, values.k)
        return behind._replace(g=g, h=bound(values.h, values.theta), v=g)

    def all_pairs(self, k, index, layout, one, two):
        """Compute ``ζ K ζ'ᵀ`` for all pairs of positions, ``(*space, *space, b, b')``.

        ζ of the first inputs is ``(q, *space p, b, 1)``, of the second ``(q, *space p, 1, b')``, or
        ``(q, *space p, b, 1)`` pair by pair.
        """
        (first,) = one[:1]
        (second,) = two[:1]
        count = len(first)
        inputs = k.shape[-2:]
        square = k.reshape(count, count, *inputs)
        # one first input with several second ones is no such case
        pair_by_pair = second.shape[-1] == 1 and second.shape[-2] == inputs[0]
        # ζ[q, p] with keys first, (P, P, b): ζ K, then the other side
        half = jnp.einsum("apb,acbd->pcbd", first.reshape(count, count, -1), square)
        second = second.reshape(count, count, -1)
        mixed = jnp.einsum("cqb,pcbd->pqbd" if pair_by_pair else "cqd,pcbd->pqbd", second, half)
        return mixed.reshape(k.shape)


@rule_for(AttendAtRandom)
class OfRandomAttention(Computed[AttendAtRandom]):
    """Means over heads, which ``_heads.py`` draws: there is no kernel of pairs without them."""

    meets = True
    drawn = True

    def needs(self, behind, shape):
        """Read all displacements."""
        return everywhere(behind, shape)

    def diagonal(self, step: Step, numbers) -> Diagonal:
        """Take kernels from the draw; values have mean zero, and heads that are drawn no bound."""
        values = step.read[0]
        nothing = 0 * values.mean
        return Diagonal(*step.itself(), nothing, nothing, nothing, nothing)
