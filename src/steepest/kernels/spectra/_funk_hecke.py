"""Zonal harmonics on spheres, and the multipliers by which a function of ⟨w, x⟩ acts on each degree."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from steepest.core.errors import UserError
from steepest.kernels.spectra._hidden import sphere_dimension

NODES = 200  # of Gauss–Legendre on each piece: rounding up to degree 100 or so


def harmonic_count(d: int, degree: int) -> int:
    r"""Return N_l, the dimension of the harmonics of a degree on the sphere S^{d−1}.

    .. math:: N_l = \binom{d+l-1}{l} - \binom{d+l-3}{l-2}

    Raises:
        UserError: if d < 2 or the degree is below 0.

    >>> [harmonic_count(3, degree) for degree in range(4)]
    [1, 3, 5, 7]
    """
    _check(d, [degree])
    # polynomials of one parity up to degree l, less those up to l − 2
    return int(sphere_dimension(d, degree) - sphere_dimension(d, degree - 2))


def zonal(d: int, degrees: Sequence[int], t: ArrayLike) -> Float[ndarray, "degrees *shape"]:
    """Evaluate the zonal harmonics P_l(t) of S^{d−1}, with P_l(1) = 1, at t = ⟨u, x⟩.

    ``√N_l P_l(⟨u, x⟩)`` has mean square one over the sphere. For d = 3 they are Legendre's polynomials, for d = 2
    ``cos(l arccos t)``. By the recurrence ``(l + d − 2) P_{l+1} = (2l + d − 2) t P_l − l P_{l−1}``.

    Raises:
        UserError: if d < 2 or a degree is below 0.

    >>> zonal(3, [2], [0.0, 1.0]).tolist()  # (3t² − 1)/2
    [[-0.5, 1.0]]
    """
    _check(d, degrees)
    t = np.asarray(t, float)
    values = [np.ones_like(t), t]
    for k in range(1, max(degrees, default=0)):
        # recurrence of the Gegenbauer polynomials, normalized by P_l(1) = 1
        values.append(((2 * k + d - 2) * t * values[k] - k * values[k - 1]) / (k + d - 2))
    return np.stack([values[degree] for degree in degrees])


def funk_hecke(
    profile: Callable[[NDArray], NDArray],
    d: int,
    degrees: Sequence[int],
    breaks: Sequence[float] = (0.0,),
) -> Float[ndarray, " degrees"]:
    r"""Compute the multipliers λ_l of a function of one angle on the sphere S^{d−1}.

    ``E_x[φ(⟨w, x⟩) Y(x)] = λ_l Y(w)`` for every harmonic Y of degree l and x uniform on the sphere, with

    .. math:: λ_l = \frac{Γ(d/2)}{\sqrt{π} Γ((d-1)/2)} \int_{-1}^{1} φ(t) P_l(t) (1-t^2)^{(d-3)/2} dt.

    Args:
        profile: φ, on arrays in [−1, 1].
        d: dimension of the space that the sphere lies in, at least 2.
        degrees: the l wanted.
        breaks: where φ has corners or jumps; it is integrated piece by piece.

    Raises:
        UserError: if d < 2, a degree is below 0 or above 100, a break is outside (−1, 1), or φ is not finite.

    Source: Funk 1916, Hecke 1918; Müller 1966, Spherical harmonics, theorem 6.

    >>> funk_hecke(lambda t: t, 3, [0, 1, 2], breaks=()).round(12).tolist()  # E[⟨w, x⟩ x] = w/3
    [0.0, 0.333333333333, 0.0]
    """
    _check(d, degrees)
    if max(degrees, default=0) > 100:
        raise UserError(f"multipliers are computed up to degree 100, got {max(degrees)}")
    if any(not -1 < place < 1 for place in breaks):
        raise UserError(f"breaks must lie between −1 and 1, got {tuple(breaks)}")
    # with t = cos θ the weight is sin^{d−2} θ, smooth up to the poles in every dimension
    ends = np.concatenate([[0.0], np.sort(np.arccos(np.asarray(breaks, float))), [np.pi]])
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    middle = (ends[1:] + ends[:-1]) / 2
    half = (ends[1:] - ends[:-1]) / 2
    theta = (middle[:, None] + half[:, None] * nodes).ravel()
    weight = (half[:, None] * weights).ravel() * np.sin(theta) ** (d - 2)
    values = np.asarray(profile(np.cos(theta)), float)
    if not np.isfinite(values).all():
        raise UserError("the profile must be finite between −1 and 1")
    # (1 − t²)^{(d−3)/2} dt = sin^{d−2} θ dθ under the integral, nodes last: (degrees, nodes)
    return _density(d) * zonal(d, degrees, np.cos(theta)) @ (weight * values)


def relu_multipliers(d: int, degrees: Sequence[int]) -> Float[ndarray, " degrees"]:
    r"""Return the multipliers of ReLU on the sphere S^{d−1}, in closed form.

    ReLU's second derivative is a point mass, so that the Laplacian of the sphere plus d − 1 turns its transform into
    Funk's, the mean over a great circle, with multipliers P_l(0):

    .. math:: λ_l = -\frac{Γ(d/2)}{\sqrt{π} Γ((d-1)/2)} \frac{P_l(0)}{(l-1)(l+d-1)}, \qquad λ_1 = \frac{1}{2d}.

    Odd degrees from three on have none, since ReLU is |t|/2 plus t/2.

    Raises:
        UserError: if d < 2 or a degree is below 0.

    >>> relu_multipliers(3, [0, 1, 2, 3]).round(6).tolist()
    [0.25, 0.166667, 0.0625, 0.0]
    """
    _check(d, degrees)
    # (Δ + d − 1) relu(⟨w, x⟩) = δ(⟨w, x⟩), and ΔY = −l (l + d − 2) Y leaves
    # −(l − 1)(l + d − 1) on degree l; at l = 1, where that is zero, only t/2 counts: E ⟨w, x⟩ x/2
    at_zero = zonal(d, degrees, 0.0)
    return np.array(
        [
            1 / (2 * d) if degree == 1 else -_density(d) * value / ((degree - 1) * (degree + d - 1))
            for degree, value in zip(degrees, at_zero, strict=True)
        ]
    )


def _density(d: int) -> float:
    """Return the density of ⟨w, x⟩ at zero, the factor of the formula."""
    return math.exp(math.lgamma(d / 2) - math.lgamma((d - 1) / 2)) / math.sqrt(math.pi)


def _check(d: int, degrees: Sequence[int]) -> None:
    if d < 2:
        raise UserError(f"a sphere of harmonics lies in at least 2 dimensions, got {d}")
    if min(degrees, default=0) < 0:
        raise UserError(f"degrees start at 0, got {min(degrees)}")
