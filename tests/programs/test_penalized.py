"""Regularized minima against cvxpy, against fine dictionaries and against what theory says of their limit."""

import cvxpy as cp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.programs import (
    certified_excess,
    hard_margin,
    neuron_margin,
    penalized_minimum,
    penalized_neurons,
    weak_guarantee,
)
from tests.programs.test_neurons import dictionary, example

DECADES = (4, 8, 16, 32, 64)


def data(seed=0, n=12, d=5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    w = rng.normal(size=d)
    y = np.where(x @ w > 0, 1.0, -1.0)
    return x + 0.3 * y[:, None] * w / np.linalg.norm(w), y


def primal(features, y, strength, penalty, loss="exponential"):
    """The minimum of the regularized risk over the strength, and the margins there, by an exponential cone program."""
    a = cp.Variable(features.shape[1])
    size = cp.norm1(a) if penalty == "l1" else cp.sum_squares(a)
    margins = cp.multiply(y, features @ a)
    losses = cp.exp(-margins) if loss == "exponential" else cp.logistic(-margins)
    value = cp.Problem(cp.Minimize(cp.sum(losses) / (len(y) * strength) + size)).solve(
        solver=cp.CLARABEL
    )
    return value, margins.value


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("strength", [0.03, 1e-3])
def test_minimum_is_that_of_the_primal_program(penalty, strength, loss):
    x, y = data()
    found = penalized_minimum(x, y, np.log(strength), penalty, loss)
    (value, margins) = primal(x, y, strength, penalty, loss)
    assert found.value == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(found.margins, margins, atol=1e-3)
    assert abs(found.gap) <= 5e-5


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("decades", DECADES)
def test_stays_exact_however_small_the_penalty(penalty, decades):
    """Optimality: q_i = exp(−m_i)/(λn), forces of at most one (or 2β), and Euler's identity Σ q m = P or 2P.

    All to the size of the gap that is allowed: how far below it the solver ends depends on the processor's rounding.
    """
    x, y = data(1)
    found = penalized_minimum(x, y, -decades * np.log(10), penalty)
    assert abs(found.gap) <= 5e-5
    np.testing.assert_allclose(
        np.log(found.dual), decades * np.log(10) - np.log(len(y)) - found.margins, rtol=1e-9
    )
    forces = (found.dual * y) @ x
    if penalty == "l1":
        assert np.abs(forces).max() == pytest.approx(1, abs=5e-5)
        assert found.dual @ found.margins == pytest.approx(found.size, rel=5e-5)
    else:
        np.testing.assert_allclose(y * (x @ forces) / 2, found.margins, rtol=1e-5, atol=1e-4)
        assert found.dual @ found.margins == pytest.approx(2 * found.size, rel=5e-5)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("decades", [-1, 0, 1, 2, 8, 32])
def test_logistic_minima_meet_their_optimality_conditions(penalty, decades):
    """q_i = 1/(λn (1 + exp m_i)), forces of at most one (or 2β), whether the penalty is strong or weak."""
    x, y = data(3)
    found = penalized_minimum(x, y, -decades * np.log(10), penalty, "logistic")
    assert abs(found.gap) <= 5e-5
    with np.errstate(over="ignore"):
        dual = 10.0**decades / len(y) / (1 + np.exp(found.margins))
    np.testing.assert_allclose(found.dual, dual, rtol=1e-9)
    forces = (found.dual * y) @ x
    if penalty == "l1":
        assert np.abs(forces).max() <= 1 + 5e-5
    else:
        np.testing.assert_allclose(y * (x @ forces) / 2, found.margins, rtol=1e-5, atol=1e-4)


def test_losses_differ_where_the_penalty_is_strong_and_agree_where_it_is_weak():
    x, y = data(1)
    for decades, apart in ((1, True), (16, False)):
        margins = [
            penalized_minimum(x, y, -decades * np.log(10), "l2", loss).margins
            for loss in ("exponential", "logistic")
        ]
        distance = np.abs(margins[0] / margins[1] - 1).max()
        assert distance > 0.05 if apart else distance < 1e-9


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize("decades", [2, 4])
def test_neurons_are_those_of_a_fine_dictionary(decades, loss):
    x, y = example(0)
    features = np.maximum(x @ dictionary(300).T, 0)
    found = penalized_neurons(x, y, -decades * np.log(10), loss)
    value, _ = primal(features, y, 2 * 10.0**-decades, "l1", loss)
    assert found.value <= 2 * value * (1 + 1e-6)
    assert found.value == pytest.approx(2 * value, rel=5e-3)


@pytest.mark.parametrize("model", ["linear", "sparse", "neurons"])
def test_normalized_margins_keep_the_guarantee_and_tend_to_the_largest(model):
    x, y = example(3) if model == "neurons" else data(2)
    degree = 1 if model == "linear" else 2
    if model == "neurons":
        largest = neuron_margin(x, y).margin / 2
        solve = lambda s: penalized_neurons(x, y, s)
    else:
        penalty = "l2" if model == "linear" else "l1"
        largest = hard_margin(x, y, penalty).margin
        solve = lambda s: penalized_minimum(x, y, s, penalty)
    parts = []
    for decades in DECADES:
        found = solve(-decades * np.log(10))
        parts.append(found.margins.min() / found.size ** (degree / 2) / largest)
        assert (
            weak_guarantee(-decades * np.log(10), len(y), largest, degree) <= parts[-1] <= 1 + 1e-6
        )
    assert (np.diff(parts) > 0).all()
    assert parts[-1] > 0.97


def test_the_guarantee_follows_from_its_two_inequalities():
    """B by brute force over R."""
    log_strength = -16 * np.log(10)
    n = 20
    margin = 0.3
    degree = 2
    r = np.linspace(1e-3, 60, 400_001)
    best = np.logaddexp(-margin * r**degree, log_strength + 2 * np.log(r)).min()
    expected = 1 - np.log(n) / -(np.log(n) + best)
    assert weak_guarantee(log_strength, n, margin, degree) == pytest.approx(expected, rel=1e-7)
    assert weak_guarantee(-0.1, n, margin, degree) == -np.inf


def test_the_logistic_guarantee_follows_from_its_two_inequalities():
    """B by brute force over R, for a penalty that is not small: there the losses differ."""
    log_strength = np.log(1e-6)
    n = 5
    margin = 0.3
    r = np.linspace(1e-3, 200, 1_000_001)
    best = np.log1p(np.exp(-margin * r)) + np.exp(log_strength) * r**2
    t = np.exp(n * best.min()) - 1
    expected = np.log((1 + t) ** n - 1) / np.log(t)
    found = weak_guarantee(log_strength, n, margin, 1, "logistic")
    assert 0 < found == pytest.approx(expected, rel=1e-6)
    assert found < weak_guarantee(log_strength, n, margin, 1)
    far = -60 * np.log(10)
    weak = [weak_guarantee(far, n, margin, 1, loss) for loss in ("exponential", "logistic")]
    assert weak[0] == pytest.approx(weak[1], rel=1e-12)
    assert weak_guarantee(-0.1, n, margin, 1, "logistic") == -np.inf


def test_a_linear_model_keeps_the_logistic_guarantee():
    x, y = data(2)
    largest = hard_margin(x, y, "l2").margin
    for decades in (3, 4, 6, 12):
        found = penalized_minimum(x, y, -decades * np.log(10), "l2", "logistic")
        part = found.margins.min() / found.size**0.5 / largest
        least = weak_guarantee(-decades * np.log(10), len(y), largest, 1, "logistic")
        assert least <= part <= 1 + 1e-6


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_excess_bounds_the_true_excess(penalty, loss):
    x, y = data(4)
    log_strength = np.log(1e-5 if loss == "exponential" else 1e-2)
    best = penalized_minimum(x, y, log_strength, penalty, loss)
    norm = {"l1": lambda q: np.abs((q * y) @ x).max(), "l2": lambda q: np.linalg.norm((q * y) @ x)}[
        penalty
    ]
    beta = np.linalg.lstsq(x, y * best.margins)[0]
    rng = np.random.default_rng(0)
    for scale in (1e-4, 1e-3, 1e-2):
        moved = beta + scale * rng.normal(size=beta.size)
        margins = y * (x @ moved)
        size = np.abs(moved).sum() if penalty == "l1" else moved @ moved
        losses = np.exp(-margins) if loss == "exponential" else np.logaddexp(0, -margins)
        excess = (losses.mean() * np.exp(-log_strength) + size) / best.value - 1
        bound = certified_excess(margins, size, log_strength, norm, penalty, loss)
        assert excess <= bound + 1e-6
        assert bound < 1
    if loss == "exponential":
        assert (
            certified_excess(best.margins - 1e5, best.size, log_strength, norm, penalty) == np.inf
        )


def test_bad_inputs_are_refused_in_one_sentence():
    with pytest.raises(UserError, match="penalty must be"):
        penalized_minimum([[1.0]], [1.0], -1.0, "l3")
    with pytest.raises(UserError, match="'exponential' or 'logistic'"):
        penalized_minimum([[1.0]], [1.0], -1.0, loss="hinge")
    with pytest.raises(UserError, match="only -1 and \\+1"):
        penalized_minimum([[1.0]], [2.0], -1.0)
    with pytest.raises(UserError, match="shape \\(n, 2\\)"):
        penalized_neurons([[1.0]], [1.0], -1.0)
