"""The margin of initial features: a cone program, symmetry, and its place below the Frobenius margin."""

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.nn.data import digits, signs
from steepest.programs import feature_margin, kernel_margin
from steepest.programs._solving import solve_tightly


def problem(n=7, m=12, d=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return x, np.where(rng.random(n) < 0.5, 1.0, -1.0), rng.normal(size=(m, d))


@pytest.mark.parametrize("seed", [0, 1])
def test_against_a_cone_program_for_the_neurons(seed):
    import cvxpy as cp

    x, y, weights = problem(seed=seed)
    active = (x @ weights.T > 0) * 1.0
    neurons = cp.Variable(weights.shape)
    outputs = cp.sum(cp.multiply(active, x @ neurons.T), axis=1) / len(weights)
    program = cp.Problem(
        cp.Maximize(cp.min(cp.multiply(y, outputs))), [cp.norm(neurons, axis=1) <= 1]
    )
    solve_tightly(program)
    best = feature_margin(x, y, weights, tolerance=1e-8)
    assert best.value == pytest.approx(program.value, abs=1e-6)
    assert 0 <= best.gap < 1e-7


def test_on_a_symmetric_parity_the_uniform_weights_are_best():
    x = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]]) / np.sqrt(2)
    y = np.array([1, -1, -1, 1])
    angles = (np.arange(400) + 0.5) * 2 * np.pi / 400
    weights = np.stack([np.cos(angles), np.sin(angles)], 1)
    best = feature_margin(x, y, weights)
    assert best.value == pytest.approx(np.sqrt(2) / 4, abs=1e-6)
    np.testing.assert_allclose(best.dual, 0.25, atol=1e-4)


def test_on_digits_it_is_below_the_frobenius_margin():
    data = signs(digits((3, 8), 30))
    x = np.asarray(data.x) / np.linalg.norm(data.x, axis=1, keepdims=True)
    weights = np.random.default_rng(0).normal(size=(200, 64))
    best = feature_margin(x, np.asarray(data.y), weights)
    active = (x @ weights.T > 0) * 1.0
    frobenius = kernel_margin((x @ x.T) * (active @ active.T) / len(weights), data.y)
    assert best.gap <= 1e-6
    assert best.value <= frobenius.margin + 1e-9
    assert best.value > 0.5 * frobenius.margin


def test_labels_that_contradict_have_margin_zero():
    best = feature_margin([[1.0, 0.0], [1.0, 0.0]], [1, -1], [[1.0, 0.2], [0.3, 1.0]])
    assert abs(best.value) < 1e-6


def test_bad_input_is_one_sentence():
    with pytest.raises(UserError, match="weights must be"):
        feature_margin([[1.0, 0.0]], [1], [[1.0]])
    with pytest.raises(UserError, match="labels"):
        feature_margin([[1.0, 0.0]], [2], [[1.0, 1.0]])
