"""The smallest change of an input that turns the sign of a network's output."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from steepest.core.errors import UserError
from steepest.nn.types import Values

SCAN = 32
"""Equal steps along a ray, in which the first change of sign is looked for."""
BISECTIONS = 30
"""Halvings of that step: the radius is then exact to 1e-10 of the ray's length."""
DAMPING = 0.3
"""Share of the way to the linearized boundary that each step goes."""
REACH = 1.5
"""Rays are followed this much further than they were proposed."""


class AttackRadius(NamedTuple):
    """The smallest change that was found; with examples in front of the arrays where several were attacked.

    Attributes:
        radius: its Euclidean norm, an upper bound on the distance of the input from the boundary; infinite where no
            change of sign was found.
        delta: the change itself, NaN where none was found, shape ``(d,)``.
    """

    radius: Float[Array, "*examples"]
    delta: Float[Array, "*examples d"]


def attack_radius(
    apply: Callable[[Any, Array], Array],
    params: Any,
    x: Float[Values, "*examples d"],
    y: Float[Values, "*examples"],
    starts: Float[Values, "*examples starts d"],
    *,
    steps: int = 60,
) -> AttackRadius:
    """Search the smallest ‖δ‖ at which ``y f(x + δ) ≤ 0``, from several proposals δ₀ for each input.

    Where gradients vanish at the input itself (a neuron that is off, a high power of a ReLU), an attack that starts
    there finds nothing. This one starts at the boundary: it follows the ray to each proposal until the sign changes.
    Then it steps toward the point of the linearized boundary that is nearest to x,

        δ ← (1 − ρ) δ + ρ (⟨g, δ⟩ − f) g / ‖g‖²,   f and g = ∇f at x + δ,

    and looks along the ray to the last δ for the first change of sign. Displacements to examples of the other label
    are good proposals: if the network is right on both, the sign changes between them.

    Pure JAX: it can be jitted and mapped. What it returns is checked by the sign alone, so that the radius is never
    below the distance to the boundary. It may be above: a change of sign and back within 1/32 of a ray is missed.

    Args:
        apply: the network, from parameters and inputs ``(..., d)`` to scalar outputs ``(...)``; differentiable.
        params: its parameters.
        x: inputs, shape ``(d,)`` or ``(n, d)``.
        y: labels ±1, shape ``()`` or ``(n,)``. An input that is on the wrong side already has the radius zero.
        starts: proposals δ₀, shape ``(starts, d)`` or ``(n, starts, d)``.
        steps: of the iteration.

    Raises:
        UserError: shapes that do not belong together, or no proposals.

    Source: Moosavi-Dezfooli, Fawzi and Frossard 2016 (linearized boundary); Croce and Hein 2020 (steps back to x).

    >>> plane = lambda w, x: x @ w
    >>> x = jnp.array([1.0, 0.0])
    >>> attack = attack_radius(plane, jnp.array([3.0, 4.0]), x, jnp.array(1.0), jnp.array([[-2.0, 0.0]]))
    >>> round(float(attack.radius), 4)  # ⟨w, x⟩/‖w‖
    0.6
    """
    x = jnp.asarray(x)
    y = jnp.asarray(y, x.dtype)
    starts = jnp.asarray(starts, x.dtype)
    many = x.ndim == 2
    fits = x.ndim in (1, 2) and starts.shape == (*x.shape[:-1], *starts.shape[-2:-1], x.shape[-1])
    if not fits or y.shape != x.shape[:-1] or not starts.shape[-2]:
        raise UserError(
            "attack_radius: expected inputs (n, d), labels (n,) and one or more proposals (n, starts, d), got shapes "
            f"{x.shape}, {y.shape} and {starts.shape}"
        )
    output = lambda point: apply(params, point).reshape(())
    one = lambda x, y, starts: _nearest(output, x, y, starts, steps)
    return jax.vmap(one)(x, y, starts) if many else one(x, y, starts)


def _nearest(
    output: Callable[[Array], Array], x: Array, y: Array, starts: Array, steps: int
) -> AttackRadius:
    """Attack one input from all proposals, and return the least change."""
    margin = lambda delta: y * output(x + delta)
    value_and_slope = jax.value_and_grad(margin)

    def step(_: int, delta: Array) -> Array:
        value, slope = value_and_slope(delta)
        square = slope @ slope
        nearest = (slope @ delta - value) / jnp.where(square > 0, square, 1) * slope
        return jnp.where(square > 0, (1 - DAMPING) * delta + DAMPING * nearest, delta)

    def look(turn: int, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        delta, best, radius = carry
        # the first turn looks along the ray to the proposal itself
        delta = jax.lax.fori_loop(0, jnp.where(turn > 0, steps, 0), step, delta)
        first, length = _first_change(margin, REACH * delta)
        better = length < radius
        changes = jnp.isfinite(length)
        return (
            jnp.where(changes, first, delta),
            jnp.where(better, first, best),
            jnp.where(better, length, radius),
        )

    def along(start: Array) -> tuple[Array, Array]:
        nothing = (start, jnp.full_like(start, jnp.nan), jnp.asarray(jnp.inf, start.dtype))
        _, best, radius = jax.lax.fori_loop(0, 2, look, nothing)
        return best, radius

    deltas, radii = jax.vmap(along)(starts)
    best = jnp.argmin(radii)
    wrong = margin(jnp.zeros_like(x)) <= 0
    return AttackRadius(jnp.where(wrong, 0.0, radii[best]), jnp.where(wrong, 0.0, deltas[best]))


def _first_change(margin: Callable[[Array], Array], ray: Array) -> tuple[Array, Array]:
    """Return the first point of a ray where the margin is not positive, and its length; NaN, infinity without one."""
    shares = jnp.linspace(0, 1, SCAN + 1)[1:]
    over = jax.vmap(lambda share: margin(share * ray))(shares) <= 0
    first = jnp.argmax(over)
    high = shares[first]

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) / 2
        turned = margin(middle * ray) <= 0
        return jnp.where(turned, low, middle), jnp.where(turned, middle, high)

    _, high = jax.lax.fori_loop(0, BISECTIONS, halve, (high - 1 / SCAN, high))
    delta = jnp.where(over.any(), high * ray, jnp.nan)
    return delta, jnp.where(over.any(), jnp.linalg.norm(high * ray), jnp.inf)
