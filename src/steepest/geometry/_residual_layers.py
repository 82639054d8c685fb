"""Residual networks as layers: units without a corner carry the signal past each block."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.geometry._layers import Layer, check_layers


@checked
def residual_layers(
    inner: Float[ndarray, "blocks h d"],
    bias: Float[ndarray, "blocks h"],
    outer: Float[ndarray, "blocks d h"],
    readout: Float[ndarray, " d"],
    offset: float = 0.0,
) -> list[Layer]:
    """Write ``x ← x + V σ(U x + b)``, block by block, then ``⟨w, x⟩ + c``, as layers; σ is ReLU.

    A block's layer has its hidden units and d units without a corner, which carry x; the next layer's matrix adds up.

    Raises:
        UserError: if the shapes do not fit one another.

    >>> up = residual_layers([[[1.0]]], [[0.0]], [[[-2.0]]], [1.0])  # x − 2 σ(x) = −|x|
    >>> from steepest.geometry import preactivations
    >>> preactivations(up, np.array([[3.0], [-2.0]]))[-1].ravel().tolist()
    [-3.0, -2.0]
    """
    inner = np.asarray(inner, float)
    outer = np.asarray(outer, float)
    bias = np.asarray(bias, float)
    readout = np.asarray(readout, float)
    if inner.ndim != 3 or outer.shape != inner.transpose(0, 2, 1).shape:
        raise UserError(
            "a residual network has matrices U (blocks, h, d) and V (blocks, d, h), got shapes "
            f"{inner.shape} and {outer.shape}"
        )
    blocks, hidden, d = inner.shape
    if bias.shape != (blocks, hidden) or readout.shape != (d,):
        raise UserError(
            f"biases must have shape {(blocks, hidden)} and the readout {(d,)}, got {bias.shape} and {readout.shape}"
        )
    # slopes below zero: 0 of ReLU, 1 of what is carried
    slopes = np.append(np.zeros(hidden), np.ones(d))
    add_up = np.eye(d)  # reads the signal off what the layer before wrote
    layers = []
    for block in range(blocks):
        matrix = np.vstack([inner[block], np.eye(d)]) @ add_up
        layers.append(
            Layer(matrix, np.append(bias[block], np.zeros(d)), slopes, np.ones(hidden + d))
        )
        add_up = np.hstack([outer[block], np.eye(d)])  # V σ + x, read by the next layer
    layers.append(Layer(readout[None] @ add_up, np.array([float(offset)]), np.ones(1), np.ones(1)))
    check_layers(layers)
    return layers
