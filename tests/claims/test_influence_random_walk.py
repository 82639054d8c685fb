"""Influence and walks: the estimates of the judge, out of range, and what is refused."""

import numpy as np
import pytest

from steepest.claims.expressivity.influence_random_walk.claim import (
    DEPTH,
    _distance,
    _powers,
    _rate,
    _ratio,
    _square,
)
from steepest.core.errors import UserError
from steepest.core.words import Verdict
from steepest.engine.run import execute, ready
from steepest.graphs import lazy_walk, ring

RNG = np.random.default_rng(0)


def test_squared_distances_have_no_bias():
    centre = RNG.standard_normal((2, 3))
    mean = centre + 0.5
    values = [
        _square(mean[:, None] + RNG.standard_normal((2, 5, 3)), centre).mean() for _ in range(3000)
    ]
    error = np.std(values) / 3000**0.5
    assert np.mean(values) == pytest.approx(6 * 0.25, abs=4 * error)


def test_pseudo_values_are_the_jackknife_s():
    samples = RNG.standard_normal((2, 6, 3))
    centre = np.zeros((2, 3))

    def whole(samples):
        away = samples.transpose(1, 0, 2).reshape(samples.shape[1], -1)
        pairs = [a @ b for i, a in enumerate(away) for j, b in enumerate(away) if i != j]
        return np.mean(pairs)

    expected = [6 * whole(samples) - 5 * whole(np.delete(samples, one, axis=1)) for one in range(6)]
    np.testing.assert_allclose(_square(samples, centre), expected)


def test_powers_rates_and_distances():
    walk = lazy_walk(ring(8))
    powers = _powers(walk, 40)
    np.testing.assert_allclose(powers[2], walk @ walk @ walk)
    second = np.sort(np.abs(np.linalg.eigvals(walk)))[-2]
    assert _rate(powers, np.arange(30, 41)) == pytest.approx(np.log(second), rel=1e-3)
    assert _distance(np.eye(2), np.eye(2)[::-1]) == 1
    graphs = np.stack([powers, _powers(np.full((8, 8), 1 / 8), 40), powers])
    assert graphs.shape[1] > DEPTH
    assert _ratio(graphs) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("fields", [{"aggregate": "sum"}, {"width": 8}, {"depths": (8,)}])
def test_out_of_range(fields):
    tiny = {"deep": 6, "networks": 3, "dimension": 2, "images": 20, "neighbours": 2, "rows": 2}
    # a depth beyond the deepest network is only out of range too
    changes = {"width": 16, "widths": (4,), **tiny, **fields}
    assert execute(ready("influence-random-walk", changes=changes)).verdict is Verdict.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"deep": 5}, "at least 6"),
        ({"aggregate": "median"}, "one of mean, sum"),
        ({"neighbours": 16}, "at most 15"),
    ],
)
def test_refused(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        ready("influence-random-walk", changes=fields)
