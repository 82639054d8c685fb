"""Beyond the edge: the rival's levels, the records, and quadratics on which everything is known."""

import jax
import numpy as np
import pytest

from steepest.claims.descent.beyond_the_edge.claim import _catapult
from steepest.claims.descent.beyond_the_edge.experiment import BeyondPoint, Setting
from steepest.nn.networks import mlp


def point(**changes):
    fields = {"multiple": 1.5, "width": 4, "depth": 1, "c_w": 1.0, "steps": 40}
    return BeyondPoint(**{**fields, "n": 10, "seeds": 3, "products": 3, **changes})


def test_where_a_catapult_lands():
    """Networks of width 1000 land at 0.874 to 0.884, 0.535 to 0.540, 0.095 to 0.115, and diverge above s = 2."""
    level, growth = _catapult(np.array([1.1, 1.3, 1.5, 2.1]), 1000, 400)
    assert level[:3] == pytest.approx([0.88, 0.54, 0.10], abs=0.02)
    assert level[3] == 0
    assert growth[0] == pytest.approx(5.7, rel=0.01)
    assert np.isinf(growth[3])


def test_records_hold_the_start_powers_of_two_and_the_last_fifth():
    marks = point(steps=400).marks
    assert marks.tolist() == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 320, 340, 360, 380, 400]


def test_a_quadratic_diverges_exactly_beyond_the_edge():
    """Without a network's curvature the sharpness stays at s, and the risk falls below one and grows above."""
    net = mlp((2, 1), "linear", bias=False)
    risk = lambda params: 2.0 * params[0]["w"][0, 0] ** 2 + 0.5 * params[0]["w"][0, 1] ** 2
    setting = Setting(net, risk, jax.random.split(jax.random.key(0), 3))
    one = jax.jit(lambda s, slower: point().descent(setting, jax.random.key(1), s, slower))
    stays = one(0.9, 1.0)
    grows = one(1.5, 1.0)
    slower = one(1.5, 2.0)
    assert np.allclose(stays["sharpness"], 0.9)
    assert stays["risk"][-1] < stays["risk"][0]
    # the steep coordinate is multiplied by 1 − 2s each step, and the other by 1 − s/2
    assert float(grows["risk"][6] / grows["risk"][5]) == pytest.approx(4, rel=1e-3)
    assert float(slower["risk"][-1]) < float(slower["risk"][0])
    assert np.allclose(slower["sharpness"], 1.5)
    assert bool(grows["diverged"])
