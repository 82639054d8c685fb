"""Kernels on the points of a cube: their eigenvalues by degree, and how fast regression with them learns."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError
from steepest.kernels.spectra._walsh import krawtchouk

LARGEST = 300  # dimensions; from about 1000 on the binomials leave float64
RESOLVED = 1e-6  # of the trace: error with which the share of a degree is known


class HypercubeSpectrum(NamedTuple):
    """Eigenvalues of a kernel under the uniform law on the cube; products of k coordinates are its eigenfunctions.

    Attributes:
        eigenvalues: λ_k of the first degrees k = 0, 1, …, shape ``(degrees,)``.
        multiplicities: how many products of k coordinates there are, C(n, k), shape ``(degrees,)``.
        beyond: the trace ``Σ_k C(n, k) λ_k = κ(1)`` less that of these degrees.
    """

    eigenvalues: Float[np.ndarray, " degrees"]
    multiplicities: Float[np.ndarray, " degrees"]
    beyond: float


class LearningCurve(NamedTuple):
    """What kernel ridge regression knows of one eigenfunction after some samples, by theory.

    Attributes:
        learned: the mean coefficient L of the eigenfunction in the regression, from 0 to 1.
        noise: variance of everything else in it.
        sign_error: how often its sign is not that of a target ±1, ``Φ(−L / √noise)``.
    """

    learned: float
    noise: float
    sign_error: float


def hypercube_spectrum(
    kernel: Callable[[np.ndarray], np.ndarray], n: int, degrees: int | None = None
) -> HypercubeSpectrum:
    """Return the eigenvalues of a kernel κ(⟨x, x'⟩) of points of {±1}^n / √n, one a degree.

    ``λ_k = 2^{-n} Σ_j C(n, j) K_k(j) κ(1 − 2 j/n) / C(n, k)`` with the Krawtchouk polynomials K_k, in whole numbers: a
    kernel of the inner product is a convolution on the cube. Sums cancel, to an error of about
    ``1e-16 κ(1) / √C(n, k)``. Eigenvalues below theirs are zero here, and degrees end where the error of all
    C(n, k) would be 10⁻⁶ κ(1); up to n = 60 or so none does.

    Args:
        kernel: κ, of an array of inner products.
        n: dimension of the cube.
        degrees: the last degree; all that are resolved by default.

    Raises:
        UserError: a dimension below one or above 300, or a last degree that is not from 0 to n.

    >>> hypercube_spectrum(lambda t: 1 + t**2, 4).eigenvalues.tolist()  # 1 + 1/4, and 2/16 for pairs
    [1.25, 0.0, 0.125, 0.0, 0.0]
    """
    if not 1 <= n <= LARGEST:
        raise UserError(f"hypercube_spectrum: expected a dimension from 1 to {LARGEST}, got {n}")
    last = n if degrees is None else degrees
    if not 0 <= last <= n:
        raise UserError(f"hypercube_spectrum: expected a last degree from 0 to {n}, got {last}")
    # κ at the inner products 1 − 2j/n of points that differ in j coordinates
    values = np.asarray(kernel(1 - 2 * np.arange(n + 1) / n), float)
    counts = [math.comb(n, j) for j in range(n + 1)]
    spectrum = []
    for k, numbers in zip(range(last + 1), krawtchouk(n), strict=False):
        # 2^{−n} C(n, j) K_k(j)/C(n, k), rounded once, as both whole numbers are exact
        weights = [counts[j] * numbers[j] / (counts[k] << n) for j in range(n + 1)]
        terms = [weight * one for weight, one in zip(weights, values, strict=True)]
        value = math.fsum(terms)
        # fsum adds exactly: what is left is the rounding of the terms
        rounding = 4e-16 * math.fsum(map(abs, terms))
        if degrees is None and rounding * counts[k] > RESOLVED * values[0]:
            break
        spectrum.append(value if value > rounding else 0.0)
    eigenvalues = np.array(spectrum)
    multiplicities = np.array(counts[: len(spectrum)], float)
    beyond = max(float(values[0] - eigenvalues @ multiplicities), 0.0)
    return HypercubeSpectrum(eigenvalues, multiplicities, beyond)


def learning_curve(
    spectrum: HypercubeSpectrum, degree: int, samples: float, ridge: float = 0.0
) -> LearningCurve:
    """Return what kernel ridge regression learns of a parity from so many random samples.

    The effective ridge κ solves ``samples = Σ_k C_k λ_k / (λ_k + κ) + ridge / κ``. Of the eigenfunction it learns
    ``L = λ / (λ + κ)``, and the rest has variance ``(1 − L)² γ / (1 − γ)``, where
    ``γ samples = Σ_k C_k λ_k² / (λ_k + κ)²``. Exact as dimension and samples grow together for features like Gaussian
    ones; for the cube it is a limit.

    Args:
        spectrum: of the kernel; what it leaves out, of high degrees, acts as a ridge.
        degree: of the parity.
        samples: n, at least one.
        ridge: added to the diagonal of the Gram matrix.

    Raises:
        UserError: fewer than one sample, a negative ridge, a degree that the spectrum lacks, or more samples than the
            kernel has eigenfunctions where there is no ridge.

    Source: Bordelon, Canatar and Pehlevan 2020; Simon et al. 2023.

    >>> spectrum = hypercube_spectrum(lambda t: t + t**2 + t**4, 16)
    >>> [round(learning_curve(spectrum, 2, n).sign_error, 3) for n in (30, 60, 120)]
    [0.384, 0.287, 0.111]
    """
    from scipy.optimize import root_scalar
    from scipy.special import ndtr

    if not samples >= 1:
        raise UserError(f"learning_curve: expected at least one sample, got {samples:g}")
    if not ridge >= 0:
        raise UserError(f"learning_curve: expected a ridge of at least zero, got {ridge:g}")
    values = spectrum.eigenvalues
    counts = spectrum.multiplicities
    if spectrum.beyond > RESOLVED * (values @ counts):
        # λ_k ≪ κ in high degrees, so that Σ C_k λ_k/(λ_k + κ) is their trace over κ: a ridge
        ridge = ridge + spectrum.beyond
    if not 0 <= degree < values.size:
        raise UserError(
            f"learning_curve: expected a degree from 0 to {values.size - 1}, got {degree}"
        )
    positive = values > 0
    if ridge == 0 and not samples < counts[positive].sum():
        raise UserError(
            f"learning_curve: expected fewer samples than the {counts[positive].sum():g} eigenfunctions, "
            f"got {samples:g}; pass a ridge"
        )

    def surplus(log_ridge: float) -> float:
        effective = math.exp(log_ridge)
        return (counts * values / (values + effective)).sum() + ridge / effective - samples

    # surplus falls in κ; it is below trace/κ − samples < 0 at the upper end
    trace = (counts * values).sum() + ridge
    low = math.log(values[positive].min()) - 40 if ridge == 0 else math.log(ridge / samples) - 1
    root = root_scalar(surplus, bracket=(low, math.log(trace) + 1), xtol=1e-13).root
    effective = math.exp(root)
    learned = values[degree] / (values[degree] + effective)
    # γ: the share of the samples that the eigenfunctions take up, Σ C_k L_k²/samples
    shared = (counts * (values / (values + effective)) ** 2).sum() / samples
    # test error (1 − L)²/(1 − γ) of a target of norm one, less the bias (1 − L)²
    noise = (1 - learned) ** 2 * shared / (1 - shared)
    error = ndtr(-learned / math.sqrt(noise))
    return LearningCurve(float(learned), float(noise), float(error))
