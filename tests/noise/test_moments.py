"""Moments of batches, by enumeration of every batch, and the steady state by iteration and by running SGD."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from steepest.core.errors import UserError
from steepest.noise import (
    batch_cumulants,
    batch_factor,
    draw_batches,
    gradient_moments,
    steady_state,
)

RNG = np.random.default_rng(0)
GRADIENTS = RNG.normal(size=(6, 2)) + 0.5


def batches(sampling, size):
    """Every batch as a row of counts, with its probability."""
    m = len(GRADIENTS)
    if sampling == "fixed":
        rows = [np.isin(range(m), chosen) for chosen in combinations(range(m), size)]
        return np.array(rows, float), np.full(len(rows), 1 / len(rows))
    if sampling == "replacement":
        rows = [np.bincount(chosen, minlength=m) for chosen in product(range(m), repeat=size)]
        return np.array(rows, float), np.full(len(rows), 1 / len(rows))
    rows = np.array(list(product([0.0, 1.0], repeat=m)))
    p = size / m
    return rows, np.prod(np.where(rows == 1, p, 1 - p), 1)


@pytest.mark.parametrize("sampling", ["independent", "fixed", "replacement"])
def test_moments_are_those_of_all_batches(sampling):
    rows, chance = batches(sampling, 2)
    drawn = rows @ GRADIENTS / 2
    moments = gradient_moments(GRADIENTS, 2, sampling)
    mean = chance @ drawn
    second = (drawn * chance[:, None]).T @ drawn
    assert np.allclose(moments.mean, mean)
    assert np.allclose(moments.second, second)
    assert np.allclose(moments.covariance, second - np.outer(mean, mean))


def test_cumulants_are_those_of_all_batches():
    rows, chance = batches("independent", 2)
    drawn = rows @ GRADIENTS / 2
    centred = drawn - chance @ drawn
    variance = chance @ centred**2
    cumulants = batch_cumulants(GRADIENTS, 2)
    assert np.allclose(cumulants.variance, variance)
    assert np.allclose(cumulants.skewness, chance @ centred**3 / variance**1.5)
    assert np.allclose(cumulants.excess, chance @ centred**4 / variance**2 - 3)


def test_a_binomial_has_its_cumulants():
    skewness, excess = stats.binom(50, 0.1).stats("sk")
    cumulants = batch_cumulants(np.ones((50, 1)), 5)
    assert np.allclose([cumulants.skewness[0], cumulants.excess[0]], [skewness, excess])


def test_drawn_batches_are_independent_coins():
    """Sizes are binomial, every example joins as often, and the moments are the exact ones."""
    rng = np.random.default_rng(1)
    members = draw_batches(np.eye(6), 2, 40000, rng) * 2
    assert set(np.unique(members)) == {0.0, 1.0}
    assert np.allclose(members.mean(0), 1 / 3, atol=4 * np.sqrt(2 / 9 / 40000))
    assert np.allclose(np.cov(members.T), np.eye(6) * 2 / 9, atol=0.01)
    sizes = np.bincount(members.sum(1).astype(int), minlength=7) / 40000
    assert np.allclose(sizes, stats.binom(6, 1 / 3).pmf(range(7)), atol=0.012)


@pytest.mark.parametrize("sampling", ["independent", "fixed", "replacement"])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_steady_state_is_a_fixed_point_of_the_moments(sampling, ridge):
    """One step from the law leaves mean and covariance as they are, summed over all batches."""
    x = RNG.normal(size=(6, 2))
    y = RNG.normal(size=6)
    state = steady_state(x, y, 0.2, 2, ridge=ridge, sampling=sampling)
    rows, chance = batches(sampling, 2)
    root = np.linalg.cholesky(state.covariance) * np.sqrt(2)
    # four points ±√d columns of the root have the mean and covariance of the law, which is all that a linear map needs
    points = state.minimum + np.concatenate([root.T, -root.T])
    total = np.zeros((2, 2))
    for point in points:
        gradients = (x @ point - y)[:, None] * x + ridge * point
        moved = point - 0.2 * rows @ gradients / 2 - state.minimum
        total += (moved * chance[:, None]).T @ moved / len(points)
    assert np.allclose(total, state.covariance, rtol=1e-9)


def test_steady_state_is_that_of_a_run():
    x = RNG.normal(size=(40, 3))
    y = RNG.normal(size=40)
    state = steady_state(x, y, 0.1, 5, sampling="fixed")
    walkers = np.tile(state.minimum, (4000, 1))
    for _ in range(150):
        chosen = np.argsort(RNG.random((len(walkers), 40)), 1)[:, :5]
        inputs = x[chosen]
        residual = np.einsum("wbd,wd->wb", inputs, walkers) - y[chosen]
        walkers = walkers - 0.1 * np.einsum("wb,wbd->wd", residual, inputs) / 5
    observed = np.cov(walkers.T)
    assert np.allclose(np.diag(observed), np.diag(state.covariance), rtol=4 * np.sqrt(2 / 4000))


def test_second_moments_end_before_the_mean_does():
    x = RNG.normal(size=(40, 3))
    y = RNG.normal(size=40)
    largest = np.linalg.eigvalsh(x.T @ x / 40)[-1]
    below = steady_state(x, y, 1.9 / largest, 1)
    assert below.radius > 1
    assert np.isnan(below.covariance).all()


def test_lists_are_tables_too():
    assert np.allclose(
        gradient_moments(GRADIENTS.tolist(), 2).second, gradient_moments(GRADIENTS, 2).second
    )


def test_bad_input_in_one_sentence():
    with pytest.raises(UserError, match="between 1 and 6 examples, got 7"):
        gradient_moments(GRADIENTS, 7)
    with pytest.raises(UserError, match="table"):
        gradient_moments(GRADIENTS[:, 0], 2)
    with pytest.raises(UserError, match="sampling must be"):
        batch_factor(6, 2, "fix")
    with pytest.raises(UserError, match="less than 6"):
        batch_cumulants(GRADIENTS, 6)
    with pytest.raises(UserError, match="between 1 and 6"):
        draw_batches(GRADIENTS, 7, 2, RNG)
    with pytest.raises(UserError, match="got nan"):
        batch_factor(6, float("nan"), "fixed")
    with pytest.raises(UserError, match="at least one batch"):
        draw_batches(GRADIENTS, 2, 0, RNG)
    with pytest.raises(UserError, match=r"y must be real numbers of shape \(m,\)"):
        steady_state(np.eye(2), np.ones((2, 1)), 0.1, 2)
    with pytest.raises(UserError, match="ridge is not negative"):
        steady_state(np.eye(2), np.ones(2), 0.1, 2, ridge=-1.0)
    for x, y in (
        (np.array([[np.nan, 0], [0, 1]]), np.ones(2)),
        (np.eye(2), np.array([np.inf, 1])),
        (1e80 * np.eye(2), np.ones(2)),
    ):
        with pytest.raises(UserError, match="fourth powers"):
            steady_state(x, y, 0.1, 2)
    with pytest.raises(UserError, match="singular"):
        steady_state(np.ones((5, 2)), np.ones(5), 0.1, 2)
    with pytest.raises(UserError, match="step size is positive"):
        steady_state(np.eye(2), np.ones(2), 0.0, 2)
