"""Inputs and weights of many random convolutional networks, and how much their kernels vary.

Two claims on convolutional networks observe by these.
"""

import jax
import numpy as np

from steepest.nn.data import digits
from steepest.nn.layers import LayeredNetwork
from steepest.nn.types import Params, Values

SIDE = 8  # pixels of a digit


def signals(positions: int, correlations: tuple[float, ...]) -> Values:
    """Return signals whose pixels have length one and all have one correlation, ``(ρ, P, P + 1)``."""
    apart = np.eye(positions, positions + 1)
    shared = np.eye(positions + 1)[-1]
    pixels = [rho**0.5 * shared + (1 - rho) ** 0.5 * apart for rho in correlations]
    return np.array(pixels, np.float32)


def images(rng: np.random.Generator, count: int) -> Values:
    """Return digits, ``(count, 8, 8, 1)``."""
    pixels = np.asarray(digits().x, np.float32)
    return pixels[rng.choice(len(pixels), count, replace=False)].reshape(count, SIDE, SIDE, 1)


def draw(rng: np.random.Generator, net: LayeredNetwork, count: int) -> Params:
    """Draw all weights of many networks, each of variance one, as in the NTK parameterization."""
    shapes = jax.eval_shape(net.init, jax.random.key(0))
    normal = lambda leaf: rng.standard_normal((count, *leaf.shape), np.float32)
    return jax.tree.map(normal, shapes)


def relative_spread(theta: Values) -> Values:
    """Return the relative variance in each group, ``(inputs, groups)``, of ``(inputs, groups, networks)``.

    The mean is that of all networks: those of small groups would make the ratio too large.
    """
    mean = theta.mean((1, 2), keepdims=True)
    return ((theta - mean) ** 2).mean(-1) / mean[..., 0] ** 2
