"""One small network in both frameworks, with the same weights."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np

from steepest.nn.networks import mlp
from steepest.nn.types import Network

WIDTHS = (4, 6, 5, 3)


def data(n=11, seed=0):
    """Inputs and class numbers."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, WIDTHS[0])), rng.integers(0, WIDTHS[-1], n)


def cross_entropy(outputs, targets):
    """Mean over the examples."""
    picked = jnp.take_along_axis(jax.nn.log_softmax(outputs), targets[:, None], axis=1)
    return -picked.mean()


def of_jax() -> tuple[Network, list]:
    """A tanh network and weights in float64."""
    network = mlp(WIDTHS, "tanh", c_w=1.5, c_b=0.3)
    with jax.enable_x64(True):
        params = network.init(jax.random.key(1))
    return network, jax.tree.map(np.asarray, params)


def of_torch():
    """The same network, written by hand."""
    import torch
    from torch import nn

    model = nn.Sequential(
        nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)
    ).double()
    with torch.no_grad():
        for layer, weights in zip(model[::2], of_jax()[1], strict=True):
            layer.weight.copy_(torch.as_tensor(np.array(weights["w"])))
            layer.bias.copy_(torch.as_tensor(np.array(weights["b"])))
    return model


def in_torch_order(vector):
    """A flat vector of the JAX network, whose biases come first in each layer, in the order of torch."""
    parts = []
    start = 0
    for width, following in pairwise(WIDTHS):
        bias = vector[start : start + following]
        matrix = vector[start + following : start + following * (width + 1)]
        parts += [matrix, bias]
        start += following * (width + 1)
    return np.concatenate(parts)
