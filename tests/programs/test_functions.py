"""Costs of functions of one variable against programs over a fine dictionary of neurons, and the duality gap."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

from steepest.core.errors import UserError
from steepest.programs import least_cost_function, relu_cost

CASES = [
    (n, kind, seed) for n in (2, 3, 5, 8) for kind in ("zigzag", "ramp", "line") for seed in (0, 1)
]


def points(n, kind, seed):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-1, 1, n) + 2 * np.arange(n) / n)
    return x, {
        "zigzag": rng.normal(size=n),
        "ramp": 3 * x + 0.1 * rng.normal(size=n),
        "line": 1 - 2 * x,
    }[kind]


def dictionary(x, between=3):
    """``[±(x - t)]₊`` for knots at the inputs, between them and beyond: a finer and wider grid than the program's."""
    fine = np.interp(np.arange(0, len(x) - 1 + 1e-9, 1 / between), np.arange(len(x)), x)
    knots = np.concatenate([[x[0] - 2, x[0] - 0.3], fine, [x[-1] + 0.4]])
    apart = x[:, None] - knots
    return np.hstack([np.maximum(apart, 0), np.maximum(-apart, 0)])


@pytest.mark.parametrize(("n", "kind", "seed"), CASES)
def test_the_least_cost_is_the_l1_program_over_many_neurons(n, kind, seed):
    """Finer knots do not lower it: the linear program Σ|a_j| over the dictionary, by scipy."""
    x, y = points(n, kind, seed)
    neurons = dictionary(x)
    both = np.hstack([neurons, -neurons, np.ones((n, 1)), -np.ones((n, 1))])
    price = np.concatenate([np.ones(2 * neurons.shape[1]), [0.0, 0.0]])
    expected = linprog(price, A_eq=both, b_eq=y).fun
    found = least_cost_function(x, y)
    assert found.cost == pytest.approx(expected, rel=1e-7)
    assert abs(found.gap) < 1e-8 * (1 + found.cost)


@pytest.mark.parametrize("penalty", [1e-3, 1e-2, 1e-1])
@pytest.mark.parametrize(
    ("n", "kind", "seed"), [(2, "ramp", 0), (5, "zigzag", 1), (8, "ramp", 0), (6, "line", 3)]
)
def test_the_compromise_is_the_lasso_over_many_neurons(n, kind, seed, penalty):
    x, y = points(n, kind, seed)
    neurons = dictionary(x)
    a = cp.Variable(neurons.shape[1])
    c = cp.Variable()
    lasso = cp.Problem(
        cp.Minimize(cp.sum_squares(neurons @ a + c - y) / (2 * n) + penalty * cp.norm1(a))
    )
    lasso.solve(solver=cp.CLARABEL)
    found = least_cost_function(x, y, penalty)
    assert found.objective == pytest.approx(lasso.value, rel=1e-5)
    np.testing.assert_allclose(found.values, neurons @ a.value + c.value, atol=1e-4)
    assert -1e-12 <= found.gap <= 1e-9


@pytest.mark.parametrize("penalty", [0.0, 1e-2])
@pytest.mark.parametrize(("n", "kind", "seed"), CASES)
def test_the_function_returned_has_its_values_and_its_cost(n, kind, seed, penalty):
    x, y = points(n, kind, seed)
    found = least_cost_function(x, y, penalty)
    steps = found.values[0] + np.concatenate([[0.0], np.cumsum(found.slopes[1:-1] * np.diff(x))])
    np.testing.assert_allclose(steps, found.values, atol=1e-9)
    assert relu_cost(found.knots, found.slopes) == found.cost
    fit = ((found.values - y) ** 2).mean() / 2
    assert found.objective == pytest.approx(
        fit + penalty * found.cost if penalty else found.cost, abs=1e-12
    )
    # The dual is admissible: no neuron, whatever its knot, is worth more than one.
    knots = np.linspace(x[0] - 5, x[-1] + 5, 2001)
    for sign in (1, -1):
        assert np.abs(found.dual @ np.maximum(sign * (x[:, None] - knots), 0)).max() <= 1 + 1e-8


def test_costs_by_hand():
    """A hinge costs its slope, |x| and x cost 2, a step's two hinges add up, shifts and constants are free."""
    assert relu_cost([0.3], [0.0, 2.0]) == 2
    assert relu_cost([0.0], [-1.0, 1.0]) == 2
    assert relu_cost([], [-1.5]) == 3
    assert relu_cost([0.0, 1.0], [0.0, 4.0, 0.0]) == 8
    assert relu_cost([0.0, 0.0], [0.0, 4.0, 0.0]) == 8  # knots that meet are still two neurons


def test_every_network_costs_at_least_what_its_function_does():
    """½ Σ (w² + v²) ≥ C(f), with equality for balanced neurons of one orientation."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        w, b, v = rng.normal(size=(3, 7))
        order = np.argsort(-b / w)
        slopes = (v * w)[w < 0].sum() + np.concatenate([[0.0], np.cumsum((v * np.abs(w))[order])])
        assert relu_cost((-b / w)[order], slopes) <= (w @ w + v @ v) / 2
    jumps = np.abs(rng.normal(size=5))
    assert relu_cost(np.arange(5), np.concatenate([[0.0], np.cumsum(jumps)])) == pytest.approx(
        jumps.sum()
    )


def test_the_order_of_the_examples_does_not_matter_and_scales_do_as_they_should():
    x, y = points(6, "zigzag", 2)
    found = least_cost_function(x, y)
    mixed = least_cost_function(x[::-1], y[::-1])
    assert mixed.cost == found.cost
    assert least_cost_function(10 * x, 3 * y + 5).cost == pytest.approx(0.3 * found.cost)


def test_bad_input_is_refused_in_one_sentence():
    with pytest.raises(UserError, match="at least two inputs"):
        least_cost_function([1.0], [1.0])
    with pytest.raises(UserError, match="distinct"):
        least_cost_function([1.0, 1.0], [1.0, 2.0])
    with pytest.raises(UserError, match="y must be"):
        least_cost_function([1.0, 2.0], [1.0])
    with pytest.raises(UserError, match="finite"):
        least_cost_function([1.0, np.nan], [1.0, 2.0])
    with pytest.raises(UserError, match="penalty"):
        least_cost_function([1.0, 2.0], [1.0, 2.0], -1.0)
    with pytest.raises(UserError, match="k \\+ 1 slopes"):
        relu_cost([0.0], [1.0])
    with pytest.raises(UserError, match="increasing"):
        relu_cost([1.0, 0.0], [1.0, 2.0, 3.0])
