"""Inputs and weights of many random convolutional networks, and how much their kernels vary.

Two claims on convolutional networks observe by these.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from steepest import kit
from steepest.kernels import empirical_ntk
from steepest.nn.data import digits
from steepest.nn.layers import LayeredNetwork, conv, dense, flatten, global_pool, network
from steepest.nn.types import Params, Values

SIDE = 8  # pixels of a digit
KINDS = ("as they are", "centred")
CHUNKS = 4  # in which networks are drawn, so that not all weights are there at once


class Setting(NamedTuple):
    """Some digits, as they are and each less its mean, ``(2, images, 8, 8, 1)``."""

    images: Values

    @classmethod
    def draw(cls, rng: np.random.Generator, count: int) -> "Setting":
        """Draw digits."""
        plain = images(rng, count)
        return cls(np.stack([plain, plain - plain.mean((1, 2, 3), keepdims=True)]))


def positions_differ(correlations: tuple[float, ...]) -> kit.Hypothesis:
    """Assume that no signal has positions that are all equal."""
    note = "positions that are all equal are one position: lower --correlations"
    return kit.assume("largest correlation of positions", max(correlations), "<", 1.0, note)


def build(
    channels: int,
    shape: tuple[int, ...],
    *,
    is_pooled: bool,
    layers: int = 1,
    is_shared: bool = True,
) -> LayeredNetwork:
    """Return convolutions over windows of three that close in a circle, with ReLU, and behind them a dense layer.

    Args:
        channels: of each convolution.
        shape: of an input.
        is_pooled: whether the dense layer reads means over positions, or each position.
        layers: convolutions.
        is_shared: whether filters are the same at all positions.
    """
    hidden = [conv(channels, 3, padding="circular", shared=is_shared), "relu"] * layers
    head = global_pool() if is_pooled else flatten()
    return network(*hidden, head, dense(1), shape=shape, parameterized="ntk", bias=False)


def signals(positions: int, correlations: tuple[float, ...]) -> Values:
    """Return signals whose pixels have length one and all have one correlation, ``(ρ, P, P + 1)``."""
    apart = np.eye(positions, positions + 1)
    shared = np.eye(positions + 1)[-1]
    # √ρ e_0 + √(1 − ρ) e_p: length one, and ⟨pixel, pixel'⟩ = ρ
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


def in_chunks(
    kernels: Callable[[Params], jax.Array],
    rng: np.random.Generator,
    net: LayeredNetwork,
    groups: int,
    networks: int,
    chunks: int = CHUNKS,
) -> Values:
    """Draw networks in parts of a quarter; return their kernels, ``(inputs, groups, networks)``.

    Args:
        kernels: of many networks, ``(networks, inputs)``.
        rng: of the weights.
        net: the architecture.
        groups: how many.
        networks: of a group.
        chunks: how many quarters are drawn.
    """
    chunk = max(2, networks // CHUNKS)
    parts = [
        np.asarray(kernels(draw(rng, net, groups * chunk)), float).reshape(groups, chunk, -1)
        for _ in range(chunks)
    ]
    return np.moveaxis(np.concatenate(parts, axis=1), -1, 0)


def kernels_at(net: LayeredNetwork, inputs: Values) -> Callable[[Params], jax.Array]:
    """Return what maps many networks to their Θ(x, x) at each input, ``(networks, inputs)``."""

    def at(params: Params, x: jax.Array) -> jax.Array:
        return empirical_ntk(net, params, x[None])[0, 0]

    kernel_of = kit.compiled(jax.vmap(jax.vmap(at, (None, 0)), (0, None)))
    return lambda params: kernel_of(params, inputs)


def relative_spread(theta: Values) -> Values:
    """Return the relative variance in each group, ``(inputs, groups)``, of ``(inputs, groups, networks)``.

    The mean is that of all networks: those of small groups would make the ratio too large.
    """
    mean = theta.mean((1, 2), keepdims=True)
    return ((theta - mean) ** 2).mean(-1) / mean[..., 0] ** 2
