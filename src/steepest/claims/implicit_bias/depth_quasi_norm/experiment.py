"""Gradient flow of diagonal networks on the squared loss, on the exponential loss, and on one with a power's tail."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.implicit_bias._tails import log_loss, multipliers, off_margin
from steepest.dynamics import flow
from steepest.nn.losses import mean_risk, squared
from steepest.nn.networks import diagonal, diagonal_weights

START = 0.1
"""α of all networks on separable sets."""
READINGS = 13
"""Of the fall of log R, evenly spaced in its logarithm."""
TAIL_FALL = 12.0
"""By how much log R falls with a power's tail: margins reach e^12, as many as with the exponential one."""
FIRST = 0.1
"""Reading of log R's fall with which both begin."""


class Setting(NamedTuple):
    """Regression problems, one a seed, and separable sets, one a draw."""

    x: kit.Values  # (seeds, n, d)
    y: kit.Values  # (seeds, n)
    inputs: kit.Values  # (draws, m, features)
    labels: kit.Values  # (draws, m)
    kept: float  # share of the regression problems drawn that was kept


class End(NamedTuple):
    """Where one network on a separable set ends."""

    weights: jax.Array  # at all readings, (readings, features)
    pull: jax.Array  # Σ q_i y_i x_i at the end, q the loss's own multipliers, (features,)
    off_margin: jax.Array  # Σ q_i (u_i / min u − 1) at the end
    arrived: jax.Array


def regress(x: jax.Array, y: jax.Array, depth: int, alpha: float) -> jax.Array:
    """Return the weights at which the flow on the squared loss ends, from a start at α."""
    start = diagonal(x.shape[1], alpha).init(jax.random.key(0))  # nothing in it is random
    # what is integrated is the displacement from the start, as is told in the claim diagonal-network
    weights = lambda moved: diagonal_weights(jax.tree.map(jnp.add, start, moved), depth)
    path = flow(
        mean_risk(squared, lambda moved, x: x @ weights(moved), x, y),
        jax.tree.map(jnp.zeros_like, start),
        np.linspace(2.0, 40.0, 20),
        clock="log",
        solver="stiff",
        rtol=1e-6,
        atol=1e-6 * alpha,
        floor=1e-16,
        max_steps=20_000,
    )
    return weights(path.params)


def classify(
    x: jax.Array, y: jax.Array, depth: int, falls: jax.Array, power: bool | jax.Array
) -> End:
    """Follow the flow on a loss of margins while its logarithm falls.

    Args:
        x: inputs of a separable set.
        y: its labels.
        depth: L.
        falls: of the logarithm, at which weights are read.
        power: whether the loss has a power's tail.
    """
    margins = lambda beta: y * (x @ beta)
    log_risk = lambda params: log_loss(margins(diagonal_weights(params, depth)), power)
    path = flow(
        lambda params: jnp.exp(log_risk(params)),
        diagonal(x.shape[1], START).init(jax.random.key(0)),
        falls,
        "log-risk",
        log_risk,
        {"weights": lambda params: diagonal_weights(params, depth)},
        # explicit steps stay at the limit of stability, where the loss's multipliers are noise in some sets
        solver="stiff",
        rtol=1e-6,
        atol=1e-9,
        max_steps=50_000,
    )
    weights = path.observed["weights"]
    u = margins(weights[-1])
    q = multipliers(u, power)
    return End(weights, (q * y) @ x, off_margin(u, q), path.ok)


def follow_all(
    setting: Setting, depths: Sequence[int], alphas: np.ndarray, horizons: Sequence[float]
) -> kit.Observation:
    """Follow all problems at once, one depth and scale after the other: the slowest lane decides.

    Args:
        setting: problems and sets.
        depths: L.
        alphas: scales of the start on the squared loss, ``(depths, scales)``.
        horizons: fall of the log of the exponential risk, by depth.
    """
    depth = np.array(depths, float)
    falls = np.stack([np.geomspace(FIRST, horizon, READINGS) for horizon in horizons])
    tail_falls = np.tile(np.geomspace(FIRST, TAIL_FALL, READINGS), (len(depth), 1))
    scales = (np.repeat(depth, alphas.shape[1]), alphas.ravel())

    places = (
        np.concatenate([depth, depth]),
        np.concatenate([falls, tail_falls]),
        np.repeat([False, True], len(depth)),
    )

    @kit.compiled
    def run(data: tuple) -> tuple[jax.Array, End]:
        x, y, inputs, labels = data

        def at_scale(scale: tuple) -> jax.Array:
            return jax.vmap(regress, (0, 0, None, None))(x, y, *scale)

        def at_place(place: tuple) -> End:
            return jax.vmap(classify, (0, 0, None, None, None))(inputs, labels, *place)

        return jax.lax.map(at_scale, scales), jax.lax.map(at_place, places)

    beta, ends = jax.tree.map(np.asarray, run(setting[:4]))
    end = jax.tree.map(lambda leaf: leaf[: len(depth)], ends)
    tail = jax.tree.map(lambda leaf: leaf[len(depth) :], ends)
    beta = np.moveaxis(beta.reshape(*alphas.shape, *beta.shape[1:]), 1, 2)
    residual = np.einsum("snd,Lsad->Lsan", setting.x, beta) - setting.y[:, None]
    return kit.seen(
        beta=("depth seed scale unknown", beta),
        risk=("depth seed scale", 0.5 * (residual**2).mean(-1)),
        fall=("depth reading", falls),
        least=("depth draw reading", least_margins(setting, end.weights)),
        weights=("depth draw reading feature", end.weights),
        pull=("depth draw feature", end.pull),
        off_margin=("depth draw", end.off_margin),
        arrived=("depth draw", end.arrived & tail.arrived),
        least_tail=("depth draw reading", least_margins(setting, tail.weights)),
        weights_tail=("depth draw reading feature", tail.weights),
        pull_tail=("depth draw feature", tail.pull),
        off_margin_tail=("depth draw", tail.off_margin),
    )


def least_margins(setting: Setting, weights: np.ndarray) -> np.ndarray:
    """Return the least margin at every reading, ``(depths, draws, readings)``."""
    outputs = np.einsum("smf,Lsrf->Lsrm", setting.inputs, weights)
    return (np.asarray(setting.labels)[:, None] * outputs).min(-1)
