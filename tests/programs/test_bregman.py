"""Bregman-nearest interpolants against cvxpy, closed forms and mirror descent."""

import cvxpy as cp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.dynamics import descend, mirror_descent
from steepest.programs import (
    Potential,
    bregman_interpolation,
    entropy,
    hypentropy_interpolation,
    hyperbolic_entropy,
    min_norm_interpolation,
    power,
    simplex_entropy,
    squared_norm,
)
from steepest.programs._solving import solve_tightly

POTENTIALS = [
    squared_norm(1.3),
    squared_norm(2.0),
    squared_norm(3.0),
    power(1.5),
    power(3.0),
    hyperbolic_entropy(0.2),
    entropy(),
    simplex_entropy(),
]
name = lambda potential: potential.name


def problem(potential, seed=0, n=5, d=12):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    truth = rng.normal(size=d)
    start = rng.normal(size=d)
    if potential.domain != "all":
        truth = np.exp(truth)
        start = np.exp(start)
    if potential.domain == "simplex":
        truth = truth / truth.sum()
        start = start / start.sum()
    return x, x @ truth, start


def as_cone_program(potential, x, y, start):
    """The same minimum, in cvxpy's words, by an interior-point code."""
    w = cp.Variable(x.shape[1])
    slope = np.asarray(potential.mirror(start))
    order = (
        float(potential.name.split()[-1].removesuffix("-norm"))
        if potential.name[-1] in "m0123456789"
        else 0
    )
    limits = [x @ w == y]
    if potential.name.startswith("squared"):
        psi = 0.5 * (
            cp.sum_squares(w) if order == 2 else cp.square(cp.pnorm(w, order, approx=False))
        )
    elif potential.name.startswith("power"):
        psi = cp.sum(cp.power(cp.abs(w), order, approx=False)) / order
    elif potential.domain == "all":
        return None
    else:
        psi = -cp.sum(cp.entr(w)) - (cp.sum(w) if potential.domain == "positive" else 0)
        limits += [cp.sum(w) == 1] if potential.domain == "simplex" else []
    solve_tightly(cp.Problem(cp.Minimize(psi - slope @ w), limits))
    return w.value


@pytest.mark.parametrize("potential", POTENTIALS, ids=name)
@pytest.mark.parametrize("seed", range(3))
def test_newton_agrees_with_a_cone_program(potential, seed):
    x, y, start = problem(potential, seed)
    found = bregman_interpolation(x, y, potential, start)
    assert found.converged and found.interpolable and found.residual <= 1e-12
    assert abs(found.gap) < 1e-10
    expected = as_cone_program(potential, x, y, start)
    if expected is not None:
        assert np.allclose(found.beta, expected, atol=2e-5)


@pytest.mark.parametrize("potential", POTENTIALS, ids=name)
def test_no_feasible_point_is_nearer(potential):
    """D(w + Nz, w_0) > D(w, w_0) for null directions: a way that shares nothing with Newton's."""
    x, y, start = problem(potential)
    found = bregman_interpolation(x, y, potential, start)
    rows = np.vstack([x, np.ones(x.shape[1])]) if potential.domain == "simplex" else x
    null = np.linalg.svd(rows)[2][len(rows) :]
    moves = np.random.default_rng(2).normal(size=(30, len(null))) @ null
    size = 0.1 * np.abs(found.beta).min()
    others = [
        float(potential.divergence(found.beta + size * move / np.abs(move).max(), start))
        for move in moves
    ]
    assert min(others) > found.value


@pytest.mark.parametrize("potential", POTENTIALS, ids=name)
def test_without_a_start_it_is_the_least_potential(potential):
    x, y, _ = problem(potential)
    found = bregman_interpolation(x, y, potential)
    assert found.converged
    center = potential.center(x.shape[1])
    again = bregman_interpolation(x, y, potential, center)
    assert np.allclose(found.beta, again.beta, atol=1e-8)
    assert found.value == pytest.approx(
        float(potential.value(found.beta) - potential.value(center)), abs=1e-9
    )


def test_known_programs_are_special_cases():
    x, y, start = problem(squared_norm(2.0))
    assert np.allclose(
        bregman_interpolation(x, y, squared_norm(2.0)).beta, min_norm_interpolation(x, y).beta
    )
    moved = start + np.linalg.pinv(x) @ (y - x @ start)
    assert np.allclose(
        bregman_interpolation(x, y, squared_norm(2.0), start).beta, moved, atol=1e-10
    )
    by_scale = hypentropy_interpolation(x, y, 0.2).beta
    assert np.allclose(
        bregman_interpolation(x, y, hyperbolic_entropy(0.2)).beta, by_scale, atol=1e-9
    )


def test_the_mean_of_a_die():
    """Jaynes: given its mean, the distribution of maximum entropy is exponential in the number of spots."""
    spots = np.arange(1.0, 7.0)
    found = bregman_interpolation(spots[None], [4.5], simplex_entropy())
    assert np.allclose(
        found.beta, [0.05435, 0.07877, 0.11416, 0.16545, 0.23977, 0.34749], atol=1e-5
    )
    assert np.ptp(np.diff(np.log(found.beta))) < 1e-9


@pytest.mark.parametrize(
    "potential", [squared_norm(1.5), hyperbolic_entropy(0.2), simplex_entropy()], ids=name
)
def test_mirror_descent_ends_there(potential):
    x, y, start = problem(potential)
    risk = lambda w: 0.5 * ((x @ w - y) ** 2).sum()
    path = descend(risk, np.asarray(start), mirror_descent(potential, 0.005), 60_000, record=60_000)
    assert np.allclose(path.params, bregman_interpolation(x, y, potential, start).beta, atol=1e-7)


def test_repeated_examples_are_no_obstacle():
    x, y, start = problem(simplex_entropy())
    once = bregman_interpolation(x, y, simplex_entropy(), start)
    twice = bregman_interpolation(np.vstack([x, x]), np.append(y, y), simplex_entropy(), start)
    assert twice.converged and np.allclose(once.beta, twice.beta, atol=1e-9)


def test_data_without_an_interpolant_are_an_outcome_that_says_why():
    x = np.array([[1.0, 1.0, 1.0]])
    for rows, y, potential, reason in (
        (np.ones((2, 3)), [0.0, 1.0], squared_norm(1.5), "no solution"),
        (x, [-1.0], entropy(), "no positive weights solve"),
        (x, [2.0], simplex_entropy(), "sum 1"),
        ([[1.0, 2.0, 3.0]], [3.5], simplex_entropy(), "sum 1"),
    ):
        found = bregman_interpolation(rows, y, potential)
        assert not found.interpolable and reason in found.reason


def test_maps_that_do_not_belong_to_the_potential_do_not_converge():
    """The stationarity is measured by the derivative of ψ, whatever the maps say."""
    wrong = Potential(
        "wrong", lambda w: 0.5 * (w @ w) + 0.1 * (w**4).sum(), lambda w: 2 * w, lambda z: z / 2
    )
    x, y, start = problem(squared_norm(2.0))
    assert not bregman_interpolation(x, y, wrong, start).converged


def test_bad_input_is_refused_in_one_sentence():
    x, y, start = problem(entropy())
    with pytest.raises(UserError, match="positive weights, got"):
        bregman_interpolation(x, y, entropy(), -start)
    with pytest.raises(UserError, match="start must be"):
        bregman_interpolation(x, y, entropy(), start[:3])
