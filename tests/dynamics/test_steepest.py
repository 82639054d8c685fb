"""Steepest descent against its defining programs, gradient descent and closed forms."""

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest.core.errors import UserError
from steepest.dynamics import descend, steepest_descent, steepest_direction

ORDERS = [1.0, 4 / 3, 2.0, 3.0, np.inf]


@pytest.mark.parametrize("p", ORDERS)
def test_the_direction_solves_its_program(p):
    """max −⟨g, v⟩ over ‖v‖_p ≤ 1 has the value ‖g‖_q, by an interior-point code."""
    g = np.random.default_rng(3).normal(size=6)
    v = cp.Variable(6)
    best = cp.Problem(cp.Minimize(g @ v), [cp.norm(v, p) <= 1]).solve(solver=cp.CLARABEL)
    found, slope = steepest_direction(jnp.array(g), p)
    q = 1 if p == np.inf else np.inf if p == 1 else p / (p - 1)
    assert float(slope) == pytest.approx(np.linalg.norm(g, q), rel=1e-12)
    assert float(g @ found) == pytest.approx(-float(slope), rel=1e-12)
    assert float(slope) == pytest.approx(-best, rel=1e-6)
    assert np.linalg.norm(found, p) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("p", ORDERS)
def test_directions_do_not_overflow_and_vanish_with_the_gradient(p):
    g = jnp.array([3e200, -4e200, 0.0])
    v, slope = steepest_direction(g, p)
    assert np.isfinite(v).all() and np.isfinite(slope)
    still, none = steepest_direction(jnp.zeros(3), p)
    assert not np.asarray(still).any() and float(none) == 0


def quadratic(w):
    return 0.5 * jnp.sum(jnp.array([1.0, 3.0]) * w**2)


def test_l2_is_gradient_descent():
    start = jnp.array([1.0, -2.0])
    steepest = descend(quadratic, start, steepest_descent("l2", 0.1), 30)
    np.testing.assert_allclose(
        steepest.risk, descend(quadratic, start, optax.sgd(0.1), 30).risk, rtol=1e-12
    )


def test_l1_moves_one_coordinate_and_linf_all_alike():
    start = jnp.array([1.0, 1.0])
    np.testing.assert_allclose(
        descend(quadratic, start, steepest_descent("l1", 0.1), 1).params, [1.0, 0.7]
    )
    np.testing.assert_allclose(
        descend(quadratic, start, steepest_descent("linf", 0.1), 1).params, [0.6, 0.6]
    )
    np.testing.assert_allclose(
        descend(quadratic, start, steepest_descent("linf", 0.1, "unit"), 1).params, [0.9, 0.9]
    )


@pytest.mark.parametrize("norm", ["l1", "l2", "linf", 1.5])
def test_unit_steps_have_unit_length(norm):
    p = {"l1": 1, "l2": 2, "linf": np.inf}.get(norm, norm)
    path = descend(
        quadratic,
        jnp.array([1.0, 0.3]),
        steepest_descent(norm, 0.01, "unit"),
        10,
        observe={"w": lambda w: w},
    )
    moves = np.linalg.norm(np.diff(path.observed["w"], axis=0), p, axis=1)
    np.testing.assert_allclose(moves, 0.01, rtol=1e-10)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_steps_scaled_by_the_loss_are_steps_on_its_logarithm(norm):
    risk = lambda w: jnp.exp(-w[0]) + jnp.exp(-2 * w[1] + w[0])
    scaled = descend(risk, jnp.zeros(2), steepest_descent(norm, 0.1, "loss", risk), 40)
    plain = descend(lambda w: jnp.log(risk(w)), jnp.zeros(2), steepest_descent(norm, 0.1), 40)
    np.testing.assert_allclose(np.log(scaled.risk), plain.risk, rtol=1e-10)


def test_a_step_below_one_over_the_smoothness_never_raises_the_risk():
    """For the norm's own smoothness, max of vᵀHv over ‖v‖_p ≤ 1: the largest diagonal entry if p = 1."""
    a = np.random.default_rng(0).normal(size=(5, 5))
    hessian = a @ a.T
    risk = lambda w: 0.5 * w @ hessian @ w
    for norm, smooth in (("l1", np.diag(hessian).max()), ("linf", np.abs(hessian).sum())):
        path = descend(risk, jnp.ones(5), steepest_descent(norm, 1 / smooth), 200)
        assert (np.diff(path.risk) <= 1e-15).all()


def test_trees_and_vmap():
    tree = {"a": jnp.array(1.0), "b": jnp.array([0.5])}
    risk = lambda t: 0.5 * (t["a"] ** 2 + 3 * t["b"][0] ** 2)
    run = lambda lr: descend(risk, tree, steepest_descent("l1", lr), 5).risk
    flat = descend(quadratic, jnp.array([1.0, 0.5]), steepest_descent("l1", 0.2), 5).risk
    np.testing.assert_allclose(jax.vmap(run)(jnp.array([0.1, 0.2]))[1], flat, rtol=1e-12)


def test_bad_input_is_refused_in_one_sentence():
    for norm in ("l3", 0.5):
        with pytest.raises(UserError, match="norm (must be|is the order)"):
            steepest_descent(norm, 0.1)
    with pytest.raises(UserError, match="size must be"):
        steepest_descent("l1", 0.1, "long")
    with pytest.raises(UserError, match="a risk to scale"):
        steepest_descent("l1", 0.1, "loss")


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_steps_by_fall_lower_a_linear_risk_by_the_step(norm):
    slope = jnp.array([3.0, -4.0, 0.5])
    path = descend(lambda w: slope @ w, jnp.zeros(3), steepest_descent(norm, 0.25, "log-risk"), 8)
    np.testing.assert_allclose(path.risk, -0.25 * np.arange(9), rtol=1e-12)
