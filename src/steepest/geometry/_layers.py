"""Piecewise linear networks as a list of layers in NumPy, which everything in this room cuts up."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from steepest.core.errors import UserError
from steepest.core.signatures import checked


@dataclass(frozen=True)
class Layer:
    """One layer h ↦ σ(W h + b), where every unit has its own slope on either side of zero.

    A unit whose slopes are equal has no corner: it passes its value on, so that a residual block is two layers, one
    that carries its input beside the hidden units and one that adds them up.

    Attributes:
        matrix: W, shape ``(out, inp)``.
        bias: b, shape ``(out,)``.
        left: slope of each unit where its pre-activation is below zero, shape ``(out,)``; 0 for ReLU.
        right: slope of each unit above zero, shape ``(out,)``; 1 for ReLU.

    Raises:
        UserError: if the shapes disagree or a number is not finite.
    """

    matrix: Float[ndarray, "out inp"]
    bias: Float[ndarray, " out"]
    left: Float[ndarray, " out"]
    right: Float[ndarray, " out"]

    def __post_init__(self) -> None:
        matrix = np.asarray(self.matrix, float)
        if matrix.ndim != 2 or 0 in matrix.shape:
            raise UserError(
                f"the matrix of a layer must have shape (out, inp) with at least one of each, got {matrix.shape}"
            )
        object.__setattr__(self, "matrix", matrix)
        for name in ("bias", "left", "right"):
            given = np.asarray(getattr(self, name), float)
            if given.ndim > 1 or (given.ndim == 1 and len(given) != len(matrix)):
                raise UserError(
                    f"{name} must be one number or one for each of the layer's {len(matrix)} units, got shape "
                    f"{given.shape}"
                )
            each_unit = given.copy() if given.ndim else np.full(len(matrix), float(given))
            object.__setattr__(self, name, each_unit)
        if not all(
            np.isfinite(value).all() for value in (matrix, self.bias, self.left, self.right)
        ):
            raise UserError("weights, biases and slopes of a layer must be finite numbers")

    @property
    def kinked(self) -> NDArray:
        """Return which units have a corner at zero, shape ``(out,)``."""
        return self.left != self.right

    def activate(self, z: NDArray) -> NDArray:
        """Return σ(z) for pre-activations ``(..., out)``."""
        return np.where(z > 0, self.right * z, self.left * z)


@checked
def relu_layers(
    weights: Sequence[ArrayLike], biases: Sequence[ArrayLike | None] | None = None
) -> list[Layer]:
    """Build a ReLU network of these weights ``(n_l, n_{l-1})`` and biases ``(n_l,)``, linear in its last layer.

    Raises:
        UserError: if the shapes do not fit one another.

    >>> tent = relu_layers([[[2.0], [4.0]], [[1.0, -1.0]]], [[0.0, -2.0], [0.0]])
    >>> preactivations(tent, np.array([[0.25], [0.5], [1.0]]))[-1].ravel().tolist()
    [0.5, 1.0, 0.0]
    """
    matrices = [np.asarray(matrix, float) for matrix in weights]
    offsets = [None] * len(matrices) if biases is None else list(biases)
    if not matrices or len(offsets) != len(matrices):
        raise UserError(
            f"a network needs as many biases as matrices, and at least one, got {len(matrices)} and {len(offsets)}"
        )
    layers = []
    for place, (matrix, offset) in enumerate(zip(matrices, offsets, strict=True)):
        last = place == len(matrices) - 1
        bias = np.zeros(len(matrix)) if offset is None else np.asarray(offset, float)
        layers.append(Layer(matrix, bias, np.full(len(matrix), float(last)), np.ones(len(matrix))))
    check_layers(layers)
    return layers


def check_layers(layers: Sequence[Layer]) -> None:
    """Check that each layer reads as many numbers as the one before it writes.

    Raises:
        UserError: if one does not, or there is none.
    """
    if not layers:
        raise UserError("a network needs at least one layer, got none")
    for place, (below, above) in enumerate(itertools.pairwise(layers)):
        if above.matrix.shape[1] != len(below.matrix):
            raise UserError(
                f"layer {place + 2} must read the {len(below.matrix)} units of the layer before it, and its matrix "
                f"has shape {above.matrix.shape}"
            )


@checked
def preactivations(layers: Sequence[Layer], x: Float[ndarray, "m d"]) -> list[NDArray]:
    """Return ``W h + b`` of every layer at inputs ``(m, d)``, shapes ``(m, n_l)``; the last is the output."""
    h = np.asarray(x, float)
    written = []
    for layer in layers:
        written.append(h @ layer.matrix.T + layer.bias)
        h = layer.activate(written[-1])
    return written
