"""Penalized least squares over neurons: against coordinate descent on a fine grid, and by its own certificate."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from steepest.core.errors import UserError
from steepest.programs import polar, squared_neurons

RNG = np.random.default_rng(1)
X = RNG.normal(size=(7, 2))
Y = RNG.normal(size=7)


def test_the_cone_program_against_a_fine_grid_of_neurons():
    best = squared_neurons(X, Y, 0.3)
    angle = np.linspace(0, 2 * np.pi, 3000, endpoint=False)
    columns = np.maximum(X @ np.stack([np.cos(angle), np.sin(angle)]), 0)
    model = Lasso(alpha=0.3 / 7, fit_intercept=False, tol=1e-6, max_iter=100_000)
    c = model.fit(columns, Y).coef_
    on_grid = ((columns @ c - Y) ** 2).sum() / 2 + 0.3 * np.abs(c).sum()
    assert best.value <= on_grid + 1e-9
    assert best.value == pytest.approx(on_grid, rel=1e-3)
    assert polar(Y - best.outputs, X).value == pytest.approx(0.3, rel=1e-5)


def test_its_neurons_give_its_outputs_and_its_value():
    best = squared_neurons(X, Y, 0.3)
    outputs = np.maximum(X @ best.weights.T, 0) @ best.signs
    assert outputs == pytest.approx(best.outputs, abs=1e-5)
    size = np.linalg.norm(best.weights, axis=1).sum()
    assert ((outputs - Y) ** 2).sum() / 2 + 0.3 * size == pytest.approx(best.value, rel=1e-6)


def test_the_arcs_of_its_own_neurons_are_enough_and_others_are_not():
    best = squared_neurons(X, Y, 0.3)
    again = squared_neurons(X, Y, 0.3, directions=best.weights)
    assert again.value == pytest.approx(best.value, rel=1e-8)
    assert squared_neurons(X, Y, 0.3, directions=[[1.0, 0.1]]).value > best.value * (1 + 1e-6)
    assert squared_neurons(X, Y, 0.3, directions=np.zeros((0, 2))).value == Y @ Y / 2


def test_bad_input_is_one_sentence():
    with pytest.raises(UserError, match="positive penalty"):
        squared_neurons(np.ones((1, 2)), np.ones(1), -1.0)
    with pytest.raises(UserError, match=r"shape \(n, 2\)"):
        squared_neurons(np.ones((1, 3)), np.ones(1), 1.0)
