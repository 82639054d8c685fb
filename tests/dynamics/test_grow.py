"""Growth: neurons against the convex program over all of them, and a growth that is cut short."""

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.dynamics import Fit, grow
from steepest.programs import polar, squared_neurons

RNG = np.random.default_rng(2)
X = RNG.normal(size=(8, 2))
Y = RNG.normal(size=8)


def fit(units):
    best = squared_neurons(X, Y, 0.5, directions=np.array([u for u, _ in units]).reshape(-1, 2))
    return Fit(best.value, Y - best.outputs, list(zip(best.weights, best.signs, strict=True)))


def test_growth_ends_at_the_convex_optimum():
    growth = grow(fit, lambda residual: polar(residual, X), 0.5, tolerance=1e-6)
    assert growth.certified
    assert growth.values[-1] == pytest.approx(squared_neurons(X, Y, 0.5).value, rel=1e-7)
    assert np.all(np.diff(growth.values) < 0)
    assert np.all(growth.polars[:-1] > 0.5)


def test_a_growth_that_is_cut_short_says_so():
    growth = grow(fit, lambda residual: polar(residual, X), 0.5, rounds=1)
    assert not growth.certified
    assert growth.sizes[0] == 0
    assert len(growth.values) == 2


def test_bad_input_is_one_sentence():
    with pytest.raises(UserError, match="positive penalty"):
        grow(fit, lambda residual: polar(residual, X), 0.0)
