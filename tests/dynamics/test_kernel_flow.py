"""The flow with a fixed kernel under any loss: closed form for the squared loss, trained linear models for others."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest.core.errors import UserError
from steepest.dynamics import descend, flow
from steepest.dynamics._kernel_flow import kernel_flow
from steepest.kernels import kernel_dynamics
from steepest.nn.losses import logistic, margin_risk

N = 8
M = 4
P = 6


def squared_slope(f, y):
    return f - y


def logistic_slope(f, y):
    return -y * jax.nn.sigmoid(-y * f)


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(N, P))
    other = rng.normal(size=(M, P))
    weights = rng.normal(size=P)
    return (
        jnp.asarray(phi),
        jnp.asarray(other),
        jnp.asarray(rng.choice([-1.0, 1.0], N)),
        jnp.asarray(weights),
    )


@pytest.mark.parametrize("solver", ["explicit", "stiff"])
def test_the_squared_loss_has_its_closed_form(model, solver):
    phi, other, y, w = model
    times = np.array([0.0, 0.5, 3.0, 40.0])
    path = kernel_flow(
        phi @ phi.T,
        squared_slope,
        y,
        times,
        start=phi @ w,
        cross=other @ phi.T,
        at=other @ w,
        solver=solver,
    )
    dynamics = kernel_dynamics(phi @ phi.T)
    progress = dynamics.flow(times)
    assert bool(path.ok)
    np.testing.assert_allclose(path.train, dynamics.train(progress, y, phi @ w), atol=1e-7)
    np.testing.assert_allclose(
        path.test, dynamics.test(progress, other @ phi.T, y, phi @ w, other @ w), atol=1e-7
    )


def test_the_expectile_loss_of_one_example_has_its_two_rates():
    """Below its target an output nears it at the rate 2τk, above at 2(1 − τ)k, one to each side."""
    tau, k = 0.8, 1.5
    slope = lambda f, y: 2 * jnp.where(f > y, 1 - tau, tau) * (f - y)
    times = np.array([0.1, 1.0, 4.0])
    for start, share in ((0.0, tau), (2.0, 1 - tau)):
        path = kernel_flow(np.array([[k]]), slope, np.ones(1), times, start=np.array([start]))
        right = 1 + (start - 1) * np.exp(-2 * share * k * times)
        np.testing.assert_allclose(path.train[:, 0], right, atol=1e-7)


def test_the_logistic_loss_is_the_flow_of_a_linear_model(model):
    """The flow of the weights, integrated in the weights: another equation with the same outputs."""
    phi, other, y, w = model
    times = jnp.array([0.5, 5.0, 50.0])
    path = kernel_flow(
        phi @ phi.T, logistic_slope, y, times, start=phi @ w, cross=other @ phi.T, at=other @ w
    )
    risk = margin_risk(logistic, lambda w, x: x @ w, phi, y)
    direct = flow(risk, w, times, observe={"train": lambda w: phi @ w, "test": lambda w: other @ w})
    np.testing.assert_allclose(path.train, direct.observed["train"], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(path.test, direct.observed["test"], rtol=1e-6, atol=1e-6)


def test_the_logistic_loss_is_the_limit_of_small_steps(model):
    """Descent at steps h and h/2, extrapolated to h = 0, meets the flow; each alone is off by order h."""
    phi, other, y, w = model
    end = 4.0
    risk = margin_risk(logistic, lambda w, x: x @ w, phi, y)
    ends = []
    for steps in (2000, 4000):
        path = descend(risk, w, optax.sgd(end / steps), steps, record=steps)
        ends.append(jnp.concatenate([phi @ path.params, other @ path.params]))
    found = kernel_flow(
        phi @ phi.T, logistic_slope, y, [end], start=phi @ w, cross=other @ phi.T, at=other @ w
    )
    found = jnp.concatenate([found.train[0], found.test[0]])
    assert 1e-6 < float(jnp.abs(found - ends[1]).max()) < 1e-2
    np.testing.assert_allclose(found, 2 * ends[1] - ends[0], atol=1e-6)


def test_without_other_points_there_are_none_and_a_short_leash_is_reported(model):
    phi, _, y, _ = model
    path = kernel_flow(phi @ phi.T, squared_slope, y, [1.0, 1000.0], max_steps=40)
    assert path.test.shape == (2, 0)
    assert not bool(path.ok)
    assert np.isfinite(path.train[0]).all()
    assert np.isnan(path.train[1]).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ntk": np.ones((2, 3))}, "ntk must be"),
        ({"targets": np.ones(3)}, "targets must be"),
        ({"times": [1.0, 0.5]}, "increasing"),
        ({"times": [-1.0]}, "increasing"),
        ({"times": []}, "times must be"),
        ({"ntk": np.full((2, 2), np.nan)}, "NaN"),
        ({"start": np.ones(5)}, "start"),
        ({"cross": np.ones((1, 3))}, "cross must be"),
        ({"cross": np.ones((1, 2)), "at": np.ones(2)}, "at must"),
        ({"solver": "magic"}, "solver"),
    ],
)
def test_bad_inputs_are_refused(change, words):
    given = {"ntk": np.eye(2), "targets": np.ones(2), "times": [1.0], **change}
    with pytest.raises(UserError, match=words):
        kernel_flow(
            given.pop("ntk"), squared_slope, given.pop("targets"), given.pop("times"), **given
        )
