"""Tangent kernels of finite networks of convolutions, with shared filters and without, by automatic differentiation."""

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
    theta = np.asarray(from_first(draw(rng, net, groups * networks), pair), float)
    return theta.reshape(groups, networks, 2).mean(1).T


def spreads(
    rng: np.random.Generator, net: LayeredNetwork, inputs: Values, groups: int, networks: int
) -> Values:
    """Return the relative variance of Θ(x, x) in each group of networks, ``(inputs, groups)``."""

    def at(params: Params, x: jax.Array) -> jax.Array:
        return empirical_ntk(net, params, x[None])[0, 0]

    kernel_of = kit.compiled(jax.vmap(jax.vmap(at, (0, None)), (None, 0)))
    chunk = max(2, networks // CHUNKS)
    theta = [
        np.asarray(kernel_of(draw(rng, net, groups * chunk), inputs), float) for _ in range(CHUNKS)
    ]
    each = [values.reshape(len(inputs), groups, chunk) for values in theta]
    return relative_spread(np.concatenate(each, axis=-1))
