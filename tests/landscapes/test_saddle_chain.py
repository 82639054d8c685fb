"""The chain of saddles: its Hessians, its times against descent by hand, its smoothness."""

import jax
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.landscapes import (
    chain_ratio,
    chain_saddles,
    chain_times,
    saddle_chain,
    strict_saddles,
)

GAIN, LOSS, LR = 0.4, 0.9, 0.25


@pytest.fixture(scope="module")
def descent():
    """The gradient of a chain of six, compiled once."""
    return jax.jit(jax.vmap(jax.grad(saddle_chain(GAIN, LOSS))))


def rooms(slope, start, steps, noise=0.0, seed=0):
    """Steps spent in each room by descent, in NumPy around the gradient."""
    rng = np.random.default_rng(seed)
    x = start.copy()
    first = np.zeros(start.shape)
    for step in range(1, steps + 1):
        x = x - LR * np.asarray(slope(x)) + noise * rng.normal(size=x.shape)
        first = np.where((first == 0) & (np.abs(x) >= 1), step, first)
    return np.diff(first, axis=1, prepend=0)


def test_saddles_are_strict_with_one_way_out():
    found = strict_saddles(saddle_chain(GAIN, LOSS), chain_saddles(3))
    assert [point.index for point in found] == [1, 1, 1, 0]
    assert max(point.gradient for point in found) < 1e-14
    for left, point in enumerate(found):
        waiting = 3 - left
        wanted = [-2 * GAIN] * (waiting > 0) + [2 * LOSS] * (waiting - 1) + [4 * GAIN] * left
        assert np.allclose(point.eigenvalues, np.sort(wanted))


def test_the_minimum_is_the_lowest_point_found():
    risk = jax.jit(jax.vmap(saddle_chain(GAIN, LOSS)))
    points = np.random.default_rng(0).uniform(-6, 6, (5000, 3))
    assert float(risk(points).min()) > float(risk(chain_saddles(3))[-1])


def test_the_gradient_is_continuous(descent):
    """Across both ends of the step, by differences."""
    for at in (1.0, 2.0):
        points = np.full((2, 4), 0.7)
        points[:, 1] = at - 1e-6, at + 1e-6
        slopes = np.asarray(descent(points))
        assert np.abs(slopes[0] - slopes[1]).max() < 1e-4


def test_times_without_noise(descent):
    start = 0.1 * np.random.default_rng(1).uniform(0.5, 1, (6, 3))
    times = rooms(descent, start, 600)
    predicted = chain_times(start, GAIN, LOSS, LR)
    assert np.abs(times - predicted).max() < 8
    assert np.abs(times / predicted - 1)[:, 1:].max() < 0.04


def test_times_with_noise(descent):
    start = 0.1 * np.random.default_rng(2).uniform(0.5, 1, (300, 5))
    times = rooms(descent, start, 500, 1e-2)
    predicted = chain_times(start, GAIN, LOSS, LR, 1e-2)
    mean = times[:, 2:].mean(1)
    error = mean.std(ddof=1) / 300**0.5
    # the mean logarithm is not the mean time, which is whole steps: half a step is left
    assert abs(mean.mean() - predicted[:, 2:].mean()) < 4 * error + 0.5
    assert np.all(predicted[:, 2:] < chain_times(start, GAIN, LOSS, LR)[:, 2:])


def test_times_tend_to_the_ratio():
    times = chain_times(np.full(6, 0.1), GAIN, LOSS, LR)
    assert times[-1] / times[-2] == pytest.approx(chain_ratio(GAIN, LOSS, LR), rel=1e-3)
    assert chain_ratio(GAIN, LOSS, 1e-6) == pytest.approx(1 + LOSS / GAIN, rel=1e-5)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: saddle_chain(0.0, 1.0), "positive"),
        (lambda: chain_ratio(1.0, 1.0, 0.5), "smaller step"),
        (lambda: chain_times(np.zeros(3), 0.5, 1.0, 0.25), "off zero"),
        (lambda: chain_times(np.ones(3) / 10, 0.5, 1.0, 0.25, -1e-3), "noise of at least 0"),
        (lambda: chain_times(np.ones(3) / 10, 10.0, 1.0, 0.4), "4ηg < 1"),
    ],
)
def test_bad_input_is_one_sentence(wrong, says):
    with pytest.raises(UserError, match=says):
        wrong()
