"""A tanh network on centred digits, its risk, and its sharpness in units of what descent can bear."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from steepest import kit
from steepest.kit import keys
from steepest.linalg import sharpness
from steepest.nn.data import digits
from steepest.nn.losses import mean_risk, squared
from steepest.nn.networks import Mlp, mlp
from steepest.nn.types import Params, Risk

MARGIN = (0.95, 1.15)  # factors of 2/η between which the late sharpness agrees with it


class Setting(NamedTuple):
    """Network, risk and one initial point a seed."""

    net: Mlp
    risk: Risk
    keys: kit.Key


def tanh_on_digits(
    key: kit.Key,
    seeds: int,
    *,
    n: int,
    width: int,
    depth: int,
    c_w: float,
    images: kit.Key | None = None,
) -> Setting:
    """Return a tanh network with its squared risk on centred digits.

    Args:
        key: of the initial points.
        seeds: how many of these.
        n: images.
        width: neurons in each hidden layer.
        depth: hidden layers.
        c_w: initial weight variance times fan-in.
        images: key that draws the images; the first ones without it.
    """
    data = digits(n=n, key=images)
    net = mlp((data.d, *[width] * depth, 10), "tanh", c_w=c_w)
    risk = mean_risk(squared, net.apply, data.x - data.x.mean(0), data.y)
    return Setting(net, risk, keys(key, seeds))


def relative_sharpness(risk: Risk, params: Params, products: int) -> dict[str, jax.Array]:
    """Return the sharpness and its residual relative to it, by so many Hessian products."""
    pair = sharpness(risk, params, jax.random.key(0), products)
    return {"value": pair.value, "residual": pair.residual / jnp.abs(pair.value)}
