"""Margins of linear classifiers and of networks."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from steepest.core.errors import UserError
from steepest.core.given import order
from steepest.core.signatures import checked
from steepest.nn.losses import own_logit


@checked
def linear_margin(
    weights: Float[Array, " d"], x: Float[Array, "n d"], y: Float[Array, " n"], norm: float = 2
) -> Scalar:
    """Return the normalized margin ``min_i y_i ⟨w, x_i⟩ / ‖w‖`` of a linear classifier on a data set.

    For the ℓ2 norm it is the distance of the nearest example from the decision boundary, negative if that example is
    misclassified. It does not change when w is scaled; at ``w = 0`` it is NaN.

    Args:
        weights: ``w``, shape ``(d,)``.
        x: inputs, shape ``(n, d)``.
        y: labels ±1, shape ``(n,)``.
        norm: order p ≥ 1 of the norm of w (1, 2, ``jnp.inf``, ...).

    Raises:
        UserError: lengths that differ, or a norm below 1.

    Source: ORF 543, lecture 11/14.

    >>> x, y = jnp.array([[2.0, 0.0], [-1.0, 0.0]]), jnp.array([1.0, -1.0])
    >>> float(linear_margin(jnp.array([7.0, 0.0]), x, y))
    1.0
    """
    return jnp.min(y * (x @ weights)) / jnp.linalg.norm(weights, ord=order("norm", norm))


@checked
def network_margins(outputs: Float[Array, "n C"], labels: Array) -> Float[Array, " n"]:
    """Return ``f_y - max_{j≠y} f_j`` of every example: positive where it is classified correctly.

    Args:
        outputs: logits ``f(x_i)``, shape ``(n, C)`` with C ≥ 2.
        labels: one-hot rows ``(n, C)`` or class numbers ``(n,)``.

    Raises:
        UserError: if there is one class only, or the shapes do not belong together.

    >>> network_margins(jnp.array([[3.0, 1.0, 0.0], [0.0, 2.0, 5.0]]), jnp.array([0, 1])).tolist()
    [2.0, -3.0]
    """
    own = own_logit(outputs, labels)
    if outputs.shape[1] < 2:
        raise UserError(
            "network margins: expected at least two outputs, got one; for labels ±1 the margin is y f(x)"
        )
    numbers = labels if labels.ndim == 1 else jnp.argmax(labels, axis=1)
    # the own class is left out of the maximum
    others = jnp.where(jnp.arange(outputs.shape[1]) == numbers[:, None], -jnp.inf, outputs)
    return own - others.max(axis=1)
