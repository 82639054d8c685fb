"""Least squares on some of the features: laws against sampled traces, quadrature and limits, fits against lstsq."""

import numpy as np
import pytest
from scipy.integrate import quad

from steepest.claims.training.double_descent import experiment, theory
from steepest.claims.training.double_descent.claim import DoubleDescent
from steepest.claims.training.double_descent.experiment import Sample
from steepest.claims.training.double_descent.point import ALL
from tests.claims.numpy_points import generator, observed_at

RNG = np.random.default_rng(0)
WEIGHTS = np.array([1.0, 0.8, 0.6, 0.4, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1])
NOISE = 0.5


def sampled(n, p, runs=20_000):
    """Return risks by the definition, on new examples of their own."""
    d = len(WEIGHTS)
    x = RNG.standard_normal((runs, n, d))
    y = x @ WEIGHTS + NOISE * RNG.standard_normal((runs, n))
    fitted = np.linalg.pinv(x[..., :p]) @ y[..., None]
    new = RNG.standard_normal((runs, 20, d))
    labels = new @ WEIGHTS + NOISE * RNG.standard_normal((runs, 20))
    return ((new[..., :p] @ fitted)[..., 0] - labels) ** 2


@pytest.mark.parametrize(("n", "p"), [(9, 2), (12, 4), (4, 11), (3, 12)])
def test_law_of_least_norm_on_new_examples(n, p):
    wanted = theory.least_norm(WEIGHTS, p, NOISE, n)
    assert sampled(n, p).mean() == pytest.approx(wanted, rel=0.04)


@pytest.mark.parametrize("p", [30, 300])
def test_law_of_the_best_ridge_by_quadrature(p):
    """The trace is a mean over the law of Marchenko and Pastur, whose density is integrated, and its next order."""
    n = 100
    weights = np.full(400, 0.15)
    signal, variance = theory.split(weights, p, NOISE)
    gamma = p / n
    penalty = gamma * variance / signal
    low = (1 - gamma**0.5) ** 2
    high = (1 + gamma**0.5) ** 2

    def limit(eigenvalue):
        density = np.sqrt((high - eigenvalue) * (eigenvalue - low)) / (2 * np.pi * eigenvalue)
        return density / (eigenvalue + penalty)

    def arcsine(angle):
        eigenvalue = (low + high) / 2 + (high - low) / 2 * np.cos(angle)
        return 1 / (2 * np.pi * (eigenvalue + penalty))

    trace = quad(limit, low, high)[0] + max(gamma - 1, 0) / penalty
    at_ends = (1 / (low + penalty) + 1 / (high + penalty)) / 4
    trace += (at_ends - quad(arcsine, 0, np.pi)[0]) / n
    wanted = variance * (1 + trace)
    assert theory.ridge(weights, p, NOISE, n) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("p", [6, 11])
def test_law_of_the_best_ridge_for_few_examples(p):
    sample = experiment.draw(RNG, WEIGHTS, NOISE, 9, 10_000, unequal=False)
    measured = experiment.risks(sample, WEIGHTS, NOISE, (p,), penalized=True)[0]
    assert measured == pytest.approx(theory.ridge(WEIGHTS, p, NOISE, 9), rel=0.02)


def test_next_order_is_that_of_the_exact_trace_without_a_ridge():
    """As the penalty vanishes the law with its next order is p/(n − p − 1) up to 1/n²."""
    weights = np.ones(60)
    noise = 1e-4
    for n in (400, 800):
        exact = theory.least_norm(weights, 60, noise, n)
        limit = noise**2 * (1 + 60 / (n - 60))
        next_order = theory.ridge(weights, 60, noise, n) - exact
        assert abs(next_order) < 0.03 * abs(limit - exact)


def test_penalty_is_the_best_one():
    n = 8
    p = 6
    sample = experiment.draw(RNG, WEIGHTS, NOISE, n, 4000, unequal=False)

    def risk(size):
        return experiment.risk(experiment.fit(sample, p, size), WEIGHTS, NOISE).mean()

    least = min(risk(size) for size in np.geomspace(0.05, 20, 60))
    wanted = risk(experiment.penalty(WEIGHTS, p, NOISE))
    assert wanted == pytest.approx(least, rel=0.005)


@pytest.mark.parametrize(("n", "p"), [(9, 4), (4, 9)])
@pytest.mark.parametrize("size", [0.0, 0.7])
def test_fits_by_lstsq(n, p, size):
    sample = experiment.draw(RNG, WEIGHTS, NOISE, n, 3, unequal=False)
    for x, y, fitted in zip(sample.x, sample.y, experiment.fit(sample, p, size), strict=True):
        rows = np.concatenate([x[:, :p], np.sqrt(size) * np.eye(p)])
        labels = np.concatenate([y, np.zeros(p)])
        np.testing.assert_allclose(fitted, np.linalg.lstsq(rows, labels, rcond=None)[0], atol=1e-8)


def test_risk_by_new_examples():
    fitted = RNG.standard_normal((1, 5))
    new = RNG.standard_normal((200_000, 12))
    labels = new @ WEIGHTS + NOISE * RNG.standard_normal(200_000)
    errors = new[:, :5] @ fitted[0] - labels
    assert (errors**2).mean() == pytest.approx(experiment.risk(fitted, WEIGHTS, NOISE)[0], rel=0.02)


def test_unequal_examples_have_the_same_length_on_average():
    sample = experiment.draw(RNG, WEIGHTS, NOISE, 50, 400, unequal=True)
    squares = (sample.x**2).mean(-1)
    assert squares.mean() == pytest.approx(1, rel=0.03)
    assert (squares < 0.5).mean() == pytest.approx(0.5, abs=0.03)


def test_risks_are_means_over_runs():
    sample = experiment.draw(RNG, WEIGHTS, NOISE, 5, 3, unequal=False)
    one_by_one = []
    for x, y in zip(sample.x, sample.y, strict=True):
        fitted = np.linalg.pinv(x[:, :9]) @ y
        lacking = WEIGHTS - np.append(fitted, np.zeros(3))
        one_by_one.append(lacking @ lacking + NOISE**2)
    risks = experiment.risks(Sample(*sample), WEIGHTS, NOISE, (9,), penalized=False)
    assert risks[0] == pytest.approx(np.mean(one_by_one))


@pytest.mark.parametrize("p", [4, 40])
def test_the_point_is_one_of_the_claims_fits(p):
    claim = DoubleDescent(examples=(12,), features=(p, ALL), runs=5, seeds=3)
    point = DoubleDescent.point.of(claim)
    risk, ridge = claim.measured(claim.weights, generator(), 5, unequal=False)
    observed = observed_at(point)
    np.testing.assert_allclose(observed["risk"], risk[:, 0, 0])
    np.testing.assert_allclose(observed["ridge"], ridge[:, 0, 0])
    law = claim.predict(claim.weights)
    assert point.predict(None)["risk"] == law["risk"][0, 0]
    assert point.predict(None)["ridge"] == law["ridge"][0, 0]
