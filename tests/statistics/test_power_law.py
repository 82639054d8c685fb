import numpy as np
import pytest

from steepest.core.intervals import fit_exponent, mean_interval
from steepest.statistics import fit_power

from .coverage import assert_covers

X = np.array([32.0, 64, 128, 256, 512])
DATA_SETS = 1500


def noisy(law, repetitions, dependent, seed=0):
    """Data sets (data sets, repetitions, points) of a law, with noise that grows with x."""
    noise = np.random.default_rng(seed).normal(size=(DATA_SETS, repetitions, X.size))
    if dependent:
        noise = np.cumsum(noise, -1)
    return law * np.exp(0.01 * np.sqrt(np.arange(1, X.size + 1)) * noise)


@pytest.mark.parametrize("repetitions", [3, 12])
@pytest.mark.parametrize("dependent", [False, True])
def test_a_straight_line_is_refuted_rarely_and_its_interval_holds(repetitions, dependent):
    fits = [fit_power(X, y) for y in noisy(3 * X**-0.7, repetitions, dependent)]
    assert_covers([fit.interval.low <= -0.7 <= fit.interval.high for fit in fits], 0.95, exact=True)
    assert_covers([not fit.refuted for fit in fits], 0.95)
    assert np.mean([fit.refuted for fit in fits]) > 0.005  # a test that never rejects has no power


def test_a_curve_is_refuted():
    """Two powers: a tenth of the first value falls faster, like 1/x²."""
    bent = 3 * X**-0.7 * (1 + 0.1 * (X / X[0]) ** -1.3)
    fits = [fit_power(X, y) for y in noisy(bent, 12, False)[:300]]
    assert np.mean([fit.refuted for fit in fits]) > 0.95


def test_each_repetition_may_have_a_constant_and_a_power_of_its_own():
    rng = np.random.default_rng(1)
    powers = rng.normal(-1, 0.1, 8)
    y = rng.uniform(1, 9, (8, 1)) * X ** powers[:, None]
    fit = fit_power(X, y)
    assert fit.exponent == pytest.approx(powers.mean())
    assert fit.interval.low == pytest.approx(mean_interval(powers).low)
    np.testing.assert_allclose(fit.residuals, 0, atol=1e-13)
    assert not fit.refuted


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_refutes_no_exact_law(dtype):
    y = np.tile((X ** (-1 / 3)).astype(dtype), (4, 1))
    fit = fit_power(X, y)
    assert not fit.refuted
    assert fit_power(X, y * np.array([1, 1, 1.01, 1, 1], dtype)).refuted


def test_residuals_and_their_intervals():
    y = noisy(X**0.5, 6, False)[0]
    fit = fit_power(X, y)
    lines = [np.polyfit(np.log(X), np.log(values), 1) for values in y]
    expected = np.mean(
        [
            np.log(values) - np.polyval(line, np.log(X))
            for values, line in zip(y, lines, strict=True)
        ],
        0,
    )
    np.testing.assert_allclose(fit.residuals, expected, atol=1e-12)
    np.testing.assert_allclose((fit.low + fit.high) / 2, expected, atol=1e-12)
    assert fit.exponent == pytest.approx(np.mean(lines, 0)[0])


def test_without_repetitions_it_is_fit_exponent():
    y = noisy(X**2, 1, False)[0, 0]
    fit = fit_power(X, y)
    slope, interval = fit_exponent(X, y)
    assert fit.exponent == pytest.approx(slope)
    assert (fit.interval.low, fit.interval.high) == pytest.approx((interval.low, interval.high))
    np.testing.assert_array_equal(fit.low, fit.residuals)
    np.testing.assert_array_equal(fit.high, fit.residuals)
    assert not fit.refuted


def test_without_repetitions_the_interval_holds():
    noise = np.random.default_rng(2).normal(size=(DATA_SETS, X.size))
    fits = [fit_power(X, y, 0.8) for y in X**-1.5 * np.exp(0.1 * noise)]
    inside = [fit.interval.low <= -1.5 <= fit.interval.high for fit in fits]
    assert_covers(inside, 0.8, exact=True)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("repetitions", [None, 3])
def test_values_that_no_power_law_has(bad, repetitions):
    y = np.ones(5) if repetitions is None else np.ones((repetitions, 5))
    y[..., 2] = bad
    fit = fit_power(X, y)
    assert np.isnan([fit.exponent, fit.interval.low, fit.interval.high]).all()
    assert np.isnan([fit.residuals, fit.low, fit.high]).all()
    assert not fit.refuted


@pytest.mark.parametrize(
    ("x", "y", "sentence"),
    [
        ([1, 2], [1, 2], "three points"),
        ([1, 2, 3], [[1, 2]], "three points"),
        ([1, 2, 3], [[1, 2, 3]], "two repetitions"),
        ([2, 2, 2], [1, 2, 3], "different x"),
    ],
)
def test_what_cannot_be_fitted(x, y, sentence):
    with pytest.raises(ValueError, match=sentence):
        fit_power(x, y)
