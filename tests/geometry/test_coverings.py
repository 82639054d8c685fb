"""Greedy coverings and the entropy of ellipsoids: against exhaustive search, and against limits."""

import itertools

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.geometry import ellipsoid_entropy, farthest_points

RNG = np.random.default_rng(0)


def test_centres_are_apart_and_cover():
    x = RNG.standard_normal((60, 3))
    covering = farthest_points(x, 10, first=7)
    assert covering.centres[0] == 7
    distances = np.linalg.norm(x[:, None] - x[covering.centres], axis=-1)
    for k in range(1, 11):
        assert covering.radii[k - 1] == pytest.approx(distances[:, :k].min(1).max())
    between = distances[covering.centres][np.triu_indices(10, 1)]
    assert between.min() >= covering.radii[8] - 1e-12


def test_at_most_twice_the_best_of_all_choices():
    x = RNG.standard_normal((14, 2))
    distances = np.linalg.norm(x[:, None] - x, axis=-1)
    for k in (1, 2, 3, 4):
        best = min(
            distances[:, list(choice)].min(1).max()
            for choice in itertools.combinations(range(14), k)
        )
        assert best <= farthest_points(x, k).radii[-1] <= 2 * best


@pytest.mark.parametrize("rate", [0.5, 1.0, 2.0])
def test_polynomial_axes_have_their_limit(rate):
    axes = np.arange(1.0, 20_001.0) ** -rate
    bits = 2000
    limit = (rate / (bits * np.log(2))) ** rate
    assert ellipsoid_entropy(axes, bits) == pytest.approx(limit, rel=0.02)


def test_axes_that_halve_have_theirs():
    """log₂ is −√(2n) − ½, up to the rounding of the best dimension √(2n)."""
    bits = np.array([8, 32, 128, 512])
    bounds = ellipsoid_entropy(2.0 ** -np.arange(1, 200), bits)
    np.testing.assert_allclose(np.log2(bounds), -np.sqrt(2 * bits) - 0.5, atol=1e-9)


def test_a_ball_and_volumes():
    assert ellipsoid_entropy(np.ones(5), 5) == pytest.approx(0.5)
    # two intervals of length one half each cover [−½, ½] of ellipse axes (1): ε = a 2^(−n) for one axis
    np.testing.assert_allclose(ellipsoid_entropy([0.7], [0, 1, 3]), 0.7 / np.array([1, 2, 8]))


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: farthest_points([1.0, 2.0], 1), "one a row"),
        (lambda: farthest_points([[1.0], [np.inf]], 1), "finite"),
        (lambda: farthest_points([[1.0], [2.0]], 3), "from 1 to 2 centres"),
        (lambda: farthest_points([[1.0], [2.0]], 1, first=2), "first"),
        (lambda: ellipsoid_entropy([1.0, 2.0], 1), "longest first"),
        (lambda: ellipsoid_entropy([1.0], -1), "not be negative"),
    ],
)
def test_refused(use, words):
    with pytest.raises(UserError, match=words):
        use()
