"""Greedy choice against exhaustive search, fits against the normal equations, the rival's variance by sampling."""

import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.features.barron_rate.experiment import choose, errors_of
from steepest.claims.features.barron_rate.theory import fourier_variance
from steepest.core.errors import UserError
from steepest.engine.run import execute, ready
from steepest.nn.networks import barron

RNG = np.random.default_rng(0)


def test_greedy_choice_is_the_best_next_column():
    columns = (RNG.random((30, 12)) < 0.4).astype(float)
    target = RNG.normal(size=30)
    chosen = choose(columns, target, 4)
    assert len(set(chosen.tolist())) == 4

    def rest(taken):
        basis = columns[:, taken]
        return ((target - basis @ np.linalg.pinv(basis) @ target) ** 2).sum()

    for count in range(4):
        before = chosen[:count].tolist()
        best = min(rest([*before, i]) for i in range(12) if i not in before)
        assert rest(chosen[: count + 1].tolist()) == pytest.approx(best)


def test_errors_of_fits():
    train = RNG.normal(size=(20, 3))
    fresh = RNG.normal(size=(10, 3))
    targets = RNG.normal(size=20)
    others = RNG.normal(size=10)
    weights = np.linalg.solve(train.T @ train, train.T @ targets)
    errors = errors_of(train, fresh, targets, others)
    assert errors[-1] == pytest.approx(((fresh @ weights - others) ** 2).mean())
    assert errors.shape == (3,)


def test_the_variance_of_cosines():
    f = barron(3, 0.6)
    x = f.ball(RNG, 300)
    waves = np.cos(x @ RNG.normal(size=(3, 20_000)) / 0.6)
    assert waves.var(1).mean() == pytest.approx(fourier_variance(f), rel=0.05)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"chosen": 700}, "--chosen is at most --ridges 600"),
        ({"ridges": 500, "chosen": 450}, "--chosen is at most --fit-points 400"),
        ({"scale": 0.0}, "scale must be at least 0.01"),
    ],
)
def test_refused(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        ready("barron-rate", changes=fields)


def test_points_outside_of_the_ball_are_out_of_range():
    tiny = load("barron-rate").tiny
    asked = ready("barron-rate", "tiny", changes={**tiny, "radius": 1.5})
    assert execute(asked).verdict == "out-of-range"
