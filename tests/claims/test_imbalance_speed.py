"""What imbalance-speed rests on: adaptive descents, and bounds without rows of zeros."""

import jax
import numpy as np

from steepest.catalogue import load
from steepest.claims.descent.imbalance_speed.claim import _each, descend_adaptively


def test_adaptive_steps_stop_at_the_floor():
    rng = np.random.default_rng(0)
    U = rng.normal(size=(3, 2, 6))
    V = rng.normal(size=(3, 2, 6))
    Y = rng.normal(size=(3, 2, 2))
    least, taken = descend_adaptively(U, V, Y, 2000, 1e-12)
    assert np.all(taken < 2000)
    assert least.min() >= 1
    shorter = descend_adaptively(U, V, Y, int(taken.min()), 1e-12)[1]
    assert np.all(shorter == taken.min())


def test_bounds_are_of_each_start_without_its_rows_of_zeros():
    setting = load("imbalance-speed")(seeds=3).setting(jax.random.key(0))
    outputs = _each(lambda U, V, Y: len(Y), setting.small)
    assert np.array_equal(outputs, np.repeat([3, 2], 3)[:, None] + np.zeros((1, 4)))
