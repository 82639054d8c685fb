"""Count sketches of gradients: a hash of each parameter's index says where it goes, and with which sign.

The hash is made of whole-number arithmetic that JAX and torch have in common, so that both give the same features. It
is computed where it is needed, and no matrix of the projection exists.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MASK = 0xFFFFFFFF  # the lowest 32 bits
ROUNDS = ((16, 0x85EBCA6B), (13, 0xC2B2AE35))
"""Shifts and multipliers of the finalizer of MurmurHash3, in which each bit that goes in flips each that comes out."""
LAST_SHIFT = 16
PARAMETERS = 2**32  # beyond which two of them would have one hash


@dataclass(frozen=True)
class Sketch:
    """A random linear map S of gradients with E⟨Sg, Sg'⟩ = ⟨g, g'⟩ over its seeds, or the identity.

    The standard deviation of ⟨Sg, Sg'⟩ is √((‖g‖²‖g'‖² + ⟨g, g'⟩² − 2 Σ_j g_j² g'_j²)/k), as for a dense matrix of
    random signs over √k, at the cost of one addition for each parameter.

    Attributes:
        dimension: k, of what comes out; None for the gradients themselves.
        seed: of the hash.
        model: which of several models under one seed, as each has a hash of its own.

    Source: Charikar, Chen and Farach-Colton 2002; Weinberger et al. 2009.
    """

    dimension: int | None
    seed: int
    model: int = 0

    def of_jax(self, gradients: Any, words: Any) -> Any:
        """Sketch gradients ``(b, p)`` to ``(b, k)`` with the bits of ``words``, inside a function compiled for all."""
        import jax.numpy as jnp

        if self.dimension is None:
            return gradients
        words = jnp.asarray(words, jnp.uint32)
        index = jnp.arange(gradients.shape[1], dtype=jnp.uint32)
        place, odd = hashed(index, words, lambda number: jnp.asarray(number, jnp.uint32))
        signed = gradients * jnp.where(odd == 1, -1, 1).astype(gradients.dtype)
        size = jnp.asarray(self.dimension, jnp.uint32)
        sums = jnp.zeros((self.dimension, len(gradients)), gradients.dtype)
        return sums.at[(place % size).astype(jnp.int32)].add(signed.T).T

    def of_torch(self, leaves: list[Any]) -> Any:
        """Sketch gradients, given leaf by leaf as ``(b, …)``, to ``(b, k)``; of each leaf a copy is made at a time."""
        import torch

        rows = [leaf.reshape(len(leaf), -1) for leaf in leaves]
        if self.dimension is None:
            return torch.cat(rows, 1)
        sums = rows[0].new_zeros((len(rows[0]), self.dimension))
        start = 0
        for leaf in rows:
            stop = start + leaf.shape[1]
            index = torch.arange(start, stop, device=leaf.device)
            place, odd = hashed(index, self.words().tolist(), int)
            signed = leaf * (1 - 2 * odd).to(leaf.dtype)
            sums.index_add_(1, place % self.dimension, signed)
            start = stop
        return sums

    def words(self) -> NDArray:
        """Return the 32 random bits of each of the hash's four steps."""
        return np.random.SeedSequence((self.seed, self.model)).generate_state(4)


def hashed(index: Any, words: Any, constant: Any) -> tuple[Any, Any]:
    """Return two hashes of indices: one for the place, 32 bits, and one for the sign, a single bit.

    Args:
        index: whole numbers below 2³² of at least 32 bits without sign, or 64 with it.
        words: four numbers of 32 random bits.
        constant: makes a number of the same kind from one of Python.

    >>> place, odd = hashed(np.arange(100_000), [1, 2, 3, 4], int)
    >>> bool(abs(odd.mean() - 0.5) < 0.01), len(np.unique(place))  # no two indices have one place
    (True, 100000)
    """
    mask = constant(MASK)
    place = mixed(((mixed(index ^ words[0], constant) + words[1]) & mask), constant)
    sign = mixed(((mixed(index ^ words[2], constant) + words[3]) & mask), constant)
    return place, sign >> constant(31)


def mixed(bits: Any, constant: Any) -> Any:
    """Mix 32 bits, one to one."""
    for shift, factor in ROUNDS:
        bits = bits ^ (bits >> constant(shift))
        # 64 bits with a sign overflow here, which leaves their lower half right
        bits = (bits * constant(factor)) & constant(MASK)
    return bits ^ (bits >> constant(LAST_SHIFT))
