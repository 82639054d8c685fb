"""Tangent kernels by contraction of the Jacobian, in blocks of examples."""

from collections.abc import Callable
from itertools import product
from math import ceil

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest.types import Params

MEMORY = 2**30  # bytes that one block of the Jacobian may take


def jacobian_ntk(
    apply: Callable[[Params, Array], Array],
    params: Params,
    x: Float[Array, "n d"],
    other: Float[Array, "m d"] | None,
    traced: bool,
    memory: int = MEMORY,
) -> Array:
    """Θ = J Jᵀ, as a sum over the leaves of the parameters, in blocks that hold at most ``memory`` bytes of J.

    A block of J is recomputed for every other block that it meets, which costs little beside their contraction. Each
    example is differentiated alone: examples must not interact.

    Returns:
        Shape ``(n, m)``, summed over outputs, if ``traced``, else ``(n, k, m, k)``.
    """
    rows = lambda chunk: _jacobian(apply, params, chunk)
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(jax.eval_shape(rows, x[:1])))
    block = int(np.clip(memory // size, 1, max(len(x), len(x if other is None else other))))
    if other is None and block >= len(x):
        whole = rows(x)
        return _contract(whole, whole, traced)
    left = _blocks(x, block)
    right = left if other is None else _blocks(other, block)
    pairs = [(i, j) for i, j in product(range(len(left)), range(len(right))) if other is not None or i <= j]
    i, j = np.array(pairs).T
    one = lambda pair: _contract(rows(left[pair[0]]), rows(right[pair[1]]), traced)
    found = jax.lax.map(one, (jnp.asarray(i), jnp.asarray(j)))
    return _assemble(found, (i, j), (len(left), len(right)), (len(x), len(x if other is None else other)))


def _jacobian(apply: Callable[[Params, Array], Array], params: Params, chunk: Array) -> list[Float[Array, "n k p"]]:
    """∂f_a(x_i)/∂θ, one array a leaf."""
    alone = lambda one: jax.jacrev(lambda p: apply(p, one[None])[0].reshape(-1))(params)
    leaves = jax.tree.leaves(jax.vmap(alone)(chunk))
    return [leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves]


def _contract(left: list[Array], right: list[Array], traced: bool) -> Array:
    """Σ over leaves of J J'ᵀ, shape ``(n, m)`` or ``(n, k, m, k)``."""
    outputs = 1 if traced else left[0].shape[1]
    rows = lambda leaves: [leaf.reshape(len(leaf) * outputs, -1) for leaf in leaves]  # one product of matrices a leaf
    found = sum((a @ b.T for a, b in zip(rows(left), rows(right), strict=True)), start=jnp.zeros(()))
    return found if traced else found.reshape(len(left[0]), outputs, len(right[0]), outputs)


def _blocks(x: Float[Array, "n d"], size: int) -> Float[Array, "blocks size d"]:
    """Blocks of rows, the last one filled up with copies of the last row."""
    count = ceil(len(x) / size)
    filled = jnp.concatenate([x, jnp.broadcast_to(x[-1:], (count * size - len(x), *x.shape[1:]))])
    return filled.reshape(count, size, *x.shape[1:])


def _assemble(
    found: Array, at: tuple[np.ndarray, np.ndarray], counts: tuple[int, int], shape: tuple[int, int]
) -> Array:
    """The matrix of blocks ``found``, of which a symmetric one has only those with i ≤ j."""
    i, j = at
    whole = jnp.zeros((*counts, *found.shape[1:]), found.dtype).at[i, j].set(found)
    if len(i) < counts[0] * counts[1]:
        half = (found.ndim - 1) // 2  # axes of one side: examples, and outputs if there are
        whole = whole.at[j, i].set(jnp.moveaxis(found, range(1, half + 1), range(half + 1, 2 * half + 1)))
    if found.ndim == 3:  # (i, j, n, m) -> (i n, j m)
        whole = whole.transpose(0, 2, 1, 3)
        whole = whole.reshape(counts[0] * found.shape[1], -1)
        return whole[: shape[0], : shape[1]]
    whole = whole.transpose(0, 2, 3, 1, 4, 5)  # (i, j, n, a, m, b) -> (i n, a, j m, b)
    n, a, m, b = found.shape[1:]
    whole = whole.reshape(counts[0] * n, a, counts[1] * m, b)
    return whole[: shape[0], :, : shape[1]]
