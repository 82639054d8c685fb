"""Elliptical slices against a conjugate posterior, and against blackjax where it is installed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.bayes import elliptical_slice
from steepest.core.errors import UserError
from tests.extras import need

CHAINS = 64
CHOLESKY = np.array([[1.0, 0.0], [0.5, 2.0]])
A = np.array([[1.0, 1.0], [0.0, 2.0], [1.0, -1.0]])
Y = np.array([1.0, 2.0, 0.5])


def log_likelihood(x):
    return -((A @ x - Y) ** 2).sum() / 2


def posterior():
    precision = np.linalg.inv(CHOLESKY @ CHOLESKY.T) + A.T @ A
    covariance = np.linalg.inv(precision)
    return covariance @ A.T @ Y, covariance


def chain(key):
    prior = lambda key: CHOLESKY @ jax.random.normal(key, (2,))
    look = {"x": lambda x: x, "square": lambda x: jnp.outer(x, x)}
    return elliptical_slice(log_likelihood, prior, key, 400, observe=look, burn=100, every=3)


def test_moments_of_a_conjugate_posterior():
    record = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(0), CHAINS))
    mean, covariance = posterior()
    assert record.observed["x"].shape == (CHAINS, 100, 2)
    for measured, exact in (
        (record.observed["x"], mean),
        (record.observed["square"], covariance + np.outer(mean, mean)),
    ):
        chains = np.asarray(measured).mean(1)
        error = chains.std(0, ddof=1) / np.sqrt(CHAINS)
        assert np.all(np.abs(chains.mean(0) - exact) < 4 * error)
    last = record.observed["x"][:, -1]
    np.testing.assert_allclose(record.state, last)
    np.testing.assert_allclose(record.log_likelihood[:, -1], jax.vmap(log_likelihood)(last))
    evaluations = np.asarray(record.evaluations)
    assert np.all(np.diff(evaluations) >= 3)


def test_the_prior_is_invariant_without_data():
    prior = lambda key: {"x": jax.random.normal(key, (3,))}
    run = lambda key: elliptical_slice(lambda state: 0.0 * state["x"].sum(), prior, key, 20).state
    ends = np.asarray(jax.vmap(run)(jax.random.split(jax.random.key(1), 4000))["x"])
    assert np.abs(ends.mean(0)).max() < 4 / np.sqrt(4000)
    assert np.abs((ends**2).mean(0) - 1).max() < 4 * np.sqrt(2 / 4000)


def test_against_blackjax():
    blackjax = need("blackjax")
    covariance = jnp.asarray(CHOLESKY @ CHOLESKY.T)
    sampler = blackjax.elliptical_slice(log_likelihood, mean=jnp.zeros(2), cov=covariance)

    def other(key):
        step = lambda state, key: (sampler.step(key, state)[0],) * 2
        state = sampler.init(jnp.zeros(2))
        return jax.lax.scan(step, state, jax.random.split(key, 400))[1].position[100:]

    seeds = jax.random.split(jax.random.key(2), CHAINS)
    theirs = np.asarray(jax.jit(jax.vmap(other))(seeds)).mean(1)
    ours = np.asarray(jax.jit(jax.vmap(chain))(seeds).observed["x"]).mean(1)
    error = np.hypot(theirs.std(0, ddof=1), ours.std(0, ddof=1)) / np.sqrt(CHAINS)
    assert np.all(np.abs(theirs.mean(0) - ours.mean(0)) < 4 * error)


@pytest.mark.parametrize("changes", [{"every": 0}, {"burn": -1}, {"burn": 10}, {"sweeps": 0}])
def test_bad_input_is_refused(changes):
    arguments = {"sweeps": 10, **changes}
    with pytest.raises(UserError, match="sweeps"):
        elliptical_slice(lambda x: x, jax.random.normal, jax.random.key(0), **arguments)


@pytest.mark.parametrize("nothing", [jnp.nan, -jnp.inf])
def test_a_chain_without_likelihood_ends_and_says_so(nothing):
    run = lambda key: elliptical_slice(lambda x: nothing + 0 * x, jax.random.normal, key, 5)
    record = jax.jit(run)(jax.random.key(0))
    assert record.capped.tolist() == [1, 2, 3, 4, 5]
    assert np.all(np.isneginf(record.log_likelihood))
    assert record.evaluations[-1] == 1 + 5 * 200


def test_what_is_not_a_number_is_never_entered():
    """A likelihood that is NaN below zero is that of the half line; a start there is left."""
    half = lambda x: jnp.where(x > 0, 0.0, jnp.nan)
    run = lambda key: elliptical_slice(
        half, jax.random.normal, key, 30, start=jnp.array(-1.0), observe={"x": lambda x: x}, burn=10
    )
    record = jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(3), 2000))
    x = np.asarray(record.observed["x"])
    assert np.all(x > 0)
    assert x[:, -1].mean() == pytest.approx(np.sqrt(2 / np.pi), abs=4 * 0.603 / np.sqrt(2000))
