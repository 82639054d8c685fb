import numpy as np
import pytest
from scipy.stats import binom, binomtest

from steepest.statistics import clustered_share, wilson

from .coverage import assert_covers

DATA_SETS = 2000


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("successes", [0, 1, 7, 19, 20])
def test_wilson_is_scipys(successes, level):
    expected = binomtest(successes, 20).proportion_ci(level, method="wilson")
    np.testing.assert_allclose(
        wilson(successes, 20, level), [expected.low, expected.high], atol=1e-12
    )


def test_wilson_holds_at_its_level_on_average():
    """Exactly, by the sum over all outcomes: for single p it holds a little less or more often."""
    p = np.linspace(0.005, 0.995, 199)[:, None]
    outcomes = np.arange(31)
    low, high = wilson(outcomes, 30)
    coverage = (binom.pmf(outcomes, 30, p) * ((low <= p) & (p <= high))).sum(1)
    assert abs(coverage.mean() - 0.95) < 0.01
    assert coverage.min() > 0.8


def test_wilson_reaches_zero_and_one_exactly_and_has_width():
    low, high = wilson([0, 3, 3, 0], [3, 3, 1000, 0])
    assert low[0] == 0
    assert high[1] == 1
    assert (low[3], high[3]) == (0, 1)
    assert np.all(high > low)


def test_wilson_broadcasts_and_keeps_nan():
    low, high = wilson([[0.0], [np.nan]], [5, 10, 20])
    assert low.shape == high.shape == (2, 3)
    assert np.isnan(low[1]).all() and np.isnan(high[1]).all() and not np.isnan(high[0]).any()


@pytest.mark.parametrize(("successes", "trials"), [(-1, 5), (6, 5)])
def test_wilson_refuses_impossible_counts(successes, trials):
    with pytest.raises(ValueError, match="between 0 and"):
        wilson(successes, trials)


def beta_binomial(clusters, trials, p, correlation):
    """Successes in clusters whose trials share a probability, shape (clusters, data sets)."""
    rng = np.random.default_rng(5)
    if correlation == 0:
        return rng.binomial(trials, p, (clusters, DATA_SETS))
    a = p * (1 - correlation) / correlation
    b = (1 - p) * (1 - correlation) / correlation
    return rng.binomial(trials, rng.beta(a, b, (clusters, DATA_SETS)))


@pytest.mark.parametrize(
    ("clusters", "trials", "p", "correlation"),
    [
        (8, 50, 0.3, 0.3),
        (8, 50, 0.05, 0.3),
        (8, 50, 0.3, 0.99),
        (20, 20, 0.98, 0.3),
        (20, 20, 0.1, 0.5),
        (5, 100, 0.5, 0.9),
        (4, 10, 0.5, 0.4),
        (30, 4, 0.3, 0.4),
    ],
)
def test_clustered_share_holds_where_wilson_fails(clusters, trials, p, correlation):
    successes = beta_binomial(clusters, trials, p, correlation)
    _, low, high = clustered_share(successes, trials)
    assert_covers((low <= p) & (p <= high), 0.95)
    low, high = wilson(successes.sum(0), clusters * trials)
    assert np.mean((low <= p) & (p <= high)) < 0.85


def test_clustered_share_of_independent_trials_uses_them_all():
    successes = beta_binomial(20, 50, 0.3, 0)
    _, low, high = clustered_share(successes, 50)
    plain_low, plain_high = wilson(successes.sum(0), 1000)
    assert_covers((low <= 0.3) & (high >= 0.3), 0.95)
    assert np.mean(high - low) < 1.4 * np.mean(plain_high - plain_low)


def test_one_trial_per_cluster_is_wilsons():
    outcomes = np.random.default_rng(6).integers(0, 2, (15, 4))
    share, low, high = clustered_share(outcomes, 1)
    np.testing.assert_allclose(share, outcomes.mean(0))
    np.testing.assert_allclose([low, high], wilson(outcomes.sum(0), 15), rtol=1e-12)


def test_clusters_that_agree_count_once():
    share, low, high = clustered_share(np.full((8, 2), [0, 50]), 50)
    assert share.tolist() == [0, 1]
    assert low[0] == 0 and high[1] == 1
    assert low[1] == pytest.approx(8 / (8 + 2.3646**2), abs=1e-4)  # t with 7 degrees of freedom
    assert high[0] == pytest.approx(1 - low[1])


def test_one_success_more_does_not_make_the_interval_narrow():
    counts = np.zeros((8, 2), int)
    counts[0, 1] = 1
    _, low, high = clustered_share(counts, 50)
    assert (high - low)[1] > (high - low)[0] / 2


def test_every_clustered_interval_has_width_and_order():
    rng = np.random.default_rng(7)
    for clusters in (2, 3, 10):
        for trials in (1, 2, 30):
            successes = rng.integers(0, trials + 1, (clusters, 3, 4))
            share, low, high = clustered_share(successes, trials)
            assert share.shape == low.shape == high.shape == (3, 4)
            assert np.all((low <= share) & (share <= high) & (low < high))


def test_nan_in_a_cluster_is_nan_at_its_point():
    successes = np.array([[1.0, np.nan], [2.0, 2.0]])
    for values in clustered_share(successes, 3):
        assert np.isnan(values).tolist() == [False, True]


@pytest.mark.parametrize(
    ("successes", "trials", "sentence"),
    [([3], 5, "two clusters"), ([1, 6], 5, "its 5 trials"), ([0, 0], 0, "at least one")],
)
def test_clusters_that_cannot_be(successes, trials, sentence):
    with pytest.raises(ValueError, match=sentence):
        clustered_share(successes, trials)
