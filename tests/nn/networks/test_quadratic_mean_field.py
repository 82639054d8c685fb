"""The network of squares: its flow and SGD from explicit neurons by autodiff, its covariances by simulation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.nn.networks import quadratic_mean_field

RNG = np.random.default_rng(0)
MODEL = quadratic_mean_field([1.0, 0.5, 0.0], scale=0.6)


def test_a_step_is_sgd_on_the_neurons():
    """θ ← θ − ε N ∇ ½ (f(x) − y)², by autodiff."""
    N = 7
    theta = jnp.asarray(RNG.normal(size=(N, 3)))
    x = jnp.asarray(RNG.normal(size=3))
    loss = lambda theta: 0.5 * (((theta @ x) ** 2).mean() - x @ MODEL.target @ x) ** 2
    after = theta - 0.01 * N * jax.grad(loss)(theta)
    M = np.asarray(theta.T @ theta / N)
    np.testing.assert_allclose(MODEL.step(M, np.asarray(x), 0.01), after.T @ after / N, rtol=1e-12)


def test_the_slope_is_the_gradient_of_the_risk():
    """The closed risk ½ (2 tr Δ² + tr² Δ), differentiated through the neurons."""
    N = 5
    theta = jnp.asarray(RNG.normal(size=(N, 3)))

    def risk(theta):
        delta = theta.T @ theta / N - MODEL.target
        return (delta**2).sum() + 0.5 * jnp.trace(delta) ** 2

    move = np.asarray(-N * jax.grad(risk)(theta))
    theta = np.asarray(theta)
    slope = (move.T @ theta + theta.T @ move) / N
    np.testing.assert_allclose(MODEL.slope(theta.T @ theta / N), slope, rtol=1e-12)
    # and the closed risk is the mean over x
    x = RNG.normal(size=(400_000, 3))
    delta = theta.T @ theta / N - MODEL.target
    squares = ((x @ delta) * x).sum(1) ** 2
    closed = float(MODEL.distance(delta, 0 * delta)) ** 2
    assert abs(squares.mean() - closed) <= 4 * squares.std() / np.sqrt(len(x))


def test_the_flow_is_the_limit_of_small_steps():
    start = np.diag([0.5, 0.2, 0.1])
    M = start
    for _ in range(20_000):
        M = M + 5e-5 * MODEL.slope(M)
    np.testing.assert_allclose(MODEL.flow(start, [0.0, 1.0])[-1], M, atol=1e-4)
    np.testing.assert_allclose(MODEL.flow(start, [0.0, 1.0])[0], start, rtol=1e-12)
    assert MODEL.flow(np.stack([start, start]), [0.0, 1.0]).shape == (2, 2, 3, 3)


def test_the_limit_learns_its_target():
    np.testing.assert_allclose(MODEL.limit([0.0, 400.0])[-1], MODEL.target, atol=1e-3)


def test_fluctuations_are_those_of_wide_networks():
    """400 networks of width 4000: the standard error of the mean square is 3 to 5 %."""
    times = np.array([0.0, 0.5, 2.0])
    theta = 0.6 * RNG.normal(size=(400, 4000, 3))
    starts = theta.swapaxes(1, 2) @ theta / 4000
    squares = MODEL.distance(MODEL.flow(starts, times), MODEL.limit(times)[:, None]) ** 2
    ratio = 4000 * squares / MODEL.fluctuations(times)[:, None]
    assert np.all(np.abs(ratio.mean(1) - 1) <= 4 * ratio.std(1) / 20 + 0.01)
    assert MODEL.fluctuations([0.0])[0] == pytest.approx(0.6**4 * (2 * 12 + 6))


def test_noise_is_that_of_small_steps():
    lr = 2e-4
    M = np.broadcast_to(0.36 * np.eye(3), (400, 3, 3))
    for _ in range(1500):
        M = MODEL.step(M, RNG.normal(size=(400, 3)), lr)
    squares = MODEL.distance(M, MODEL.limit([0.0, 0.3])[-1]) ** 2 / lr
    expected = MODEL.noise([0.0, 0.3])[-1]
    assert abs(squares.mean() - expected) <= 4 * squares.std() / 20 + 0.02 * expected


def test_one_dimension_in_closed_form():
    """(1/N) Σ θ² x² with target x²: m' = −12 (m − 1) m, a logistic curve."""
    model = quadratic_mean_field([1.0], scale=0.5)
    times = np.array([0.0, 0.1, 0.3])
    odds = 0.25 / 0.75 * np.exp(12 * times)
    np.testing.assert_allclose(model.limit(times)[:, 0, 0], odds / (1 + odds), rtol=1e-8)
    # the variance 2τ⁴/N of the start times the squared derivative of the curve, in the norm 3 δ²
    slope = (odds / (1 + odds) ** 2) / (0.25 * 0.75)
    np.testing.assert_allclose(model.fluctuations(times), 3 * 2 * 0.5**4 * slope**2, rtol=1e-6)


@pytest.mark.parametrize(
    ("target", "scale", "sentence"),
    [
        (np.ones((2, 3)), 0.5, "target must be"),
        (np.array([[0.0, 1.0], [0.0, 0.0]]), 0.5, "expected a symmetric target"),
        ([1.0], 0.0, "expected a scale above zero, got 0"),
    ],
)
def test_models_that_cannot_be(target, scale, sentence):
    with pytest.raises(UserError, match=sentence):
        quadratic_mean_field(target, scale)


def test_noise_in_many_dimensions_is_refused():
    with pytest.raises(UserError, match="at most 6 dimensions"):
        quadratic_mean_field(np.ones(7)).noise([0.0, 1.0])
