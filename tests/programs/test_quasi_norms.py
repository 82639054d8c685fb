"""Enumerated vertices against linear programs, perturbations and the margin program."""

import numpy as np
import pytest
from scipy.linalg import null_space

from steepest.core.errors import UserError
from steepest.programs import (
    hard_margin,
    min_norm_interpolation,
    quasi_norm_interpolation,
    quasi_norm_margins,
)

ORDERS = [0.3, 0.5, 2 / 3]


def regression(seed=0, n=3, d=7):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=n)


def apart(seed=0, n=5, d=4):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    w = rng.normal(size=d)
    return x + 0.5 * np.sign(x @ w)[:, None] * w / np.linalg.norm(w), np.sign(x @ w)


@pytest.mark.parametrize("seed", range(5))
def test_order_one_is_the_linear_program(seed):
    x, y = regression(seed)
    assert np.allclose(
        quasi_norm_interpolation(x, y, 1.0), min_norm_interpolation(x, y, "l1").beta, atol=1e-7
    )


@pytest.mark.parametrize("order", ORDERS)
def test_no_other_interpolant_has_less(order):
    """Random interpolants near and far: a search that knows nothing of vertices."""
    x, y = regression(1)
    found = quasi_norm_interpolation(x, y, order)
    rng = np.random.default_rng(2)
    assert np.allclose(x @ found, y) and (found != 0).sum() == len(y)
    moves = rng.normal(size=(20_000, x.shape[1] - len(y))) @ null_space(x).T
    least = (np.abs(found) ** order).sum()
    for size in (1e-3, 0.1, 1.0):
        assert (np.abs(found + size * moves) ** order).sum(1).min() > least


@pytest.mark.parametrize("seed", range(5))
def test_order_one_is_the_margin_program(seed):
    """For p = 1 the one minimum is the direction of the largest ℓ1 margin."""
    x, y = apart(seed)
    (found,) = quasi_norm_margins(x, y, 1.0)
    program = hard_margin(x, y, "l1")
    assert np.allclose(found, program.direction / program.margin, atol=1e-6)


@pytest.mark.parametrize("order", ORDERS)
def test_every_minimum_is_one_and_random_descent_finds_no_other(order):
    """No feasible point nearby has less; and random feasible points, slid down, never get below the least of them."""
    x, y = apart(3)
    minima = quasi_norm_margins(x, y, order)
    rng = np.random.default_rng(4)
    value = lambda beta: (np.abs(beta) ** order).sum(-1)
    assert (value(minima)[1:] >= value(minima)[:-1]).all()
    for one in minima:
        margins = y * (x @ one)
        assert margins.min() == pytest.approx(1) and (margins < 1 + 1e-9).sum() == (one != 0).sum()
        near = one + 1e-8 * rng.normal(size=(20_000, len(one)))
        near = near / (y * (near @ x.T)).min(1, keepdims=True)  # feasible again, by the scale
        assert value(near).min() >= value(one)
    wild = rng.normal(size=(200_000, x.shape[1]))
    least = (y * (wild @ x.T)).min(1)
    assert value(wild[least > 0] / least[least > 0, None]).min() >= value(minima[0])


def test_orders_differ():
    """(1.5, 0.1) and (1, 1.1): ℓ1 uses both entries, and for ℓ_{2/3} that is not even a local minimum."""
    x = np.array([[1.5, 0.1], [1.0, 1.1]])
    y = np.ones(2)
    assert (quasi_norm_margins(x, y, 1.0)[0] != 0).sum() == 2
    assert all((one != 0).sum() == 1 for one in quasi_norm_margins(x, y, 2 / 3))


def test_data_that_are_not_separable_have_no_minimum():
    assert len(quasi_norm_margins([[1.0], [-1.0]], [1.0, 1.0], 0.5)) == 0


def test_bad_inputs_are_refused():
    x, y = regression()
    for order in (0.0, 1.5):
        with pytest.raises(UserError, match="order"):
            quasi_norm_interpolation(x, y, order)
        with pytest.raises(UserError, match="order"):
            quasi_norm_margins(x, np.sign(y), order)
    with pytest.raises(UserError, match="at most as many equations"):
        quasi_norm_interpolation(x.T, np.ones(7), 0.5)
    with pytest.raises(UserError, match="full row rank"):
        quasi_norm_interpolation(np.ones((2, 4)), np.ones(2), 0.5)
    with pytest.raises(UserError, match="vertices"):
        quasi_norm_interpolation(np.ones((20, 60)), np.ones(20), 0.5)
