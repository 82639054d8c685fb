"""Full-batch training of a small tanh network by momentum, Nesterov's rule and Adam."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from steepest.claims.training._tanh_network import risk, start
from steepest.nn.types import Key

BETA2 = 0.99
EPSILON = 1e-8


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
        # Adam's m is an average, with weights that add up to one; momentum's v is a sum
        averaged = jnp.where(rule.adam > 0, 1 - rule.beta, 1.0)
        m = rule.beta * m + averaged * g
        v = BETA2 * v + (1 - BETA2) * g**2
        scale, along = scale_of(rule, m, v, number + 1)
        # Nesterov's g + βv in place of v
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
