"""Sharpness-aware minimization of a small tanh network's risk, and along a valley."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from steepest.claims.training._tanh_network import risk, start
from steepest.nn.types import Key

AHEAD = (1.2, 1.3)  # of the first curvature, where walks start


class Rule(NamedTuple):
    """Steps, by numbers that one program takes.

    Attributes:
        lr: η.
        radius: ρ, how far ahead the gradient is taken.
        momentum: β of what is stepped along.
    """

    lr: Any
    radius: Any
    momentum: Any


class Readings(NamedTuple):
    """What is kept at pairs of successive steps of a training.

    Attributes:
        weights: ``(looks, 2, p)``.
        gradients: at them, ``(looks, 2, p)``.
    """

    weights: Array
    gradients: Array


def train(key: Key, rule: Rule, parts: int, length: int) -> Readings:
    """Train for some parts of the same number of steps, and keep two successive steps at the end of each."""
    slope = jax.grad(risk)

    def step(state: tuple, _: None) -> tuple[tuple, None]:
        _, w, v = state  # with the weights one step before
        g = slope(w)
        # the gradient at w + ρ∇L/‖∇L‖
        v = rule.momentum * v + slope(w + rule.radius * g / jnp.linalg.norm(g))
        return (w, w - rule.lr * v, v), None

    def part(state: tuple, _: None) -> tuple[tuple, Array]:
        after = jax.lax.scan(step, state, None, length)[0]
        return after, jnp.stack(after[:2])

    first = start(key)
    state = (first, first, jnp.zeros_like(first))
    weights = jax.lax.scan(part, state, None, parts)[1]
    return Readings(weights, jax.vmap(jax.vmap(slope))(weights))


class Fall(NamedTuple):
    """What a walk along the valley meets.

    Attributes:
        steps: from the first curvature to each later one, ``(walks, curvatures)``.
        gradients: sizes at these, ``(walks, curvatures)``.
    """

    steps: NDArray
    gradients: NDArray


def fall(
    rng: np.random.Generator,
    etas: NDArray,
    rhos: NDArray,
    curvatures: NDArray,
    momentum: float = 0.0,
) -> Fall:
    """Walk along the valley ½eʸx² from a random place in front of the first of some curvatures.

    Args:
        rng: of the places.
        etas: step size of each walk, ``(walks,)``.
        rhos: ρ of each walk, ``(walks,)``.
        curvatures: falling; the first is where steps begin to count.
        momentum: β of what is stepped along.
    """
    walks = len(etas)
    x = rhos * rng.standard_normal(walks)
    y = np.log(curvatures[0] * rng.uniform(*AHEAD, walks))
    over = np.zeros(walks)
    down = np.zeros(walks)
    goals = np.log(curvatures)
    reached = np.full((walks, len(goals)), np.nan)
    sizes = np.full((walks, len(goals)), np.nan)
    number = 0
    while np.isnan(reached).any():
        slope = slope_of_valley(x, y)
        size = np.hypot(*slope)
        ahead = slope_of_valley(x + rhos * slope[0] / size, y + rhos * slope[1] / size)
        over = momentum * over + ahead[0]
        down = momentum * down + ahead[1]
        x = x - etas * over
        after = y - etas * down
        passed = (after[:, None] <= goals) & np.isnan(reached)
        # the logarithm of the curvature is taken as linear within a step
        part = (y[:, None] - goals) / (y - after)[:, None]
        reached = np.where(passed, number + part, reached)
        sizes = np.where(passed, size[:, None], sizes)
        y = after
        number += 1
    return Fall(reached[:, 1:] - reached[:, :1], sizes[:, 1:])


def settle(
    rng: np.random.Generator, products: NDArray, walks: int, steps: int, momentum: float = 0.0
) -> NDArray:
    """Step to and fro on a parabola, and return the size of its slope at the end over ρλ, ``(walks, products)``.

    Lengths are in units of ρ, so that η and λ enter by their product.

    Args:
        rng: of the places where walks begin.
        products: ηλ, ``(products,)``.
        walks: of each product.
        steps: of each walk.
        momentum: β of what is stepped along.
    """
    x = rng.standard_normal((walks, len(products)))
    along = np.zeros_like(x)
    for _ in range(steps):
        # λ(x + ρ sign x), the slope that is looked at, in units of ρ
        along = momentum * along + products * (x + np.sign(x))
        x = x - along
    return np.abs(x)


def slope_of_valley(x: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
    """Return the gradient of ½eʸx²."""
    curvature = np.exp(y)
    return curvature * x, curvature * x**2 / 2
