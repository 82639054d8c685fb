"""Tangent kernels of finite networks of convolutions, with shared filters and without, by automatic differentiation."""

from collections.abc import Callable

import jax
import numpy as np

from steepest import kit
from steepest.claims.kernels._convolution_draws import draw, relative_spread
from steepest.kernels import empirical_ntk
from steepest.nn.layers import LayeredNetwork, conv, dense, flatten, global_pool, network
from steepest.nn.types import Params, Values

SHARINGS = ("shared", "of their own")
CHUNKS = 4  # in which networks are drawn, so that not all weights are there at once


def build(
    is_shared: bool, layers: int, channels: int, shape: tuple[int, ...], pooled: bool = False
) -> LayeredNetwork:
    """Return convolutions over windows of three that close in a circle, with ReLU, and behind them a dense layer."""
    hidden = [conv(channels, 3, padding="circular", shared=is_shared), "relu"] * layers
    head = global_pool() if pooled else flatten()
    return network(*hidden, head, dense(1), shape=shape, parameterized="ntk", bias=False)


def pair_of(signal: Values) -> Values:
    """Return a signal ``(P, channels)`` and the same moved by one position, ``(2, P, channels)``."""
    return np.stack([signal, np.roll(signal, 1, axis=0)])


def mean_kernels(
    rng: np.random.Generator, net: LayeredNetwork, pair: Values, groups: int, networks: int
) -> Values:
    """Return the mean of Θ(x, x) and of Θ(x, x') in each group of networks, ``(2, groups)``.

    Args:
        rng: of the weights.
        net: the architecture.
        pair: x and x', ``(2, *shape)``.
        groups: how many.
        networks: of a group.
    """
    from_first = kit.compiled(
        jax.vmap(lambda params, x: empirical_ntk(net, params, x[:1], x)[0], (0, None))
    )
    theta = in_chunks(lambda params: from_first(params, pair), rng, net, groups, networks)
    return theta.mean(2)


def in_chunks(
    kernels: Callable[[Params], jax.Array],
    rng: np.random.Generator,
    net: LayeredNetwork,
    groups: int,
    networks: int,
) -> Values:
    """Draw networks in parts, so that not all weights are there at once; return ``(inputs, groups, networks)`` kernels.

    Args:
        kernels: of many networks, ``(networks, inputs)``.
        rng: of the weights.
        net: the architecture.
        groups: how many.
        networks: of a group.
    """
    chunk = max(1, networks // CHUNKS)
    parts = [
        np.asarray(kernels(draw(rng, net, groups * chunk)), float).reshape(groups, chunk, -1)
        for _ in range(CHUNKS)
    ]
    return np.moveaxis(np.concatenate(parts, axis=1), -1, 0)


def spreads(
    rng: np.random.Generator, net: LayeredNetwork, inputs: Values, groups: int, networks: int
) -> Values:
    """Return the relative variance of Θ(x, x) in each group of networks, ``(inputs, groups)``."""

    def at(params: Params, x: jax.Array) -> jax.Array:
        return empirical_ntk(net, params, x[None])[0, 0]

    kernel_of = kit.compiled(jax.vmap(jax.vmap(at, (None, 0)), (0, None)))
    theta = in_chunks(lambda params: kernel_of(params, inputs), rng, net, groups, networks)
    return relative_spread(theta)
