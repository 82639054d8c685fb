"""What attention and given graphs have in common: positions are mixed by weights of each input."""

from typing import TypeVar

import jax.numpy as jnp

from steepest.kernels.wide._rule import Mixing, Values, everywhere

N = TypeVar("N")


class Weighing(Mixing[N]):
    """``ζ K ζ'ᵀ`` and ``ζ Θ ζ'ᵀ``, with weights ζ of each input as the node's numbers, ``(q, *space p, n)``."""

    meets = True

    def needs(self, behind, shape):
        """Read all displacements."""
        return everywhere(behind, shape)

    def arrays(self, dual) -> int:
        """Count one: ζ."""
        return 1

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


def weighed(weights: Values, numbers: Values, xp) -> Values:
    """Sum numbers of positions q, ``(*space, n)``, by weights ``(q, *space p, n)``."""
    return xp.einsum("q...n,qn->...n", weights, numbers.reshape(len(weights), -1))
