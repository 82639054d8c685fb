"""Tangent kernels of finite convolutional networks, by automatic differentiation."""

from collections.abc import Callable, Sequence

import jax
import numpy as np

from steepest import kit
from steepest.claims.kernels._convolution_draws import draw, relative_spread
from steepest.kernels import empirical_ntk
from steepest.nn.layers import LayeredNetwork, conv, dense, flatten, global_pool, network
from steepest.nn.types import Params, Values

HEADS = ("pooled", "flattened")
CHUNKS = 4  # in which networks are drawn, so that changed worlds share the program
Change = Callable[[np.random.Generator, Params], Params]


def build(head: str, channels: int, shape: tuple[int, ...]) -> LayeredNetwork:
    """Return one convolution over windows of three that close in a circle, behind it ReLU and one of the heads."""
    joined = global_pool() if head == "pooled" else flatten()
    layers = (conv(channels, 3, padding="circular"), "relu", joined, dense(1))
    return network(*layers, shape=shape, parameterized="ntk", bias=False)


def with_one_scale(rng: np.random.Generator, params: Params) -> Params:
    """Return networks whose filters all have one random factor, the same in a network."""
    first, *behind = params
    scale = rng.standard_normal(len(first["w"])).astype(np.float32)
    return ({"w": first["w"] * scale.reshape(-1, *[1] * (first["w"].ndim - 1))}, *behind)


def spreads(
    rng: np.random.Generator,
    net: LayeredNetwork,
    inputs: Values,
    groups: int,
    networks: int,
    changes: Sequence[Change],
) -> Values:
    """Return the relative variance of Θ(x, x) in each group of networks, ``(worlds, inputs, groups)``.

    The first world is that of networks as they are, and each change of them makes one more.

    Args:
        rng: of the weights.
        net: the architecture.
        inputs: ``(inputs, *shape)``.
        groups: how many.
        networks: of a group; of changed worlds a quarter of them, as these are far from the law.
        changes: of the weights.
    """

    def at(params: Params, x: jax.Array) -> jax.Array:
        return empirical_ntk(net, params, x[None])[0, 0]

    kernel_of = kit.compiled(jax.vmap(jax.vmap(at, (0, None)), (None, 0)))
    chunk = max(2, networks // CHUNKS)
    draws = lambda: draw(rng, net, groups * chunk)
    kernels = lambda params: np.asarray(kernel_of(params, inputs), float).reshape(-1, groups, chunk)
    plain = np.concatenate([kernels(draws()) for _ in range(CHUNKS)], axis=-1)
    changed = [kernels(change(rng, draws())) for change in changes]
    return np.stack([relative_spread(theta) for theta in (plain, *changed)])
