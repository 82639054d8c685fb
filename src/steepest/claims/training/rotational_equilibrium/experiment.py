"""Weights whose length does not matter, under optax's optimizers with weight decay: on noise, and in a network."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from steepest.nn.data import digits
from steepest.nn.losses import cross_entropy
from steepest.nn.types import Key, Values

EPSILON = 1e-12
HIDDEN = 32
WRONG = 0.5  # share of labels that are drawn anew in each step, so that gradients do not fade

Optimizer = Callable[[Any], optax.GradientTransformation]
"""An optimizer of a weight decay λ."""


class Turns(NamedTuple):
    """Means over the last half of steps.

    Attributes:
        angle: root mean square of the angle between successive weights, in radians.
        square: of the norm.
    """

    angle: Array
    square: Array


def descent(lr: float, beta: float) -> Optimizer:
    """Return descent with momentum, which has the decay in its gradients."""
    return lambda decay: optax.chain(optax.add_decayed_weights(decay), optax.sgd(lr, beta or None))


def adamw(lr: float, beta1: float, beta2: float) -> Optimizer:
    """Return AdamW."""
    return lambda decay: optax.adamw(lr, beta1, beta2, EPSILON, weight_decay=decay)


def turned(before: Array, after: Array) -> Array:
    """Return the square of the angle between rows, by what is at right angles to the first."""
    moved = after - before
    square = (before**2).sum(-1)
    along = (moved * before).sum(-1, keepdims=True) / square[..., None]
    across = moved - along * before
    # the tangent keeps the digits of small angles, which the cosine loses
    return jnp.arctan2(jnp.sqrt((across**2).sum(-1)), (1 + along[..., 0]) * jnp.sqrt(square)) ** 2


def on_noise(
    key: Key, optimizer: optax.GradientTransformation, size: Array, weights: int, steps: int
) -> Turns:
    """Descend on ⟨ξ, w/‖w‖⟩ with a fresh ξ in each step; return turns of the one weight vector."""
    of_start, of_steps = jax.random.split(key)
    start = jax.random.normal(of_start, (weights,))
    start = start / jnp.linalg.norm(start)

    def step(state: tuple, number: Array) -> tuple[tuple, None]:
        w, moments, angles, squares = state
        noise = size * jax.random.normal(jax.random.fold_in(of_steps, number), (weights,))
        # (I − ŵŵᵀ)ξ/‖w‖: at right angles to w, in n − 1 directions
        gradient = jax.grad(lambda w: noise @ w / jnp.linalg.norm(w))(w)
        update, moments = optimizer.update(gradient, moments, w)
        after = w + update
        late = number >= steps // 2
        sums = (angles + late * turned(w, after), squares + late * (after**2).sum())
        return (after, moments, *sums), None

    zero = jnp.zeros(())
    state = (start, optimizer.init(start), zero, zero)
    (_, _, angles, squares), _ = jax.lax.scan(step, state, jnp.arange(steps))
    count = steps - steps // 2
    return Turns(jnp.sqrt(angles / count), squares / count)


class Images(NamedTuple):
    """Digits with their classes."""

    x: Values  # (n, 64)
    y: Values  # (n,)


def images() -> Images:
    """Return all digits, of length one in the mean square."""
    data = digits()
    return Images(jnp.asarray(data.x) / 8, jnp.argmax(data.y, 1))


def in_network(
    key: Key,
    rules: tuple[optax.GradientTransformation, optax.GradientTransformation],
    shown: Images,
    batch: int,
    steps: int,
    normalized: Array,
) -> Array:
    """Train a network on digits; return the root mean square angle of its first weights over the last half of steps.

    Args:
        key: of weights and batches.
        rules: the optimizers of the first layer, whose rows are divided by their lengths, and of the second.
        shown: the images.
        batch: examples of a step.
        steps: how many.
        normalized: whether rows are divided.
    """
    of_first, of_second, of_batches, of_labels = jax.random.split(key, 4)
    first = jax.random.normal(of_first, (HIDDEN, 64)) / 8
    second = jax.random.normal(of_second, (10, HIDDEN)) / HIDDEN**0.5

    def risk(weights: tuple[Array, Array], chosen: Array, labels: Array) -> Array:
        rows, last = weights
        unit = rows / jnp.where(normalized, jnp.linalg.norm(rows, axis=1, keepdims=True), 1)
        hidden = jnp.tanh(shown.x[chosen] @ unit.T)
        return cross_entropy(hidden @ last.T, labels).mean()

    def step(state: tuple, number: Array) -> tuple[tuple, None]:
        weights, moments, angles = state
        shape = (batch,)
        chosen = jax.random.randint(jax.random.fold_in(of_batches, number), shape, 0, len(shown.x))
        of_wrong, of_class = jax.random.split(jax.random.fold_in(of_labels, number))
        wrong = jax.random.bernoulli(of_wrong, WRONG, shape)
        labels = jnp.where(wrong, jax.random.randint(of_class, shape, 0, 10), shown.y[chosen])
        gradients = jax.grad(risk)(weights, chosen, labels)
        moved = [
            rule.update(gradient, moment, weight)
            for rule, gradient, moment, weight in zip(
                rules, gradients, moments, weights, strict=True
            )
        ]
        after = tuple(w + update for w, (update, _) in zip(weights, moved, strict=True))
        late = number >= steps // 2
        angles = angles + late * turned(weights[0], after[0]).mean()
        return (after, tuple(state for _, state in moved), angles), None

    weights = (first, second)
    start = tuple(rule.init(weight) for rule, weight in zip(rules, weights, strict=True))
    state = (weights, start, jnp.zeros(()))
    (_, _, angles), _ = jax.lax.scan(step, state, jnp.arange(steps))
    return jnp.sqrt(angles / (steps - steps // 2))
