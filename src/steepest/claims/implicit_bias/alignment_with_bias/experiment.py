"""Networks with biases that descend from small starts, while all norms are small."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.nn.losses import exponential, margin_risk
from steepest.nn.networks import Neurons, two_layer
from steepest.nn.types import Values

STEP = 0.02  # of gradient descent
MOST_STEPS = 10_000


class Setting(NamedTuple):
    """Data, and initial networks of scale one with one more input, one a seed."""

    x: Values  # (seeds, n, d)
    y: Values  # (seeds, n)
    wider: Neurons  # (seeds, h, d + 1) and (seeds, h), balanced


def turned_with_constant(
    setting: Setting, constants: Sequence[float], scale: float
) -> dict[str, tuple[str, Values]]:
    """Train networks on examples of length one with a constant as a further coordinate, while all norms are small.

    Gradient descent in small steps from starts of this scale ends where ‖w‖ of a neuron is ``scale^(−3/4)`` times that
    of its start, ε w_0: norms² are then at most √ε ‖w_0‖².

    Args:
        setting: data and starts.
        constants: of the further coordinate, c.
        scale: ε.

    Returns:
        directions of the neurons in the end; whether each is alive, as it sees an example; whether its output weight is
        positive.
    """
    net = two_layer(setting.wider.w.shape[2], setting.wider.w.shape[1])

    def descend(x: jax.Array, y: jax.Array, start: Neurons, constant: jax.Array) -> tuple:
        unit = x / jnp.linalg.norm(x, axis=1, keepdims=True)
        bordered = jnp.pad(unit, ((0, 0), (0, 1)), constant_values=constant)
        risk = margin_risk(exponential, net.apply, bordered, y)
        small = jax.tree.map(lambda leaf: scale * leaf, start)
        sizes = jnp.linalg.norm(small.w, axis=1)

        def goes_on(state: tuple) -> jax.Array:
            params, step = state
            growth = (jnp.linalg.norm(params.w, axis=1) / sizes).max()
            return (growth < scale**-0.75) & (step < MOST_STEPS)

        def move(state: tuple) -> tuple:
            params, step = state
            slope = jax.grad(risk)(params)
            return jax.tree.map(lambda p, g: p - STEP * g, params, slope), step + 1

        end, _ = jax.lax.while_loop(goes_on, move, (small, 0))
        direction = end.w / jnp.linalg.norm(end.w, axis=1, keepdims=True)
        return direction, (bordered @ end.w.T > 0).any(0)

    over_constants = jax.vmap(descend, (None, None, None, 0))
    over_seeds = kit.compiled(jax.vmap(over_constants, (0, 0, 0, None)))
    directions, alive = over_seeds(setting.x, setting.y, setting.wider, np.array(constants))
    return {
        "wider": ("seed constant neuron bordered", np.asarray(directions)),
        "wider_alive": ("seed constant neuron", np.asarray(alive)),
        "wider_positive": ("seed neuron", np.asarray(setting.wider.v) > 0),
    }
