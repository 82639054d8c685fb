"""Kac–Rice against its first form, |det A| itself, and against closed forms on the circle and for matrices."""

from math import gamma, pi

import jax
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.landscapes import kac_rice

KEY = jax.random.key(0)


def direct(p, N, samples=200_000):
    """E |det A| by index, with heights: counts, heights and their standard errors."""
    rng = np.random.default_rng(1)
    matrices = rng.normal(size=(samples, N - 1, N - 1))
    matrices = (matrices + matrices.transpose(0, 2, 1)) / 2**0.5
    heights = rng.normal(size=(samples, 1))
    eigenvalues = np.sqrt(p * (p - 1)) * np.linalg.eigvalsh(matrices) - p * heights
    factor = 2 * pi ** (N / 2) / gamma(N / 2) / (2 * pi * p) ** ((N - 1) / 2)
    sizes = factor * np.abs(eigenvalues.prod(1))
    index = (eigenvalues < 0).sum(1)
    weights = sizes[:, None] * (index[:, None] == np.arange(N))
    counts = weights.mean(0)
    mean = (weights * heights).mean(0) / counts
    return counts, weights.std(0) / samples**0.5, mean


@pytest.mark.parametrize("p", [3, 4, 7])
def test_the_circle_has_a_closed_form(p):
    count = kac_rice(p, 2, KEY)
    assert abs(count.total - 2 * (3 * p - 2) ** 0.5) < 4 * count.error[0]
    assert count.by_index.sum() == pytest.approx(count.total)


@pytest.mark.parametrize(("p", "N"), [(3, 3), (4, 3), (3, 4)])
def test_both_forms_agree(p, N):
    count = kac_rice(p, N, KEY)
    counts, errors, heights = direct(p, N)
    assert (np.abs(count.by_index - counts) < 4 * np.hypot(errors, count.error[1:])).all()
    np.testing.assert_allclose(count.height, heights, atol=0.03)


def test_expected_numbers_obey_morse():
    count = kac_rice(3, 3, KEY)
    sum_of_all = count.by_index[0] - count.by_index[1] + count.by_index[2]
    assert abs(sum_of_all - 2) < 4 * np.linalg.norm(count.error[1:])


def test_a_quadratic_form_has_its_eigenvectors():
    np.testing.assert_allclose(kac_rice(2, 5, KEY, samples=10).by_index, 2, rtol=1e-12)


def test_minima_approach_the_threshold_of_high_dimension():
    """Nearly all minima of p = 3 tend to −2√(2/3)√N = −1.633√N from above (Auffinger, Ben Arous and Černý)."""
    heights = [kac_rice(3, N, KEY, samples=1000).height[0] / N**0.5 for N in (4, 16, 60)]
    assert heights[0] > heights[1] > heights[2] > -1.633
    assert heights[2] < -1.4


def test_bad_input_is_one_sentence():
    with pytest.raises(UserError, match="at least two"):
        kac_rice(1, 3, KEY)
