"""Widths and entropies: parts of the experiment by a second way, the figures of the page, what is refused."""

from math import ceil, log

import jax
import numpy as np
import pytest

from steepest.claims.expressivity.entropy_and_width.claim import EntropyAndWidth
from steepest.claims.expressivity.entropy_and_width.experiment import (
    autoencoders,
    boundary,
    quantized,
    shell,
)
from steepest.core.errors import UserError
from steepest.engine.run import ready
from steepest.geometry import ellipsoid_entropy, farthest_points

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("size", "least", "most"), [(6000, 1.40, 1.50), (400_000, 1.60, 1.70)])
def test_few_points_make_coverings_of_many_balls_narrow(size, least, most):
    """The remark's radii over the bound at 9 bits: that 1.5 times it was rejected came from few points."""
    axes = 2.0 ** -np.arange(1, 13)
    radius = farthest_points(shell(axes, size, np.random.default_rng(77)), 2**9).radii[-1]
    assert least < radius / ellipsoid_entropy(axes, 9) < most


def test_the_shell_is_on_the_ellipsoid():
    axes = np.array([1.0, 0.5, 0.25])
    points = shell(axes, 50, RNG)
    assert (points[0] == 0).all()
    np.testing.assert_allclose(((points[1:] / axes) ** 2).sum(1), 1)


def test_maximal_packings_by_balls_of_radius_2_cover_with_radius_4():
    assert maximal_packing(np.array([[0.0], [2.0], [3.9]]), 4.0) == pytest.approx(3.9)
    points = RNG.permutation(shell(np.array([1.0, 0.5, 0.3]), 2000, RNG))
    assert 3.85 * 0.1 < maximal_packing(points, 4 * 0.1) < 4 * 0.1


def test_four_balls_cover_the_ball_better_than_two_numbers_code_it():
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / 3**1.5
    ball = RNG.standard_normal((200_000, 3))
    ball *= (RNG.random((200_000, 1)) ** (1 / 3)) / np.linalg.norm(ball, axis=1, keepdims=True)
    radius = np.linalg.norm(ball[:, None] - corners, axis=-1).min(1).max()
    assert 0.93 < radius <= np.sqrt(8) / 3


def test_the_page_s_formulas():
    """The theorem's δ_32n ≤ 3ε_n with formulas for both: it is kept, with a tenth at most."""
    for rate, most in ((0.5, 0.098), (1.0, 0.020), (2.0, 0.0006)):
        bits = np.arange(1, 1001)
        bound = ellipsoid_entropy(np.arange(1.0, 4001.0) ** -rate, bits)
        largest = ((32.0 * bits + 1) ** -rate / (3 * bound)).max()
        assert largest == pytest.approx(most, rel=0.03)
    assert ceil(32 * log(2) * 10) == 222
    for rate, ratio in ((0.5, 1.179), (1.0, 0.697), (2.0, 0.123)):
        bound = ellipsoid_entropy(np.arange(1.0, 4001.0) ** -rate, 1000)
        assert 1001.0**-rate / bound == pytest.approx(ratio, abs=0.002)


def test_every_code_has_two_opposite_points():
    """Untrained networks have large errors, never below the shorter semi-axis."""
    errors = autoencoders(jax.random.key(0), 0.5, 3, 2, 0.01)
    assert errors.shape == (2, 3, 2048)
    assert errors.max(-1).min() > 0.499
    assert quantized(0.5).max() < 0.05
    np.testing.assert_allclose((boundary(0.5, 8) ** 2 / [1, 0.25]).sum(1), 1)


@pytest.mark.parametrize(
    "fields",
    [
        {"continuous": False},
        {"steps": 20},
        {"short": 0.36},
        {"short": 0.9},
        {"lr": 0.5},
    ],
)
def test_out_of_range(fields):
    claim = EntropyAndWidth(**{**EntropyAndWidth.tiny, **fields})
    assumed = tuple(claim.hypotheses(claim.setting(jax.random.key(0))))
    assert sum(not hypothesis.holds for hypothesis in assumed) == 1


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"bits": 10}, "at most 9"),
        ({"short": 1.0}, "at most 0.9"),
    ],
)
def test_refused(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        ready("entropy-and-width", changes=fields)


def maximal_packing(x, apart):
    """Return the covering radius of the points by centres at this distance and more, where no other point fits."""
    nearest = np.full(len(x), np.inf)
    for place, point in enumerate(x):
        if nearest[place] >= apart:
            np.minimum(nearest, np.linalg.norm(x - point, axis=1), out=nearest)
    return float(nearest.max())
