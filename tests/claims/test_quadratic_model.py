"""The experiment of quadratic-model against steps of Euler, dense Hessians and quadrature, and its point."""

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from steepest.claims.descent.quadratic_model.claim import printed_outside
from steepest.claims.descent.quadratic_model.experiment import (
    Models,
    QuadraticPoint,
    draw_models,
    draw_networks,
    follow_model,
    network,
    network_theory,
)
from steepest.kernels import first_order_flow
from steepest.kit import compiled

EPSILON = 0.02


@pytest.fixture(scope="module")
def run():
    """One small model with the point's experiment: θ at t = 1 and at the end."""
    with jax.enable_x64(True):
        models = jax.jit(lambda key: draw_models(key, 3, 6, 2))(jax.random.key(0))
        model = Models(*(np.asarray(part)[1] for part in models))
        follow = compiled(lambda model: follow_model(*model, EPSILON, 1.0))
        middle, end, arrived = map(np.asarray, follow(model))
    assert arrived
    return model, middle, end


def test_the_end_interpolates(run):
    model, _, end = run
    phi = model.phi[:, :2]
    outputs = end @ phi + EPSILON / 2 * (model.forms[:2] @ end) @ end
    np.testing.assert_allclose(outputs, model.y, atol=1e-7)


def test_the_way_is_that_of_small_steps_of_euler(run):
    """Richardson's extrapolation of Euler's method at two step sizes, to t = 1."""
    model, middle, _ = run
    phi = model.phi[:, :2]
    forms = model.forms[:2]

    def euler(steps):
        theta = model.start
        for _ in range(steps):
            bent = forms @ theta
            residual = theta @ phi + EPSILON / 2 * bent @ theta - model.y
            theta = theta - (phi.T + EPSILON * bent).T @ residual / steps
        return theta

    np.testing.assert_allclose(middle, 2 * euler(4000) - euler(2000), atol=1e-6)


def test_the_printed_path_bends_what_has_moved(run):
    """The integral of its rate by the trapezoidal rule."""
    model, _, _ = run
    phi = model.phi[:, :2]
    theory = first_order_flow(phi, lambda v: model.forms[:2] @ v, model.y, model.start)
    decay, basis = np.linalg.eigh(phi.T @ phi)
    times = np.linspace(0, 60 / decay[0], 200_001)
    residuals = np.exp(-np.outer(times, decay)) * (basis.T @ (phi.T @ model.start - model.y))
    residuals = residuals @ basis.T
    moved = model.start - theory.linear
    shares = np.linalg.lstsq(phi, moved, rcond=None)[0] @ basis
    gone = (shares * -np.expm1(-np.outer(times, decay))) @ basis.T @ phi.T
    rate = -np.einsum("apq,tq,ta->tp", model.forms[:2], gone, residuals)
    whole = np.trapezoid(rate, times, axis=0)
    whole -= phi @ np.linalg.lstsq(phi, whole, rcond=None)[0]
    stacked = Models(*(part[None] for part in model))
    np.testing.assert_allclose(printed_outside(stacked)[0], whole, atol=1e-5)


def test_the_theory_of_a_network_is_its_hessian():
    """½ θ^FᵀF(x)θ^F by the dense Hessian, and the linear model by the pseudo-inverse of the Jacobian."""
    with jax.enable_x64(True):
        net = network(3, 4)
        networks = draw_networks(jax.random.key(0), 3, 4, 2, 3)
        linear, inside, _, bent = network_theory(net, networks)
        start = jax.tree.map(lambda leaf: np.asarray(leaf)[1], networks.start)
        flat, unravel = ravel_pytree(start)
        outputs = lambda row: net.apply(unravel(row), networks.x[1])
        jacobian = np.asarray(jax.jacobian(outputs)(flat))
        hessian = np.asarray(jax.hessian(outputs)(flat))
    theta = np.linalg.pinv(jacobian[:2]) @ networks.y[1]
    squares = np.einsum("apq,p,q->a", hessian, theta, theta)
    np.testing.assert_allclose(linear[1], jacobian @ theta, atol=1e-10)
    np.testing.assert_allclose(bent[1], squares / 2, atol=1e-10)
    moved = jacobian @ np.linalg.pinv(jacobian[:2]) @ (-squares[:2] / 2)
    np.testing.assert_allclose(inside[1], moved, atol=1e-10)


def test_the_condition_of_newton_and_kantorovich_shrinks_to_nothing_where_m_meets_p():
    point = QuadraticPoint(epsilon=0.1, examples=3, dimension=10, seeds=3)
    (curve,) = point.boundaries("epsilon", "examples")
    (flipped,) = point.boundaries("examples", "epsilon")
    np.testing.assert_array_equal(curve.x, flipped.y)
    assert (np.diff(np.asarray(curve.x)) < 0).all()
    assert point.boundaries("epsilon", "seeds") == ()
