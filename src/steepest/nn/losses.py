"""Losses of one example, risks as their means, and the logarithm of a risk that has underflowed.

Margin losses are functions of ``u = y f(x)`` with labels ``y = ±1``; ``squared`` and ``cross_entropy`` are functions
of outputs and targets. A risk is always the *mean* over the examples.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Scalar

from steepest.core.errors import UserError
from steepest.core.given import numbers
from steepest.core.signatures import checked
from steepest.nn.types import Risk

MarginLoss = Callable[[Float[Array, "*shape"]], Float[Array, "*shape"]]
"""A loss as a function of the margin alone, applied entry by entry."""

# Above this margin log(1 + e^-u) is e^-u (1 - e^-u / 2) to better than float64 can tell.
_FAR = 30.0


@checked
def exponential(margins: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return the exponential loss ``e^{-u}`` of every margin.

    Source: ORF 543, lecture 11/14.

    >>> float(exponential(jnp.array(0.0)))
    1.0
    """
    return jnp.exp(-margins)


@checked
def logistic(margins: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return the logistic loss ``log(1 + e^{-u})`` of every margin.

    Source: ORF 543, lecture 11/14.

    >>> bool(jnp.isclose(logistic(jnp.array(0.0)), jnp.log(2.0)))
    True
    """
    return jax.nn.softplus(-margins)


@checked
def squared(outputs: Float[Array, "n *k"], targets: Float[Array, "n *k"]) -> Float[Array, " n"]:
    """Return the squared loss ``½ ‖f - y‖²`` of every example, *summed* over the outputs.

    With this convention the sharpness of a network with k outputs is k/2 times that of torch's ``MSELoss``.

    Args:
        outputs: shape ``(n,)`` or ``(n, k)``.
        targets: the same shape.

    Raises:
        UserError: if the shapes differ (broadcasting ``(n,)`` against ``(n, 1)`` would be wrong in silence).

    >>> squared(jnp.array([[1.0, 3.0]]), jnp.array([[0.0, 1.0]])).tolist()
    [2.5]
    """
    if outputs.shape != targets.shape:
        raise UserError(
            f"squared loss: expected targets of the outputs' shape {outputs.shape}, got {targets.shape}; "
            "reshape one of them"
        )
    halves = 0.5 * (outputs - targets) ** 2
    return halves.reshape(halves.shape[0], -1).sum(axis=1)


@checked
def cross_entropy(logits: Float[Array, "n C"], labels: Array) -> Float[Array, " n"]:
    """Return the cross-entropy ``log Σ_c e^{f_c} - f_y`` of every example.

    Args:
        logits: shape ``(n, C)``.
        labels: one-hot rows of shape ``(n, C)``, or class numbers of shape ``(n,)``.

    Raises:
        UserError: if the shapes do not belong together.

    >>> loss = cross_entropy(jnp.zeros((1, 4)), jnp.array([2]))
    >>> bool(jnp.isclose(loss[0], jnp.log(4.0)))
    True
    """
    return jax.nn.logsumexp(logits, axis=1) - own_logit(logits, labels)


@checked
def own_logit(logits: Float[Array, "n C"], labels: Array) -> Float[Array, " n"]:
    """Return the logit ``f_y`` of every example's own class, from one-hot rows ``(n, C)`` or class numbers ``(n,)``.

    Raises:
        UserError: if the shapes do not belong together.

    >>> own_logit(jnp.array([[1.0, 5.0]]), jnp.array([1])).tolist()
    [5.0]
    """
    if logits.ndim == 2 and labels.shape == logits.shape:
        return (logits * labels).sum(axis=1)
    if (
        logits.ndim == 2
        and labels.shape == logits.shape[:1]
        and jnp.issubdtype(labels.dtype, jnp.integer)
    ):
        return jnp.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
    raise UserError(
        f"expected logits (n, C) with one-hot labels (n, C) or integer class numbers (n,), got logits {logits.shape} "
        f"and {labels.dtype} labels {labels.shape}; for labels ±1 use a margin loss"
    )


@checked
def log_loss(loss: MarginLoss, margins: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return ``log ℓ(u)`` of a margin loss, exact and differentiable where ``ℓ(u)`` itself underflows.

    Raises:
        UserError: if the loss is neither ``exponential`` nor ``logistic``.

    >>> float(log_loss(logistic, jnp.array(5000.0)))
    -5000.0
    """
    if loss is exponential:
        return -margins
    if loss is logistic:
        return _log_logistic(margins)
    name = getattr(loss, "__name__", repr(loss))
    raise UserError(
        f"no logarithmic form is known for the loss {name!r}: expected exponential or logistic"
    )


@checked
def log_mean_loss(loss: MarginLoss, margins: Float[Array, " n"]) -> Scalar:
    """Return the logarithm of the mean loss, ``log (1/n) Σ_i ℓ(u_i)``, without underflow.

    Args:
        loss: ``exponential`` or ``logistic``.
        margins: ``u_i = y_i f(x_i)``, shape ``(n,)``.

    Raises:
        UserError: if the loss is neither ``exponential`` nor ``logistic``.

    >>> float(log_mean_loss(exponential, jnp.array([9000.0, 9000.0])))
    -9000.0
    """
    # log Σ e^{log ℓ_i} − log n: the largest loss is factored out
    return jax.nn.logsumexp(log_loss(loss, margins)) - jnp.log(margins.size)


@checked
def mean_risk(
    loss: Callable[[Array, Array], Array], apply: Callable[[Any, Array], Array], x: Array, y: Array
) -> Risk:
    """Return the risk ``θ ↦ (1/n) Σ_i ℓ(f(x_i; θ), y_i)`` of a loss on outputs and targets.

    >>> risk = mean_risk(squared, lambda w, x: x @ w, jnp.array([[1.0], [1.0]]), jnp.array([0.0, 2.0]))
    >>> float(risk(jnp.zeros(1)))
    1.0
    """
    return lambda params: jnp.mean(loss(apply(params, x), y))


@checked
def margin_risk(
    loss: MarginLoss,
    apply: Callable[[Any, Array], Array],
    x: Float[Array, "n d"],
    y: Float[Array, " n"],
) -> Risk:
    """Return the risk ``θ ↦ (1/n) Σ_i ℓ(y_i f(x_i; θ))`` of a margin loss; labels must be ±1.

    Raises:
        UserError: if a label is not ±1.

    >>> risk = margin_risk(exponential, lambda w, x: x @ w, jnp.array([[1.0]]), jnp.array([-1.0]))
    >>> float(risk(jnp.zeros(1)))
    1.0
    """
    y = check_labels(y)
    return lambda params: jnp.mean(loss(y * apply(params, x)))


@checked
def log_margin_risk(
    loss: MarginLoss,
    apply: Callable[[Any, Array], Array],
    x: Float[Array, "n d"],
    y: Float[Array, " n"],
) -> Risk:
    """Return the logarithm of ``margin_risk`` without underflow: what the log-risk clock of ``flow`` descends.

    Raises:
        UserError: if a label is not ±1, or the loss has no known logarithmic form.

    >>> log_risk = log_margin_risk(exponential, lambda w, x: x @ w, jnp.array([[1.0]]), jnp.array([1.0]))
    >>> float(log_risk(jnp.array([1e6])))
    -1000000.0
    """
    y = check_labels(y)
    return lambda params: log_mean_loss(loss, y * apply(params, x))


@checked
def check_labels(y: Any) -> Float[Array, " n"]:
    """Return the labels as a floating array of shape ``(n,)``, if they are all ±1.

    Inside ``jit`` or ``vmap`` the values cannot be seen and only the shape is checked.

    Raises:
        UserError: if the shape is not ``(n,)`` or a label is not ±1.

    >>> check_labels([0, 1])
    Traceback (most recent call last):
    steepest.core.errors.UserError: labels: expected only -1 and +1, got values 0, 1; for labels 0 and 1 pass 2*y - 1
    """
    y = jnp.asarray(numbers("labels", y), dtype=float)
    if y.ndim != 1:
        raise UserError(
            f"labels: expected one label ±1 an example, shape (n,), got shape {y.shape}; flatten them"
        )
    if isinstance(y, Tracer):
        return y
    values = np.unique(np.asarray(y))
    if not np.isin(values, (-1.0, 1.0)).all():
        shown = ", ".join(f"{value:g}" for value in values[:4]) + (
            ", ..." if len(values) > 4 else ""
        )
        raise UserError(
            f"labels: expected only -1 and +1, got values {shown}; for labels 0 and 1 pass 2*y - 1"
        )
    return y


def _log_logistic(margins: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    far = margins > _FAR
    # Both branches see safe arguments, so that the derivative of the one not taken is finite.
    near = jnp.log(jax.nn.softplus(-jnp.where(far, 0.0, margins)))
    # log log(1 + e^{−u}) = −u + log(1 − e^{−u}/2 + …)
    tail = -margins - 0.5 * jnp.exp(-jnp.where(far, margins, _FAR))
    return jnp.where(far, tail, near)
