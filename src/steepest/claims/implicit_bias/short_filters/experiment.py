"""Gradient flow of two convolutions, one of which has few taps, on separable sets."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.implicit_bias._tails import TAIL_FALL, margin_flow
from steepest.nn.networks import convolved
from steepest.nn.types import Values

FIRST = 1.0  # fall of log R at the first reading
READINGS = 9
TOLERANCE = 1e-4
STEPS = 5000  # of the integrator; flows of drafts took up to 400


class Setting(NamedTuple):
    """Separable sets and the channels at the start.

    Attributes:
        x: inputs, ``(seeds, n, d)``.
        y: labels, ``(seeds, n)``.
        starts: u and w of all channels, those that are not used zero, ``(seeds, widths, taps, channels, 2, d)``.
    """

    x: Values
    y: Values
    starts: Values


class Ends(NamedTuple):
    """What is read of trained networks.

    Attributes:
        margin: least y⟨β, x⟩ over Σ‖u‖‖w‖, ``(worlds, seeds, widths, taps, readings)``.
        arrived: whether the flow reached the last reading, ``(worlds, seeds, widths, taps)``.
    """

    margin: Values
    arrived: Values


def draw_starts(
    rng: np.random.Generator,
    size: tuple[int, int],
    widths: tuple[int, ...],
    taps: tuple[int, ...],
    scale: float,
) -> Values:
    """Draw channels for every set: u is zero, and w one tap and a tenth of noise on all that it has.

    Args:
        rng: draws the noise.
        size: seeds and d.
        widths: numbers of channels.
        taps: k.
        scale: length of w's first tap.
    """
    seeds, d = size
    starts = np.zeros((seeds, len(widths), len(taps), max(widths), 2, d))
    noise = rng.standard_normal((*starts.shape[:-2], d))
    filters = (np.arange(d) == 0) + 0.1 * noise
    filters = filters * (np.arange(d) < np.array(taps)[:, None, None])
    used = np.arange(max(widths)) < np.array(widths)[:, None]
    starts[..., 1, :] = scale * filters * used[:, None, :, None]
    return starts


def follow_all(setting: Setting, taps: tuple[int, ...], horizon: float) -> Ends:
    """Follow the flow of all networks on the exponential loss, and on 1/(1 + u)."""
    d = setting.x.shape[-1]
    masks = (np.arange(d) < np.array(taps)[:, None]).astype(float)
    falls = np.stack([np.geomspace(FIRST, last, READINGS) for last in (horizon, TAIL_FALL)])

    def train(
        x: jax.Array,
        y: jax.Array,
        start: jax.Array,
        mask: jax.Array,
        falls: jax.Array,
        power: jax.Array,
    ) -> tuple:
        # u keeps all d taps, w the first k
        masked = lambda channels: channels * jnp.stack([jnp.ones(d), mask])

        def margins(channels: jax.Array) -> jax.Array:
            # the library's convolution has a factor 1/√d
            weights = jnp.sqrt(d) * jax.vmap(convolved)(masked(channels)).sum(0)
            return y * (x @ weights)

        def ratio(channels: jax.Array) -> jax.Array:
            # Σ_c ‖u_c‖‖w_c‖ has the degree two of the margins: their ratio has none
            lengths = jnp.linalg.norm(masked(channels), axis=-1)
            return margins(channels).min() / lengths.prod(-1).sum()

        path = margin_flow(
            margins,
            start,
            falls,
            power,
            {"margin": ratio},
            rtol=TOLERANCE,
            atol=1e-2 * TOLERANCE,
            max_steps=STEPS,
        )
        return path.observed["margin"], path.ok

    over_taps = jax.vmap(train, (None, None, 0, 0, None, None))
    over_widths = jax.vmap(over_taps, (None, None, 0, None, None, None))
    over_sets = jax.vmap(over_widths, (0, 0, 0, None, None, None))

    # one loss after the other: the slowest lane decides
    @kit.compiled
    def run(setting: Setting, masks: jax.Array, worlds: tuple) -> tuple:
        return jax.lax.map(lambda world: over_sets(*setting, masks, *world), worlds)

    return Ends(*map(np.asarray, run(setting, masks, (falls, np.array([False, True])))))
