"""The margin over all neurons of the plane against fine dictionaries, linear programs and closed forms."""

import numpy as np
import pytest
from scipy.optimize import linprog

from steepest.core.errors import UserError
from steepest.programs import neuron_edges, neuron_margin


def example(seed, n=9):
    """Points of the plane with labels that no line separates."""
    rng = np.random.default_rng(seed)
    angles = 2 * np.pi * np.arange(n) / n + rng.uniform(-0.2, 0.2, n)
    y = np.where(np.arange(n) % 4 < 2, 1.0, -1.0)
    return rng.uniform(0.5, 1.5, (n, 1)) * np.stack([np.cos(angles), np.sin(angles)], 1), y


def dictionary(size):
    angles = 2 * np.pi * np.arange(size) / size
    return np.stack([np.cos(angles), np.sin(angles)], 1)


@pytest.mark.parametrize("seed", range(4))
def test_the_largest_edge_is_that_of_a_fine_dictionary(seed):
    """A dictionary of m angles misses at most a part of the order of 1/m of the largest edge, and never exceeds it."""
    x, y = example(seed)
    signed = np.random.default_rng(seed).uniform(size=len(y)) * y
    edges, directions = neuron_edges(x, signed)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(edges, np.maximum(directions @ x.T, 0) @ signed, rtol=1e-12)
    fine = np.abs(np.maximum(dictionary(20_000) @ x.T, 0) @ signed).max()
    assert fine <= np.abs(edges).max() + 1e-12
    assert fine == pytest.approx(np.abs(edges).max(), rel=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_the_margin_is_that_of_a_fine_dictionary(seed):
    """The linear program over 2000 neurons, by HiGHS: never above, and close."""
    x, y = example(seed)
    signed = y[:, None] * np.maximum(x @ dictionary(2000).T, 0)
    n, k = signed.shape
    above = np.hstack([-signed, signed, np.ones((n, 1))])
    ones = np.append(np.ones(2 * k), 0.0)[None]
    bounds = [(0, None)] * (2 * k) + [(None, None)]
    cost = np.append(np.zeros(2 * k), -1.0)
    fine = -linprog(cost, A_ub=above, b_ub=np.zeros(n), A_eq=ones, b_eq=[1.0], bounds=bounds).fun
    found = neuron_margin(x, y)
    assert fine <= found.margin + found.gap + 1e-9
    assert fine == pytest.approx(found.margin, rel=5e-3)


def test_primal_and_dual_certify_each_other():
    x, y = example(5)
    found = neuron_margin(x, y)
    outputs = np.maximum(x @ found.directions.T, 0) @ found.weights
    assert (y * outputs).min() == pytest.approx(found.margin, rel=1e-9)
    assert np.abs(found.weights).sum() == pytest.approx(1, rel=1e-9)
    assert found.dual.sum() == pytest.approx(1, rel=1e-9) and (found.dual >= 0).all()
    assert 0 <= found.gap <= 1e-7 and found.separable


def test_orthogonal_examples_share_the_weight():
    """Two neurons that do not see each other's example: 1/Σ 1/‖x_i‖."""
    found = neuron_margin([[2.0, 0.0], [-3.0, 0.0]], [1, -1])
    assert found.margin == pytest.approx(1 / (1 / 2 + 1 / 3), rel=1e-8)


def test_margins_scale_with_the_inputs_and_do_not_turn_with_them():
    x, y = example(1)
    turn = np.array([[np.cos(1.0), -np.sin(1.0)], [np.sin(1.0), np.cos(1.0)]])
    expected = neuron_margin(x, y).margin
    assert neuron_margin(100 * x @ turn, -y).margin == pytest.approx(100 * expected, rel=1e-6)


def test_contradictions_are_an_outcome():
    x, y = example(2)
    found = neuron_margin(np.vstack([x, 2 * x[:1]]), np.append(y, -y[0]))
    assert not found.separable and found.margin == 0 and found.gap < 1e-7


def test_bad_inputs_are_refused_in_one_sentence():
    with pytest.raises(UserError, match="x must be"):
        neuron_edges(np.ones((2, 3)), [1, -1])
    with pytest.raises(UserError, match="only -1 and \\+1"):
        neuron_margin(np.ones((2, 2)), [0, 1])
    with pytest.raises(UserError, match="signed must be .* where n = 2"):
        neuron_edges(np.ones((2, 2)), [1.0])
