"""Small networks of several widths, trained on two and on more examples; narrow ones begin as parts of wide ones."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.dynamics import descend, log_risk_steps
from steepest.nn.data import orthogonally_separable
from steepest.nn.losses import exponential, log_margin_risk
from steepest.nn.networks import Neurons, two_layer

LR = 0.05
"""Step of the descent on log R."""


class Pairs(NamedTuple):
    """Two examples of opposite classes at several angles, and starts of scale one, independent of each other."""

    x: kit.Values  # (mus, 2, d)
    y: kit.Values  # (2,)
    start: Neurons  # (draws, mus, h, d) and (draws, mus, h)


class Sets(NamedTuple):
    """Sets of more examples, one a seed, each with its own starts of scale one."""

    x: kit.Values  # (seeds, n, d)
    y: kit.Values  # (seeds, n)
    start: Neurons  # (seeds, starts, h, d) and (seeds, starts, h)


class Setting(NamedTuple):
    """What theory and experiment both see."""

    pairs: Pairs
    sets: Sets


def draw_pairs(key: kit.Key, mus: Sequence[float], dimension: int, width: int, draws: int) -> Pairs:
    """Draw starts at pairs of unit vectors with cos(x₊, x₋) = −μ; any two directions do, as starts are isotropic."""
    mu = jnp.array(mus)[:, None]
    axes = jnp.eye(2, dimension)
    second = -mu * axes[0] - jnp.sqrt(1 - mu**2) * axes[1]
    first = jnp.broadcast_to(axes[0], second.shape)
    initial = two_layer(dimension, width).init
    start = jax.vmap(jax.vmap(initial))(jax.random.split(key, (draws, len(mus))))
    return Pairs(jnp.stack([first, second], 1), jnp.array([1.0, -1.0]), start)


def draw_sets(
    key: kit.Key,
    *,
    seeds: int,
    starts: int,
    examples: int,
    dimension: int,
    mu: float,
    flipped: float,
    width: int,
) -> Sets:
    """Draw sets of examples with starts, and flip labels."""
    initial = two_layer(dimension, width).init

    def one(key: kit.Key) -> Sets:
        for_x, for_start, for_flips = jax.random.split(key, 3)
        data = orthogonally_separable(for_x, examples, dimension, mu)
        wrong = jax.random.uniform(for_flips, data.y.shape) < flipped
        start = jax.vmap(initial)(kit.keys(for_start, starts))
        return Sets(data.x, jnp.where(wrong, -data.y, data.y), start)

    return jax.vmap(one)(jax.random.split(key, seeds))


def train_all(setting: Setting, widths: Sequence[int], scale: float, steps: int) -> kit.Observation:
    """Train every start at every width; see which networks learn both classes, and which neurons of the widest live."""
    learn = partial(_learn, scale=scale, steps=steps)

    def every(setting: Setting) -> list[tuple[jax.Array, jax.Array]]:
        over_widths = jax.vmap(learn, (None, None, None, 0))
        over_starts = jax.vmap(over_widths, (None, None, 0, None))
        train = lambda of: over_starts(of[0], of[1], of[2], jnp.array(widths))
        pairs = setting.pairs
        by_mu = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), pairs.start)
        labels = jnp.broadcast_to(pairs.y, pairs.x.shape[:2])
        return [jax.lax.map(train, (pairs.x, labels, by_mu)), jax.lax.map(train, setting.sets)]

    on_pairs, on_sets = jax.tree.map(np.asarray, kit.compiled(every)(setting))
    widest = int(np.argmax(widths))
    return kit.seen(
        success=("draw mu width", np.swapaxes(on_pairs[0], 0, 1)),
        pair_lives=("draw neuron mu", np.moveaxis(on_pairs[1][:, :, widest], 0, -1)),
        many_success=("seed start width", on_sets[0]),
        many_live=("seed start neuron", on_sets[1][:, :, widest]),
    )


def _learn(
    x: jax.Array, y: jax.Array, start: Neurons, width: jax.Array, *, scale: float, steps: int
) -> tuple[jax.Array, jax.Array]:
    """Return whether the first neurons of a start learn all examples, and which neurons see one of their class then."""
    net = two_layer(x.shape[-1], len(start.v))
    present = scale * (jnp.arange(len(start.v)) < width)
    first = Neurons(start.w * present[:, None], start.v * present)
    risk = log_margin_risk(exponential, net.apply, x, y)
    end = descend(risk, first, log_risk_steps(LR), steps, record=steps).params
    same_class = jnp.sign(y) * jnp.sign(end.v)[:, None] > 0
    lives = ((end.w @ x.T > 0) & same_class).any(1)
    return (y * net.apply(end, x)).min() > 0, lives
