"""Pairs of stable feedbacks, ways to the optimum and gradient dominance, by other means than lqr-landscape's."""

import numpy as np
import pytest

from steepest.claims.descent._lqr import riccati
from steepest.claims.descent.lqr_landscape.claim import (
    CHEAP,
    GROWTH,
    LOST,
    ONE_INPUT,
    PAIRS,
    LqrLandscape,
    _cheap_factor,
    _leaves_at,
    _midpoint_radius,
    dominance,
    leaves_at,
    tilted,
)
from steepest.claims.descent.lqr_policy_gradient.claim import optimum
from steepest.landscapes import Lqr


@pytest.mark.parametrize("a", [0.3, 0.95, 1.2])
@pytest.mark.parametrize("q", [0.01, 1.0])
def test_the_factor_of_one_state_is_that_of_riccati(a, q):
    unit = np.ones((1, 1))
    _, covariance = optimum(Lqr(a * unit, unit, q * unit, unit, unit))
    assert _cheap_factor(a, q) == pytest.approx(covariance[0, 0] / 4, rel=1e-9)


def test_dominance_is_met_by_each_and_nearly_sharp():
    predicted = np.array([[_cheap_factor(a, q) for q in CHEAP] for a in GROWTH])
    ratio = dominance() / predicted[..., None]
    assert 0.95 < ratio.max() <= 1


def test_pairs_are_stable_and_their_means_are_not():
    for first, second in PAIRS:
        for loop in (first, second):
            assert np.abs(np.linalg.matrix_power(loop, len(loop))).max() == 0
    radii = [_midpoint_radius(pair) for pair in PAIRS]
    np.testing.assert_allclose(radii, [5, 5**0.5])


def test_the_way_to_the_optimum_leaves_the_stable_feedbacks():
    """By bisection and by the determinant; the cost is finite at both ends, and infinite half-way, beyond it."""
    for tilt in LqrLandscape().tilts:
        system = tilted(tilt)
        bound = _leaves_at(system)
        assert leaves_at(system) == pytest.approx(bound, rel=1e-9)
        best = np.asarray(system.optimum.feedback)
        np.testing.assert_allclose(np.eye(2) - best, riccati(system)[1], atol=1e-12)
        for c, inside in ((0.9 * bound, True), (1.1 * bound, False)):
            far = np.eye(2) - np.array([[0.0, c], [0.0, 0.0]])
            assert np.isfinite(system.cost(far))
            assert np.isfinite(system.cost((far + best) / 2)) == inside
    assert leaves_at(tilted(0.0)) == LOST


def test_one_input_and_two_states_are_convex():
    """With one input the characteristic polynomial is affine in K, and for two states stability is a triangle."""
    rng = np.random.default_rng(0)
    system = rng.normal(size=(2, 2))
    column = rng.normal(size=(2, 1))
    feedbacks = rng.normal(size=(4000, 1, 2)) * 2
    radius = lambda K: np.abs(np.linalg.eigvals(system - column @ K)).max(-1)
    stable = feedbacks[radius(feedbacks) < 1]
    assert len(stable) > 100
    middles = (stable[:-1] + stable[1:]) / 2
    assert radius(middles).max() < 1


def test_pairs_of_one_input_are_stable_and_so_are_their_means():
    """Both are reached by one feedback: A − BK has the second row of A."""
    for first, second in ONE_INPUT:
        assert np.array_equal(first[1], second[1])
        for loop in (first, second):
            assert np.abs(np.linalg.eigvals(loop)).max() < 1
        assert _midpoint_radius(np.array([first, second])) < 1
