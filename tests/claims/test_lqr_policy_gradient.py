"""Rates, rollouts and bounds of lqr-policy-gradient against dense oracles and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.descent.lqr_policy_gradient.claim import (
    ONE_INPUT,
    PAIRS,
    TILTS,
    LqrPolicyGradient,
    _cheap_factor,
    _decays,
    _leaves_at,
    _loop,
    _midpoint_radius,
    _optimum,
    _rollout_error,
    _tilted,
)
from steepest.claims.descent.lqr_policy_gradient.experiment import (
    descent,
    leaves_at,
    rollout_gradients,
)
from steepest.landscapes import Lqr, lqr

RNG = np.random.default_rng(3)
A = RNG.normal(size=(3, 3))
A *= 0.8 / np.linalg.norm(A, 2)
B = RNG.normal(size=(3, 2))
SYSTEM = lqr(A, B, np.eye(3), np.eye(2), np.diag([1.0, 0.5, 0.3]))
PLAIN = Lqr(*map(np.asarray, SYSTEM))


def test_the_hessian_at_the_optimum_is_2_m_times_sigma():
    curvature, covariance = _optimum(PLAIN)
    hessian = jax.jit(jax.jacfwd(SYSTEM.gradient))(SYSTEM.optimum.feedback)
    expected = 2 * np.einsum("ac,bd->abcd", curvature, covariance)
    np.testing.assert_allclose(hessian, expected, atol=1e-7)


@pytest.mark.parametrize("method", [0, 1])
def test_descents_decay_at_the_predicted_rate(method):
    curvature, covariance = _optimum(PLAIN)
    optimum = SYSTEM.optimum
    zero = jnp.zeros((2, 3))
    lr = 0.02
    path = jax.jit(descent, static_argnums=6)(SYSTEM, optimum, zero, zero, method, lr, 1200)
    slow = np.linalg.eigvalsh(curvature)[0]
    slow = slow * np.linalg.eigvalsh(covariance)[0] if method == 0 else slow
    along = np.abs(np.asarray(path.along))[None, None] / float(jnp.linalg.norm(optimum.feedback))
    assert _decays(along)[0, 0] == pytest.approx(-np.log(1 - 2 * lr * slow), rel=1e-4)


def test_the_error_of_rollouts_is_as_drawn():
    """Variance of 40 000 estimates against the Gaussian fourth moments: heavy tails, so 4 standard errors."""
    zero = jnp.zeros((2, 3))
    both, _ = jax.jit(rollout_gradients, static_argnums=(3, 4, 5))(
        SYSTEM, zero, jax.random.key(0), 40_000, 40, 0.001
    )
    gradient = np.asarray(SYSTEM.gradient(zero))
    estimates = np.asarray(both) - gradient
    squares = (estimates**2).sum((1, 2)) / (gradient**2).sum()
    error = squares.std() / len(squares) ** 0.5
    assert abs(squares.mean() - _rollout_error(PLAIN) ** 2) < 4 * error
    spread = estimates.std(0) / len(estimates) ** 0.5
    assert (np.abs(estimates.mean(0)) < 4 * spread).all()


@pytest.mark.parametrize("a", [0.3, 0.95, 1.2])
@pytest.mark.parametrize("q", [0.01, 1.0])
def test_the_factor_of_one_state_is_that_of_riccati(a, q):
    one = np.ones((1, 1))
    _, covariance = _optimum(Lqr(a * one, one, q * one, one, one))
    assert _cheap_factor(a, q) == pytest.approx(covariance[0, 0] / 4, rel=1e-9)


def test_dominance_is_met_by_each_and_nearly_sharp():
    claim = LqrPolicyGradient()
    predicted = np.array(
        [
            [_cheap_factor(a, q) for q in (0.001, 0.01, 0.1, 1.0)]
            for a in (0.1, 0.3, 0.6, 0.9, 1.0, 1.2)
        ]
    )
    ratio = claim.dominance() / predicted[..., None]
    assert 0.95 < ratio.max() <= 1


def test_pairs_are_stable_and_their_means_are_not():
    for first, second in PAIRS:
        for loop in (first, second):
            assert np.abs(np.linalg.matrix_power(loop, len(loop))).max() == 0
    radii = [_midpoint_radius(*pair) for pair in PAIRS]
    np.testing.assert_allclose(radii, [5, 5**0.5])


def test_the_way_to_the_optimum_leaves_the_stable_feedbacks():
    """By bisection and by the determinant; the cost is finite at both ends, and infinite half-way, beyond it."""
    for tilt in TILTS:
        system = _tilted(tilt)
        bound = _leaves_at(system)
        assert leaves_at(system, 1e9) == pytest.approx(bound, rel=1e-9)
        optimum = np.asarray(system.optimum.feedback)
        np.testing.assert_allclose(np.eye(2) - optimum, _loop(system), atol=1e-12)
        for c, inside in ((0.9 * bound, True), (1.1 * bound, False)):
            far = np.eye(2) - np.array([[0.0, c], [0.0, 0.0]])
            assert np.isfinite(system.cost(far))
            assert np.isfinite(system.cost((far + optimum) / 2)) == inside
    assert leaves_at(_tilted(0.0), 1e9) == 1e9


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
    """Both are reached by one feedback: the second row of A − BK is that of A."""
    for first, second in ONE_INPUT:
        assert np.array_equal(first[1], second[1])
        for loop in (first, second):
            assert np.abs(np.linalg.eigvals(loop)).max() < 1
        assert _midpoint_radius(first, second) < 1


@pytest.mark.parametrize("a", [0.2, 0.7])
def test_the_error_with_one_state_is_root_two(a):
    """By the fourth moment of a Gaussian, and by the formula of systems of any size."""
    one = np.ones((1, 1))
    assert _rollout_error(Lqr(a * one, one, one, one, one)) == pytest.approx(2**0.5)
    claim = LqrPolicyGradient(pairs=40_000)
    both, single = jax.jit(claim.one_state)(a, jax.random.key(0))
    assert float(both) == pytest.approx(2**0.5, rel=0.05)
    assert float(single) > 5
