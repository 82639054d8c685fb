"""Gradient flow of diagonal networks on the squared loss, on the exponential loss, and on one with a power's tail."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.implicit_bias._tails import End, both_tails, follow, read
from steepest.dynamics import flow
from steepest.nn.losses import mean_risk, squared
from steepest.nn.networks import diagonal, diagonal_weights

START = 0.1
"""α of all networks on separable sets."""


class Setting(NamedTuple):
    """Regression problems, one a seed, and separable sets, one a draw."""

    x: kit.Values  # (seeds, n, d)
    y: kit.Values  # (seeds, n)
    inputs: kit.Values  # (draws, m, features)
    labels: kit.Values  # (draws, m)
    kept: float  # share of the regression problems drawn that was kept


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
    """Follow the flow of a network of one depth on a loss of margins."""
    start = diagonal(x.shape[1], START).init(jax.random.key(0))  # nothing in it is random
    return follow(lambda params: diagonal_weights(params, depth), start, x, y, falls, power)


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
    scales = (np.repeat(depth, alphas.shape[1]), alphas.ravel())

    tails = both_tails(horizons)
    places = (np.tile(depth, 2), *tails)

    @kit.compiled
    def run(data: tuple) -> tuple[jax.Array, End]:
        x, y, inputs, labels = data

        def at_scale(scale: tuple) -> jax.Array:
            return jax.vmap(regress, (0, 0, None, None))(x, y, *scale)

        def at_place(place: tuple) -> End:
            return jax.vmap(classify, (0, 0, None, None, None))(inputs, labels, *place)

        return jax.lax.map(at_scale, scales), jax.lax.map(at_place, places)

    beta, ends = jax.tree.map(np.asarray, run(setting[:4]))
    beta = np.moveaxis(beta.reshape(*alphas.shape, *beta.shape[1:]), 1, 2)
    residual = np.einsum("snd,Lsad->Lsan", setting.x, beta) - setting.y[:, None]
    return kit.seen(
        beta=("depth seed scale unknown", beta),
        risk=("depth seed scale", 0.5 * (residual**2).mean(-1)),
        **read(ends, tails, setting.inputs, setting.labels, "feature"),
    )
