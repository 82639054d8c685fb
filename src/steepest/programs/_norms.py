"""Norms of weight matrices: spectral, Frobenius, the group norm ‖Wᵀ‖_{2,1} of margin bounds, and the stable rank."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.types import Params


@checked
def weight_matrices(params: Params) -> list[Float[Array, "out inp"]]:
    """Return the matrices W_1, …, W_L of an ``mlp``, first layer first; biases are left out.

    A row of W_l holds the weights *into* one neuron. These are the matrices that act on the inputs only in the
    standard parameterization; in any other the layer's multiplier is a factor that the parameters do not carry.

    Args:
        params: a sequence of layers ``{"w": (n_{l+1}, n_l), ...}``.

    Raises:
        UserError: if the parameters are not such a sequence.

    >>> [w.shape for w in weight_matrices(({"w": jnp.ones((8, 3))}, {"w": jnp.ones((2, 8)), "b": jnp.ones(2)}))]
    [(8, 3), (2, 8)]
    """
    try:
        return [_matrix(layer["w"]) for layer in params]
    except (TypeError, KeyError, IndexError):
        raise UserError(
            'weight matrices: expected a sequence of layers {"w": matrix}, as networks.mlp makes them; '
            "for other networks pass the list of matrices yourself"
        ) from None


@checked
def spectral_norm(matrix: Float[Array, "out inp"]) -> Scalar:
    """Return ``‖W‖₂ = max_{‖x‖=1} ‖W x‖``: the largest singular value, the Lipschitz constant of x ↦ W x.

    Computed from the smaller of the two Gram matrices, at several times the speed of a singular value decomposition
    and, for the largest value, the same accuracy; the squares of the entries must not overflow.

    Raises:
        UserError: if it is not a matrix.

    >>> float(spectral_norm(jnp.array([[3.0, 0.0, 0.0], [0.0, -4.0, 0.0]])))
    4.0
    """
    w = _matrix(matrix)
    # its eigenvalues are the squared singular values
    gram = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    return jnp.sqrt(jnp.maximum(jnp.linalg.eigvalsh(gram)[-1], 0.0))


@checked
def frobenius_norm(matrix: Float[Array, "out inp"]) -> Scalar:
    """Return the Frobenius norm ``‖W‖_F = (Σ_ij W_ij²)^{1/2}``.

    Raises:
        UserError: if it is not a matrix.

    >>> float(frobenius_norm(jnp.array([[3.0, 0.0], [0.0, -4.0]])))
    5.0
    """
    return jnp.sqrt(jnp.sum(_matrix(matrix) ** 2))


@checked
def row_group_norm(matrix: Float[Array, "out inp"]) -> Scalar:
    """Return the group norm ``‖Wᵀ‖_{2,1} = Σ_i ‖W_{i,:}‖₂``: the Euclidean norms of the *rows*, summed.

    Bartlett, Foster and Telgarsky let a layer act as ``x ↦ W x``, W of shape ``(out, inp)``, and take in
    ``‖A‖_{p,q} = ‖(‖A_{:,1}‖_p, ‖A_{:,2}‖_p, …)‖_q`` the p-norm of each *column* first. Their bound holds the norm of
    the *transpose*, so what is summed here is one norm a neuron, that of its incoming weights. It lies between ‖W‖_F
    and √out · ‖W‖_F.

    Raises:
        UserError: if it is not a matrix.

    Source: Bartlett, Foster, Telgarsky 2017, section 1.1 and equation (1.2).

    >>> w = jnp.array([[3.0, 4.0], [0.0, 1.0]])
    >>> float(row_group_norm(w))  # 5 + 1; the columns would give 3 + √17
    6.0
    """
    return jnp.sum(jnp.linalg.norm(_matrix(matrix), axis=1))


@checked
def stable_rank(matrix: Float[Array, "out inp"]) -> Scalar:
    """Return the stable rank ``‖W‖_F² / ‖W‖₂²``: at least 1, at most the rank, and NaN for the zero matrix.

    Raises:
        UserError: if it is not a matrix.

    >>> float(stable_rank(jnp.diag(jnp.array([1.0, 1.0, 1e-9])))).__round__(6)  # of rank three, but not stably so
    2.0
    """
    return (frobenius_norm(matrix) / spectral_norm(matrix)) ** 2


def _matrix(matrix: Array) -> Array:
    if jnp.ndim(matrix) != 2:
        raise UserError(
            f"norms of weights: expected a matrix (out, inp), got shape {jnp.shape(matrix)}"
        )
    return jnp.asarray(matrix)
