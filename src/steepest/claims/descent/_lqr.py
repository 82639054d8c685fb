"""Random linear quadratic systems, a step of descent on their feedbacks, and their optima by SciPy."""

from dataclasses import dataclass
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import solve_discrete_are

from steepest import kit
from steepest.landscapes import Lqr
from steepest.nn.types import Values

SHARE = 0.7  # of 1/(‖Σ‖‖M‖) at the start, a step of gradient descent; near K* steps are stable up to 1/(‖Σ*‖‖M*‖)


Setting = TypeVar("Setting")


@dataclass(frozen=True)
class RandomSystems(kit.Claim[Setting]):
    """Random linear quadratic systems that are stable without feedback."""

    seeds: kit.Seeds = kit.param(10, "random systems")
    states: kit.Count = kit.param(
        4, "n, dimension of the state", scope=kit.between(3, 4, "more take more steps")
    )
    inputs: kit.Count = kit.param(2, "k, dimension of the input", scope=kit.choices(2, 3))
    norm: kit.Positive = kit.param(
        0.95,
        "largest singular value of A",
        scope=kit.between(0.85, 0.95, "below one K = 0 is stable"),
    )


def largest(matrix: jax.Array) -> jax.Array:
    """Return the largest eigenvalue of a symmetric matrix."""
    return jnp.linalg.eigvalsh(matrix)[-1]


def drawn(key: kit.Key, inputs: int, norm: jax.Array | float, deviations: Values) -> Lqr:
    """Draw a system with Q = R = I: A of this largest singular value, B with entries of variance 1/n.

    Args:
        key: of the draws.
        inputs: k.
        norm: the largest singular value of A.
        deviations: standard deviations of the first state's n coordinates.
    """
    for_a, for_b = jax.random.split(key)
    states = len(deviations)
    A = jax.random.normal(for_a, (states, states))
    B = jax.random.normal(for_b, (states, inputs)) / states**0.5
    root = jnp.diag(jnp.asarray(deviations))
    A = A * norm / jnp.sqrt(largest(A @ A.T))
    return Lqr(A, B, jnp.eye(states), jnp.eye(inputs), root)


def gradient_step(system: Lqr, start: jax.Array) -> jax.Array:
    """Return a step size of gradient descent, a share of 1/(‖Σ‖‖M‖) at its start."""
    terms = system.terms(start)
    return SHARE / (largest(terms.covariance) * largest(terms.curvature))


def riccati(system: Lqr) -> tuple[Values, Values]:
    """Return M* = R + BᵀP*B and the closed loop N* = A − BK*, by SciPy."""
    A, B, Q, R, _ = system
    value = solve_discrete_are(A, B, Q, R)
    curvature = R + B.T @ value @ B
    return np.asarray(curvature), np.asarray(A - B @ np.linalg.solve(curvature, B.T @ value @ A))
