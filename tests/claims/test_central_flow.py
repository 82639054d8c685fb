"""Central flow: σ² on a valley by hand, steps against dense Hessians, descent against loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.training import _tanh_network as tanh_network
from steepest.claims.training.central_flow import experiment, theory
from steepest.claims.training.central_flow import point as point_module
from steepest.claims.training.central_flow.claim import CentralFlow

KEY = jax.random.key(0)
ETA = 0.25
SLOPE = 0.02


def valley(w):
    """A valley whose floor goes down towards larger curvature."""
    return jnp.exp(w[1]) * w[0] ** 2 / 2 - SLOPE * w[1]


def test_flow_in_a_valley_stands_with_the_variance_of_the_floors_slope():
    """∇λ = (0, λ) and ∇L = (0, −slope), so σ² = 2 slope/λ = η slope."""
    first = jnp.array([0.0, jnp.log(2 / ETA)])
    path = theory.flow(valley, first, jnp.array([1.0, 0.1]), ETA, 50, 2)
    np.testing.assert_allclose(path.variance[-1], SLOPE * ETA, rtol=1e-4)
    np.testing.assert_allclose(path.weights[-1], first, atol=1e-3)


def test_descent_in_the_valley_swings_by_the_variance_of_the_flow():
    w = np.array([np.sqrt(SLOPE * ETA), np.log(2 / ETA)])
    squares = []
    for _ in range(4000):
        slope = np.array([np.exp(w[1]) * w[0], np.exp(w[1]) * w[0] ** 2 / 2 - SLOPE])
        w = w - ETA * slope
        squares.append(w[0] ** 2)
    assert np.mean(squares) == pytest.approx(SLOPE * ETA, rel=0.02)


def bowl(w):
    """A risk of four weights whose Hessian turns as they move."""
    rows = jnp.sin(jnp.arange(24.0)).reshape(6, 4)
    return 0.5 * ((jnp.tanh(rows @ w + 0.3) - 0.5) ** 2).mean() + 0.02 * (w**4).sum()


def test_flow_is_that_of_dense_hessians():
    first = jnp.array([0.6, -0.4, 0.3, 0.8])
    dense = jax.jit(jax.hessian(bowl))
    top = lambda w: jnp.linalg.eigvalsh(jax.hessian(bowl)(w))[-1]
    climb = jax.jit(jax.grad(top))
    slope = jax.jit(jax.grad(bowl))
    values, vectors = np.linalg.eigh(np.asarray(dense(first)))
    eta = 2 / values[-1] * 1.02
    path = theory.flow(bowl, first, jnp.asarray(vectors[:, -1]), eta, 20, 1)
    w = np.asarray(first)
    variances = []
    for _ in range(20 * theory.PARTS):
        up = np.asarray(climb(w))
        g = np.asarray(slope(w))
        variance = -2 * (up @ g) / (up @ up)
        error = np.linalg.eigvalsh(np.asarray(dense(w)))[-1] - 2 / eta
        back = 2 * theory.BACK / eta * error / (up @ up)
        variances.append(max(variance, 0))
        w = w - eta / theory.PARTS * (g + 0.5 * max(variance + back, 0) * up)
    np.testing.assert_allclose(path.weights[0], w, rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(path.variance[0], np.mean(variances), rtol=2e-2, atol=1e-4)


def test_flow_that_nothing_holds_follows_the_gradient():
    first = jnp.array([0.6, -0.4, 0.3, 0.8])
    path = theory.flow(bowl, first, jnp.ones(4), 0.1, 5, 2, held=0.0)
    w = first
    slope = jax.jit(jax.grad(bowl))
    for _ in range(10 * theory.PARTS):
        w = w - 0.1 / theory.PARTS * slope(w)
    np.testing.assert_allclose(path.weights[-1], w, rtol=1e-5)


def test_two_curvatures_are_the_dense_hessians():
    weights = tanh_network.start(KEY)
    wanted = np.linalg.eigvalsh(np.asarray(jax.jit(jax.hessian(tanh_network.risk))(weights)))
    got = jax.jit(experiment.two_curvatures)(KEY, weights)
    np.testing.assert_allclose(got, wanted[-1:-3:-1], rtol=2e-2)


def test_beginning_and_descent_are_loops_of_steps():
    eta = 0.2
    begun = jax.jit(lambda key: experiment.begin(key, eta, 4, 2))(KEY)
    walked = jax.jit(lambda three: experiment.descend(three, eta, 3, 2))(begun.weights[1])
    slope = jax.jit(jax.grad(tanh_network.risk))
    places = [np.asarray(tanh_network.start(jax.random.split(jax.random.split(KEY)[0], 2)[1]))]
    for _ in range(12):
        places.append(places[-1] - eta * np.asarray(slope(places[-1])))
    np.testing.assert_allclose(begun.weights[1], np.array(places[3:6]), rtol=1e-4, atol=1e-6)
    middles = [(a + 2 * b + c) / 4 for a, b, c in zip(places, places[1:], places[2:], strict=False)]
    # the middle of places[t] stands at t − 1
    np.testing.assert_allclose(walked.weights[1], middles[9], rtol=1e-4, atol=1e-6)
    squares = [float(((places[t] - middles[t - 1]) ** 2).sum()) for t in (5, 6, 7)]
    assert float(walked.variance[0]) == pytest.approx(np.mean(squares), rel=1e-2)
    cost = jax.jit(tanh_network.risk)
    risks = [float(cost(places[t])) for t in (5, 6, 7)]
    assert float(walked.risk[0]) == pytest.approx(np.mean(risks), rel=1e-4)


def test_the_point_keeps_the_trainings_that_the_claim_keeps(monkeypatch):
    rng = np.random.default_rng(0)
    curvatures = 8.0 * rng.choice([0.999, 1.005, 1.02], (15, 2))
    trainings = (np.arange(15.0 * 3 * 2).reshape(15, 3, 2), curvatures, rng.uniform(1, 3, 15))
    begun = experiment.Begun(*map(jnp.asarray, trainings))
    monkeypatch.setattr(experiment, "begin", lambda *_: begun)
    monkeypatch.setattr(point_module, "begin", lambda *_: begun)
    claim = CentralFlow(edge=8.0, seeds=3)
    point = CentralFlow.point.of(claim)
    for kept, wanted in zip(point.setting(KEY), claim.setting(KEY)[1:], strict=True):
        np.testing.assert_allclose(kept, wanted, rtol=1e-6)
