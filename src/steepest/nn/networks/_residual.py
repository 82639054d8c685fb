"""Residual networks of blocks x ← x + V σ(U x + b), and the one that folds the plane."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest.core.errors import UserError
from steepest.core.fields import Count
from steepest.core.signatures import checked
from steepest.nn.types import Key, Network, Values


class ResidualBlocks(NamedTuple):
    """Parameters of a residual network.

    Attributes:
        inner: U of each block, shape ``(blocks, hidden, d)``.
        bias: b of each block, shape ``(blocks, hidden)``.
        outer: V of each block, shape ``(blocks, d, hidden)``.
        readout: w of the output ⟨w, x⟩ + c, shape ``(d,)``.
        offset: c, a number.
    """

    inner: Values
    bias: Values
    outer: Values
    readout: Values
    offset: Values


@checked
def residual(d: Count, blocks: Count, hidden: Count = 1) -> Network:
    """Build a ReLU network of residual blocks with a scalar output: ``x ← x + V σ(U x + b)``, then ``⟨w, x⟩ + c``.

    The signal keeps its d dimensions through the blocks, and each block bends it along ``hidden`` hyperplanes: one
    hidden neuron a block suffices to approximate any integrable function (Lin and Jegelka 2018).

    Args:
        d: inputs.
        blocks: how many.
        hidden: hidden neurons of each.

    Raises:
        UserError: for numbers below one.

    >>> net = residual(2, blocks=3)
    >>> params = net.init(jax.random.key(0))
    >>> net.apply(params, jnp.ones((5, 2))).shape, params.outer.shape
    ((5,), (3, 2, 1))
    """
    if min(d, blocks, hidden) < 1:
        raise UserError(
            f"a residual network needs inputs, blocks and hidden neurons, got {d}, {blocks}, {hidden}"
        )

    def init(key: Key) -> ResidualBlocks:
        for_inner, for_bias, for_outer, for_readout = jax.random.split(key, 4)
        return ResidualBlocks(
            jax.random.normal(for_inner, (blocks, hidden, d)) / d**0.5,
            jax.random.normal(for_bias, (blocks, hidden)),
            # B independent branches of variance 1/B add a variance of order one
            jax.random.normal(for_outer, (blocks, d, hidden)) / (hidden * blocks) ** 0.5,
            jax.random.normal(for_readout, (d,)) / d**0.5,
            jnp.zeros(()),
        )

    return Network(init, residual_outputs, f"residual network of {blocks} blocks")


@checked
def residual_outputs(params: ResidualBlocks, x: Float[Array, "... d"]) -> Float[Array, "..."]:
    """Return the outputs of a residual network of these parameters."""

    def block(h: Array, weights: tuple[Array, Array, Array]) -> tuple[Array, None]:
        inner, bias, outer = weights
        return h + jax.nn.relu(h @ inner.T + bias) @ outer.T, None

    layers = (params.inner, params.bias, params.outer)
    h, _ = jax.lax.scan(block, jnp.asarray(x), layers)
    return h @ params.readout + params.offset


@checked
def folding(folds: int) -> ResidualBlocks:
    """Return the residual network of one hidden neuron a block that folds the plane to a wedge and reads ‖x‖ off it.

    Block k reflects the half plane beyond the angle π/2^{k−1}: ``x ← x − 2 σ(u·x) u``. After m folds all of the plane
    lies within the angle π/2^m of a unit vector e, so that

        ``(1 − cos(π/2^m)) ‖x‖ ≥ ‖x‖ − ⟨e, x_m⟩ ≥ 0``,

    with equality on the left on the wedge's edges: an error of about ``(π²/2) 4^{−m}`` with 5 m parameters.

    Raises:
        UserError: for a negative number of folds.

    >>> x = jnp.array([[0.6, -0.8], [-1.0, 0.0]])
    >>> [round(float(loss), 4) for loss in 1 - residual_outputs(folding(5), x)]  # at most 1 − cos(π/32) = 0.0048
    [0.001, 0.0048]
    """
    if folds < 0:
        raise UserError(f"folds are a number from zero on, got {folds}")
    angles = math.pi / 2.0 ** np.arange(folds)
    # the first fold turns the lower half plane up: beyond the angle π, normal (0, −1)
    normals = np.stack([-np.sin(angles), np.cos(angles)], 1)
    # the wedge left by m folds goes from 0 to π/2^{m−1}; e is in its middle
    middle = math.pi / 2**folds
    return ResidualBlocks(
        normals[:, None],
        np.zeros((folds, 1)),
        -2 * normals[:, :, None],
        np.array([math.cos(middle), math.sin(middle)]),
        np.zeros(()),
    )
