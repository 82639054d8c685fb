"""Sharpness-aware minimization: steps against loops, its edge by eigenvalues, the fall by integration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steepest.claims.training import _tanh_network as tanh_network
from steepest.claims.training.sam_edge import experiment, theory
from steepest.claims.training.sam_edge.claim import SamEdge
from steepest.claims.training.sam_edge.experiment import Rule
from steepest.optimizers import Sam

KEY = jax.random.key(0)


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_training_is_a_loop_of_steps(momentum):
    eta = 0.1
    rho = 0.05
    rule = Rule(jnp.asarray(eta), jnp.asarray(rho), jnp.asarray(momentum))
    readings = jax.jit(experiment.train, static_argnums=(2, 3))(KEY, rule, 2, 3)
    slope = jax.jit(jax.grad(tanh_network.risk))
    w = tanh_network.start(KEY)
    places = [w]
    along = jnp.zeros_like(w)
    for _ in range(6):
        g = slope(w)
        ahead = w + rho * g / jnp.sqrt((g**2).sum())
        along = momentum * along + slope(ahead)
        w = w - eta * along
        places.append(w)
    kept = [places[2:4], places[5:7]]
    np.testing.assert_allclose(readings.weights, np.array(kept), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(readings.gradients[1, 1], slope(places[6]), rtol=1e-4, atol=1e-7)


def test_gradients_on_a_parabola_come_to_the_law():
    """In four directions, from a random start: the largest curvature alone is left."""
    curvatures = np.array([6.0, 4.0, 2.0, 0.5])
    eta = 0.2
    rho = 0.05
    w = np.random.default_rng(0).standard_normal(4)
    for _ in range(400):
        g = curvatures * w
        w = w - eta * curvatures * (w + rho * g / np.linalg.norm(g))
    size = np.linalg.norm(curvatures * w)
    assert size == pytest.approx(float(Sam(rho).gradient(eta, 6.0)), rel=1e-6)
    assert eta * 6.0 * (1 + rho * 6.0 / size) == pytest.approx(2)


def test_edge_is_the_sources_curvature():
    """The law solved for λ at a given size of the gradient is the published edge."""
    curvature = 7.0
    eta = 0.1
    rho = 0.03
    size = float(Sam(rho).gradient(eta, curvature))
    edge = size / (2 * rho) * (np.sqrt(1 + 8 * rho / (eta * size)) - 1)
    assert edge == pytest.approx(curvature)


@pytest.mark.parametrize("eta", [0.01, 0.3])
def test_fall_is_the_integral_of_the_force(eta):
    rho = 0.1
    after = 2.5
    steps = float(theory.steps_to_fall(5.0, after, eta, rho))

    def speed(_, curvature):
        return -2 * rho**2 * curvature**2 / (2 - eta * curvature) ** 2

    path = solve_ivp(speed, (0, steps * eta), [5.0], rtol=1e-9, atol=1e-9)
    assert path.y[0, -1] == pytest.approx(after, rel=1e-6)


def test_small_steps_fall_as_the_limit():
    fall = theory.steps_to_fall(5.0, 3.0, 1e-5, 0.1)
    limit = theory.steps_of_small_ones(5.0, 3.0, 1e-5, 0.1)
    assert float(fall / limit) == pytest.approx(1, rel=1e-3)


def test_slope_of_the_valley_is_its_gradient():
    valley = lambda place: jnp.exp(place[1]) * place[0] ** 2 / 2
    place = jnp.array([0.3, -0.7])
    np.testing.assert_allclose(
        experiment.slope_of_valley(0.3, -0.7), jax.grad(valley)(place), rtol=1e-6
    )


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_walks_are_a_loop(momentum):
    """The number of steps between two curvatures, counted in a loop over one walk."""
    eta = 0.2
    rho = 0.1
    met = experiment.fall(
        np.random.default_rng(3), np.array([eta]), np.array([rho]), np.array([4.0, 2.0]), momentum
    )
    rng = np.random.default_rng(3)
    place = np.array([rho * rng.standard_normal(1)[0], 0.0])
    place[1] = np.log(4.0 * rng.uniform(*experiment.AHEAD))
    along = np.zeros(2)
    heights = [place[1]]
    for _ in range(200):
        slope = np.array(experiment.slope_of_valley(*place))
        ahead = place + rho * slope / np.linalg.norm(slope)
        along = momentum * along + np.array(experiment.slope_of_valley(*ahead))
        place = place - eta * along
        heights.append(place[1])
    numbers = np.arange(len(heights))
    first, second = np.interp(-np.log([4.0, 2.0]), -np.array(heights), numbers)
    assert met.steps[0, 0] == pytest.approx(second - first)


@pytest.mark.parametrize("product", [0.3, 1.0, 1.7])
def test_walks_on_a_parabola_settle_on_the_edge(product):
    sizes = experiment.settle(np.random.default_rng(2), np.array([product]), 5, 300)
    np.testing.assert_allclose(sizes, float(Sam(1.0).gradient(product, 1.0)), rtol=1e-9)


@pytest.mark.parametrize(("first", "lr", "radius"), [(3.0, 0.2, 0.08), (6.0, 0.2, 0.05)])
def test_gradients_lag_behind_a_falling_curvature_by_what_is_said(first, lr, radius):
    """A walk reads them half a step early in the mean, which adds half of what the law falls by in a step."""
    ends = np.array([first, 0.8 * first])
    met = experiment.fall(np.random.default_rng(3), np.full(400, lr), np.full(400, radius), ends)
    excess = met.gradients.mean() / float(Sam(radius).gradient(lr, ends[1])) - 1
    lag = float(theory.lag(ends[1], lr, radius))
    in_a_step = lag * (2 - lr * ends[1])
    assert excess == pytest.approx(lag + in_a_step / 2, rel=0.1)


def test_steps_too_large_for_the_valley_are_out_of_range():
    claim = SamEdge(lrs=(0.2, 0.4))
    assert any(not condition.holds for condition in claim.hypotheses(None))


def test_the_point_walks_like_the_claim():
    claim = SamEdge(lrs=(0.2,), radii=(0.06,), curvatures=(3.0,), seeds=3)
    point = SamEdge.point.of(claim)
    walks = claim.walks(np.random.default_rng(1), momentum=0.0)
    walked = point.walks(np.random.default_rng(1), 0.2, 0.06)
    np.testing.assert_array_equal(walked["fall"], walks.steps[:, 0, 0, 0])
    np.testing.assert_array_equal(walked["gradient"], walks.gradients[:, 0, 0, 0])
    for name in ("fall", "gradient"):
        law = claim.predict(None)[name][0, 0, 0]
        assert point.predict(None)[name] == pytest.approx(law)
        # inside of a compiled computation too
        observed = jax.jit(point.observe)(None, KEY)[name]
        assert np.asarray(observed) == pytest.approx(law, rel=0.05)
