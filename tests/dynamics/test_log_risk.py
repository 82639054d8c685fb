"""Descent on log R by steps that shrink with the norm: against the flow, and what it is for."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest.core.errors import UserError
from steepest.dynamics import descend, flow, log_risk_steps
from steepest.nn.data import parity
from steepest.nn.losses import exponential, log_margin_risk, margin_risk
from steepest.nn.networks import two_layer

DATA = parity(jax.random.key(0), 2, 2)
NET = two_layer(2, 32, scale=0.3)  # wide enough that each of the four targets has its neurons
LOG_RISK = log_margin_risk(exponential, NET.apply, DATA.x, DATA.y)
START = NET.init(jax.random.key(3))


def direction(params):
    flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(params)])
    return flat / np.linalg.norm(flat)


def test_small_steps_follow_the_flow():
    """The path of θ does not depend on the clock: compare directions at the same log R, of a smooth network."""
    apply = lambda params, x: x @ (params["u"] ** 2 - params["v"] ** 2)
    x = jnp.array([[1.0, 0.2], [-0.3, 0.8], [0.5, -0.9]])
    y = jnp.array([1.0, -1.0, 1.0])
    start = {"u": jnp.array([0.1, 0.2]), "v": jnp.array([0.2, 0.1])}
    log_risk = log_margin_risk(exponential, apply, x, y)
    risk = margin_risk(exponential, apply, x, y)
    path = flow(risk, start, jnp.array([0.0, 3.0]), clock="log-risk", log_risk=log_risk)
    run = descend(
        log_risk, start, log_risk_steps(1e-3), 10_000, record=10, observe={"all": lambda p: p}
    )
    at = int(np.argmin(np.abs(run.risk - path.log_risk[-1])))
    near = jax.tree.map(lambda leaf: leaf[at], run.observed["all"])
    assert 10 < at < 900
    assert direction(near) @ direction(path.params) > 1 - 1e-4


def test_the_log_of_the_risk_falls_evenly_where_fixed_steps_do_not_settle():
    """The best margin of XOR in the plane is γ = 1/8 over ‖θ‖²: log R falls by 8/64 a step of 0.5."""
    run = descend(LOG_RISK, START, log_risk_steps(0.5), 3000, record=1000)
    falls = -np.diff(run.risk)[1:] / 1000
    assert np.allclose(falls, 1 / 8, rtol=2e-3)
    fixed = descend(LOG_RISK, START, optax.sgd(0.5), 100, record=1)
    assert not np.all(np.diff(fixed.risk) < 0)


@pytest.mark.parametrize("bad", [{"lr": 0.0}, {"lr": 0.5, "radius": -1.0}])
def test_bad_numbers_in_one_sentence(bad):
    with pytest.raises(UserError, match="above zero"):
        log_risk_steps(**bad)
