"""Path norms of a chain of layers."""

from collections.abc import Sequence
from itertools import pairwise

import jax.numpy as jnp
from jaxtyping import Array, Scalar

from steepest.core.errors import UserError
from steepest.core.signatures import checked


@checked
def path_norm(weights: Sequence[Array], order: int = 1) -> Scalar:
    r"""Return the norm of all paths from an input to an output, each with the product of its weights.

    .. math:: (\sum_{i_0, …, i_L} |W_L[i_L, i_{L-1}] ⋯ W_1[i_1, i_0]|^p)^{1/p}

    That is the sum of the entries of ``|W_L|^p ⋯ |W_1|^p`` to the power 1/p, computed without the products of matrices.
    For positively homogeneous activations, such as ReLU, it does not change when a neuron's incoming weights are
    multiplied, and its outgoing ones divided, by a positive factor. Biases are not counted.

    Args:
        weights: ``W_1, …, W_L``, shapes ``(n_{l+1}, n_l)``.
        order: p, one or two.

    Raises:
        UserError: another order; no matrices, or some that do not fit together.

    Source: Neyshabur, Tomioka and Srebro 2015, Norm-based capacity control in neural networks.

    >>> weights = [jnp.array([[1.0, -2.0]]), jnp.array([[3.0], [4.0]])]
    >>> float(path_norm(weights)), round(float(path_norm(weights, 2)) ** 2, 3)  # (1 + 2)(3 + 4); (1 + 4)(9 + 16)
    (21.0, 125.0)
    """
    if order not in (1, 2):
        raise UserError(f"a path norm is of order 1 or 2, got {order}")
    shapes = [jnp.shape(weight) for weight in weights]
    matrices = bool(shapes) and all(len(shape) == 2 for shape in shapes)
    if not (matrices and all(above[1] == below[0] for below, above in pairwise(shapes))):
        raise UserError(
            f"a path norm needs matrices (n_l+1, n_l), first layer first, that fit together, got {shapes}"
        )
    into = jnp.ones(shapes[0][1])
    for weight in weights:
        into = jnp.abs(weight) ** order @ into  # |W_l|^p ⋯ |W_1|^p 1, from the inputs up
    return into.sum() ** (1 / order)
