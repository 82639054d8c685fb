"""Descents in four norms, by steps of a given length and by plain ones, and by Adam, on separable sets."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.dynamics import descend, logarithmic, steepest_descent
from steepest.nn.losses import exponential, log_margin_risk, margin_risk

ORDERS = (1.0, 2.0, 4.0, np.inf)
GRADIENT = ORDERS.index(2.0)
SIGNS = ORDERS.index(np.inf)
FIRST = 100  # the steps before the first reading are one part of so many
READINGS = 28  # of all steps, of which those behind the first part are kept
FLOOR = 1e-12  # of gaps: a margin may be the largest up to rounding


class Paths(NamedTuple):
    """Weights of every descent at the readings.

    Attributes:
        unit: steps of length η/√t, in each norm, ``(norm, sets, readings, d)``.
        plain: plain steepest descent, in each norm.
        tail: steps of length η/√t, in each norm, on a loss with a power's tail.
        adam: Adam on log R, ``(sets, readings, d)``.
        forgetful: Adam on R.
    """

    unit: np.ndarray
    plain: np.ndarray
    tail: np.ndarray
    adam: np.ndarray
    forgetful: np.ndarray


def marks(steps: int) -> np.ndarray:
    """Return the readings, evenly in the logarithm of the step, from a hundredth of all steps on."""
    every = logarithmic(steps, READINGS)
    return every[every >= steps / FIRST]


def follow(x: np.ndarray, y: np.ndarray, lr: float, plain_lr: float, steps: int) -> Paths:
    """Descend from zero on sets of shapes ``(sets, n, d)`` and ``(sets, n)``."""
    falling = lambda step: lr / jnp.sqrt(step + 1.0)
    scaled = optax.scale_by_schedule(falling)
    rules = {}
    for i, order in enumerate(ORDERS):
        rules[f"unit{i}"] = optax.chain(steepest_descent(order, 1.0, "unit"), scaled)
        rules[f"tail{i}"] = optax.chain(steepest_descent(order, 1.0, "unit"), scaled)
        rules[f"plain{i}"] = steepest_descent(order, plain_lr)
    rules["adam"] = optax.adam(falling, eps=0.0)
    rules["forgetful"] = optax.adam(falling, eps=0.0)
    # one descent of all weights together: each rule moves its own, on its own term of the risk
    together = optax.partition(rules, {name: name for name in rules})

    def path(x: jax.Array, y: jax.Array) -> dict[str, jax.Array]:
        apply = lambda w, x: x @ w
        risks = {
            "unit": log_margin_risk(exponential, apply, x, y),
            "plain": margin_risk(exponential, apply, x, y),
            "tail": lambda w: jnp.log(jnp.mean(_power_tail(y * (x @ w)))),
        }
        risks |= {"adam": risks["unit"], "forgetful": risks["plain"]}
        of = {name: risks[name.rstrip("0123")] for name in rules}
        total = lambda weights: jnp.stack([of[name](weights[name]) for name in of]).sum()
        start = {name: jnp.zeros(x.shape[1]) for name in rules}
        look = {"weights": lambda weights: weights}
        every = descend(total, start, together, steps, record=marks(steps), observe=look)
        return every.observed["weights"]

    weights = jax.tree.map(np.asarray, kit.compiled(jax.vmap(path))(x, y))
    in_all = lambda kind: np.stack([weights[f"{kind}{i}"] for i in range(len(ORDERS))])
    return Paths(
        in_all("unit"), in_all("plain"), in_all("tail"), weights["adam"], weights["forgetful"]
    )


def _power_tail(margins: jax.Array) -> jax.Array:
    """Return a loss like 1/u for large margins u, and convex: ``1 − u`` below zero."""
    # 1/(1 + u) has the slope −1 at zero, where the line goes on
    return jnp.where(margins > 0, 1 / (1 + jnp.maximum(margins, 0.0)), 1 - margins)


def sizes(weights: np.ndarray) -> np.ndarray:
    """Return the norms of weights ``(norm, …, d)``, each in its own."""
    pairs = zip(weights, ORDERS, strict=True)
    return np.stack([np.linalg.norm(w, ord=order, axis=-1) for w, order in pairs])


def margins(weights: np.ndarray, signed: np.ndarray, order: float) -> np.ndarray:
    """Return margins normalized in a norm, shape ``(sets, readings)``, of weights ``(sets, readings, d)``."""
    least = np.einsum("snd,srd->srn", signed, weights).min(-1)
    return least / np.linalg.norm(weights, ord=order, axis=-1)
