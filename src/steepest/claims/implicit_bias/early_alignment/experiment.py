"""Flows from small starts, and what is read off their neurons."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
import xarray

from steepest import kit
from steepest.dynamics import flow
from steepest.nn.losses import exponential, log_margin_risk, margin_risk
from steepest.nn.networks import Neurons
from steepest.nn.types import Network, Values

SMALL = 1e-5  # error of a weight that counts as none, over the scale of the start
TINY = 1e-300  # under logarithms and divisions of what may be zero


class Setting(NamedTuple):
    """Data and initial networks of scale one, one a seed; and as many sets of two examples, repeated to n."""

    x: Values  # (seeds, n, d)
    y: Values  # (seeds, n)
    start: Neurons  # (seeds, h, d) and (seeds, h)
    pairs: Values  # the two examples of each set, of unit length, (seeds, 2, d)


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


def over_class_mean(size: xarray.DataArray, label: xarray.DataArray) -> xarray.DataArray:
    """Return sizes over their mean in the class of each example, ``(seed, example)``."""
    means = [size.where(mine).mean("example") for mine in (label > 0, label < 0)]
    return size / xarray.where(label > 0, *means)


def polar(
    weights: xarray.DataArray, target: xarray.DataArray
) -> tuple[xarray.DataArray, xarray.DataArray, xarray.DataArray]:
    """Return sizes of weights, cosines of their angles to targets of unit length, and log tan of half of these."""
    size = (weights**2).sum("unknown") ** 0.5
    unit = weights / size.clip(TINY)
    # by chords, which are exact for small angles
    near, far = ((((unit - sign * target) ** 2).sum("unknown")) ** 0.5 for sign in (1, -1))
    return size, (unit * target).sum("unknown"), logarithm(near) - logarithm(far)


def logarithm(array: xarray.DataArray) -> xarray.DataArray:
    """Return the logarithm of what may be zero."""
    return xarray.DataArray(np.log(array.clip(TINY)))


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
    before = np.maximum(first - 1, 1)
    seed, neuron = np.indices(first.shape)
    one = least[seed, before - 1, neuron]
    two = least[seed, before, neuron]
    step = times[before] - times[before - 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        met = times[before] + step * two / (one - two)
    return np.where(first > 0, met, np.inf)
