"""The path of descent at the edge of stability, smoothed over its steps to and fro.

Where weights go to and fro by x along the direction u of largest curvature λ, the mean of their gradients is
∇L + ½σ²∇λ, with σ² the mean of x², as the third derivative along u twice is ∇λ. Curvature stays at 2/η just when
⟨∇λ, ∇L + ½σ²∇λ⟩ = 0, which gives σ². Risk is higher than that of the middle by ½λσ² = σ²/η.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

PARTS = 4  # steps of Euler's method in the time η of a step of descent; gradient flow passes twice the edge
BACK = 0.1  # of the error of curvature that is taken back in that time, against drift of Euler's method


class Flow(NamedTuple):
    """A path, at the ends of stretches of equal length, and means over these.

    Attributes:
        weights: ``(stretches, p)``.
        variance: σ², ``(stretches,)``.
        below: risk of the smoothed weights, ``(stretches,)``.
    """

    weights: Array
    variance: Array
    below: Array


def flow(
    risk: Callable[[Array], Array],
    first: Array,
    swing: Array,
    eta: float,
    steps: int,
    stretches: int,
    held: Any = 1.0,
) -> Flow:
    """Follow dw/dt = −∇L − ½σ²∇λ from weights at the edge.

    Args:
        risk: of flat weights.
        first: the weights, ``(p,)``.
        swing: a vector near u, of any length, ``(p,)``: one product with the Hessian a step turns it to u.
        eta: step size of the descent that is smoothed.
        steps: of that descent, in each stretch.
        stretches: one after the other.
        held: one, or zero for gradient flow, which nothing holds at the edge.
    """

    def along(w: Array, u: Array) -> Array:
        """Return uᵀHu, whose slopes are ∇λ and 2Hu where u is the eigenvector."""
        return u @ jax.jvp(jax.grad(risk), (w,), (u,))[1]

    def step(state: tuple, _: None) -> tuple[tuple, tuple]:
        w, u = state
        curvature, (its_slope, product) = jax.value_and_grad(along, (0, 1))(w, u)
        below, g = jax.value_and_grad(risk)(w)
        square = its_slope @ its_slope
        # ⟨∇λ, ∇L + ½σ²∇λ⟩ = 0
        variance = -2 * (its_slope @ g) / square
        # adds −½ back ‖∇λ‖² = −(BACK/η)(λ − 2/η) to dλ/dt, by which the error of λ decays
        back = 2 * BACK / eta * (curvature - 2 / eta) / square
        force = g + 0.5 * held * jnp.maximum(variance + back, 0) * its_slope
        # product is 2Hu: over its length, a step of power iteration
        after = (w - eta / PARTS * force, product / jnp.linalg.norm(product))
        return after, (jnp.maximum(variance, 0), below)

    def stretch(state: tuple, _: None) -> tuple[tuple, tuple]:
        after, means = jax.lax.scan(step, state, None, steps * PARTS)
        return after, (after[0], means[0].mean(), means[1].mean())

    state = (first, swing / jnp.linalg.norm(swing))
    return Flow(*jax.lax.scan(stretch, state, None, stretches)[1])
