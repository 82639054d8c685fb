"""Metropolis walkers: exact laws by detailed balance, by closed forms, and the record."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

from steepest.core.errors import UserError
from steepest.noise import metropolis


def walkers(f, x, temperatures, scale, steps, seed=0, **options):
    def one(x, key):
        return metropolis(f, x, temperatures, scale, steps, key, **options)

    keys = jax.random.split(jax.random.key(seed), len(x))
    return jax.jit(jax.vmap(one))(x, keys)


def test_the_law_is_exp_minus_f_over_T():
    """Three moments of a law without symmetry against quadrature, at z ≤ 4."""
    f = lambda x: x**4 / 4 - x**2 / 2 + 0.3 * x
    T = 0.4
    walk = walkers(f, jnp.zeros(400), T, 2.0, 600, observe={"x": lambda x: x}, record=5)
    weight = lambda x: np.exp(-(x**4 / 4 - x**2 / 2 + 0.3 * x) / T)
    mass = quad(weight, -8, 8)[0]
    for power in (1, 2, 3):
        exact = quad(lambda x, p=power: x**p * weight(x), -8, 8)[0] / mass
        means = np.asarray(walk.observed["x"][:, 20:] ** power).mean(1)
        assert abs(means.mean() - exact) < 4 * means.std(ddof=1) / 20


def test_the_share_accepted_is_that_of_the_closed_form():
    # N(0, 1) with proposals of deviation s: (2/π) arctan(2/s)
    start = jax.random.normal(jax.random.key(1), (2000,))
    walk = walkers(lambda x: x**2 / 2, start, 1.0, 2.4, 40, record=40)
    share = np.asarray(walk.accepted[:, -1])
    assert abs(share.mean() - 2 / np.pi * np.arctan(2 / 2.4)) < 4 * share.std() / 2000**0.5
    assert np.all(walk.accepted[:, 0] == 0)


def test_temperatures_scale_the_proposals():
    """f/T decides: at T times four and twice the distances the walk is the same."""
    path = lambda T: metropolis(
        lambda x: (x**2).sum() / 2, 2 * jnp.ones(3) * T**0.5, T, 1.0, 50, jax.random.key(2)
    )
    one = path(1.0)
    four = path(4.0)
    assert np.allclose(four.value, 4 * one.value, rtol=1e-9)
    ladder = metropolis(
        lambda x: x**2, jnp.array(1.0), np.repeat([1.0, 1e-12], 20), 1.0, 40, jax.random.key(0)
    )
    assert np.all(np.diff(np.asarray(ladder.value)[20:]) <= 0)


def test_directions_without_a_scale_stay():
    walk = metropolis(
        lambda x: (x**2).sum(),
        jnp.array([1.0, 2.0]),
        1.0,
        jnp.array([1.0, 0.0]),
        30,
        jax.random.key(0),
    )
    assert walk.x[1] == 2.0
    assert walk.x[0] != 1.0


def test_records_do_not_change_the_walk():
    path = lambda record: metropolis(
        lambda x: x**2, jnp.array(1.0), 1.0, 1.0, 30, jax.random.key(0), record=record
    )
    dense = path(1)
    coarse = path(np.array([0, 7, 30]))
    assert coarse.steps.tolist() == [0, 7, 30]
    assert np.array_equal(coarse.value, dense.value[np.array([0, 7, 30])])
    assert coarse.accepted[1] == pytest.approx(dense.accepted[1:8].mean())


def test_what_is_not_finite_is_never_accepted():
    f = lambda x: jnp.where(x > 0, jnp.nan, x**2)
    walk = metropolis(f, jnp.array(-1.0), 1.0, 1.0, 50, jax.random.key(0))
    assert np.all(np.isfinite(walk.value))


def test_bad_schedules_are_refused():
    walk = lambda T: metropolis(lambda x: x**2, jnp.array(1.0), T, 1.0, 10, jax.random.key(0))
    with pytest.raises(UserError, match="one a step"):
        walk(np.ones(3))
    with pytest.raises(UserError, match="above zero"):
        walk(0.0)


def test_bad_starts_and_functions_are_refused():
    walk = lambda f, x: metropolis(f, x, 1.0, 1.0, 5, jax.random.key(0))
    with pytest.raises(UserError, match="x of floats, got int"):
        walk(lambda x: (x**2).sum(), jnp.array([1, 2]))
    with pytest.raises(UserError, match="scalar value, got one of shape \\(2,\\)"):
        walk(lambda x: x**2, jnp.ones(2))
    with pytest.raises(UserError, match="a start where f is a number, got f\\(x\\) = nan"):
        walk(jnp.log, jnp.array(-1.0))


def test_concrete_arrays_are_checked_too():
    with pytest.raises(UserError, match="temperatures above zero"):
        metropolis(lambda x: x**2, jnp.array(0.0), jnp.array(-1.0), 1.0, 3, jax.random.key(0))
