"""Kernels of finite networks in blocks of inputs, so that memory stays bounded."""

from collections.abc import Callable
from itertools import product
from math import ceil
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Shaped

Inputs = tuple[Shaped[Array, "n ..."], ...]
"""Inputs, and a mask and graphs beside them if there are any."""
Rows = TypeVar("Rows")


def in_blocks(
    rows: Callable[[Inputs], Rows],
    contract: Callable[[Rows, Rows], Array],
    x: Inputs,
    other: Inputs | None,
    size: int,
) -> Array:
    """Compute a kernel from what is known of each input, for blocks of at most ``size`` inputs.

    What is known of a block is computed again for every other block that it meets, which costs little beside their
    contraction. Of a symmetric kernel blocks above the diagonal alone are computed.

    Args:
        rows: what is known of some inputs, for one block.
        contract: the kernel of two such blocks, ``(n, m)`` or ``(n, k, m, k)``.
        x: first inputs.
        other: second inputs; the first without.
        size: of a block.
    """
    n = len(x[0])
    m = len(x[0] if other is None else other[0])
    size = max(1, min(size, max(n, m)))
    if size >= n and size >= m:
        first = rows(x)
        return contract(first, first if other is None else rows(other))
    left = cut(x, size)
    right = left if other is None else cut(other, size)
    counts = (len(left[0]), len(right[0]))
    pairs = [(i, j) for i, j in product(*map(range, counts)) if other is not None or i <= j]
    i, j = np.array(pairs).T

    def one(pair: tuple[Array, Array]) -> Array:
        down, across = pair
        return contract(
            rows(tuple(array[down] for array in left)),
            rows(tuple(array[across] for array in right)),
        )

    products = jax.lax.map(one, (jnp.asarray(i), jnp.asarray(j)))
    return _assemble(products, (i, j), counts, (n, m))


def cut(inputs: Inputs, size: int) -> Inputs:
    """Cut inputs into blocks ``(blocks, size, …)``, the last one filled up with copies of the last input."""
    count = ceil(len(inputs[0]) / size)

    def blocks(x: Array) -> Array:
        missing = jnp.broadcast_to(x[-1:], (count * size - len(x), *x.shape[1:]))
        return jnp.concatenate([x, missing]).reshape(count, size, *x.shape[1:])

    return tuple(blocks(x) for x in inputs)


def _assemble(
    products: Array,
    at: tuple[np.ndarray, np.ndarray],
    counts: tuple[int, int],
    shape: tuple[int, int],
) -> Array:
    """Assemble the matrix of the blocks ``products``, of which a symmetric one has only those with i ≤ j."""
    i, j = at
    whole = jnp.zeros((*counts, *products.shape[1:]), products.dtype).at[i, j].set(products)
    if len(i) < counts[0] * counts[1]:
        half = (products.ndim - 1) // 2  # axes of one side: examples, and outputs if there are
        whole = whole.at[j, i].set(
            jnp.moveaxis(products, range(1, half + 1), range(half + 1, 2 * half + 1))
        )
    if products.ndim == 3:  # (i, j, n, m) -> (i n, j m)
        whole = whole.transpose(0, 2, 1, 3)
        whole = whole.reshape(counts[0] * products.shape[1], -1)
        return whole[: shape[0], : shape[1]]
    whole = whole.transpose(0, 2, 3, 1, 4, 5)  # (i, j, n, a, m, b) -> (i n, a, j m, b)
    n, a, m, b = products.shape[1:]
    whole = whole.reshape(counts[0] * n, a, counts[1] * m, b)
    return whole[: shape[0], :, : shape[1]]
