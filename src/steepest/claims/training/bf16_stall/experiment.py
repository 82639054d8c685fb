"""Descent on quadratic risks with weights that are kept in bfloat16."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from steepest.nn.types import Key

DIGITS = 8  # significant binary digits of bfloat16, with the leading one
DROPPED = 16  # bits of a float32 that a bfloat16 lacks


class Lane(NamedTuple):
    """One descent of many weights, or arrays of such numbers."""

    step: Array  # η
    size: Array  # weights lie between it and twice it
    noise: Array  # standard deviation of the gradient


class Ends(NamedTuple):
    """What is left at the end of a descent.

    Attributes:
        furthest: largest |w − w*|.
        risk: mean of ½h(w − w*)² over weights and the last half of steps.
    """

    furthest: Array
    risk: Array


def nearest(values: Array, key: Key) -> Array:
    """Round to the nearest bfloat16."""
    return values.astype(jnp.bfloat16).astype(jnp.float32)


def at_random(values: Array, key: Key) -> Array:
    """Round to one of the two neighbours, to the nearer one more often, so that the mean stays."""
    bits = jax.lax.bitcast_convert_type(values, jnp.uint32)
    added = jax.random.bits(key, values.shape, jnp.uint16).astype(jnp.uint32)
    # a carry into the kept bits has the probability (dropped bits)/2¹⁶, the share of the way to it
    cut = (bits + added) >> DROPPED << DROPPED
    return jax.lax.bitcast_convert_type(cut, jnp.float32)


def as_they_are(values: Array, key: Key) -> Array:
    """Keep float32."""
    return values


ROUNDINGS = {"nearest": nearest, "at_random": at_random, "float32": as_they_are}


def descend(
    lane: Lane, key: Key, rounding: str, curvature: float, weights: int, steps: int, *, noisy: bool
) -> Ends:
    """Descend from 1.02 to 1.05 sizes towards minima between 1.6 and 1.9 sizes, in float32 but for the weights.

    Args:
        lane: step size, size of the weights, noise of the gradients.
        key: of starts, minima, noise and rounding.
        rounding: of ``ROUNDINGS``.
        curvature: h.
        weights: how many.
        steps: how many.
        noisy: whether gradients have the lane's noise; its draws are most of the time.
    """
    of_start, of_minimum, of_steps = jax.random.split(key, 3)
    shape = (weights,)
    dtype = jnp.float32
    uniform = lambda key, low, high: jax.random.uniform(key, shape, dtype, low, high)
    minimum = lane.size * uniform(of_minimum, 1.6, 1.9)
    start = nearest(lane.size * uniform(of_start, 1.02, 1.05), key)

    def step(state: tuple[Array, Array], number: Array) -> tuple[tuple[Array, Array], None]:
        w, sums = state
        # of the weights before the step: beside the weights after it the compiler draws noise twice
        sums = sums + (number > steps // 2) * (w - minimum) ** 2
        of_noise, of_rounding = jax.random.split(jax.random.fold_in(of_steps, number))
        gradient = curvature * (w - minimum)
        if noisy:
            gradient = gradient + lane.noise * jax.random.normal(of_noise, shape, dtype)
        return (ROUNDINGS[rounding](w - lane.step * gradient, of_rounding), sums), None

    (w, sums), _ = jax.lax.scan(step, (start, jnp.zeros(shape, dtype)), jnp.arange(steps))
    sums = sums + (w - minimum) ** 2
    # sums hold the weights after each of the last steps − steps//2 steps
    risk = 0.5 * curvature * sums.mean() / (steps - steps // 2)
    return Ends(abs(w - minimum).max(), risk)
