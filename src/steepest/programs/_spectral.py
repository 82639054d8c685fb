"""Spectral complexity of a network and the margins that it normalizes (Bartlett, Foster, Telgarsky 2017)."""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.programs._norms import frobenius_norm, row_group_norm, spectral_norm


@checked
def spectral_complexity(weights: Sequence[Array], reference: Sequence[Array]) -> Scalar:
    r"""Return the spectral complexity: a bound on the Lipschitz constant, times how far the layers have moved.

    .. math:: R_W = \prod_i \|W_i\|_2 \Bigl(\sum_i \Bigl(
        \frac{\|W_i^\top - W_i(0)^\top\|_{2,1}}{\|W_i\|_2}\Bigr)^{2/3}\Bigr)^{3/2}

    for 1-Lipschitz activations that vanish at zero, such as ReLU, and no biases; ``‖·‖_{2,1}`` is
    :func:`~steepest.programs.row_group_norm`, one Euclidean norm a neuron. For fixed references it bounds the
    generalization error by ``Õ(R_W ‖X‖_F / (γ n))`` at margin γ. It does not change when layers and references are
    multiplied by factors of product one. At the reference itself it is zero.

    Args:
        weights: ``W_1, …, W_L``, shapes ``(n_{l+1}, n_l)``.
        reference: matrices of the same shapes chosen before the data are seen, usually the initial weights.

    Raises:
        UserError: if the two lists do not match.

    Source: Bartlett, Foster, Telgarsky 2017, equation (1.2); Telgarsky's lectures of 2019 leave the transposes out.

    >>> weights, start = [2.0 * jnp.eye(2), jnp.eye(2)], [jnp.eye(2), jnp.eye(2)]
    >>> float(spectral_complexity(weights, start))  # 2 · 1 · (‖I‖_{2,1} / 2), the second layer has not moved
    2.0
    """
    shapes = [jnp.shape(w) for w in weights], [jnp.shape(w) for w in reference]
    if not shapes[0] or shapes[0] != shapes[1]:
        raise UserError(
            f"spectral complexity: expected weights and references of the same shapes, got {shapes[0]} and {shapes[1]}"
        )
    lipschitz = jnp.stack([spectral_norm(w) for w in weights])
    moved = jnp.stack(
        [row_group_norm(w - start) for w, start in zip(weights, reference, strict=True)]
    )
    # (Σ (moved/‖W_i‖)^{2/3})^{3/2}, the norm of order 2/3
    return jnp.prod(lipschitz) * jnp.sum((moved / lipschitz) ** (2 / 3)) ** (3 / 2)


@checked
def normalized_margins(
    margins: Float[Array, " n"], complexity: float | Scalar, x: Float[Array, "n d"]
) -> Float[Array, " n"]:
    """Return margins in the units in which the bound sees them: ``margin_i / (R ‖X‖_F / n)``.

    The bound on the error reads ``Õ(1/γ)`` for a normalized margin γ: below one it says nothing. A homogeneous
    network's normalized margins do not change when its weights and references are scaled.

    Args:
        margins: ``f_y - max_{j≠y} f_j`` of every example, shape ``(n,)``.
        complexity: ``R``, such as :func:`spectral_complexity`.
        x: the same examples' inputs, shape ``(n, d)``.

    Raises:
        UserError: if there are not as many margins as inputs.

    Source: Bartlett, Foster, Telgarsky 2017, section 2 (where ‖X‖₂ is the Frobenius norm).

    >>> normalized_margins(jnp.array([1.0, 4.0]), 2.0, jnp.array([[3.0, 0.0], [0.0, 4.0]])).tolist()
    [0.2, 0.8]
    """
    if jnp.ndim(x) != 2 or jnp.shape(margins) != jnp.shape(x)[:1]:
        raise UserError(
            f"normalized margins: expected one margin an input, got shapes {jnp.shape(margins)} and {jnp.shape(x)}"
        )
    return margins / (complexity * frobenius_norm(x) / x.shape[0])
