"""Algebra of kernels on the circle: spectrum, Mercer's sum, and the norm that the notes print otherwise."""

import jax
import numpy as np
import pytest

from steepest.claims.kernels.spectral_bias.claim import FINE, SpectralBias, _folded
from steepest.kernels import gram

POINTS = 8


@pytest.fixture(scope="module")
def kernel():
    angles = 2 * np.pi * np.arange(FINE) / FINE
    fine = np.sqrt(2) * np.stack([np.cos(angles), np.sin(angles)], 1)
    limit = SpectralBias().limit(2)
    with jax.enable_x64(True):
        profile = gram(limit, fine[:1], fine).ntk[0]
        few = gram(limit, fine[:: FINE // POINTS]).ntk
    return np.asarray(profile), np.asarray(few)


def test_eigenvalues_on_the_circle_are_folded_fourier_coefficients(kernel):
    profile, few = kernel
    values = np.linalg.eigvalsh(few / POINTS)
    np.testing.assert_allclose(values, np.sort(_folded(profile, POINTS)), atol=1e-10 * values[-1])


def test_the_norm_of_a_function_is_by_mercer_and_not_as_printed(kernel):
    _, few = kernel
    values, vectors = np.linalg.eigh(few / POINTS)
    psi = np.sqrt(POINTS) * vectors
    np.testing.assert_allclose(psi**2 @ values, np.diag(few))
    coefficients = np.random.default_rng(0).standard_normal(POINTS)
    f = few @ coefficients
    inner = psi.T @ f / POINTS
    norm = coefficients @ few @ coefficients  # by the reproducing property
    assert (inner**2 / values).sum() == pytest.approx(norm)
    printed = ((few / POINTS @ f) ** 2).sum() / POINTS  # ‖Tf‖², of T⁻¹L²
    assert printed != pytest.approx(norm, rel=0.1)
    assert (f**2).sum() / POINTS != pytest.approx(norm, rel=0.1)
