"""Separable data sets, flows of two-layer ReLU networks from small starts, and the classes of their neurons."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import jax
import numpy as np
import xarray

from steepest import kit
from steepest.dynamics import flow
from steepest.nn.data import orthogonally_separable
from steepest.nn.losses import exponential, log_margin_risk, margin_risk
from steepest.nn.networks import Neurons
from steepest.nn.types import Network, Values

SMALL = 1e-5  # error of a weight that counts as none, over the scale of the start
TINY = 1e-300  # under logarithms and divisions of what may be zero
CLASSES = ("positive", "negative")
Drawn = TypeVar("Drawn")


@dataclass(frozen=True)
class OnSeparableSets(kit.Claim[Drawn]):
    """Two-layer ReLU networks with small starts, on orthogonally separable examples."""

    width: kit.Count = kit.param(
        30, "neurons h", unit="neurons", scope=kit.between(24, 60, "each class needs its neurons")
    )
    n: kit.Count = kit.param(20, "examples", scope=kit.between(14, 30))
    dimension: kit.Count = kit.param(8, "input dimension d", scope=kit.between(6, 12))
    mu: kit.Fraction = kit.param(
        0.1,
        "least y_i y_j cos(x_i, x_j) aimed at by the data",
        scope=kit.between(0.05, 0.2, "the less, the later neurons see their class"),
    )
    flipped: kit.Fraction = kit.param(
        0.0, "part of the labels that is flipped, which ends separability"
    )
    seeds: kit.Seeds = kit.param(6, "data sets with a network each")


def separable_sets(
    key: kit.Key, seeds: int, n: int, dimension: int, mu: float
) -> tuple[jax.Array, jax.Array]:
    """Draw orthogonally separable examples ``(seeds, n, d)`` and their labels ``(seeds, n)``."""

    def draw(key: kit.Key) -> tuple[jax.Array, jax.Array]:
        data = orthogonally_separable(key, n, dimension, mu)
        return data.x, data.y

    return jax.vmap(draw)(kit.keys(key, seeds))


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


def by_class(targets: xarray.DataArray, positive: Values) -> Values:
    """Return the target of each neuron's class, shape ``(seeds, …, h, unknowns)``.

    Args:
        targets: of both classes, the positive one first; its last two axes are the classes and the unknowns.
        positive: whether a neuron's output weight is, shape ``(seeds, h)``.
    """
    first, second = (targets.isel({"class": place}).values for place in (0, 1))
    shape = (len(positive), *[1] * (first.ndim - 2), positive.shape[1], 1)
    return np.where(positive.reshape(shape), first[..., None, :], second[..., None, :])


def logarithm(array: Values) -> Values:
    """Return the logarithm of what may be zero."""
    return np.log(array.clip(TINY))
