"""The kernels of an infinitely wide network for a list of pairs of inputs, straight from the recursion."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.kernels.duals._expectations import Vector, pair_moments, single_moments
from steepest.nn.activations import jumps
from steepest.nn.networks import LayerLimit, Limit
from steepest.nn.types import Values


class Kernels(NamedTuple):
    """The covariance of the outputs at initialization (NNGP) and the tangent kernel (NTK), in units of the output."""

    nngp: Values
    ntk: Values


class PairKernels(NamedTuple):
    """Kernels of pairs of inputs, and of each input with itself."""

    pairs: Kernels
    """Shape ``(t,)`` each."""
    singles: Kernels
    """Shape ``(u,)`` each."""
    error: float
    """Bound of the relative error of the pairs, from the errors of the expectations, to first order."""


class SignalPrediction(NamedTuple):
    """Predictions of the limit for each input by itself."""

    variance: NDArray[np.float64]
    """Of the pre-activations, first to last layer, shape ``(L + 1, n)``."""
    chi_perpendicular: NDArray[np.float64]
    """``r² + C_W E σ'²`` from each hidden layer to the next, shape ``(L, n)``: growth of small angles and gradients."""
    ntk: NDArray[np.float64]
    """Tangent kernel of each input with itself, shape ``(n,)``; NaN when σ jumps."""


def predict_signal(limit: Limit, squares: Vector) -> SignalPrediction:
    """Compute the diagonal of the recursion of ``Limit``, layer by layer, for these ``‖x‖²/n_0``, shape ``(n,)``.

    >>> from steepest.nn.networks import mlp
    >>> signal = predict_signal(mlp((2, 10, 10, 1), "relu", c_w=2.0).limit(), np.array([1.0]))
    >>> signal.variance.ravel().round(9).tolist(), signal.chi_perpendicular.ravel().round(9).tolist()
    ([2.0, 2.0, 2.0], [1.0, 1.0])
    """
    start, *others = limit.layers
    squares = np.asarray(squares, float)
    k = start.c_b + start.c_w * squares
    theta = start.t_b + start.t_w * squares
    path = [k]
    slopes = np.empty((limit.depth, len(k)))
    for i, layer in enumerate(others, 1):
        scale = k if limit.normalized else np.ones_like(k)
        value, slope = single_moments(limit.activation, k / scale)
        slopes[i - 1] = limit.kept(i) + layer.c_w * slope / scale
        theta = layer.t_b + layer.t_w * value + slopes[i - 1] * theta
        k = limit.kept(i) * k + layer.c_b + layer.c_w * value
        path.append(k)
    return SignalPrediction(np.stack(path), slopes, theta)


def pair_kernels(
    limit: Limit,
    squares: Vector,
    first: NDArray,
    second: NDArray,
    angles: Vector,
    tolerance: float = 1e-12,
) -> PairKernels:
    """Compute NNGP and NTK of the pairs ``(first, second)`` of u inputs, by the recursion of ``Limit``.

    Args:
        limit: the network.
        squares: ``‖x‖²/n_0`` of the inputs, shape ``(u,)``.
        first: index of the first input of each pair, shape ``(t,)``.
        second: index of the second.
        angles: between the two inputs, from 0 to π, shape ``(t,)``: unlike <x, x'> they keep their digits near 0.
        tolerance: of the expectations, relative to those of equal inputs.

    Returns:
        ``PairKernels``. The tangent kernel is NaN when σ jumps.

    >>> from steepest.nn.networks import mlp
    >>> net = mlp((3, 100, 1), "relu", parameterized="ntk", c_w=2.0, bias=False)
    >>> kernels = pair_kernels(net.limit(), np.ones(1), np.array([0]), np.array([0]), np.zeros(1))
    >>> round(float(kernels.pairs.nngp[0]), 9), round(float(kernels.pairs.ntk[0]), 9)
    (2.0, 4.0)
    """
    start, *others = limit.layers
    lengths = np.sqrt(squares)
    path = predict_signal(limit, squares)
    products = lengths[first] * lengths[second] * np.cos(angles)
    k = start.c_b + start.c_w * products
    theta = start.t_b + start.t_w * products
    root = _first_root(start, lengths[first], lengths[second], angles)
    error = 0.0
    error_theta = 0.0
    smooth = not any(value for _, value, _ in jumps(limit.activation))
    for i, layer in enumerate(others, 1):
        variances = path.variance[i - 1]
        kept = limit.kept(i)
        scale = variances if limit.normalized else np.ones_like(variances)
        both = np.sqrt(scale[first] * scale[second])
        of_two = pair_moments(
            limit.activation, variances / scale, first, second, k / both, root / both, tolerance
        )
        if not smooth:  # the derivative of a jump is infinite at perfect correlation: there is no tangent kernel
            of_two = of_two._replace(slope=0 * of_two.value, slope_error=0 * of_two.value)
        slope = layer.c_w * of_two.slope / both
        error_theta = (kept + np.abs(slope)) * error_theta + layer.t_w * of_two.value_error
        error_theta = error_theta + layer.c_w * of_two.slope_error / both * np.abs(theta)
        error = (kept + np.abs(slope)) * error + layer.c_w * of_two.value_error
        theta = kept * theta + layer.t_b + layer.t_w * of_two.value + slope * theta
        k = kept * k + layer.c_b + layer.c_w * of_two.value
        root = _root(path.variance[i][first], path.variance[i][second], k)
    variances = path.variance[-1]
    tangents = path.ntk
    if not smooth:
        theta = np.full_like(theta, np.nan)
    if not (variances > 0).all():
        raise UserError(
            "a kernel is zero: no signal reaches the output; check c_w, c_b and rows of zeros in x"
        )
    worst = np.max(error / np.sqrt(variances[first] * variances[second]), initial=0.0)
    if smooth:
        worst = max(
            worst, np.max(error_theta / np.sqrt(tangents[first] * tangents[second]), initial=0.0)
        )
    return PairKernels(Kernels(k, theta), Kernels(variances, tangents), float(worst))


def _first_root(layer: LayerLimit, one: Vector, two: Vector, angles: Vector) -> Vector:
    """Return ``√(K_αα K_ββ − K_αβ²)`` in the first layer as a sum of positive terms: accurate at every angle."""
    distance = (one - two) ** 2 + 4 * one * two * np.sin(angles / 2) ** 2
    return np.sqrt((layer.c_w * one * two * np.sin(angles)) ** 2 + layer.c_b * layer.c_w * distance)


def _root(a: Vector, b: Vector, c: Vector) -> Vector:
    """Return the same in a later layer; zero where it is at the rounding of K, so that equal stays equal."""
    square = a * b - c**2
    return np.sqrt(np.where(square > 16 * np.finfo(float).eps * a * b, square, 0.0))
