"""The clock of weight decay: the path in dual variables and by brute force, slopes against autodiff."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

from steepest.claims.training.grokking_clock import experiment, theory
from steepest.claims.training.grokking_clock.claim import GrokkingClock
from tests.claims.numpy_points import KEY, observed_at

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 7))
TRUTH = np.array([1.2, 0, 0, 0, 0, 0, 0.0])
Y = X @ TRUTH


def test_slope_is_that_of_the_penalized_risk():
    weights = RNG.standard_normal(14)
    decay = 0.3

    def risk(weights):
        beta = weights[:7] ** 2 - weights[7:] ** 2
        return ((X @ beta - Y) ** 2).mean() / 2 + decay / 2 * (weights**2).sum()

    with jax.enable_x64(True):
        wanted = jax.jit(jax.grad(risk))(jnp.asarray(weights))
    np.testing.assert_allclose(experiment.slope(X, Y, weights, decay), wanted, atol=1e-12)


def test_curvature_by_differences_of_the_slope():
    weights = RNG.standard_normal(14)
    step = 1e-5
    columns = []
    for moved in step * np.eye(14):
        ahead = experiment.slope(X, Y, weights + moved, 0.3)
        behind = experiment.slope(X, Y, weights - moved, 0.3)
        columns.append((ahead - behind) / (2 * step))
    wanted = np.transpose(columns)
    np.testing.assert_allclose(experiment.curvature(X, Y, weights, 0.3), wanted, atol=1e-7)


def test_products_of_weights_decay_whatever_the_data():
    """θ₊θ₋ = α²e^(−2λt), by the network's own flow, which the scale s rests on."""
    alpha = 2.0
    decay = 0.1
    solution = solve_ivp(
        lambda _, weights: -experiment.slope(X, Y, weights, decay),
        (0, 5.0),
        np.full(14, alpha),
        rtol=1e-9,
        atol=1e-11,
    )
    products = solution.y[:7, -1] * solution.y[7:, -1]
    np.testing.assert_allclose(products, theory.scale(alpha, decay, 5.0), rtol=1e-6)


def test_path_by_small_steps_of_descent():
    weights = np.full(14, 1.0)
    size = 1e-3
    for _ in range(2000):
        weights = weights - size * experiment.slope(X, Y, weights, 0.05)
    flow = experiment.path(X, Y, 1.0, 0.05, np.array([1.0, 2.0]))
    np.testing.assert_allclose(flow[-1], weights[:7] ** 2 - weights[7:] ** 2, atol=2e-3)


def test_limit_is_the_least_penalty_by_brute_force():
    size = 0.05
    null = np.linalg.svd(X)[2][4:]
    least = np.linalg.pinv(X) @ Y

    def penalty(free):
        z = (least + free @ null) / size
        return (size * (2 - np.sqrt(4 + z**2) + z * np.arcsinh(z / 2))).sum()

    best = minimize(penalty, np.zeros(3), tol=1e-12)
    np.testing.assert_allclose(theory.interpolant(X, Y, size), least + best.x @ null, atol=1e-5)


def test_path_by_its_dual_variables():
    """The flow of ν, of which u = Xᵀν is the ratio of weights, has the residual of first order."""
    decay = 0.002
    alpha = 2.0

    def motion(time, dual):
        beta = 2 * theory.scale(alpha, decay, time) * np.sinh(X.T @ dual)
        return -4 / len(Y) * (X @ beta - Y)

    end = 900.0
    solution = solve_ivp(motion, (0, end), np.zeros(4), method="LSODA", rtol=1e-9, atol=1e-11)
    size = theory.scale(alpha, decay, end)
    beta = 2 * size * np.sinh(X.T @ solution.y[:, -1])
    limit = theory.interpolant(X, Y, size)
    residual = theory.residual(X, Y, limit, size, decay)
    np.testing.assert_allclose(X @ beta - Y, residual, atol=0.02 * np.linalg.norm(residual))
    np.testing.assert_allclose(beta, theory.weights_at(X, Y, size, decay), atol=1e-4)
    np.testing.assert_allclose(
        experiment.path(X, Y, alpha, decay, np.array([end]))[0], beta, atol=1e-4
    )


def test_moment_of_half_is_where_the_error_is():
    plateau = 0.5
    moment = theory.moment_of_half(X, Y, TRUTH, 0.001, plateau, 4.0)
    error = theory.error_at(X, Y, TRUTH, np.exp(-2 * moment), 0.001)
    assert error == pytest.approx(plateau / 2, rel=1e-3)


def test_time_of_half_lies_between_readings():
    times = np.array([0.0, 1.0, 2.0, 3.0])
    assert experiment.time_of_half(times, np.array([1.0, 0.8, 0.4, 0.45])) == pytest.approx(1.75)
    assert experiment.time_of_half(times, np.ones(4)) == 3.0


def test_the_point_is_one_flow_of_the_claim():
    few = {"alphas": (5.0,), "decays": (0.004,), "moments": (0.0, 3.0), "seeds": 3}
    claim = GrokkingClock(n=6, dimension=8, nonzero=1, **few)
    point = GrokkingClock.point.of(claim)
    setting = claim.setting(KEY)
    problems = point.setting(KEY)
    np.testing.assert_array_equal(problems.y, setting.y)
    np.testing.assert_allclose(
        point.predict(problems)["time"], claim.predict(setting)["time"][:, 0, 0]
    )
    times, _, misfits = claim.flows(setting, claim.decays)
    observed = observed_at(point, problems)
    # both read between times, which are not the same
    np.testing.assert_allclose(observed["time"], times[:, 0, 0], rtol=2e-3)
    np.testing.assert_allclose(observed["misfit"], misfits[:, 0, 0], rtol=1e-3)
