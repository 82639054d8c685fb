import numpy as np
import pytest

from steepest.statistics import extrapolate


@pytest.mark.parametrize("orders", [(1, 2, 3), (2, 4, 6), (0.5, 1.5, 2)])
def test_known_powers_are_taken_out_exactly(orders):
    h = np.array([0.8, 0.5, 0.2, 0.1])
    values = 7 + sum(c * h**p for c, p in zip((3, -2, 1), orders, strict=True))
    assert extrapolate(values, h, orders).value == pytest.approx(7, abs=1e-11)


def test_two_sizes_that_double():
    sizes = np.array([10, 20])
    limit = extrapolate([1.3, 1.1], 1 / sizes, (1,))
    assert limit.value == pytest.approx(2 * 1.1 - 1.3)
    assert limit.error == pytest.approx(abs(limit.value - 1.3))
    assert np.isnan(limit.ratio)


def test_the_error_is_that_of_the_last_two_extrapolants():
    h = np.array([0.4, 0.2, 0.1])
    whole = extrapolate(np.exp(h), h, (1, 2))
    coarser = extrapolate(np.exp(h[:2]), h[:2], (1, 2))
    assert whole.error == pytest.approx(abs(whole.value - coarser.value))
    assert whole.ratio == pytest.approx(whole.error / coarser.error)


@pytest.mark.parametrize("function", [np.exp, np.cos, lambda h: 1 / (1 + h)])
@pytest.mark.parametrize("steps", [3, 4, 5])
def test_the_error_covers_where_extrapolants_converge(function, steps):
    h = 0.4 * 0.5 ** np.arange(steps)
    limit = extrapolate(function(h), h, range(1, steps))
    assert abs(limit.value - 1) < limit.error
    assert limit.ratio < 1


def test_a_wrong_order_shows():
    h = 0.1 * 0.5 ** np.arange(5)
    right = extrapolate(1 + np.sqrt(h), h, (0.5, 1))
    wrong = extrapolate(1 + np.sqrt(h), h, (1, 2))
    assert right.error < 1e-12
    assert wrong.ratio > 0.5
    assert abs(wrong.value - 1) > 2 * wrong.error  # so that the ratio must be looked at


def test_fewer_orders_than_steps_use_the_finest():
    h = np.array([1.0, 0.2, 0.1])
    limit = extrapolate(np.array([100.0, 5.2, 5.1]), h, (1,))
    assert limit.value == pytest.approx(5)
    # the line through the first two meets zero elsewhere
    assert limit.error == pytest.approx(abs(5 - (5.2 - 0.2 * (100 - 5.2) / 0.8)))


def test_many_values_at_once():
    h = np.array([0.4, 0.2, 0.1])
    values = np.exp(h)[:, None, None] * np.arange(6.0).reshape(2, 3)
    limit = extrapolate(values, h, (1, 2))
    single = extrapolate(values[:, 1, 2], h, (1, 2))
    assert limit.value.shape == limit.error.shape == limit.ratio.shape == (2, 3)
    assert limit.value[1, 2] == pytest.approx(single.value)
    assert (limit.error[0, 0], limit.ratio[0, 0]) == (0, 0)  # where nothing moves


@pytest.mark.parametrize(
    ("values", "steps", "orders", "sentence"),
    [
        ([1.0], [0.1], (1,), "two steps"),
        ([1.0, 2.0, 3.0], [0.2, 0.1], (1,), "values at each"),
        ([1.0, 2.0], [0.1, 0.2], (1,), "fall"),
        ([1.0, 2.0], [0.1, 0.1], (1,), "fall"),
        ([1.0, 2.0], [0.1, 0.0], (1,), "fall"),
        ([1.0, 2.0], [0.2, 0.1], (), "orders"),
        ([1.0, 2.0], [0.2, 0.1], (2, 1), "orders"),
        ([1.0, 2.0], [0.2, 0.1], (0, 1), "orders"),
    ],
)
def test_what_cannot_be_extrapolated(values, steps, orders, sentence):
    with pytest.raises(ValueError, match=sentence):
        extrapolate(values, steps, orders)
