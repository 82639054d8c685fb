"""Tangent kernels by contraction of the Jacobian, in blocks of examples."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from steepest.kernels.finite._blocks import Inputs, in_blocks
from steepest.nn.types import Params

MEMORY = 2**30  # bytes that one block of the Jacobian may take


def jacobian_ntk(
    apply: Callable[..., Array],
    params: Params,
    x: Inputs,
    other: Inputs | None,
    traced: bool,
    memory: int = MEMORY,
) -> Array:
    """Compute Θ = J Jᵀ as a sum over the parameters' leaves, in blocks that hold at most ``memory`` bytes of J.

    Each example is differentiated alone: examples must not interact.

    Returns:
        Shape ``(n, m)``, summed over outputs, if ``traced``, else ``(n, k, m, k)``.
    """
    rows = lambda chunk: _jacobian(apply, params, chunk)
    first = tuple(array[:1] for array in x)
    size = sum(
        leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(jax.eval_shape(rows, first))
    )
    contract = lambda left, right: _contract(left, right, traced)
    return in_blocks(rows, contract, x, other, memory // size)


def jacobian_diagonal(
    apply: Callable[..., Array], params: Params, x: Inputs, pattern: str, memory: int = MEMORY
) -> Array:
    """Compute J_i J_iᵀ of each example with itself, in blocks that hold at most ``memory`` bytes of J.

    Args:
        apply: maps parameters and inputs to outputs; examples do not interact.
        params: any pytree.
        x: inputs.
        pattern: of the product of two Jacobians ``(n, k, p)``: ``"iap,ibp->iab"`` for all pairs of outputs.
        memory: bytes.
    """
    first = tuple(array[:1] for array in x)
    leaves = jax.tree.leaves(jax.eval_shape(lambda chunk: _jacobian(apply, params, chunk), first))
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)

    def alone(example: Inputs) -> Array:
        jacobian = _jacobian(apply, params, tuple(array[None] for array in example))
        return sum((jnp.einsum(pattern, j, j)[0] for j in jacobian), start=jnp.zeros(()))

    return jax.lax.map(alone, x, batch_size=min(len(x[0]), max(1, memory // size)))


def _jacobian(
    apply: Callable[..., Array], params: Params, chunk: Inputs
) -> list[Float[Array, "n k p"]]:
    """Return ∂f_a(x_i)/∂θ, one array a leaf."""
    outputs = lambda p, example: apply(p, *(array[None] for array in example))[0].reshape(-1)
    count = jax.eval_shape(outputs, params, tuple(array[0] for array in chunk)).size
    if count == 1:
        # jacrev maps over outputs, and batches of one cost up to three times as much on the CPU
        derivative = jax.grad(lambda p, example: outputs(p, example)[0])
    else:
        derivative = jax.jacrev(outputs)
    leaves = jax.tree.leaves(jax.vmap(derivative, (None, 0))(params, chunk))
    return [leaf.reshape(len(chunk[0]), count, -1) for leaf in leaves]


def _contract(left: list[Array], right: list[Array], traced: bool) -> Array:
    """Sum J J'ᵀ over the leaves, shape ``(n, m)`` or ``(n, k, m, k)``."""
    outputs = 1 if traced else left[0].shape[1]
    # one product of matrices a leaf
    rows = lambda leaves: [leaf.reshape(len(leaf) * outputs, -1) for leaf in leaves]
    product = sum(
        (a @ b.T for a, b in zip(rows(left), rows(right), strict=True)), start=jnp.zeros(())
    )
    return product if traced else product.reshape(len(left[0]), outputs, len(right[0]), outputs)
