"""Plain descent of a small tanh network's risk, up to the edge of stability and along it."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from steepest.claims.training._tanh_network import risk, start
from steepest.nn.types import Key

PRODUCTS = 100  # of the Hessian with two vectors, for two eigenvalues
LAST = 150  # steps, in which swings are compared


class Begun(NamedTuple):
    """Trainings at the edge.

    Attributes:
        weights: three successive ones, ``(trainings, 3, p)``.
        curvatures: the two largest at their middle, ``(trainings, 2)``.
        bursts: the largest over the smallest square of swings in the last steps, ``(trainings,)``.
    """

    weights: Array
    curvatures: Array
    bursts: Array


class Walked(NamedTuple):
    """A path, at the ends of stretches of equal length, and means over these.

    Attributes:
        weights: smoothed, ``(stretches, p)``.
        variance: mean square of the distance to the middle, ``(stretches,)``.
        risk: its mean, ``(stretches,)``.
    """

    weights: Array
    variance: Array
    risk: Array


def smoothed(three: Any) -> Any:
    """Return the middle of three successive weights that go to and fro, ``(3, …)``."""
    # weights 1, 2, 1 cancel what goes like (−1)^t, and keep what is linear in t
    return (three[0] + 2 * three[1] + three[2]) / 4


def square_of_swing(three: Array) -> Array:
    """Return the square of the distance of the second to the middle."""
    return ((three[1] - smoothed(three)) ** 2).sum()


def next_three(three: Array, eta: float) -> tuple[Array, Array]:
    """Take a step of descent after three successive weights, and return the risk before it."""
    value, slope = jax.value_and_grad(risk)(three[2])
    return jnp.stack([three[1], three[2], three[2] - eta * slope]), value


def begin(key: Key, eta: float, steps: int, trainings: int) -> Begun:
    """Train for some steps, and one more."""
    of_starts, of_powers = jax.random.split(key)

    def step(three: Array, _: None) -> tuple[Array, Array]:
        after = next_three(three, eta)[0]
        return after, square_of_swing(after)

    def train(key: Key) -> tuple[Array, Array]:
        first = start(key)
        weights, squares = jax.lax.scan(step, jnp.stack([first] * 3), None, steps + 1)
        return weights, squares[-LAST:].max() / squares[-LAST:].min()

    weights, bursts = jax.vmap(train)(jax.random.split(of_starts, trainings))
    keys = jax.random.split(of_powers, trainings)
    curvatures = jax.vmap(two_curvatures)(keys, jax.vmap(smoothed)(weights))
    return Begun(weights, curvatures, bursts)


def two_curvatures(key: Key, weights: Array) -> Array:
    """Return the two largest eigenvalues of the Hessian at weights ``(p,)``, by powers."""
    product = lambda u: jax.jvp(jax.grad(risk), (weights,), (u,))[1]

    def step(pair: Array, _: None) -> tuple[Array, Array]:
        after = jax.vmap(product)(pair)
        first = after[0] / jnp.linalg.norm(after[0])
        # at right angles to the first, else powers lead to the same eigenvector
        second = after[1] - (after[1] @ first) * first
        quotients = (pair * after).sum(1)
        return jnp.stack([first, second / jnp.linalg.norm(second)]), quotients

    starts = jax.random.normal(key, (2, len(weights)))
    return jax.lax.scan(step, starts, None, PRODUCTS)[1][-1]


def descend(three: Array, eta: float, steps: int, stretches: int) -> Walked:
    """Go on by plain descent after three successive weights, of which the second is where stretches begin."""

    def step(three: Array, _: None) -> tuple[Array, tuple]:
        after, value = next_three(three, eta)
        return after, (square_of_swing(after), value)

    def stretch(three: Array, _: None) -> tuple[Array, tuple]:
        after, means = jax.lax.scan(step, three, None, steps)
        return after, (smoothed(after), means[0].mean(), means[1].mean())

    return Walked(*jax.lax.scan(stretch, three, None, stretches)[1])
