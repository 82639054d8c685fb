"""What flat-saddle-time rests on: one program for all depths, and times of one mode."""

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steepest.claims.descent.flat_saddle_time.claim import FlatSaddleTime
from steepest.claims.descent.flat_saddle_time.experiment import time_to_learn


def test_layers_beyond_the_depth_do_not_matter():
    """Two layers of four: the time of a network of two alone, by SciPy's integrator."""
    rng = np.random.default_rng(0)
    target = np.diag([2.0, 0.5])
    start = 0.05 * rng.normal(size=(4, 2, 2))
    with jax.enable_x64(True):
        time, arrived = time_to_learn(start, 2, target, 0.5)
    assert bool(arrived)

    def speed(_, flat):
        first, second = flat.reshape(2, 2, 2)
        residual = target - second @ first
        return np.concatenate([(second.T @ residual).ravel(), (residual @ first.T).ravel()])

    def learned(_, flat):
        first, second = flat.reshape(2, 2, 2)
        return ((second @ first - target) ** 2).sum() - (4.25 - 3)

    learned.terminal = True
    path = solve_ivp(speed, (0, 100), start[:2].ravel(), events=learned, rtol=1e-10, atol=1e-13)
    assert float(time) == pytest.approx(path.t_events[0][0], rel=1e-5)


def test_times_grow_as_those_of_one_mode_from_small_starts():
    """The growth from size to size is a limit of the exact time of one mode, whose integral is another way to it."""
    small = FlatSaddleTime(sizes=(1e-4, 1e-5, 1e-6))
    law = small.predict(small.setting(jax.random.key(0)))
    two, *deep = law["time"]
    assert np.allclose(np.diff(two), law["added"], rtol=1e-6)
    for times, growth in zip(deep, law["growth"], strict=True):
        assert np.allclose(times[1:] / times[:-1], growth, rtol=1e-3)
