"""Flows from small starts, and what is read off their neurons."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.dynamics import flow
from steepest.nn.losses import exponential, log_margin_risk, margin_risk
from steepest.nn.networks import Neurons, two_layer
from steepest.nn.types import Network, Values

SMALL = 1e-5  # error of a weight that counts as none, over the scale of the start
STEP = 0.02  # of gradient descent
MOST_STEPS = 10_000
TINY = 1e-300  # under logarithms and divisions of what may be zero


class Setting(NamedTuple):
    """Data and initial networks of scale one, one a seed; and as many sets of two examples, repeated to n.

    The networks of one more input are for examples of length one with a constant as a further coordinate.
    """

    x: Values  # (seeds, n, d)
    y: Values  # (seeds, n)
    start: Neurons  # (seeds, h, d) and (seeds, h)
    pairs: Values  # the two examples of each set, of unit length, (seeds, 2, d)
    wider: Neurons  # (seeds, h, d + 1) and (seeds, h), balanced


def flows(net: Network) -> Callable[..., tuple[jax.Array, jax.Array]]:
    """Return what follows the gradient flow of data sets, networks and scales: logarithms of risks, and weights."""

    def follow(
        x: jax.Array, y: jax.Array, start: Neurons, readings: jax.Array, scale: jax.Array
    ) -> tuple:
        params = jax.tree.map(lambda leaf: scale * leaf, start)
        risks = [make(exponential, net.apply, x, y) for make in (margin_risk, log_margin_risk)]
        settings = {"observe": {"w": lambda p: p.w}, "rtol": 1e-4, "atol": SMALL * scale}
        path = flow(risks[0], params, readings, "log", risks[1], **settings)
        return path.log_risk, path.observed["w"]

    over_scales = jax.vmap(follow, (None, None, None, None, 0))
    return kit.compiled(jax.vmap(over_scales, (0, 0, 0, None, None)))


def over_class_mean(size: Values, label: Values) -> Values:
    """Return sizes over their mean in the class of each example, ``(seeds, n)``."""
    positive = label > 0
    means = [
        np.where(mine, size, 0.0).sum(1, keepdims=True) / mine.sum(1, keepdims=True)
        for mine in (positive, ~positive)
    ]
    return size / np.where(positive, *means)


def by_class(targets: xarray.DataArray, positive: Values) -> Values:
    """Return the target of each neuron's class, shape ``(seeds, …, h, unknowns)``.

    Args:
        targets: of both classes, the positive one first; its last two axes are the classes and the unknowns.
        positive: whether a neuron's output weight is, shape ``(seeds, h)``.
    """
    first, second = (targets.isel({"class": place}).values for place in (0, 1))
    shape = (len(positive), *[1] * (first.ndim - 2), positive.shape[1], 1)
    return np.where(positive.reshape(shape), first[..., None, :], second[..., None, :])


def polar(weights: Values, target: Values) -> tuple[Values, Values, Values]:
    """Return sizes of weights, cosines of their angles to targets of unit length, and log tan of half of these.

    Args:
        weights: shape ``(…, d)``.
        target: shape ``(…, d)``, which may lack leading axes.
    """
    size = np.linalg.norm(weights, axis=-1)
    unit = weights / size.clip(TINY)[..., None]
    # |u − t| = 2 sin(θ/2) and |u + t| = 2 cos(θ/2) for unit vectors at an angle θ
    # by chords, which are exact for small angles
    near, far = (np.linalg.norm(unit - sign * target, axis=-1) for sign in (1, -1))
    return size, (unit * target).sum(-1), logarithm(near) - logarithm(far)


def logarithm(array: Values) -> Values:
    """Return the logarithm of what may be zero."""
    return np.log(array.clip(TINY))


def mean_of(times: Values, chosen: Values) -> Values:
    """Return the mean over the chosen neurons of each set, ``(sets,)``."""
    return np.where(chosen, times, 0.0).sum(1) / np.maximum(chosen.sum(1), 1)


def one_sided(setting: Setting) -> np.ndarray:
    """Which neurons with a positive output weight see exactly one of the two examples, shape ``(seeds, h)``."""
    products = np.einsum("shd,sed->she", np.asarray(setting.start.w), np.asarray(setting.pairs))
    return ((products > 0).sum(-1) == 1) & (np.asarray(setting.start.v) > 0)


def meeting(times: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Return when a neuron first sees both examples, shape ``(seeds, h)``; infinite where it does not.

    The least of its two products, over the norm that they give, is continued in a straight line from the two readings
    before: at the meeting the second example begins to pull, which is a kink.
    """
    least = (products / np.linalg.norm(products, axis=-1, keepdims=True)).min(-1)
    first = (least > 0).argmax(1)  # of the readings
    last = np.maximum(first - 1, 1)
    seed, neuron = np.indices(first.shape)
    earlier = least[seed, last - 1, neuron]
    later = least[seed, last, neuron]
    step = times[last] - times[last - 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        # where the line through both readings is zero
        met = times[last] + step * later / (earlier - later)
    return np.where(first > 0, met, np.inf)


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
