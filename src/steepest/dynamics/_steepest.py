"""Steepest descent in a norm: gradient, sign and coordinate descent are three of a family."""

from typing import Any, Literal

import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from steepest.core.errors import UserError, nearest
from steepest.core.given import number, order
from steepest.core.signatures import checked
from steepest.nn.types import Params, Risk

Size = Literal["gradient", "unit", "loss", "log-risk"]
_ORDERS = {"l1": 1.0, "l2": 2.0, "linf": float("inf")}


@checked
def steepest_descent(
    norm: str | float, lr: float | Array, size: Size = "gradient", risk: Risk | None = None
) -> optax.GradientTransformation:
    """Return steepest descent in a p-norm, ``w⁺ = w + η c v``, as an optax transformation for ``descend``.

    ``v`` is the vector of p-norm one that falls most steeply, ``⟨∇R, v⟩ = -‖∇R‖_q`` with ``1/p + 1/q = 1``: the
    gradient's own direction for p = 2, its signs for p = ∞, and for p = 1 the one coordinate whose derivative is
    largest (the first of them, if several are). The factor c is

    ============  ==============  ==================================================================================
    size          c               the step
    ============  ==============  ==================================================================================
    ``gradient``  ``‖∇R‖_q``      minimizes ``⟨∇R, v⟩ + ‖v‖_p²/2η``; gradient descent if p = 2
    ``unit``      1               normalized: as long as η
    ``loss``      ``‖∇R‖_q / R``  a step on ``log R``: for exponential tails, where the gradient dies with the risk
    ``log-risk``  ``1 / ‖∇R‖_q``  R falls by η, to first order; with log R in its place, the flow's log-risk clock
    ============  ==============  ==================================================================================

    The weights of all leaves together are the vector ``w``.

    Args:
        norm: ``"l1"``, ``"l2"``, ``"linf"``, or any p from 1 to ∞.
        lr: η, the step size.
        size: see the table.
        risk: R, needed for ``size="loss"`` only.

    Raises:
        UserError: for an unknown norm or size, or ``"loss"`` without a risk.

    Source: Boyd and Vandenberghe, §9.4; Gunasekar, Lee, Soudry and Srebro 2018.

    >>> step = steepest_descent("linf", 0.5, "unit")
    >>> step.update(jnp.array([3.0, -0.1]), step.init(jnp.zeros(2)), jnp.zeros(2))[0].tolist()
    [-0.5, 0.5]
    """
    p = _order(norm)
    if size == "loss" and risk is None:
        raise UserError(
            "steepest descent: expected a risk to scale the steps by, got none; pass risk=, or size='unit'"
        )

    def init(params: Params) -> optax.EmptyState:
        return optax.EmptyState()

    def update(
        updates: optax.Updates, state: optax.OptState, params: Params | None = None
    ) -> tuple[optax.Updates, optax.OptState]:
        gradient, shaped = ravel_pytree(updates)
        direction, slope = steepest_direction(gradient, p)
        if size == "unit":
            return shaped(lr * direction), state
        # size="unit": the step has p-norm η
        if size == "log-risk":
            # to first order R changes by η/‖∇R‖_q · ⟨∇R, v⟩ = −η
            return shaped(lr / slope * direction), state
        scale = number("risk", risk(params)) if size == "loss" and risk is not None else 1.0
        return shaped(lr * slope / scale * direction), state

    return optax.GradientTransformation(init, update)


@checked
def steepest_direction(gradient: Float[Array, " d"], p: float) -> tuple[Float[Array, " d"], Array]:
    """Return the ``v`` with ``‖v‖_p = 1`` and ``⟨g, v⟩ = -‖g‖_q``, and ``‖g‖_q``; zero where the gradient is.

    Args:
        gradient: ``g``, shape ``(d,)``.
        p: order of the norm, from 1 to ∞.

    >>> v, slope = steepest_direction(jnp.array([3.0, -4.0]), 1.0)
    >>> v.tolist(), float(slope)
    ([0.0, 1.0], 4.0)
    """
    p = order("p", p)
    size = jnp.abs(gradient)
    largest = size.max()
    unit = jnp.where(largest > 0, largest, 1.0)
    if p == 1:
        chosen = jnp.arange(size.size) == jnp.argmax(size)
        # |g|_∞ is attained by one coordinate, the first of equals
        return -jnp.sign(gradient) * chosen, largest
    if p == float("inf"):
        return -jnp.sign(gradient), size.sum()  # ⟨g, −sign g⟩ = −‖g‖₁, the dual norm of p = ∞
    q = p / (p - 1)
    # ‖g‖_q in units of the largest entry, so that no power overflows.
    inside = jnp.where(largest > 0, ((size / unit) ** q).sum(), 1.0) ** (1 / q)
    # equality in Hölder: |v_i|^p ∝ |g_i|^q, that is |v_i| = (|g_i|/‖g‖_q)^{q−1}, as p(q − 1) = q
    return -jnp.sign(gradient) * (size / unit / inside) ** (q - 1), largest * inside


def _order(norm: Any) -> float:
    if isinstance(norm, str) and norm not in _ORDERS:
        raise UserError(
            f"norm must be l1, l2, linf or an order p ≥ 1, got {norm!r}; {nearest(norm, _ORDERS)}"
        )
    return order("norm", _ORDERS.get(norm, norm) if isinstance(norm, str) else norm)
