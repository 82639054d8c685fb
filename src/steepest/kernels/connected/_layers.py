"""The kernels of an infinitely wide network for a list of pairs of inputs, straight from the recursion."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.kernels._arguments import as_floats, check_limit_given
from steepest.kernels.connected._errors import ROUNDING, Errors, Pair, movement
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
    """Bound of the error of both kernels of pairs, relative to the root of the product of the inputs' own.

    The errors of expectations are followed through the layers, with how an error of K moves the expectations behind it,
    and the rounding of angles behind the first layer. Kernels of each input with itself count as exact, as they are
    computed without pairs.
    """
    nngp_error: float
    """Bound of the error of the NNGP kernel, which the rounding of angles at corners does not touch."""


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
    squares = _checked_squares(limit, squares)
    start, *others = limit.layers
    k = start.c_b + start.c_w * squares
    theta = start.t_b + start.t_w * squares
    path = [k]
    slopes = np.empty((limit.depth, len(k)))
    for i, layer in enumerate(others, 1):
        # layer normalization divides z by √K, so that σ sees a variance of one
        scale = k if limit.normalized else np.ones_like(k)
        value, slope = single_moments(limit.activation, k / scale)
        # χ⊥ = r² + C_W E σ'²; with normalization the chain rule adds the factor 1/K
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
        ``PairKernels``. The tangent kernel is NaN when σ jumps. Where an input gives no signal σ' is its value at zero,
        as it is in finite networks.

    Raises:
        UserError: no signal reaches the output; layer normalization of an input without signal.

    >>> from steepest.nn.networks import mlp
    >>> net = mlp((3, 100, 1), "relu", parameterized="ntk", c_w=2.0, bias=False)
    >>> kernels = pair_kernels(net.limit(), np.ones(1), np.array([0]), np.array([0]), np.zeros(1))
    >>> round(float(kernels.pairs.nngp[0]), 9), round(float(kernels.pairs.ntk[0]), 9)
    (2.0, 4.0)
    """
    squares = _checked_squares(limit, squares)
    first, second, angles = _checked_pairs(len(squares), first, second, angles)
    start, *others = limit.layers
    lengths = np.sqrt(squares)
    path = predict_signal(limit, squares)
    # ⟨x, x'⟩/n_0 of each pair, (t,)
    products = lengths[first] * lengths[second] * np.cos(angles)
    k = start.c_b + start.c_w * products
    theta = start.t_b + start.t_w * products
    root = _first_root(start, lengths[first], lengths[second], angles)
    errors = Errors.begin(len(k))
    equal = (angles == 0) & (squares[first] == squares[second])
    smooth = not any(value for _, value, _ in jumps(limit.activation))
    for i, layer in enumerate(others, 1):
        variances = path.variance[i - 1]
        kept = limit.kept(i)
        scale = variances if limit.normalized else np.ones_like(variances)
        both = np.sqrt(scale)[first] * np.sqrt(scale)[second]
        of_two = pair_moments(
            limit.activation, variances / scale, first, second, k / both, root / both, tolerance
        )
        if not smooth:  # the derivative of a jump is infinite at perfect correlation: there is no tangent kernel
            of_two = of_two._replace(slope=0 * of_two.value, slope_error=0 * of_two.value)
        slope = layer.c_w * of_two.slope / both
        # what σ sees: of unit variance behind a normalization
        seen = variances / scale
        pair = Pair(seen[first], seen[second], k / both, root / both)
        # two equal signals stay equal, and angles of the first layer have all their digits
        exact = (equal & (root == 0)) | (i == 1)
        off = np.where(exact, 0.0, errors.k / both + ROUNDING * pair.scale)
        moved = movement(limit.activation, pair, of_two, off, tolerance)
        errors = errors.behind(layer, kept, both, moved, of_two.slope, theta)
        theta = kept * theta + layer.t_b + layer.t_w * of_two.value + slope * theta
        k = kept * k + layer.c_b + layer.c_w * of_two.value
        root = _root(path.variance[i][first], path.variance[i][second], k)
    variances = path.variance[-1]
    tangents = path.ntk
    if not smooth:
        theta = np.full_like(theta, np.nan)
    if not ((variances > 0) | (squares == 0)).all():
        raise UserError("a kernel is zero: no signal reaches the output; check c_w and c_b")
    of_nngp = _largest(errors.k, np.sqrt(variances)[first] * np.sqrt(variances)[second])
    of_ntk = (
        _largest(errors.theta, np.sqrt(tangents)[first] * np.sqrt(tangents)[second])
        if smooth
        else 0.0
    )
    singles = Kernels(variances, tangents)
    return PairKernels(Kernels(k, theta), singles, max(of_nngp, of_ntk), of_nngp)


def _checked_squares(limit: Limit, squares: Vector) -> Vector:
    check_limit_given(limit)
    if not isinstance(limit, Limit):
        raise UserError("expected the limit of mlp(...), got that of network(...); take gram")
    squares = as_floats("squares", squares).astype(float)
    if squares.ndim != 1 or not squares.size or not (np.isfinite(squares) & (squares >= 0)).all():
        raise UserError(
            f"squares are finite numbers ‖x‖²/n_0 ≥ 0, one an input, got shape {squares.shape}"
        )
    return squares


def _checked_pairs(
    count: int, first: NDArray, second: NDArray, angles: Vector
) -> tuple[NDArray, NDArray, Vector]:
    first, second, angles = (
        as_floats(name, values)
        for name, values in (("first", first), ("second", second), ("angles", angles))
    )
    if first.ndim != 1 or first.shape != second.shape or first.shape != angles.shape:
        raise UserError(
            f"pairs need vectors of one length, got shapes {first.shape}, {second.shape} and {angles.shape}"
        )
    indices = np.stack([first, second])
    if not ((indices == np.round(indices)) & (indices >= 0) & (indices < count)).all():
        raise UserError(f"pairs are indices of inputs from 0 to {count - 1}, whole numbers")
    if not ((angles >= 0) & (angles <= np.pi * (1 + 1e-9))).all():
        raise UserError("angles between inputs go from 0 to π")
    return first.astype(int), second.astype(int), angles


def _largest(errors: Vector, roots: Vector) -> float:
    """Return the largest error over the root of a product of diagonals, of those that are not zero."""
    return float(
        np.max(np.divide(errors, roots, out=np.zeros_like(roots), where=roots > 0), initial=0.0)
    )


def _first_root(layer: LayerLimit, one: Vector, two: Vector, angles: Vector) -> Vector:
    """Return ``√(K_αα K_ββ − K_αβ²)`` in the first layer as a sum of positive terms: accurate at every angle."""
    # ‖x − x'‖²/n_0 with 1 − cos θ = 2 sin²(θ/2)
    distance = (one - two) ** 2 + 4 * one * two * np.sin(angles / 2) ** 2
    return np.hypot(
        layer.c_w * one * two * np.sin(angles), np.sqrt(layer.c_b * layer.c_w * distance)
    )


def _root(a: Vector, b: Vector, c: Vector) -> Vector:
    """Return the same in a later layer; zero where it is at the rounding of K, so that equal stays equal."""
    scale = np.sqrt(a) * np.sqrt(b)  # as products of large variances would overflow
    rho = np.divide(c, scale, out=np.zeros_like(scale), where=scale > 0)
    gap = (1 - rho) * (1 + rho)
    return scale * np.sqrt(np.where(gap > 16 * np.finfo(float).eps, gap, 0.0))
