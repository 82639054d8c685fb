"""The Gaussian matrix to which the kernel's error tends, against known norms and against many neurons."""

import jax
import numpy as np
from scipy.special import erf

from steepest.catalogue import load
from steepest.claims.kernels.ntk_concentration.theory import gaussian_norm


def test_the_norm_of_one_number_and_of_large_matrices():
    """E|g| = √(2/π), and 2√m of the orthogonal ensemble, from below."""
    assert abs(gaussian_norm(1, 1.0, 3.0) / 3 - np.sqrt(2 / np.pi)) < 0.05
    ratios = [gaussian_norm(m, 1.0, np.sqrt(2)) / (2 * np.sqrt(m)) for m in (10, 40, 120)]
    assert 0.85 < ratios[0] < ratios[1] < ratios[2] < 1
    assert ratios[2] > 0.97


def test_entries_of_the_error_have_the_variances_of_the_law():
    """On orthonormal inputs: μ₂² off the diagonal, μ₄ − μ₂² on it, over n."""
    second, fourth = load("ntk-concentration")().moments()
    rng = np.random.default_rng(1)
    features = erf(rng.standard_normal((4000, 200, 3)))
    kernels = np.einsum("sni,snj->sij", features, features) / 200
    assert np.isclose(kernels[:, 0, 1].var() * 200, second**2, rtol=0.1)
    assert np.isclose(kernels[:, 0, 0].var() * 200, fourth - second**2, rtol=0.1)
    assert np.isclose(kernels[:, 0, 0].mean(), second, rtol=0.01)


def test_a_layer_of_which_few_neurons_count_is_as_far_whatever_its_width():
    claim = load("ntk-concentration")()
    few = claim.distances(3, (64, 256), (4,), few=16)
    values = few(jax.random.key(0), np.eye(4), np.zeros((4, 4)))
    assert values.shape == (3, 2)
    np.testing.assert_allclose(values[:, 0], values[:, 1])
