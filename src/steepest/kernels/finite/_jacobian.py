"""Tangent kernels by contraction of the Jacobian, in blocks of examples."""

from collections.abc import Callable
from itertools import product
from math import ceil

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest.nn.types import Params

MEMORY = 2**30  # bytes that one block of the Jacobian may take


def jacobian_ntk(
    apply: Callable[[Params, Array], Array],
    params: Params,
    x: Float[Array, "n d"],
    other: Float[Array, "m d"] | None,
    traced: bool,
    memory: int = MEMORY,
) -> Array:
    """Compute Θ = J Jᵀ as a sum over the parameters' leaves, in blocks that hold at most ``memory`` bytes of J.

    A block of J is recomputed for every other block that it meets, which costs little beside their contraction. Each
    example is differentiated alone: examples must not interact.

    Returns:
        Shape ``(n, m)``, summed over outputs, if ``traced``, else ``(n, k, m, k)``.
    """
    rows = lambda chunk: _jacobian(apply, params, chunk)
    size = sum(
        leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(jax.eval_shape(rows, x[:1]))
    )
    block = int(np.clip(memory // size, 1, max(len(x), len(x if other is None else other))))
    if other is None and block >= len(x):
        whole = rows(x)
        return _contract(whole, whole, traced)
    left = _blocks(x, block)
    right = left if other is None else _blocks(other, block)
    pairs = [
        (i, j)
        for i, j in product(range(len(left)), range(len(right)))
        if other is not None or i <= j
    ]
    i, j = np.array(pairs).T
    one = lambda pair: _contract(rows(left[pair[0]]), rows(right[pair[1]]), traced)
    products = jax.lax.map(one, (jnp.asarray(i), jnp.asarray(j)))
    return _assemble(
        products, (i, j), (len(left), len(right)), (len(x), len(x if other is None else other))
    )


def _jacobian(
    apply: Callable[[Params, Array], Array], params: Params, chunk: Array
) -> list[Float[Array, "n k p"]]:
    """Return ∂f_a(x_i)/∂θ, one array a leaf."""
    outputs = lambda p, example: apply(p, example[None])[0].reshape(-1)
    count = jax.eval_shape(outputs, params, chunk[0]).size
    if count == 1:
        # jacrev maps over outputs, and batches of one cost up to three times as much on the CPU
        derivative = jax.grad(lambda p, example: outputs(p, example)[0])
    else:
        derivative = jax.jacrev(outputs)
    leaves = jax.tree.leaves(jax.vmap(derivative, (None, 0))(params, chunk))
    return [leaf.reshape(len(chunk), count, -1) for leaf in leaves]


def _contract(left: list[Array], right: list[Array], traced: bool) -> Array:
    """Sum J J'ᵀ over the leaves, shape ``(n, m)`` or ``(n, k, m, k)``."""
    outputs = 1 if traced else left[0].shape[1]
    # one product of matrices a leaf
    rows = lambda leaves: [leaf.reshape(len(leaf) * outputs, -1) for leaf in leaves]
    product = sum(
        (a @ b.T for a, b in zip(rows(left), rows(right), strict=True)), start=jnp.zeros(())
    )
    return product if traced else product.reshape(len(left[0]), outputs, len(right[0]), outputs)


def _blocks(x: Float[Array, "n d"], size: int) -> Float[Array, "blocks size d"]:
    """Cut the rows into blocks, the last one filled up with copies of the last row."""
    count = ceil(len(x) / size)
    filled = jnp.concatenate([x, jnp.broadcast_to(x[-1:], (count * size - len(x), *x.shape[1:]))])
    return filled.reshape(count, size, *x.shape[1:])


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
