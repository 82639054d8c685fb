import numpy as np
import pytest

from steepest.core.intervals import mean_interval
from steepest.statistics import jackknife, pseudo_values

from .coverage import assert_covers


def test_the_jackknife_of_a_mean_is_students_interval():
    samples = np.random.default_rng(0).normal(size=11)
    estimate = jackknife(np.mean, samples)
    student = mean_interval(samples)
    assert estimate.value == pytest.approx(samples.mean())
    assert estimate.bias == pytest.approx(0, abs=1e-14)
    assert (estimate.interval.low, estimate.interval.high) == pytest.approx(
        (student.low, student.high)
    )


def test_the_jackknife_makes_the_variance_unbiased():
    samples = np.random.default_rng(1).normal(size=9)
    estimate = jackknife(np.var, samples)
    assert estimate.value == pytest.approx(samples.var(ddof=1))
    assert estimate.bias == pytest.approx(samples.var() - samples.var(ddof=1))


def test_the_interval_of_a_ratio_of_means_holds():
    rng = np.random.default_rng(2)
    results = []
    for _ in range(1000):
        below = rng.exponential(size=30) + 1
        above = 3 * below + rng.normal(size=30)
        estimate = jackknife(lambda rows: rows[:, 0].sum() / rows[:, 1].sum(), np.c_[above, below])
        results.append(estimate.interval.low <= 3 <= estimate.interval.high)
    assert_covers(results, 0.95, exact=True)


def test_an_estimator_may_return_an_array():
    samples = np.random.default_rng(3).normal(size=(6, 2, 4))
    estimate = jackknife(lambda rows: rows.mean(0) ** 2, samples)
    single = jackknife(lambda rows: rows.mean() ** 2, samples[:, 1, 2])
    assert estimate.value.shape == estimate.bias.shape == estimate.interval.low.shape == (2, 4)
    assert estimate.value[1, 2] == pytest.approx(single.value)
    assert estimate.interval.high[1, 2] == pytest.approx(single.interval.high)
    assert pseudo_values(lambda rows: rows.mean(0) ** 2, samples).shape == (6, 2, 4)


def test_one_repetition_cannot_be_left_out():
    with pytest.raises(ValueError, match="at least two repetitions"):
        jackknife(np.mean, [1.0])
