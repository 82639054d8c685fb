"""Count the regions of random ReLU networks in a plane, on average: as many as an arrangement of straight lines has.

In a convex domain of a plane a piecewise linear network has ``1 + V + B/2`` regions, V the points where borders of
two neurons cross and B the points where borders end on the domain's edge (Euler; a border of a deeper neuron bends
where it meets one below, so that all are connected). Near a point u = (x, y, 1) neuron i is ``a_i·u``, and by the
argument of :mod:`steepest.kernels.regions._random_hyperplanes` the law of all ``a_i`` at u is, at every u, that of
the *coin network*: the same weights and biases, every gate a fair coin that is independent of all else. For two
neurons i, k at a common zero u, k in a higher layer, that ``a_k`` contains ``a_i`` if i is on changes nothing:
``a_i·u = 0``. So E V and E B are those of the straight lines ``a_i·u = 0`` of the coin network:

    the mean number of regions is that of an arrangement of N random lines, at every width and depth.

Within a layer they are independent given the layers below; at infinite width all are, with the scales of
:func:`random_hyperplane_scales`. Two lines of the plane meet in one point: on all of R² the mean is 1 + N + N(N − 1)/2,
up to forms that coins switched off (:func:`plane_regions`).
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from steepest.core.errors import UserError
from steepest.kernels.regions._random_hyperplanes import (
    check_variances,
    check_widths,
    random_hyperplane_scales,
)

CHUNK = 500  # samples whose pairs of lines are in memory at once


class MeanRegions(NamedTuple):
    """Mean number of regions, with the standard error of its samples."""

    mean: float
    error: float


def disc_regions(
    widths: Sequence[int],
    c_w: float,
    c_b: float,
    radius: float,
    rng: np.random.Generator,
    samples: int = 10_000,
) -> MeanRegions:
    """Return the mean regions of a ReLU network of two inputs in the disc ``‖x‖ < radius``, by coin networks.

    Args:
        widths: n_1 … n_L of the hidden layers.
        c_w: variance of the weights times their layer's inputs.
        c_b: variance of the biases.
        radius: of the disc around zero.
        rng: random numbers.
        samples: coin networks.

    Raises:
        UserError: for numbers that no network or disc has.

    >>> disc_regions((24,), 2.0, 1.0, 1.0, np.random.default_rng(0)).mean.round()  # 1 + 24/√2 + 276 (1 − 1/√2)
    np.float64(99.0)
    """
    if not 0 < radius < math.inf:
        raise UserError(f"the radius of a disc must be a positive number, got {radius}")
    gram = np.diag([c_w / 2, c_w / 2, 0.0])
    forms = coin_forms(gram, np.array([0.0, 0.0, 1.0]), widths, c_w, c_b, rng, samples)
    # the line a_0 x + a_1 y + a_2 = 0 lies |a_2|/√(a_0² + a_1²) from the centre
    hits = np.abs(forms[..., 2]) < radius * np.hypot(forms[..., 0], forms[..., 1])
    inside = lambda v: np.hypot(v[..., 0], v[..., 1]) < radius * np.abs(v[..., 2])
    return _regions(forms, hits, inside)


def triangle_regions(
    corners: ArrayLike,
    widths: Sequence[int],
    c_w: float,
    c_b: float,
    rng: np.random.Generator,
    samples: int = 10_000,
) -> MeanRegions:
    """Return the mean regions of a ReLU network in a triangle of its inputs, by coin networks.

    Args:
        corners: of the triangle, shape ``(3, d)``.
        widths: n_1 … n_L of the hidden layers.
        c_w: variance of the weights times their layer's inputs.
        c_b: variance of the biases.
        rng: random numbers.
        samples: coin networks.

    Raises:
        UserError: for numbers that no network has, and corners that are no triangle's.

    >>> one = triangle_regions([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], (3, 3), 2.0, 1.0, np.random.default_rng(0))
    >>> bool(1 < one.mean < 22)
    True
    """
    corners = np.asarray(corners, float)
    if corners.ndim != 2 or len(corners) != 3 or corners.shape[1] == 0:
        raise UserError(f"a triangle has three corners, shape (3, d), got {corners.shape}")
    gram = c_w / corners.shape[1] * corners @ corners.T
    # a form is its values at the three corners, and a point its barycentric coordinates
    forms = coin_forms(gram, np.ones(3), widths, c_w, c_b, rng, samples)
    # a line meets the triangle where it separates corners
    hits = (forms.min(-1) < 0) & (forms.max(-1) > 0)
    inside = lambda v: (v.min(-1) > 0) | (v.max(-1) < 0)
    return _regions(forms, hits, inside)


def coin_forms(
    gram: Float[ndarray, "k k"],
    constant: Float[ndarray, " k"],
    widths: Sequence[int],
    c_w: float,
    c_b: float,
    rng: np.random.Generator,
    samples: int,
) -> Float[ndarray, "samples units k"]:
    """Draw coin networks: the affine function of every neuron, gates being fair coins, by its k coordinates.

    Args:
        gram: covariance of the linear part of a neuron of the first layer, in these coordinates.
        constant: the function 1 in these coordinates.
        widths: n_1 … n_L of the hidden layers.
        c_w: variance of the weights times their layer's inputs.
        c_b: variance of the biases.
        rng: random numbers.
        samples: coin networks.

    Raises:
        UserError: for numbers that no network has.
    """
    check_variances(c_w, c_b)
    check_widths(widths)
    if samples < 2:
        raise UserError(f"a mean with an error needs at least two samples, got {samples}")
    values, vectors = np.linalg.eigh(gram)
    # linear parts of covariance G = root rootᵀ, (samples, units, k)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    forms = rng.standard_normal((samples, widths[0], len(gram))) @ root.T
    forms = forms + c_b**0.5 * rng.standard_normal((samples, widths[0], 1)) * constant
    layers = [forms]
    for below, width in itertools.pairwise(widths):
        weights = (c_w / below) ** 0.5 * rng.standard_normal((samples, width, below))
        gated = forms * (rng.random((samples, below, 1)) < 0.5)
        biases = c_b**0.5 * rng.standard_normal((samples, width, 1))
        forms = weights @ gated + biases * constant
        layers.append(forms)
    return np.concatenate(layers, axis=1)


def wide_disc_regions(widths: Sequence[int], c_w: float, c_b: float, radius: float) -> float:
    """Return the mean regions in a disc of a network of two inputs at infinite width: of independent random lines.

    A line of scale s meets the disc with probability ``R/√(R² + s²)``; at distance p from the origin, of density
    ``s²/(p² + s²)^{3/2}``, another of scale s' crosses its chord with probability ``arccos((s'² + 2p² − R²)/(s'² +
    R²))/π``. For s = s' both meet inside with probability ``1 − s/√(R² + s²)``.

    Raises:
        UserError: for numbers that no network or disc has.

    >>> round(wide_disc_regions((12, 12), 2.0, 1.0, 1.0), 1)
    81.2
    """
    check_widths(widths)
    if not 0 < radius < math.inf:
        raise UserError(f"the radius of a disc must be a positive number, got {radius}")
    scales = random_hyperplane_scales(c_w, c_b, 2, len(widths))
    nodes, weights = np.polynomial.legendre.leggauss(60)
    # p = s tan φ: the density becomes cos φ dφ
    # p < R is φ < arctan(R/s)
    last = np.arctan2(radius, scales)[:, None]
    angle = (nodes + 1) * last / 2
    distance = scales[:, None] * np.tan(angle)
    weight = weights * last / 2 * np.cos(angle)
    ratio = (scales[:, None, None] ** 2 + 2 * distance**2 - radius**2) / (
        scales[:, None, None] ** 2 + radius**2
    )
    meet = (weight * np.arccos(np.clip(ratio, -1, 1))).sum(-1) / math.pi  # [m, l]
    numbers = np.array(widths, float)
    pairs = np.outer(numbers, numbers)
    same = numbers * (numbers - 1)
    # pairs of different layers, and n (n − 1)/2 pairs within each
    crossings = (np.triu(pairs, 1) * meet.T).sum() + (same * np.diag(meet)).sum() / 2
    # P(s |g_0| < R ‖g‖) = E exp(−s² g_0²/2R²), as ‖g‖²/2 is exponential in the plane
    hits = radius / np.sqrt(radius**2 + scales**2)
    return float(1 + numbers @ hits + crossings)


def plane_regions(widths: Sequence[int]) -> float:
    """Return the mean regions on all of R² of a network of two inputs, exactly: 1 + N + N(N − 1)/2 but for dead ones.

    For independent weights of symmetric continuous laws with biases. A neuron of layer l has a border if the coins of
    no layer below are all off; two of one layer meet if two or more are on in each layer below; for l < m too, and if
    another neuron of layer l, and one of each layer between, is on.

    Raises:
        UserError: if a width is not a whole number from one on.

    >>> plane_regions((24,)), round(plane_regions((12, 12)), 2), round(plane_regions((3, 3)), 2)
    (301.0, 300.72, 17.88)
    """
    check_widths(widths)
    numbers = np.array(widths, float)
    # probability that all coins of a layer are off
    none = 0.5**numbers
    border = np.cumprod([1.0, *(1 - none[:-1])])
    # none or one of n coins on: (n + 1)/2^n
    two = np.cumprod([1.0, *(1 - (numbers[:-1] + 1) * none[:-1])])
    total = 1 + numbers @ border + (numbers * (numbers - 1) / 2) @ two
    for low in range(len(widths)):
        # one of the n − 1 other neurons on: 1 − 2^{−(n−1)}
        between = 1 - 2 * none[low]
        for high in range(low + 1, len(widths)):
            total += numbers[low] * numbers[high] * two[low] * between
            between *= 1 - none[high]
    return float(total)


def origin_cell_vertices(hyperplanes: int, d: int) -> float:
    """Return the mean vertices of the cell of the origin of so many random hyperplanes in R^d, exactly.

    Of ``s g_0 + g·x = 0`` with standard normal g, whatever s. d of them meet at ``‖x‖ = s tan θ``, θ of density ∝
    ``sin^{d−1} θ``, and each other one leaves 0 and x on one side with probability ``1 − θ/π``:

        ``C(n, d) ∫ sin^{d−1} θ (1 − θ/π)^{n−d} dθ / ∫ sin^{d−1} θ dθ  →  2^{−d} d! κ_d²``,

    κ_d the volume of the unit ball: Crofton's cell, of π²/2 vertices in the plane.

    Raises:
        UserError: for fewer hyperplanes than dimensions.

    >>> round(origin_cell_vertices(100, 2), 3), round(origin_cell_vertices(10**6, 2), 3), round(math.pi**2 / 2, 3)
    (4.93, 4.935, 4.935)
    """
    if d < 1 or hyperplanes < d:
        raise UserError(f"a vertex needs d hyperplanes in d dimensions, got {hyperplanes} and {d}")
    nodes, weights = np.polynomial.legendre.leggauss(200)
    # θ = π/2 e^{−t}-like scales: the weight is concentrated below 1/n
    edges = np.concatenate([[0.0], math.pi / 2 * 0.5 ** np.arange(40, -1, -1)])
    half = np.diff(edges)[:, None] / 2
    theta = edges[:-1, None] + half * (nodes + 1)
    density = half * weights * np.sin(theta) ** (d - 1)
    # (1 − θ/π)^{n−d} by its logarithm: n may be a million
    inside = (density * np.exp((hyperplanes - d) * np.log1p(-theta / math.pi))).sum()
    return float(math.comb(hyperplanes, d) * inside / density.sum())


def _cross(a: NDArray, b: NDArray) -> NDArray:
    """Return a × b; ten times faster than NumPy's for small vectors."""
    product = np.empty_like(a)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        product[..., i] = a[..., j] * b[..., k] - a[..., k] * b[..., j]
    return product


def _regions(forms: NDArray, hits: NDArray, inside: Callable[[NDArray], NDArray]) -> MeanRegions:
    """Count 1 + lines that hit + pairs that meet inside, of each sample; return mean and standard error."""
    first, second = np.triu_indices(forms.shape[1], 1)
    counts = []
    for start in range(0, len(forms), CHUNK):
        some = forms[start : start + CHUNK]
        a = some[:, first]
        b = some[:, second]
        # a·u = b·u = 0 at u = a × b, up to a factor
        counts.append(inside(_cross(a, b)).sum(1))
    regions = 1 + hits.sum(1) + np.concatenate(counts)
    return MeanRegions(regions.mean(), regions.std(ddof=1) / math.sqrt(len(regions)))
