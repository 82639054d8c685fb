"""Follow a piecewise linear network along a segment: exactly where its units change their sign."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.geometry._layers import Layer, check_layers
from steepest.linalg import sequential


class Trace(NamedTuple):
    """A network along a polyline, between whose places everything is linear.

    Attributes:
        places: where a unit has its corner, and the vertices; ``i + s`` on the way s from vertex i to vertex i + 1,
            increasing, shape ``(k,)``.
        outputs: of the last layer at the places, before its activation, shape ``(k, n_L)``.
        crossings: sign changes of the units of each layer that have a corner, shape ``(L,)``.
    """

    places: Float[ndarray, " k"]
    outputs: Float[ndarray, "k out"]
    crossings: Int[ndarray, " L"]


@checked
@sequential
def trace(layers: Sequence[Layer], vertices: ArrayLike) -> Trace:
    """Follow a network along the polyline of these vertices, exactly.

    Between the corners that the layers below make, pre-activations are linear along the polyline, so that their zeros
    are known; they are the next corners. A zero counts where the sign differs on its two sides: a unit that only
    touches zero has none. Equal places stay apart, each with its unit.

    Args:
        layers: the network.
        vertices: shape ``(v, d)``, at least two; a segment has two.

    Raises:
        UserError: if there are fewer than two vertices, or they do not fit the network.

    >>> from steepest.geometry import relu_layers
    >>> tent = relu_layers([[[2.0], [4.0]], [[1.0, -1.0]]], [[0.0, -2.0], [0.0]])
    >>> along = trace(tent, [[0.0], [1.0]])
    >>> along.places.tolist(), along.outputs.ravel().tolist(), along.crossings.tolist()
    ([0.0, 0.5, 1.0], [0.0, 1.0, 0.0], [1, 0])
    """
    check_layers(layers)
    h = np.asarray(vertices, float)
    inputs = layers[0].matrix.shape[1]
    if h.ndim != 2 or len(h) < 2 or h.shape[1] != inputs:
        raise UserError(
            f"a polyline needs two vertices or more of the network's {inputs} inputs, got shape {h.shape}"
        )
    if not np.isfinite(h).all():
        raise UserError("the vertices of a polyline must be finite numbers")
    places = np.arange(len(h), dtype=float)
    z = h
    crossings = []
    for layer in layers:
        places, z, count = _with_zeros(places, h @ layer.matrix.T + layer.bias, layer.kinked)
        crossings.append(count)
        h = layer.activate(z)
    return Trace(places, z, np.array(crossings))


@checked
def crossings(layers: Sequence[Layer], ends: ArrayLike) -> Int[ndarray, " L"]:
    """Count the sign changes of each layer's units on a segment, or a polyline, exactly.

    Args:
        layers: the network; units without a corner do not count.
        ends: shape ``(2, d)``, or more vertices.

    Raises:
        UserError: as :func:`trace`.

    >>> from steepest.geometry import relu_layers
    >>> tent = [[[2.0], [4.0]], [[1.0, -1.0]]]
    >>> inner = [[[2.0], [4.0]], [[2.0, -2.0], [4.0, -4.0]], [[1.0, -1.0]]]  # the tent of the tent
    >>> crossings(relu_layers(inner, [[0.0, -2.0], [0.0, -2.0], [0.0]]), [[0.1], [0.9]]).tolist()
    [1, 2, 0]
    """
    return trace(layers, ends).crossings


@checked
def homogeneous(layers: Sequence[Layer]) -> list[Layer]:
    """Turn biases into weights of one more input τ, which every layer passes on: at (x, τ) the outputs are τ f(x/τ).

    For activations with corners at zero alone. The pieces of f are those of this network on the half space τ > 0, and τ
    = 0 are the directions at infinity: the whole line is the polyline (−1, 0), (0, 1), (1, 0).

    Returns:
        layers of which each has one unit more, the last, without a corner; the last of the outputs is τ.

    >>> from steepest.geometry import relu_layers
    >>> far = relu_layers([[[1.0], [1.0]], [[1.0, 1.0]]], [[-1e9, 1e9], [0.0]])  # corners at ±10⁹
    >>> crossings(homogeneous(far), [[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]).tolist()
    [2, 0]
    """
    check_layers(layers)
    lifted = []
    for layer in layers:
        out, inp = layer.matrix.shape
        matrix = np.zeros((out + 1, inp + 1))
        matrix[:-1, :-1] = layer.matrix
        matrix[:-1, -1] = layer.bias  # W x + b τ, homogeneous of degree one in (x, τ)
        matrix[-1, -1] = 1.0
        lifted.append(
            Layer(
                matrix, np.zeros(out + 1), np.append(layer.left, 1.0), np.append(layer.right, 1.0)
            )
        )
    return lifted


def _with_zeros(
    places: Float[ndarray, " k"], z: Float[ndarray, "k n"], kinked: NDArray
) -> tuple[NDArray, NDArray, int]:
    """Add to the places the sign changes of the units with a corner; return z at all of them, and how many are new."""
    below = z[:-1]
    above = z[1:]
    piece, unit = np.nonzero((np.sign(below) * np.sign(above) < 0) & kinked)
    # z_below + share (z_above − z_below) = 0
    share = below[piece, unit] / (below[piece, unit] - above[piece, unit])
    # all units at the new place, linearly between its neighbours
    added = below[piece] + share[:, None] * (above[piece] - below[piece])
    added[np.arange(len(unit)), unit] = 0.0  # exactly, so that no sign is left to rounding
    joined = np.concatenate([places, places[piece] + share * (places[piece + 1] - places[piece])])
    order = np.argsort(joined, kind="stable")
    return joined[order], np.concatenate([z, added])[order], len(unit)
