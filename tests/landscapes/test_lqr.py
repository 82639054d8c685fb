"""The regulator against SciPy's Riccati and Lyapunov solvers, automatic differentiation and explicit rollouts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import solve_discrete_are, solve_discrete_lyapunov

from steepest.core.errors import UserError
from steepest.landscapes import lqr

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4))
A *= 1.1 / np.abs(np.linalg.eigvals(A)).max()  # unstable without a feedback
B = RNG.normal(size=(4, 2))
HALF = RNG.normal(size=(4, 4))
Q = HALF @ HALF.T
R = np.diag([1.0, 3.0])
START = np.diag([1.0, 0.5, 2.0, 0.1])
SYSTEM = lqr(A, B, Q, R, START)


@pytest.fixture(scope="module")
def feedback():
    """A stable feedback, 0.1 away from the best one."""
    return SYSTEM.optimum.feedback + 0.1 * RNG.normal(size=(2, 4)) / 3


def test_optimum_solves_riccati():
    value = solve_discrete_are(A, B, Q, R)
    optimum = SYSTEM.optimum
    gain = np.linalg.solve(R + B.T @ value @ B, B.T @ value @ A)
    np.testing.assert_allclose(optimum.value, value, rtol=1e-10)
    np.testing.assert_allclose(optimum.feedback, gain, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(optimum.cost, np.trace(value @ START), rtol=1e-10)
    loop = A - B @ gain
    np.testing.assert_allclose(optimum.covariance, solve_discrete_lyapunov(loop, START), rtol=1e-9)


def test_cost_is_lyapunov_s(feedback):
    K = np.asarray(feedback)
    value = solve_discrete_lyapunov((A - B @ K).T, Q + K.T @ R @ K)
    assert float(SYSTEM.cost(feedback)) == pytest.approx(np.trace(value @ START), rel=1e-10)


def test_gradient_is_that_of_autodiff_and_vanishes_at_the_optimum(feedback):
    slope = jax.grad(SYSTEM.cost)(feedback)
    np.testing.assert_allclose(SYSTEM.gradient(feedback), slope, atol=1e-8)
    assert np.abs(SYSTEM.gradient(SYSTEM.optimum.feedback)).max() < 1e-9


def test_excess_is_a_difference_of_costs_without_cancellation(feedback):
    optimum = SYSTEM.optimum
    difference = SYSTEM.cost(feedback) - optimum.cost
    assert float(SYSTEM.excess(feedback, optimum)) == pytest.approx(float(difference), rel=1e-9)
    close = optimum.feedback + 1e-10 * (feedback - optimum.feedback)
    # the Hessian at K* is 2 M* ⊗ Σ*
    way = np.asarray(feedback - optimum.feedback)
    second = np.trace(way @ optimum.covariance @ way.T @ optimum.curvature)
    assert float(SYSTEM.excess(close, optimum)) == pytest.approx(1e-20 * second, rel=1e-4)


def test_an_unstable_feedback_costs_infinitely_much():
    zero = jnp.zeros((2, 4))
    assert np.isinf(SYSTEM.cost(zero))
    assert np.isnan(SYSTEM.gradient(zero)).all()
    assert np.isinf(SYSTEM.excess(zero, SYSTEM.optimum))


def test_rollouts_are_the_cost_of_explicit_states(feedback):
    key = jax.random.key(0)
    costs = SYSTEM.rollouts(feedback, key, 3, 5)
    x = np.asarray(jax.random.normal(key, (3, 4)) @ SYSTEM.root.T)
    total = np.zeros(3)
    for _ in range(5):
        u = -x @ np.asarray(feedback).T
        total += np.einsum("ri,ij,rj->r", x, Q, x) + np.einsum("ri,ij,rj->r", u, R, u)
        x = x @ A.T + u @ B.T
    np.testing.assert_allclose(costs, total, rtol=1e-12)


def test_the_mean_of_rollouts_is_the_cost(feedback):
    costs = np.asarray(SYSTEM.rollouts(feedback, jax.random.key(1), 20_000, 80))
    error = costs.std() / len(costs) ** 0.5
    assert abs(costs.mean() - float(SYSTEM.cost(feedback))) < 4 * error


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"B": B.T}, "shape"),
        ({"R": -R}, "positive definite"),
        ({"start": A}, "symmetric"),
        ({"A": np.full((4, 4), np.nan)}, "finite"),
        ({"B": 0 * B}, "stable"),
    ],
)
def test_bad_input_is_one_sentence(changes, words):
    given = {"A": A, "B": B, "Q": Q, "R": R, "start": START, **changes}
    with pytest.raises(UserError, match=words):
        lqr(**given)
