"""Extreme stretches: against sampled maps, another library's quantiles, and the leading order."""

import numpy as np
import pytest
from scipy.stats import chi2

from steepest.core.errors import UserError
from steepest.geometry import projection_distortion


@pytest.mark.parametrize(("points", "dimension"), [(16, 128), (64, 256)])
def test_sampled_maps(points, dimension):
    rng = np.random.default_rng(points)
    ends = []
    for _ in range(100):
        images = rng.standard_normal((points, dimension))
        distances = np.linalg.norm(images[:, None] - images, axis=-1)[np.triu_indices(points, 1)]
        ends.append(np.array([distances.min(), distances.max()]) / np.sqrt(2 * dimension))
    mean = np.mean(ends, 0)
    # the law's own error, that distances are taken for independent, is within one per cent and a half
    np.testing.assert_allclose(mean, projection_distortion(points, dimension), rtol=0.015)


def test_quantiles_are_those_of_scipy_stats():
    beyond = np.exp(-np.euler_gamma) / (300 * 299 / 2)
    low, high = projection_distortion(300, 77)
    assert low**2 * 77 == pytest.approx(chi2.ppf(beyond, 77))
    assert high**2 * 77 == pytest.approx(chi2.isf(beyond, 77))


def test_the_leading_order_of_squares():
    points = 10**6
    low, high = projection_distortion(points, 10**7)
    leading = np.sqrt(8 * np.log(points) / 1e7)
    # 8 ln k is the square of the extreme of k²/2 normal numbers to leading order, 2 ln(k²/2) less log log terms
    assert (high**2 - 1) / leading == pytest.approx(1, abs=0.06)
    assert (1 - low**2) / leading == pytest.approx(1, abs=0.06)


@pytest.mark.parametrize("arguments", [(1, 5), (5, 0)])
def test_refused(arguments):
    with pytest.raises(UserError, match="at least 2 points and 1 dimension"):
        projection_distortion(*arguments)
