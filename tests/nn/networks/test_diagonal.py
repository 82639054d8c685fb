"""The diagonal network: its gradient, what its flow conserves, and where its flow ends."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.core.errors import UserError
from steepest.dynamics._flow import flow
from steepest.nn.losses import mean_risk, squared
from steepest.nn.networks._diagonal import DiagonalParams, diagonal, diagonal_weights
from steepest.nn.types import count
from steepest.programs import hypentropy_interpolation


@settings(max_examples=20, deadline=None)
@given(st.floats(1e-3, 1e2), st.integers(2, 5))
def test_the_balanced_start_computes_zero(scale, depth):
    network = diagonal(3, scale, jnp.array([1.0, 2.0, 0.5]), depth)
    params = network.init(jax.random.key(0))
    assert count(params) == 6
    assert np.allclose(network.apply(params, jnp.ones((4, 3))), 0.0)
    assert np.allclose(params.plus, scale * jnp.array([1.0, 2.0, 0.5]))


def test_outputs_are_linear_in_the_inputs():
    params = DiagonalParams(jnp.array([2.0, 1.0]), jnp.array([1.0, 3.0]))
    assert np.allclose(diagonal_weights(params), [3.0, -8.0])
    assert np.allclose(diagonal_weights(params, depth=3), [7.0, -26.0])
    assert float(diagonal(2).apply(params, jnp.array([1.0, 1.0]))) == -5.0


@pytest.mark.parametrize("alpha", [0.05, 1.0, 10.0])
def test_the_flow_conserves_products_and_ends_at_least_hypentropy(alpha):
    """θ₊θ₋ = α²θ_0² along the flow (lemma 2), and the limit is the program's (theorem of lecture 11/9)."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 9))
    y = x[:, 0] - x[:, 1]
    shape = np.exp(0.3 * rng.normal(size=9))
    network = diagonal(9, alpha, jnp.asarray(shape))
    risk = mean_risk(squared, network.apply, jnp.asarray(x), jnp.asarray(y))
    path = flow(
        risk,
        network.init(jax.random.key(0)),
        jnp.array([25.0]),
        "log",
        rtol=1e-9,
        atol=1e-12,
        solver="stiff",
        floor=1e-16,
    )
    # at α = 10 the weights are differences of squares a hundred times larger
    assert bool(path.settled)
    assert np.allclose(path.params.plus * path.params.minus, (alpha * shape) ** 2, rtol=1e-5)
    found = diagonal_weights(path.params)
    expected = hypentropy_interpolation(x, y, (alpha * shape) ** 2).beta
    assert np.linalg.norm(found - expected) < 1e-6 * np.linalg.norm(expected)


def test_scales_can_be_swept():
    starts = jax.vmap(lambda scale: diagonal(2, scale).init(jax.random.key(0)).plus)(
        jnp.array([0.1, 1.0])
    )
    assert np.allclose(starts, [[0.1, 0.1], [1.0, 1.0]])


def test_bad_requests_are_refused():
    with pytest.raises(UserError, match="depth"):
        diagonal(3, depth=1)
    with pytest.raises(UserError, match="entries"):
        diagonal(3, shape=jnp.ones(2))
