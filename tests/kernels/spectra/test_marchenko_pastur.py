"""The Marchenko–Pastur law against quadrature, its moments and the spectrum of random matrices."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from steepest.kernels.spectra._marchenko_pastur import (
    marchenko_pastur_cdf,
    marchenko_pastur_density,
    marchenko_pastur_edges,
)

RATIOS = (0.1, 0.5, 1.0, 2.0, 7.0)


@pytest.mark.parametrize("alpha", RATIOS)
def test_cdf_is_the_integral_of_the_density(alpha):
    low, high = marchenko_pastur_edges(alpha)
    atom = max(0.0, 1 - 1 / alpha)
    for share in (0.05, 0.3, 0.7, 1.0):
        x = low + share * (high - low)
        # x = low + s² takes the root at the lower edge out
        area, _ = quad(
            lambda s: 2 * s * marchenko_pastur_density(low + s**2, alpha), 0, math.sqrt(x - low)
        )
        np.testing.assert_allclose(marchenko_pastur_cdf(x, alpha), area + atom, atol=1e-8)
    np.testing.assert_allclose(
        marchenko_pastur_cdf([-1.0, low / 2, high + 1], alpha), [0, atom, 1], atol=1e-12
    )


@pytest.mark.parametrize("alpha", RATIOS)
def test_moments_are_narayana_polynomials(alpha):
    """E x^k = Σ_r α^r C(k, r) C(k − 1, r)/(r + 1)."""
    low, high = marchenko_pastur_edges(alpha)
    for k in range(1, 6):
        exact = sum(alpha**r / (r + 1) * math.comb(k, r) * math.comb(k - 1, r) for r in range(k))
        found, _ = quad(
            lambda s, k=k: 2 * s * (low + s**2) ** k * marchenko_pastur_density(low + s**2, alpha),
            0,
            math.sqrt(high - low),
        )
        np.testing.assert_allclose(found, exact, rtol=1e-7)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_spectrum_of_a_random_matrix(alpha):
    """The Kolmogorov distance of one spectrum is of the order of 1/P."""
    columns = 400
    rows = int(alpha * columns)
    x = np.random.default_rng(0).normal(size=(rows, columns))
    spectrum = np.sort(np.linalg.eigvalsh(x @ x.T / columns))
    spectrum[np.abs(spectrum) < 1e-9] = 0.0
    positive = spectrum[spectrum > 0]
    above = lambda y: (marchenko_pastur_cdf(y, alpha) - max(0, 1 - 1 / alpha)) * max(1, alpha)
    assert kstest(positive, above).statistic < 4 / len(positive)
    assert len(positive) == min(rows, columns)


def test_ratios_that_make_no_sense():
    for alpha in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="must be positive"):
            marchenko_pastur_edges(alpha)
