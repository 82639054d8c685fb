"""Steps for descent on the logarithm of a risk, where a network of degree two grows without end."""

from typing import Any

import jax.numpy as jnp
import optax
from jaxtyping import Array

from steepest.core.errors import UserError
from steepest.core.signatures import checked


@checked
def log_risk_steps(lr: float, radius: float = 2.0) -> optax.GradientTransformation:
    """Return descent with the step ``lr / max(1, (‖θ‖/radius)²)``, for risks ``log R`` of networks of degree two.

    Once its data are separated, log R of a two-homogeneous network under an exponential tail is about -γ ‖θ‖²: its
    gradient grows like ‖θ‖, and its curvature along kinks and turns like ‖θ‖² too. Steps that shrink like 1/‖θ‖² are
    stable at any norm, and log R then falls by ``4 lr radius² γ²`` a step. Steps of fixed length do not settle at any
    size. Give :func:`descend` the risk of :func:`steepest.nn.losses.log_margin_risk`.

    Args:
        lr: the step while the norm is below the radius; for ‖x‖ ≤ 1, 0.5 is stable.
        radius: norm of all parameters from which steps shrink.

    Raises:
        UserError: a step or a radius that is not above zero.

    Source: gradient flow on the risk clock (Lyu and Li 2020), made discrete.

    >>> rule = log_risk_steps(0.5)
    >>> theta = jnp.array([3.0, 4.0])  # ‖θ‖²/4 = 6.25
    >>> rule.update(jnp.ones(2), rule.init(theta), theta)[0].tolist()
    [-0.08, -0.08]
    """
    for name, value in (("a step", lr), ("a radius", radius)):
        if isinstance(value, (int, float)) and not value > 0:
            raise UserError(f"log_risk_steps: expected {name} above zero, got {value:g}; try 0.5")

    def init(params: Any) -> Any:
        return optax.EmptyState()

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        squares: Array = optax.tree_utils.tree_norm(params, squared=True)
        # the curvature of log R grows like ‖θ‖²: stable at any norm
        step = lr / jnp.maximum(1.0, squares / radius**2)
        return optax.tree_utils.tree_scale(-step, updates), state

    return optax.GradientTransformation(init, update)
