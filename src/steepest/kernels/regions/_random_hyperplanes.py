"""Count where the neurons of random ReLU networks vanish, on average: like random hyperplanes, one scale a layer.

*The 1-jet.* Let ``z^{l+1} = b + W σ(z^l)`` with ``W ~ N(0, C_w/n_l)``, ``b ~ N(0, C_b)``. The pair (z, ∇z) of a neuron
has the law of its negative, so that ``E σ(z)² = E z²/2``, ``E σ(z) σ'(z) ∇z = E z∇z/2`` and ``E σ'(z)² ∇z∇zᵀ = E
∇z∇zᵀ/2``. By recursion, at every width,

    ``E z² = B_l + A_l ‖x‖²``,  ``E z ∇z = A_l x``,  ``E ∇z ∇zᵀ = A_l I``,
    ``A_l = (C_w/2)^{l−1} C_w/n_0``,  ``B_l = C_b Σ_{i<l} (C_w/2)^i``:

the second moments of the random affine function ``a + w·x``, ``a ~ N(0, B_l)``, ``w ~ N(0, A_l I)``. The jets of wide
networks are Gaussian, and Kac and Rice's formula for the zeros needs nothing else.

*Every width.* Near a fixed x each neuron is an affine function, of coefficients ``a_j`` in homogeneous coordinates
``u = (x, 1)``; those of the next layer are ``a = b e + Σ_j W_j 1[a_j·u > 0] a_j``. As ``a_j`` and ``−a_j`` are equally
likely, and ``W_j`` is symmetric, each gate ``1[a_j·u > 0]`` may be replaced by a *fair coin* that is independent of all
else: the law of the coefficients *at u* does not depend on u. The density of zeros at u is then that of one random
linear form, and means over lines and planes follow, exactly, at every width and depth: see :func:`finite_crossings`
(Gaussian weights) and :func:`line_crossings` (any symmetric ones).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from steepest.core.errors import UserError


class Crossings(NamedTuple):
    """Mean zeros of one neuron of each layer.

    Attributes:
        mean: shape ``(…, L)``.
        error: its standard error, by the samples that it was averaged over, same shape.
    """

    mean: NDArray
    error: NDArray


def random_hyperplane_scales(
    c_w: float, c_b: float, n0: int, depth: int
) -> Float[ndarray, " depth"]:
    """Return ``s_l = √(B_l/A_l)``: at infinite width neurons of layer l vanish on average like random hyperplanes.

    They are the hyperplanes ``s_l g_0 + g·x = 0`` of standard normal g. At ``C_w = 2`` ``s_l² = l n_0 C_b/2``; at
    ``C_w = 1`` it is ``(2^l − 1) n_0 C_b``. Source: derived in this module.

    Args:
        c_w: variance of the weights times their layer's inputs.
        c_b: variance of the biases.
        n0: inputs of the network.
        depth: hidden layers.

    Raises:
        UserError: for numbers that no network has.

    >>> (random_hyperplane_scales(2.0, 1.0, 2, 4) ** 2).round(9).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    check_variances(c_w, c_b)
    if n0 < 1 or depth < 1:
        raise UserError(f"a network needs an input and a hidden layer, got {n0} and {depth}")
    g = c_w / 2
    layers = np.arange(depth)
    # B_l and A_l of the module, l = 1, …, L
    bias = c_b * np.cumsum(g**layers)
    weight = g**layers * c_w / n0
    return np.sqrt(bias / weight)


def wide_crossings(
    ends: ArrayLike, c_w: float, c_b: float, depth: int
) -> Float[ndarray, "... depth"]:
    """Return the mean zeros of one neuron of each layer on segments, at infinite width: an angle over π.

    It is that of ``(s_l, x_0)`` and ``(s_l, x_1)``, s_l being :func:`random_hyperplane_scales`.

    Args:
        ends: of the segments, shape ``(…, 2, d)``.
        c_w: variance of the weights times their layer's inputs.
        c_b: variance of the biases.
        depth: hidden layers.

    Raises:
        UserError: for other shapes.

    >>> wide_crossings([[-1.0], [1.0]], 2.0, 2.0, 3).round(4).tolist()
    [0.5, 0.3918, 0.3333]
    """
    ends = _ends(ends)
    scales = random_hyperplane_scales(c_w, c_b, ends.shape[-1], depth)
    square = scales**2
    # p·q and |p|²|q|² − (p·q)² of p = (s, x_0), q = (s, x_1), the latter by positive terms
    mixed = (ends[..., 0, :] * ends[..., 1, :]).sum(-1)[..., None] + square
    apart = ((ends[..., 1, :] - ends[..., 0, :]) ** 2).sum(-1)[..., None]
    area = square * apart + _area_squared(ends)[..., None]
    return np.arctan2(np.sqrt(area), mixed) / math.pi


def finite_crossings(
    ends: ArrayLike,
    widths: Sequence[int],
    c_w: float,
    c_b: float,
    rng: np.random.Generator,
    samples: int = 100_000,
) -> Crossings:
    """Return the mean zeros of one neuron of each layer on segments, for Gaussian weights at any widths.

    With M the covariance, given the layers below, of the affine function that the neuron is near a point of the
    segment, by its values at the two ends, the mean is ``E arccos(M_01/√(M_00 M_11))/π``; and by fair coins (see
    the module)

        ``M^1 = C_b + C_w ⟨x_i, x_j⟩/n_0``,  ``M^{l+1} = C_b 11ᵀ + (C_w/n_l) Wishart₂(K, M^l)``,  ``K ~ Bin(n_l, ½)``,

    a Markov chain of three numbers, which is sampled by Bartlett's decomposition. The first layer is exact. At
    ``C_b = 0`` the angle's mean stays what it is at infinite width, but for K < 2: times ``Π_{i<l} (1 − (n_i + 1)
    2^{−n_i})``.

    Args:
        ends: of the segments, shape ``(…, 2, d)``.
        widths: n_1 … n_L of the hidden layers.
        c_w: variance of the weights times their layer's inputs.
        c_b: variance of the biases.
        rng: random numbers.
        samples: of the chain, for each segment.

    Raises:
        UserError: for numbers or shapes that no network has, segments of one point, and at ``C_b = 0`` those on a line
            through the origin.

    >>> narrow = finite_crossings([[-1.0], [1.0]], (8, 8), 2.0, 1.0, np.random.default_rng(0))
    >>> narrow.mean.round(2).tolist(), wide_crossings([[-1.0], [1.0]], 2.0, 1.0, 2).round(2).tolist()
    ([0.61, 0.45], [0.61, 0.5])
    """
    ends = _ends(ends)
    check_variances(c_w, c_b)
    check_widths(widths)
    if samples < 2:
        raise UserError(f"a mean with an error needs at least two samples, got {samples}")
    if (ends[..., 0, :] == ends[..., 1, :]).all(-1).any():
        raise UserError("segments must have two different ends")
    inner = ends @ np.swapaxes(ends, -1, -2)
    scale = c_w / ends.shape[-1]
    shape = (*ends.shape[:-2], samples)
    first, mixed, last = (
        np.broadcast_to((c_b + scale * inner[..., i, j])[..., None], shape)
        for i, j in ((0, 0), (0, 1), (1, 1))
    )
    area = _area_squared(ends)
    if c_b == 0 and (area <= 1e-12 * inner[..., 0, 0] * inner[..., 1, 1]).any():
        raise UserError(
            "without biases every neuron vanishes at the origin: the segments must lie on no line through it; raise "
            "c_b"
        )
    # both terms are positive, where M_00 M_11 − M_01² would cancel
    determinant = scale * c_b * ((ends[..., 1, :] - ends[..., 0, :]) ** 2).sum(-1) + scale**2 * area
    size = np.broadcast_to(np.sqrt(determinant)[..., None], shape)
    means = []
    errors = []
    for layer, width in enumerate(widths):
        # functions of one slope alone (K < 2 without biases) vanish at a corner of the layer below, and cross nothing
        # a Gaussian pair of covariance M has opposite signs with probability arccos(ρ)/π
        share = np.where(size > 0, np.arctan2(size, mixed), 0.0) / math.pi
        means.append(share.mean(-1))
        errors.append((layer > 0) * share.std(-1, ddof=1) / math.sqrt(samples))
        if layer + 1 < len(widths):
            first, mixed, last, size = _next_moments(
                (first, mixed, last, size), width, c_w / width, c_b, rng
            )
    return Crossings(np.stack(means, -1), np.stack(errors, -1))


def line_crossings(widths: Sequence[int]) -> Float[ndarray, " L"]:
    """Return the mean zeros of one neuron of each layer on a whole line: ``Π_{i<l} (1 − 2^{−n_i})``.

    Exact for all weights of symmetric continuous laws, independent between neurons, and biases that are not zero, as
    are the biases of the input's layer seen along a line that misses the origin. The affine function that a neuron is
    near x has one zero on the line, somewhere, and its law is the same at every x (see the module): the density of
    zeros at x, summed over x, is one. What is missing are functions without a slope, all of whose neurons below are
    off.

    Raises:
        UserError: if a width is not a whole number from one on.

    >>> line_crossings((2, 2, 2)).tolist()
    [1.0, 0.75, 0.5625]
    """
    check_widths(widths)
    return np.cumprod([1.0, *(1 - 0.5**width for width in widths[:-1])])


def _next_moments(
    moments: tuple[NDArray, NDArray, NDArray, NDArray],
    width: int,
    scale: float,
    c_b: float,
    rng: np.random.Generator,
) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Return M_00, M_01, M_11 and √det M of the next layer: C_b 11ᵀ + scale · Wishart₂(K, M)."""
    first, mixed, _, size = moments
    active = rng.binomial(width, 0.5, first.shape)
    # Bartlett: W = (L T)(L T)ᵀ with L the Cholesky factor of M and T lower triangular; T_22 = 0 where K < 2
    # χ_K and χ_{K−1}: χ²_k is twice a Gamma of shape k/2
    on_first = np.sqrt(2 * rng.standard_gamma(active / 2))
    on_second = np.sqrt(2 * rng.standard_gamma(np.maximum(active - 1, 0) / 2))
    across = rng.standard_normal(first.shape) * (active > 0)
    root = np.sqrt(first)
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = np.where(root > 0, mixed / root, 0.0)
        height = np.where(root > 0, size / root, 0.0)
    # L T = [[a, 0], [b, c]]
    a = root * on_first
    b = slope * on_first + height * across
    c = height * on_second
    spread = scale * ((a - b) ** 2 + c**2)  # of the difference of the two ends
    # det(S + C_b 11ᵀ) = det S + C_b (S_00 − 2 S_01 + S_11), positive terms
    determinant = (scale * a * c) ** 2 + c_b * spread
    return (
        c_b + scale * a**2,
        c_b + scale * a * b,
        c_b + scale * (b**2 + c**2),
        np.sqrt(determinant),
    )


def _area_squared(ends: NDArray) -> NDArray:
    """Return |x_0|² |x_1|² − ⟨x_0, x_1⟩² of two ends, shape ``(…, 2, d)``, without its cancellation."""
    first = ends[..., 0, :]
    step = ends[..., 1, :] - first
    length = (first**2).sum(-1)
    # squared area of x_0 and x_1 − x_0: base times height, the height by projection
    along = (first * step).sum(-1) / np.where(length > 0, length, 1.0)
    return length * ((step - along[..., None] * first) ** 2).sum(-1)


def _ends(ends: ArrayLike) -> NDArray:
    ends = np.asarray(ends, float)
    if ends.ndim < 2 or ends.shape[-2] != 2 or ends.shape[-1] == 0:
        raise UserError(f"segments have two ends of d numbers, shape (…, 2, d), got {ends.shape}")
    return ends


def check_variances(c_w: float, c_b: float) -> None:
    """Refuse variances that no weights and biases have."""
    if not (c_w > 0 and c_b >= 0 and math.isfinite(c_w + c_b)):
        raise UserError(
            f"the variance of weights must be positive and that of biases not negative, got {c_w} and {c_b}"
        )


def check_widths(widths: Sequence[int]) -> None:
    """Refuse widths that no hidden layers have."""
    if not widths or any(width < 1 or width != int(width) for width in widths):
        raise UserError(f"widths of hidden layers are whole numbers from 1 on, got {list(widths)}")
