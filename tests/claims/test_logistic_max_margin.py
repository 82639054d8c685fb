"""Logistic regression without end: one example in closed form, what its hypothesis sees, and bad input."""

import jax
import numpy as np
import pytest

from steepest.claims.implicit_bias.logistic_max_margin.claim import LogisticMaxMargin
from steepest.claims.implicit_bias.logistic_max_margin.experiment import (
    Sets,
    beyond,
    clear_sets,
    draw_sets,
    follow,
    synthetic_flows,
)
from steepest.core.errors import UserError
from steepest.nn.data import Dataset
from steepest.programs import hard_margin


def test_one_example_in_closed_form():
    """With one example m + e^m = 1 + t·x² holds of m = xw, since m' = x²/(1 + e^m)."""
    x = np.array([[0.7]])
    path = follow(x, np.ones(1), 40.0)
    m = 0.7 * np.asarray(path.observed["w"])[:, 0]
    t = (m + np.exp(m) - 1) / 0.7**2
    assert np.allclose(np.log1p(t[1:]), np.asarray(path.log_time)[1:], atol=1e-5)
    assert np.allclose(np.asarray(path.log_risk), np.log(np.log1p(np.exp(-m))), atol=1e-9)


def test_flows_are_read_at_the_times_asked():
    sets = draw_sets(jax.random.key(3), 2, 10, 3, 0.5, 0.0)
    seen = synthetic_flows(sets, 1e3, (20.0, 60.0))
    weights = np.array(seen["weights"][1])
    norms = np.linalg.norm(weights, axis=1)  # (seeds, times)
    for s in range(2):
        margin = hard_margin(sets.x[s], sets.y[s]).margin
        assert (norms[s, 1] - norms[s, 0]) * margin == pytest.approx(40, rel=0.03)


def test_an_example_near_the_margin_is_seen():
    """Of (1, 0) and (0, 1) the margin is 1/√2; (1.02, 0.02) lies 2 % of it twice beyond."""
    x = np.array([[[1.0, 0.0], [0.0, 1.0], [1.02, 0.02]]])
    y = np.ones((1, 3))
    assert beyond(x[0], y[0], hard_margin(x[0], y[0])) == pytest.approx(0.04, rel=1e-4)
    sets = Sets(x, y, Dataset(x[0], y[0], "the same"))
    assert clear_sets(sets, 1, 0.03)[0] == [0]
    assert clear_sets(sets, 1, 0.05)[0] == []


@pytest.mark.parametrize("times", [(10.0, 20.0), (10.0, 30.0, 20.0)])
def test_times_must_rise(times):
    with pytest.raises(UserError, match="three or more, and rise"):
        LogisticMaxMargin(log_times=times)
