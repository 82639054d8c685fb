"""Refitting to one's own labels: laws against one way after the other of drawing, and fits against scikit-learn."""

import numpy as np
import pytest
from scipy.stats import wishart
from sklearn.linear_model import LinearRegression

from steepest.claims.training.synthetic_data import experiment, theory
from steepest.claims.training.synthetic_data.claim import SyntheticData
from steepest.claims.training.synthetic_data.experiment import Sizes
from steepest.core.errors import UserError
from tests.claims.numpy_points import generator, observed_at

RNG = np.random.default_rng(0)


def test_fits_are_scikit_learns():
    x = RNG.standard_normal((2, 9, 3))
    y = RNG.standard_normal((2, 9))
    for inputs, targets, weights in zip(x, y, experiment.fit(x, y), strict=True):
        wanted = LinearRegression(fit_intercept=False).fit(inputs, targets).coef_
        np.testing.assert_allclose(weights, wanted)


def test_kept_by_wishart_matrices():
    """The noise of round k counts S_k⁻¹X_kᵀX_kS_k⁻¹, with the Gram matrices drawn as such."""
    d = 3
    T = 12
    rounds = 3
    grams = wishart(T, np.eye(d)).rvs((20_000, rounds), random_state=1)
    totals = grams.cumsum(1)
    added = [
        np.trace(np.linalg.solve(totals[:, k], grams[:, k]) @ np.linalg.inv(totals[:, k]), 0, 1, 2)
        for k in range(rounds)
    ]
    errors = np.cumsum([np.mean(draws) for draws in added]) * (T - d - 1) / d
    np.testing.assert_allclose(theory.kept(rounds, d, T), errors, rtol=0.02)


def test_kept_is_below_its_bound_and_tends_to_it():
    assert theory.kept(50, 10, 30).max() < np.pi**2 / 6
    assert theory.kept(5000, 1, 10**6)[-1] == pytest.approx(np.pi**2 / 6, rel=1e-3)


@pytest.mark.parametrize("share", [0.3, 0.618, 0.9])
def test_mixed_at_its_fixed_point(share):
    wanted = (2 * share**2 - 2 * share + 1) / (2 * share - share**2)
    assert theory.mixed(np.array([share]), 200)[0] == pytest.approx(wanted)


def test_keeping_all_data_once_is_replacing():
    sizes = Sizes(2, 10, 3, 1)
    draw = lambda run, **options: run(
        np.random.default_rng(3), experiment.gaussian(np.random.default_rng(4)), sizes, **options
    )
    once = draw(experiment.replace)
    np.testing.assert_allclose(draw(experiment.keep, refreshed=False), once)
    np.testing.assert_allclose(draw(experiment.keep, refreshed=True), once)


def test_digits_are_white():
    drawn = experiment.of_digits(RNG, 4)(Sizes(50, 2000, 4, 1)).reshape(-1, 4)
    np.testing.assert_allclose(drawn.T @ drawn / len(drawn), np.eye(4), atol=0.03)


def test_a_cubic_needs_four_shares():
    with pytest.raises(UserError, match="four values"):
        SyntheticData(shares=(0.4, 0.5, 0.6))
    assert np.isnan(theory.best_share(np.array([0.1, 0.2, 0.3, 0.4]), np.exp(-np.arange(4.0))))


def test_the_point_is_one_round_of_the_claim():
    claim = SyntheticData(dimension=3, examples=12, rounds=4, runs=6, seeds=3)
    point = SyntheticData.point.of(claim)
    rng = generator()
    sizes = Sizes(18, 12, 3, 4)
    replaced = experiment.replace(rng, experiment.gaussian(rng), sizes)[:, -1]
    observed = observed_at(point)
    np.testing.assert_allclose(observed["replaced"], replaced.reshape(3, 6).mean(1))
    predicted = point.predict(None)
    law = claim.predict(None)
    for way in ("replaced", "kept"):
        assert predicted["fit"] * predicted[way] == pytest.approx(law[way][-1])
