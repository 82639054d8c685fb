"""Tangent kernels of finite convolutional networks, and of such whose filters have one random factor."""

from collections.abc import Callable, Sequence

import numpy as np

from steepest.claims.kernels._convolution_draws import in_chunks, kernels_at, relative_spread
from steepest.nn.layers import LayeredNetwork
from steepest.nn.types import Params, Values

HEADS = ("pooled", "flattened")
Change = Callable[[np.random.Generator, Params], Params]


def with_one_scale(rng: np.random.Generator, params: Params) -> Params:
    """Return networks whose filters all have one random factor, the same in a network."""
    first, *behind = params
    # all channels of a network share a factor: they are no longer independent
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
    kernels = kernels_at(net, inputs)
    plain = in_chunks(kernels, rng, net, groups, networks)

    def changed(change: Change) -> Values:
        return in_chunks(lambda p: kernels(change(rng, p)), rng, net, groups, networks, chunks=1)

    return np.stack([relative_spread(theta) for theta in (plain, *map(changed, changes))])
