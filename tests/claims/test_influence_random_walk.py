"""Influence and walks: the estimates of the judge, out of range, and what is refused."""

import numpy as np
import pytest

from steepest.claims.expressivity.influence_random_walk.claim import _powers, _spread, _square
from steepest.core.errors import UserError
from steepest.core.words import Verdict
from steepest.engine.run import execute, ready
from steepest.graphs import lazy_walk, ring

RNG = np.random.default_rng(0)


def test_squared_distances_have_no_bias():
    centre = RNG.standard_normal((3000, 2, 3))
    mean = centre + 0.5
    samples = mean[:, None] + RNG.standard_normal((3000, 5, 2, 3))
    values = _square(samples, centre).mean(-1)
    error = np.std(values) / 3000**0.5
    assert np.mean(values) == pytest.approx(6 * 0.25, abs=4 * error)


def test_pseudo_values_are_the_jackknife_s():
    samples = RNG.standard_normal((6, 2, 3))

    def whole(samples):
        away = samples.reshape(len(samples), -1)
        pairs = [a @ b for i, a in enumerate(away) for j, b in enumerate(away) if i != j]
        return np.mean(pairs)

    expected = [6 * whole(samples) - 5 * whole(np.delete(samples, one, axis=0)) for one in range(6)]
    np.testing.assert_allclose(_square(samples, np.zeros((2, 3))), expected)
    assert _square(samples[None, None], np.zeros((1, 1, 2, 3))).shape == (1, 1, 6)


def test_powers_and_differences():
    walk = lazy_walk(ring(8))
    powers = _powers(walk, 40)
    np.testing.assert_allclose(powers[2], walk @ walk @ walk)
    second = np.sort(np.abs(np.linalg.eigvals(walk)))[-2]
    assert np.diff(np.log(_spread(powers[-5:]))) == pytest.approx(np.log(second), rel=1e-3)
    assert _spread(np.eye(4)) == 0.75
    assert _spread(np.full((8, 8), 1 / 8)) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("fields", [{"aggregate": "sum"}, {"width": 8}, {"depths": (2, 8)}])
def test_out_of_range(fields):
    tiny = {"networks": 3, "dimension": 2, "images": 20, "neighbours": 2, "rows": 2}
    changes = {"depths": (2,), "width": 20, "widths": (10,), **tiny, **fields}
    assert execute(ready("influence-random-walk", changes=changes)).verdict is Verdict.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"depths": (3, 4)}, "from 2"),
        ({"depths": (2, 4, 3)}, "increase"),
        ({"width": 32}, "twice"),
        ({"aggregate": "median"}, "one of mean, sum"),
        ({"neighbours": 16}, "at most 15"),
    ],
)
def test_refused(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        ready("influence-random-walk", changes=fields)
