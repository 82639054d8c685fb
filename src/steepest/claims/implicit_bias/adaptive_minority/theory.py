"""Outputs on new examples, of the sign vector and of the least-norm solution, in closed form."""

import numpy as np
from jaxtyping import Float


def sign_outputs(constants: int, own: float) -> Float[np.ndarray, "2"]:
    """Return the outputs of sign(Xᵀy) on a new common and a new rare example, over its margin on all training examples.

    A new example has weight on its label's feature and on the constant ones alone: ``±1 + k``. A common training
    example adds the ℓ1 norm ``a`` of its own features: ``1 + k + a``, which is the margin of the rare ones too, if
    theirs is ``a + 2k``.

    >>> sign_outputs(2, 1.0).tolist()
    [0.75, 0.25]
    """
    return np.array([1.0 + constants, constants - 1.0]) / (1 + constants + own)


def least_norm_outputs(
    constants: int, squares: Float[np.ndarray, "*sets n"], y: Float[np.ndarray, "*sets n"]
) -> Float[np.ndarray, "*sets 2"]:
    """Return the outputs of the least-norm interpolant on a new common and a new rare example.

    The interpolant is Xᵀα with ``y_i p + k q + s_i α_i = y_i``, where ``s_i`` is the squared length of example i's own
    features, p = Σ y_j α_j its weight on the label's feature and q = Σ α_j that on each constant one. With
    S = Σ 1/s_i and T = Σ y_i/s_i the sums over i give (1 + S) p + k T q = S and T p + (1 + k S) q = T.

    Args:
        constants: k, features that are one in every example.
        squares: squared lengths ``s_i``.
        y: labels, +1 of the common class.
    """
    S = (1 / squares).sum(-1)
    T = (y / squares).sum(-1)
    # Cramer's rule; the numerator of q is (1 + S)T − TS = T
    determinant = (1 + S) * (1 + constants * S) - constants * T**2
    p = (S * (1 + constants * S) - constants * T**2) / determinant
    q = T / determinant
    return np.stack([p + constants * q, -p + constants * q], -1)


def evidence(
    constants: int, squares: Float[np.ndarray, "*sets n"], y: Float[np.ndarray, "*sets n"]
) -> Float[np.ndarray, "*sets"]:
    """Return p/(k|q|): above one the least-norm interpolant is right on new examples of both classes.

    With P and N the sums of ``1/s_i`` over the common and over the rare class it is (4kPN + P + N)/(k|P − N|). For
    large P that asks for N > (k − 1)/4k.
    """
    P = np.where(y > 0, 1 / squares, 0.0).sum(-1)
    N = np.where(y < 0, 1 / squares, 0.0).sum(-1)
    # p/(k|q|) has the numerator S + k(S² − T²), where S² − T² = 4PN
    return (4 * constants * P * N + P + N) / (constants * np.abs(P - N))
