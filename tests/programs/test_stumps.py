"""The ℓ1 margin over all stumps: column generation against whole programs by other solvers."""

import numpy as np
import pytest
from scipy.optimize import linprog

from steepest.core.errors import UserError
from steepest.dynamics import adaboost
from steepest.nn.data import digits, signs
from steepest.programs import decision_stumps, hard_margin, stump_margin


def problem(seed, n=40, d=4):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return decision_stumps(x), np.where(x[:, 0] + 0.5 * x[:, 1] > 0, 1.0, -1.0)


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_the_interior_point_code_on_the_whole_dictionary(seed):
    stumps, y = problem(seed)
    whole = hard_margin(stumps.matrix(), y, norm="l1")
    found = stump_margin(stumps, y)
    assert found.separable
    assert found.margin == pytest.approx(whole.margin, rel=1e-7)
    assert found.gap <= 1e-8


def test_agrees_with_the_dual_program_on_digits():
    """min over the simplex of the largest edge: another program, another algorithm of HiGHS."""
    data = signs(digits(classes=(3, 8), n=200))
    stumps = decision_stumps(data.x)
    y = np.asarray(data.y)
    signed = y[:, None] * stumps.matrix()
    n, m = signed.shape
    rows = np.vstack([np.hstack([s * signed.T, -np.ones((m, 1))]) for s in (1, -1)])
    dual = linprog(
        np.append(np.zeros(n), 1.0),
        rows,
        np.zeros(2 * m),
        np.append(np.ones(n), 0.0)[None],
        [1.0],
        method="highs-ipm",
    )
    found = stump_margin(stumps, y)
    assert found.margin == pytest.approx(dual.fun, rel=1e-6)
    values = y * (stumps.matrix(found.chosen) @ found.weights)
    assert values.min() == pytest.approx(found.margin, rel=1e-9)
    assert np.abs(found.weights).sum() == pytest.approx(1, abs=1e-12)
    # The certificate: under q no stump, and so no combination, has a larger edge.
    assert found.dual.min() >= 0 and found.dual.sum() == pytest.approx(1, abs=1e-12)
    assert np.abs(found.dual @ signed).max() <= found.margin + found.gap + 1e-12


def test_no_boosting_exceeds_it():
    stumps, y = problem(5)
    best = stump_margin(stumps, y).margin
    for shrinkage in (1.0, 0.1):
        assert float(adaboost(stumps, y, 5000, shrinkage).margin.max()) <= best * (1 + 1e-9)


def test_labels_that_no_combination_fits_get_a_certificate():
    """Exclusive or: under the multipliers every stump has edge zero."""
    corners = decision_stumps([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    found = stump_margin(corners, [1, -1, -1, 1])
    assert not found.separable and found.margin == 0 and not len(found.weights)
    assert found.dual.sum() == pytest.approx(1) and found.gap < 1e-9
    assert np.abs((found.dual * [1, -1, -1, 1]) @ corners.matrix()).max() < 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_examples_with_both_labels_get_a_certificate(seed):
    """The optimum is zero, where the two signs of a column may cancel in the solver's solution."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=(60, 10)), 1)
    y = np.where(x[:, 0] + x[:, 1] > 0, 1.0, -1.0)
    found = stump_margin(decision_stumps(np.vstack([x, x[:5]])), np.append(y, -y[:5]))
    assert not found.separable and found.margin == 0 and found.gap < 1e-8


def test_columns_that_cancel_have_no_direction(monkeypatch):
    """A solution whose two signs cancel up to rounding is the zero combination, with margin zero."""
    import scipy.optimize

    from steepest.programs._stumps import _program

    solve = scipy.optimize.linprog

    def cancelled(*problem, **options):
        solution = solve(*problem, **options)
        solution.x = np.array([0.5, 0.5 - 1e-16, 0.0])
        return solution

    monkeypatch.setattr(scipy.optimize, "linprog", cancelled)
    margin, w, _ = _program(np.array([[1.0], [-1.0]]))
    assert margin == 0 and (w == 0).all()


def test_bad_input_is_refused_in_one_sentence():
    stumps, y = problem(0)
    with pytest.raises(UserError, match="40 labels"):
        stump_margin(stumps, y[:3])
    with pytest.raises(UserError, match="only -1 and"):
        stump_margin(stumps, y + 1)
