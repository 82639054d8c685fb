"""Gradient flow of linear convolutional networks on separable sets, on losses with both tails."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.implicit_bias._tails import End, both_tails, follow, read
from steepest.nn.networks import convolved


class Setting(NamedTuple):
    """Separable sets, one a draw, and the filters at the start."""

    x: kit.Values  # (draws, n, d)
    y: kit.Values  # (draws, n)
    # (depths, draws, L, d), L the largest depth; filters that are not used are zero
    starts: kit.Values


def convolve(
    x: jax.Array,
    y: jax.Array,
    start: jax.Array,
    depth: jax.Array,
    falls: jax.Array,
    power: jax.Array,
) -> End:
    """Follow the flow of one network from filters ``(L, d)``; those from the depth on are a unit, and stay."""
    used = jnp.arange(len(start))[:, None] < depth
    # convolutions are over √d, so that √d e₀ is their unit
    unit = jnp.sqrt(x.shape[1]) * (jnp.arange(x.shape[1]) == 0)
    weights = lambda filters: convolved(jnp.where(used, filters, unit))
    return follow(weights, start, x, y, falls, power)


def follow_all(
    setting: Setting, depths: Sequence[int], horizons: Sequence[float]
) -> kit.Observation:
    """Follow all sets at once, one depth and loss after the other: the slowest lane decides.

    Args:
        setting: sets and starts.
        depths: L.
        horizons: fall of the log of the exponential risk, by depth.
    """
    tails = both_tails(horizons)
    places = (np.concatenate([setting.starts, setting.starts]), np.tile(depths, 2), *tails)
    over_sets = jax.vmap(convolve, (0, 0, 0, None, None, None))

    @kit.compiled
    def run(x: jax.Array, y: jax.Array, places: tuple) -> End:
        return jax.lax.map(lambda place: over_sets(x, y, *place), places)

    ends = jax.tree.map(np.asarray, run(setting.x, setting.y, places))
    return kit.seen(**read(ends, tails, setting.x, setting.y, "unknown"))
