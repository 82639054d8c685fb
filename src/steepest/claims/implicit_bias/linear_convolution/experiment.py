"""Gradient flow of linear convolutional networks on the exponential loss, and on one with a power's tail."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.implicit_bias._tails import log_loss, multipliers, off_margin
from steepest.dynamics import flow
from steepest.nn.networks import convolved

READINGS = 13
"""Of the fall of log R, evenly spaced in its logarithm."""
FIRST = 0.1
"""Reading of log R's fall with which both losses begin."""
TAIL_FALL = 12.0
"""By how much log R falls with a power's tail: margins reach e^12, as many as with the exponential one."""


class Setting(NamedTuple):
    """Separable sets, one a draw, and the filters at the start."""

    x: kit.Values  # (draws, n, d)
    y: kit.Values  # (draws, n)
    starts: (
        kit.Values
    )  # (depths, draws, L, d), L the largest depth; filters that are not used are zero


class End(NamedTuple):
    """Where one network on a separable set ends."""

    weights: jax.Array  # β at all readings, (readings, d)
    pull: jax.Array  # Σ q_i y_i x_i at the end, q the loss's own multipliers, (d,)
    off_margin: jax.Array  # Σ q_i (u_i / min u − 1) at the end
    arrived: jax.Array


def follow(
    x: jax.Array,
    y: jax.Array,
    start: jax.Array,
    depth: jax.Array,
    falls: jax.Array,
    power: jax.Array,
) -> End:
    """Follow the flow of one network while the logarithm of its risk falls.

    Args:
        x: inputs of a separable set, ``(n, d)``.
        y: its labels.
        start: filters, ``(L, d)``; those from the depth on are the unit of the convolution, and stay.
        depth: of the network.
        falls: of the logarithm, at which weights are read.
        power: whether the loss has a power's tail.
    """
    used = jnp.arange(len(start))[:, None] < depth
    unit = jnp.sqrt(x.shape[1]) * (jnp.arange(x.shape[1]) == 0)
    weights = lambda filters: convolved(jnp.where(used, filters, unit))
    log_risk = lambda filters: log_loss(y * (x @ weights(filters)), power)
    path = flow(
        lambda filters: jnp.exp(log_risk(filters)),
        start,
        falls,
        "log-risk",
        log_risk,
        {"weights": weights},
        # explicit steps stay in proportion to −log R: 56 000 of them where these are 620
        solver="stiff",
        rtol=1e-6,
        atol=1e-9,
        max_steps=50_000,
    )
    beta = path.observed["weights"]
    u = y * (x @ beta[-1])
    q = multipliers(u, power)
    return End(beta, (q * y) @ x, off_margin(u, q), path.ok)


def follow_all(
    setting: Setting, depths: Sequence[int], horizons: Sequence[float]
) -> kit.Observation:
    """Follow all sets at once, one depth and loss after the other: the slowest lane decides.

    Args:
        setting: sets and starts.
        depths: L.
        horizons: fall of the log of the exponential risk, by depth.
    """
    falls = np.stack([np.geomspace(FIRST, horizon, READINGS) for horizon in horizons])
    tail_falls = np.tile(np.geomspace(FIRST, TAIL_FALL, READINGS), (len(depths), 1))
    places = (
        np.concatenate([setting.starts, setting.starts]),
        np.tile(depths, 2),
        np.concatenate([falls, tail_falls]),
        np.repeat([False, True], len(depths)),
    )
    over_sets = jax.vmap(follow, (0, 0, 0, None, None, None))

    @kit.compiled
    def run(x: jax.Array, y: jax.Array, places: tuple) -> End:
        return jax.lax.map(lambda place: over_sets(x, y, *place), places)

    ends = jax.tree.map(np.asarray, run(setting.x, setting.y, places))
    end = jax.tree.map(lambda leaf: leaf[: len(depths)], ends)
    tail = jax.tree.map(lambda leaf: leaf[len(depths) :], ends)
    return kit.seen(
        fall=("depth reading", falls),
        weights=("depth draw reading unknown", end.weights),
        least=("depth draw reading", _least_margins(setting, end.weights)),
        pull=("depth draw unknown", end.pull),
        off_margin=("depth draw", end.off_margin),
        arrived=("depth draw", end.arrived & tail.arrived),
        weights_tail=("depth draw reading unknown", tail.weights),
        least_tail=("depth draw reading", _least_margins(setting, tail.weights)),
        pull_tail=("depth draw unknown", tail.pull),
        off_margin_tail=("depth draw", tail.off_margin),
    )


def _least_margins(setting: Setting, weights: np.ndarray) -> np.ndarray:
    """Return the least margin at every reading, ``(depths, draws, readings)``."""
    outputs = np.einsum("snd,Lsrd->Lsrn", setting.x, weights)
    return (np.asarray(setting.y)[:, None] * outputs).min(-1)
