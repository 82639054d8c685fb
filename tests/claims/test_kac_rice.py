"""Tallies of kac-rice: roots against Newton's method, symmetric forms, and the figures of the remarks."""

import jax
import numpy as np
import pytest

from steepest.claims.descent.kac_rice.claim import KacRice, _direct, _spread
from steepest.claims.descent.kac_rice.experiment import (
    circle_roots,
    expected,
    mixed,
    tally_circle,
    tally_sphere,
)
from steepest.landscapes import binomial_weights

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("degree", [3, 4])
def test_roots_and_newton_find_the_same(degree):
    coefficients = binomial_weights(degree, 2) * RNG.normal(size=(100, degree + 1))
    roots = tally_circle(coefficients)
    newton = tally_sphere(coefficients, degree, 2, RNG.normal(size=(200, 2)))
    np.testing.assert_array_equal(roots.counts, newton.counts)
    np.testing.assert_allclose(roots.heights, newton.heights, atol=1e-9)
    np.testing.assert_allclose(roots.squares, newton.squares, atol=1e-9)
    assert newton.complete.all()


def test_a_cubic_with_known_angles():
    """cos 3φ = cos³ − 3 cos sin² has six critical points, one each π/3."""
    angles, real = circle_roots(np.array([[1.0, 0.0, -3.0, 0.0], [1.0, 1e-9, -3.0, 1e-9]])[1:])
    assert real.all()
    np.testing.assert_allclose(np.sort(angles[0]), np.array([-1, 0, 1]) * np.pi / 3, atol=1e-8)


def test_mixed_coefficients_keep_their_variance():
    signs = RNG.choice([-1.0, 1.0], 10_000)
    for share in (0.0, 0.3, 1.0):
        assert mixed(RNG.normal(size=10_000), signs, share).var() == pytest.approx(1, abs=0.05)


def test_rivals_are_what_they_say():
    """Without the shift the circle has 2√(2(p − 1)), with variance one on the diagonal 2√(2p − 1)."""
    assert _direct(3, 2)[0] == pytest.approx(28**0.5, rel=0.01)
    assert _direct(3, 2, shift=0.0)[0] == pytest.approx(4, rel=0.01)
    assert _direct(3, 2, diagonal=1.0)[0] == pytest.approx(20**0.5, rel=0.01)
    assert _direct(3, 2)[1] == pytest.approx(7**0.5, rel=0.01)


def test_the_remark_s_figures():
    ratios = [-expected(3, N)["spread"][0] / expected(3, N)["height"][0] for N in (2, 3, 4)]
    np.testing.assert_allclose(ratios, [1.06, 0.57, 0.40], atol=0.005)


def test_spread_is_pooled():
    heights = RNG.normal(-2, 0.5, size=(600, 4))
    spread = _spread(np.full(600, 4.0), heights.sum(1), (heights**2).sum(1), 20)
    assert spread.mean() == pytest.approx(0.25, rel=0.05)


def test_signs_count_otherwise():
    claim = KacRice(degrees=(3,), circles=4000, dimensions=(2,), forms=3, starts=20)
    observed = claim.observe(claim.setting(jax.random.key(0)), jax.random.key(1))
    total = observed["circle"][0]
    z = (observed["signs"][0].mean() - total.mean()) / (total.std() / len(total) ** 0.5)
    assert z < -4
