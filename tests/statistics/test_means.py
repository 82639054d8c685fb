import numpy as np
import pytest

from steepest.core.intervals import mean_interval
from steepest.statistics import group_means, simultaneous_intervals

from .coverage import assert_covers

DATA_SETS = 2000


def all_inside(samples, truth, level):
    """Which of the data sets (data sets, repetitions, points) have all means within their intervals."""
    results = []
    for sample in samples:
        low, high = simultaneous_intervals(sample, level)
        results.append(np.all((low <= truth) & (truth <= high)))
    return results


def test_one_point_has_students_interval():
    samples = np.random.default_rng(0).normal(size=7)
    low, high = simultaneous_intervals(samples)
    student = mean_interval(samples)
    np.testing.assert_allclose([low, high], [student.low, student.high], rtol=1e-12)


@pytest.mark.parametrize(("repetitions", "level"), [(3, 0.95), (20, 0.8)])
def test_intervals_hold_at_all_independent_points(repetitions, level):
    points = 6
    samples = np.random.default_rng(1).normal(size=(DATA_SETS, repetitions, points)) + np.arange(6)
    together = all_inside(samples, np.arange(6), level)
    # independent points: Bonferroni's intervals hold with exactly this probability
    assert_covers(together, (1 - (1 - level) / points) ** points, exact=True)
    assert_covers(together, level)


@pytest.mark.parametrize("memory", [0.9, 1.0])
def test_intervals_hold_for_points_that_depend_on_each_other(memory):
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(DATA_SETS, 5, 10))
    curves = memory * noise[..., :1] + np.sqrt(1 - memory**2) * noise
    assert_covers(all_inside(curves, 0, 0.95), 0.95)


def test_separate_intervals_would_not_hold_together():
    samples = np.random.default_rng(3).normal(size=(DATA_SETS, 5, 10))
    separate = 1 - 10 * (1 - 0.95)  # ten points at once at this level are single ones at 0.95
    assert np.mean(all_inside(samples, 0, separate)) < 0.7


def test_shape_and_points_that_are_not_finite():
    samples = np.ones((4, 2, 3))
    samples[1, 0, 2] = np.inf
    low, high = simultaneous_intervals(samples)
    assert low.shape == high.shape == (2, 3)
    assert np.argwhere(np.isnan(low)).tolist() == np.argwhere(np.isnan(high)).tolist() == [[0, 2]]
    assert low[1, 1] == high[1, 1] == 1


@pytest.mark.parametrize("samples", [3.0, [], [1.0], np.ones((1, 5))])
def test_one_repetition_has_no_interval(samples):
    with pytest.raises(ValueError, match="at least two repetitions"):
        simultaneous_intervals(samples)


@pytest.mark.parametrize("level", [0, 1, 95])
def test_levels_are_probabilities(level):
    with pytest.raises(ValueError, match="between 0 and 1"):
        simultaneous_intervals([1.0, 2.0], level)


def test_group_means_keep_the_mean_and_the_order():
    values = np.random.default_rng(4).normal(size=(12, 3))
    groups = group_means(values, 4)
    np.testing.assert_allclose(groups[1], values[3:6].mean(0))
    np.testing.assert_allclose(groups.mean(0), values.mean(0))
    np.testing.assert_array_equal(group_means(values, 12), values)


@pytest.mark.parametrize("groups", [0, 5, 24])
def test_groups_must_be_equal(groups):
    with pytest.raises(ValueError, match="multiple"):
        group_means(np.ones(12), groups)
