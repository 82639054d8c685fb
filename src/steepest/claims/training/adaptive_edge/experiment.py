"""Full-batch training of a small tanh network by momentum, Nesterov's rule and Adam, and the curvature it meets."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from steepest.nn.data import chebyshev
from steepest.nn.networks import mlp
from steepest.nn.types import Key, Network

POINTS = 20
DEGREE = 4  # of the Chebyshev polynomial that is learned
WIDTHS = (1, 16, 8, 1)
BETA2 = 0.99
EPSILON = 1e-8
PRODUCTS = 80  # of the Hessian, for an eigenvalue


class Rule(NamedTuple):
    """An optimizer, by numbers that one program takes.

    Attributes:
        lr: η.
        beta: β, or β₁.
        nesterov: 1 for Nesterov's rule, else 0.
        adam: 1 for Adam, else 0.
    """

    lr: Any
    beta: Any
    nesterov: Any
    adam: Any


class Readings(NamedTuple):
    """What is kept at some steps of each training.

    Attributes:
        weights: ``(readings, p)``.
        scale: what each weight's step is divided by, ``(readings, p)``; ones but for Adam.
        risk: ``(readings,)``.
    """

    weights: Array
    scale: Array
    risk: Array


def network() -> Network:
    """Return the network that is trained."""
    return mlp(WIDTHS, "tanh", c_w=1.5, c_b=0.3)


def start(key: Key) -> Array:
    """Draw its weights, flat."""
    return ravel_pytree(network().init(key))[0]


def risk(weights: Array) -> Array:
    """Return half the mean square of what flat weights leave."""
    data = chebyshev(POINTS, DEGREE)
    net = network()
    unflatten = ravel_pytree(net.init(jax.random.key(0)))[1]
    outputs = net.apply(unflatten(weights), jnp.asarray(data.x))
    return 0.5 * ((outputs - jnp.asarray(data.y).ravel()) ** 2).mean()


def train(key: Key, rule: Rule, marks: tuple[int, ...]) -> Readings:
    """Train by one rule, and keep what there is after some numbers of steps.

    Momentum is v ← βv + g, w ← w − ηv; Nesterov's takes g + βv for v; Adam averages, corrects for its start, and
    divides by the root of the averaged squares.
    """
    slope = jax.grad(risk)
    first = start(key)
    zeros = jnp.zeros_like(first)

    def step(state: tuple, number: Array) -> tuple[tuple, None]:
        w, m, v = state
        g = slope(w)
        averaged = jnp.where(rule.adam > 0, 1 - rule.beta, 1.0)
        m = rule.beta * m + averaged * g
        v = BETA2 * v + (1 - BETA2) * g**2
        scale, along = scale_of(rule, m, v, number + 1)
        along = along + rule.nesterov * (g + (rule.beta - 1) * m)
        return (w - rule.lr * along / scale, m, v), None

    kept = []
    state = (first, zeros, zeros)
    before = 0
    for mark in marks:
        state, _ = jax.lax.scan(step, state, jnp.arange(before, mark))
        w, m, v = state
        # the next step divides by what v is then
        kept.append((w, scale_of(rule, m, v, jnp.asarray(mark))[0], risk(w)))
        before = mark
    return Readings(*map(jnp.stack, zip(*kept, strict=True)))


def scale_of(rule: Rule, m: Array, v: Array, count: Array) -> tuple[Array, Array]:
    """Return what a step is divided by, and along what it goes, both corrected for the start if the rule is Adam."""
    corrected = jnp.sqrt(v / (1 - BETA2**count)) + EPSILON
    along = m / jnp.where(rule.adam > 0, 1 - rule.beta**count, 1.0)
    return jnp.where(rule.adam > 0, corrected, 1.0), along


def sharpness(key: Key, weights: Array, scale: Array) -> Array:
    """Return the largest eigenvalue of D^(−½) H D^(−½), D the scale, by powers, for weights ``(…, p)``."""

    def of_one(weights: Array, scale: Array, first: Array) -> Array:
        root = jnp.sqrt(scale)

        def product(vector: Array) -> Array:
            return jax.jvp(jax.grad(risk), (weights,), (vector / root,))[1] / root

        def step(vector: Array, _: None) -> tuple[Array, Array]:
            after = product(vector)
            return after / jnp.linalg.norm(after), vector @ after

        _, quotients = jax.lax.scan(step, first / jnp.linalg.norm(first), None, PRODUCTS)
        return quotients[-1]

    flat = weights.reshape(-1, weights.shape[-1])
    starts = jax.random.normal(key, flat.shape)
    eigenvalues = jax.vmap(of_one)(flat, scale.reshape(flat.shape), starts)
    return eigenvalues.reshape(weights.shape[:-1])
