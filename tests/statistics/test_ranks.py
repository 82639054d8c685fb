import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from steepest.statistics import rank_correlation

ORACLES = {"spearman": spearmanr, "kendall": kendalltau}


@pytest.mark.parametrize("kind", ORACLES)
@pytest.mark.parametrize("values", [3, 1000])
def test_scipy_has_the_same_with_ties_and_without(kind, values):
    rng = np.random.default_rng(0)
    x = rng.integers(0, values, (2, 3, 12))
    y = x + rng.integers(0, values, (2, 3, 12))
    result = rank_correlation(x, y, kind)
    assert result.shape == (2, 3)
    for place in np.ndindex(2, 3):
        assert result[place] == pytest.approx(ORACLES[kind](x[place], y[place]).statistic)


@pytest.mark.parametrize("kind", ORACLES)
def test_only_the_order_counts(kind):
    x = np.random.default_rng(1).normal(size=(4, 9))
    y = np.random.default_rng(2).normal(size=9)
    result = rank_correlation(x, y, kind)
    np.testing.assert_allclose(rank_correlation(np.exp(x), y**3, kind), result)
    np.testing.assert_allclose(rank_correlation(-x, y, kind), -result)
    np.testing.assert_allclose(rank_correlation(x, x, kind), 1)


@pytest.mark.parametrize("kind", ORACLES)
def test_what_orders_nothing_is_nan(kind):
    x = np.array([[1.0, 2.0, 3.0], [2.0, 2.0, 2.0], [1.0, np.inf, 2.0]])
    assert np.isnan(rank_correlation(x, [1, 2, 3], kind)).tolist() == [False, True, True]
    assert rank_correlation([1.0, 2.0, 3.0], [1, 2, 3], kind).shape == ()


@pytest.mark.parametrize(
    ("x", "y", "kind", "sentence"),
    [
        ([1], [1], "spearman", "two points"),
        ([1, 2, 3], [1, 2], "spearman", "as many"),
        ([1, 2], [1, 2], "pearson", "kendall"),
    ],
)
def test_what_cannot_be_ranked(x, y, kind, sentence):
    with pytest.raises(ValueError, match=sentence):
        rank_correlation(x, y, kind)
