"""hyperplane-cells: the prediction by sampling, gradients by differences, and bad input."""

import jax
import numpy as np
import pytest

from steepest.claims.expressivity.hyperplane_cells.claim import HyperplaneCells
from steepest.claims.expressivity.hyperplane_cells.experiment import count_gradients
from steepest.core.errors import UserError
from steepest.core.words import Verdict
from steepest.engine.run import run
from steepest.geometry import cell_count, cells, preactivations, relu_layers

RNG = np.random.default_rng(0)


def test_many_random_points_meet_as_many_patterns_as_predicted():
    w = RNG.standard_normal((6, 2))
    b = RNG.standard_normal(6)
    angles = RNG.uniform(0, 2 * np.pi, 200_000)
    radii = RNG.pareto(0.5, 200_000)
    points = radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], 1)
    assert len(np.unique(points @ w.T + b > 0, axis=0)) == cell_count(6, 2)


def test_gradients_are_the_network_s():
    w = RNG.standard_normal((5, 2))
    b = RNG.standard_normal(5)
    v = RNG.standard_normal((1, 5))
    arrangement = cells(w, b)
    net = relu_layers([w, v], [b, np.zeros(1)])
    value = lambda x: preactivations(net, x)[-1][:, 0]
    small = 1e-7
    slopes = [
        (value(arrangement.points + small * axis) - value(arrangement.points)) / small
        for axis in np.eye(2)
    ]
    ours = arrangement.signs @ (v.T * w)
    np.testing.assert_allclose(np.transpose(slopes), ours, atol=1e-6)
    assert count_gradients(arrangement.signs, v.T * w) == cell_count(5, 2)


def test_training_leaves_the_origin():
    claim = HyperplaneCells(planes=(4,), dimensions=(2,), width=5, images=40, steps=10, seeds=3)
    setting = claim.setting(jax.random.key(0))
    observed = claim.observe(setting, jax.random.key(1))
    predicted = claim.predict(setting)
    assert (observed["digits_start"] == predicted["digits_start"]).all()
    assert (observed["digits"] == predicted["digits"]).all()
    assert predicted["digits"] == 26 and predicted["digits_start"] == 22


@pytest.mark.parametrize("fields", [{"parallel": 3}, {"bias_std": 0.0}])
def test_out_of_range(fields):
    small = {"planes": (6,), "dimensions": (2,), "images": 20, "steps": 2, "seeds": 3}
    assert run(HyperplaneCells(**small, **fields)).verdict is Verdict.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"lr": 1e-11}, "raise --images"),
        ({"images": 1}, "raise --images"),
        ({"lr": 5.0}, "lower --lr"),
    ],
)
def test_a_layer_that_training_does_not_move_is_out_of_range(fields, words):
    result = run(HyperplaneCells(planes=(6,), dimensions=(2,), width=10, seeds=3, **fields))
    assert result.verdict is Verdict.OUT_OF_RANGE
    assert words in next(one.note for one in result.run_conditions if not one.holds)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"planes": (3, 4)}, "go together"),
        ({"planes": (40,), "dimensions": (9,)}, "too many cells"),
        ({"planes": (10**6,), "dimensions": (10**6,)}, "too many cells"),
        ({"planes": (120,), "dimensions": (2,)}, "at most 300000"),
        ({"planes": (3,), "dimensions": (101,)}, "at most 100"),
        ({"components": 62, "width": 2}, "at most 61"),
    ],
)
def test_bad_input(fields, words):
    with pytest.raises(UserError, match=words):
        HyperplaneCells(**fields)
