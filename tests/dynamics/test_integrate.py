"""The two integrators against another library, their orders, and what they do at readings, floors and blow-ups."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steepest.dynamics._integrate import _rodas, _tsitouras, integrate

METHODS = ("explicit", "stiff")
PEERS = {"explicit": diffrax.Tsit5, "stiff": diffrax.Kvaerno5}
START = jnp.array([1.0, 0.5])


def swing(s, y):
    """A nonlinear field that depends on the clock."""
    return jnp.array([y[1] * jnp.cos(s), -y[0] + s * jnp.sin(y[1])])


def follow(method, field, start, times, rtol=1e-8, atol=1e-11, max_steps=10_000, stop=None):
    """What is recorded is the reading and the state."""
    return jax.jit(
        lambda start: integrate(
            field,
            start,
            jnp.asarray(times, float),
            lambda s, y: (s, y),
            method=method,
            rtol=rtol,
            atol=atol,
            max_steps=max_steps,
            stop=stop,
        )
    )(start)


@pytest.mark.parametrize("method", METHODS)
def test_it_ends_where_scipy_and_diffrax_end(method):
    landing = follow(method, swing, START, [0.5, 3.0], rtol=1e-10, atol=1e-12)
    reference = solve_ivp(swing, (0, 3), START, method="DOP853", rtol=1e-12, atol=1e-13)
    peer = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda s, y, _: swing(s, y)),
        PEERS[method](),
        0.0,
        3.0,
        None,
        START,
        stepsize_controller=diffrax.PIDController(rtol=1e-10, atol=1e-12),
    )
    assert np.allclose(landing.end, reference.y[:, -1], rtol=0, atol=2e-9)
    assert np.allclose(landing.end, peer.ys[-1], rtol=0, atol=2e-9)


@pytest.mark.parametrize(("attempt", "order"), [(_tsitouras, 5), (_rodas, 4)])
def test_one_step_is_as_good_as_its_order_says(attempt, order):
    """The error of one step falls like h^(p+1), the estimate of it like h^p: that of the method one order lower."""
    lengths = np.array([0.2, 0.1, 0.05])
    slope = swing(0.3, START)
    steps = [attempt(swing, jnp.array(0.3), START, slope, jnp.array(h)) for h in lengths]
    ends = [
        solve_ivp(swing, (0.3, 0.3 + h), START, method="DOP853", rtol=1e-13, atol=1e-15).y[:, -1]
        for h in lengths
    ]
    errors = [np.linalg.norm(new - end) for (new, _, _), end in zip(steps, ends, strict=True)]
    estimates = [np.linalg.norm(error) for _, error, _ in steps]
    # a slope above p + 1 is the next order, which has not died out at these lengths
    assert order + 0.8 < np.polyfit(np.log(lengths), np.log(errors), 1)[0] < order + 1.6
    assert np.polyfit(np.log(lengths), np.log(estimates), 1)[0] == pytest.approx(order, abs=0.35)


@pytest.mark.parametrize("method", METHODS)
def test_it_lands_on_every_reading(method):
    times = np.array([0.0, 1e-9, 0.3, 0.3 + 1e-12, 2.0])
    landing = follow(method, swing, START, times)
    assert np.array_equal(landing.recorded[0], times)
    assert np.array_equal(landing.recorded[1][0], START)
    assert landing.reached.all() and not landing.exhausted


def test_a_stiff_rest_costs_the_implicit_method_nothing():
    """y' = −λ (y − cos s) − sin s has the solution cos s whatever λ (Prothero and Robinson)."""
    fast = 1e6
    field = lambda s, y: -fast * (y - jnp.cos(s)) - jnp.sin(s)
    landing = follow("stiff", field, jnp.ones(1), [3.0], rtol=1e-6, atol=1e-8)
    assert landing.reached.all() and int(landing.steps) < 300
    assert abs(float(landing.end[0]) - np.cos(3.0)) < 1e-6
    explicit = follow("explicit", field, jnp.ones(1), [3.0], rtol=1e-6, atol=1e-8, max_steps=2000)
    assert bool(explicit.exhausted)


@pytest.mark.parametrize("method", METHODS)
def test_it_stops_where_it_is_told(method):
    landing = follow(method, lambda s, y: -y, jnp.ones(1), [0.1, 50.0], stop=lambda y: y[0] < 1e-3)
    assert bool(landing.stopped) and not bool(landing.exhausted)
    assert landing.reached.tolist() == [True, False]
    assert 1e-5 < float(landing.end[0]) < 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_a_blow_up_ends_before_the_steps_do(method):
    """y' = y² from 1 is infinite at s = 1: the steps shrink until they no longer move the clock."""
    landing = follow(method, lambda s, y: y**2, jnp.ones(1), [0.5, 2.0], max_steps=5000)
    assert landing.reached.tolist() == [True, False]
    assert int(landing.steps) < 5000 and not bool(landing.exhausted)
    assert float(landing.recorded[1][0, 0]) == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_every_lane_of_a_map_is_what_it_is_alone(method):
    starts = jnp.array([[1.0, 0.5], [0.0, 0.0], [-2.0, 3.0]])
    run = lambda start: follow(method, swing, start, [0.5, 3.0])
    many = jax.vmap(run)(starts)
    alone = [run(start) for start in starts]
    assert np.array_equal(many.steps, [one.steps for one in alone])
    assert np.allclose(many.end, np.stack([one.end for one in alone]), rtol=1e-12)
