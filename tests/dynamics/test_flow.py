"""Gradient flow against matrix exponentials, across clocks, and past the smallest float."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.dynamics._flow import flow
from steepest.nn.losses import exponential, log_margin_risk, logistic, margin_risk
from steepest.programs import hard_margin

RATES = jnp.array([3.0, 1.0, 0.25])
START = jnp.array([1.0, -2.0, 0.5])


def bowl(w):
    return 0.5 * jnp.sum(RATES * w**2)


def linear(w, x):
    return x @ w


def separable_set():
    x = jnp.array([[2.0, 0.5], [1.0, -0.4], [3.0, 3.0], [0.7, 0.2]])
    return x, jnp.array([1.0, 1.0, 1.0, 1.0])


@pytest.mark.parametrize(("solver", "clock"), [("explicit", "plain"), ("stiff", "log")])
def test_linear_flow_is_an_exponential(solver, clock):
    """w(t) = e^{-At} w(0) on either clock with either solver."""
    times = jnp.array([0.0, 0.3, 1.0, 2.5])
    path = flow(
        bowl, START, times, clock, observe={"w": lambda w: w}, rtol=1e-9, atol=1e-12, solver=solver
    )
    expected = START * jnp.exp(-path.time[:, None] * RATES)
    assert bool(path.ok)
    assert np.allclose(path.observed["w"], expected, atol=1e-7)
    assert np.allclose(path.params, expected[-1], atol=1e-7)
    assert np.allclose(path.risk, jax.vmap(bowl)(expected), rtol=1e-5, atol=1e-12)
    assert np.allclose(path.log_time, jnp.log1p(times) if clock == "plain" else times)


def test_error_falls_with_the_tolerance():
    """A hundred times smaller rtol gives at least ten times smaller error, down to 1e-9."""
    errors = []
    for rtol in (1e-4, 1e-6, 1e-8, 1e-10):
        path = flow(bowl, START, jnp.array([2.0]), rtol=rtol, atol=rtol * 1e-3)
        errors.append(float(jnp.abs(path.params - START * jnp.exp(-2.0 * RATES)).max()))
    assert all(late < early / 10 for early, late in pairwise(errors))
    assert errors[-1] < 1e-9


def test_clocks_walk_the_same_path(loss=logistic):
    """At the time t that the risk clock says, the plain and the log clock are at the same parameters."""
    x, y = separable_set()
    risk = margin_risk(loss, linear, x, y)
    log_risk = log_margin_risk(loss, linear, x, y)
    slow = flow(risk, jnp.zeros(2), jnp.array([1.0, 4.0]), "risk", log_risk, rtol=1e-10, atol=1e-12)
    end = slow.time[-1]
    plain = flow(risk, jnp.zeros(2), end[None], "plain", rtol=1e-10, atol=1e-12)
    log = flow(risk, jnp.zeros(2), slow.log_time[-1:], "log", log_risk, rtol=1e-10, atol=1e-12)
    unaided = flow(risk, jnp.zeros(2), jnp.array([1.0, 4.0]), "risk", rtol=1e-10, atol=1e-12)
    for other in (plain, log, unaided):
        assert np.allclose(other.params, slow.params, rtol=1e-7)


def test_on_the_fall_clock_the_log_risk_falls_evenly():
    x, y = separable_set()
    risk = margin_risk(logistic, linear, x, y)
    log_risk = log_margin_risk(logistic, linear, x, y)
    start = jnp.array([0.1, -0.2])
    tight = {"rtol": 1e-10, "atol": 1e-12}
    path = flow(risk, start, jnp.array([0.5, 3.0]), "log-risk", log_risk, **tight)
    assert np.allclose(path.log_risk, log_risk(start) - path.clock, rtol=1e-8)
    plain = flow(risk, start, path.time, "plain", **tight)
    assert np.allclose(plain.params, path.params, rtol=1e-7)


def test_the_fall_clock_outruns_the_blow_up_of_the_risk_clock():
    """f = w³: on the risk clock dw/ds = 3w² reaches infinity at s = 1/3; on the log-risk clock w³ = 1 + s."""
    risk = margin_risk(exponential, lambda w, x: x[:, 0] * w**3, jnp.ones((1, 1)), jnp.ones(1))
    log_risk = log_margin_risk(
        exponential, lambda w, x: x[:, 0] * w**3, jnp.ones((1, 1)), jnp.ones(1)
    )
    lost = flow(risk, jnp.ones(()), jnp.array([0.3, 0.4]), "risk", log_risk, max_steps=2000)
    assert np.isfinite(lost.log_risk[0]) and not bool(lost.ok)
    path = flow(risk, jnp.ones(()), jnp.array([1.0, 2000.0]), "log-risk", log_risk)
    assert bool(path.ok)
    assert np.allclose(path.params**3, 2001, rtol=1e-6)


def test_one_example_has_a_closed_form_beyond_the_smallest_float():
    """Exponential loss of one example x = 1: R(t) = 1/(1 + t); on the risk clock w = s = log(1 + t)."""
    x = jnp.ones((1, 1))
    y = jnp.ones(1)
    times = jnp.array([1.0, 100.0, 1e4])
    path = flow(
        margin_risk(exponential, linear, x, y),
        jnp.zeros(1),
        times,
        "risk",
        log_margin_risk(exponential, linear, x, y),
    )
    assert bool(path.ok)
    assert np.allclose(path.log_risk, -times, rtol=1e-7)
    assert np.allclose(path.log_time, times, rtol=1e-6)
    assert path.risk[-1] == 0 and jnp.isinf(path.time[-1])


def test_logistic_risk_far_below_underflow_keeps_falling_like_one_over_t():
    """log(t R γ̂²) → 0: the constant of the 1/t law is 1/γ̂² for every separable set."""
    x, y = separable_set()
    times = jnp.array([100.0, 3000.0])
    risk = margin_risk(logistic, linear, x, y)
    log_risk = log_margin_risk(logistic, linear, x, y)
    path = flow(risk, jnp.zeros(2), times, "log", log_risk, rtol=1e-7, atol=1e-9, solver="stiff")
    best = hard_margin(x, y).margin
    assert bool(path.ok) and path.log_risk[-1] < -1000
    assert abs(float(path.log_time[-1] + path.log_risk[-1] + 2 * np.log(best))) < 1e-6


def test_flow_maps_over_starts_and_data(key):
    """vmap over starting points and over data gives what single runs give."""
    starts = jax.random.normal(key, (3, 3))
    times = jnp.array([0.5, 1.0])
    many = jax.vmap(lambda w: flow(bowl, w, times))(starts)
    assert many.risk.shape == (3, 2) and many.ok.shape == (3,)
    assert np.allclose(many.params, starts * jnp.exp(-RATES), atol=1e-6)
    rates = jnp.array([1.0, 2.0])
    by_data = jax.jit(
        jax.vmap(lambda a: flow(lambda w: 0.5 * a * jnp.sum(w**2), jnp.ones(1), times).params)
    )(rates)
    assert np.allclose(by_data[:, 0], jnp.exp(-rates), atol=1e-6)


def test_parameters_may_be_any_tree():
    start = {"a": jnp.ones(2), "b": (jnp.array(3.0),)}
    path = flow(lambda p: 0.5 * jnp.sum(p["a"] ** 2) + p["b"][0] ** 2, start, jnp.array([1.0]))
    assert np.allclose(path.params["a"], np.exp(-1), atol=1e-6)
    assert np.allclose(path.params["b"][0], 3 * np.exp(-2), atol=1e-6)


def test_the_floor_stops_the_flow_and_says_so():
    """The flow settles at the first step at or below the floor; what was not reached is NaN."""
    path = flow(bowl, START, jnp.array([0.1, 1.0, 1e4]), floor=1e-12)
    assert bool(path.settled) and bool(path.ok)
    assert bowl(path.params) <= 1e-12
    assert np.isfinite(path.risk[:2]).all() and np.isnan(path.risk[2])


def test_running_out_of_steps_is_an_outcome():
    path = flow(bowl, START, jnp.array([1e-3, 1e6]), max_steps=50)
    assert not bool(path.ok) and bool(path.exhausted)
    assert np.isfinite(path.risk[0]) and np.isnan(path.risk[1])


def test_blow_up_is_an_outcome():
    """dw/dt = w² from 1 blows up at t = 1: no exception, ok is False."""
    path = flow(lambda w: -jnp.sum(w**3) / 3, jnp.ones(1), jnp.array([0.5, 2.0]), max_steps=2000)
    assert not bool(path.ok)
    assert float(path.risk[0]) == pytest.approx(-8 / 3, rel=1e-5)
    assert np.isnan(path.risk[1])


@pytest.mark.parametrize(
    ("times", "options", "message"),
    [
        ([1.0, 0.5], {}, "increasing"),
        ([-1.0, 1.0], {}, "increasing"),
        ([[1.0]], {}, "shape"),
        ([1.0], {"clock": "wall"}, "clock"),
        ([1.0], {"solver": "euler"}, "solver"),
    ],
)
def test_bad_requests_are_refused_in_one_sentence(times, options, message):
    with pytest.raises(UserError, match=message):
        flow(bowl, START, jnp.array(times), **options)


def test_a_coordinate_that_stays_zero_needs_no_absolute_tolerance():
    path = flow(lambda w: 0.5 * (w**2).sum(), jnp.array([1.0, 0.0]), jnp.array([1.0]), atol=0.0)
    assert path.ok
    np.testing.assert_allclose(path.params, [np.exp(-1.0), 0.0], rtol=1e-5)


def test_a_coordinate_that_leaves_zero_needs_none_either():
    risk = lambda w: 0.5 * ((w - jnp.array([0.0, 1.0])) ** 2).sum()
    path = flow(risk, jnp.array([1.0, 0.0]), jnp.array([1.0]), atol=0.0)
    assert path.ok
    np.testing.assert_allclose(path.params, [np.exp(-1.0), 1 - np.exp(-1.0)], rtol=1e-5)
