"""Tangent kernels of finite networks of convolutions, between two inputs and at each of several."""

import jax
import numpy as np

from steepest import kit
from steepest.claims.kernels._convolution_draws import in_chunks, kernels_at, relative_spread
from steepest.kernels import empirical_ntk
from steepest.nn.layers import LayeredNetwork
from steepest.nn.types import Values

SHARINGS = ("shared", "of their own")


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


def spreads(
    rng: np.random.Generator, net: LayeredNetwork, inputs: Values, groups: int, networks: int
) -> Values:
    """Return the relative variance of Θ(x, x) in each group of networks, ``(inputs, groups)``."""
    theta = in_chunks(kernels_at(net, inputs), rng, net, groups, networks)
    return relative_spread(theta)
