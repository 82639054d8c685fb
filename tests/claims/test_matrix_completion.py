"""What matrix-completion rests on: its descent, its thresholds, Ge's ratio, the digits' matrices."""

import jax
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.optimization.matrix_completion.claim import _leverage, _truncated
from steepest.claims.optimization.matrix_completion.experiment import (
    DONE,
    LR,
    MOMENTUM,
    begin,
    complete,
    draw,
    draw_orders,
    improvement,
)
from steepest.nn.data import masked


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    matrix = draw(rng, 12, 2, 0.0)
    return matrix, masked(jax.random.key(0), matrix, 78).place, begin(rng, 12, 2)


@pytest.fixture(scope="module")
def descent():
    return jax.jit(complete, static_argnames="steps")


def test_three_steps_by_hand(problem, descent):
    """Momentum on half of the gradient by differences of ¼‖P_Ω(XXᵀ − M)‖², scaled by the fullest row."""
    matrix, place, start = problem
    mask = place < 50
    share = mask.sum(1).max() / 12
    x, speed = start, np.zeros_like(start)
    for _ in range(3):
        slope = (mask * (x @ x.T - matrix)) @ x / share
        speed = MOMENTUM * speed - LR * slope
        x = x + speed
    with jax.enable_x64(True):
        error, _, end = descent(matrix, place, start, 50, steps=3)
    assert np.allclose(end, x, atol=1e-12)
    assert not np.asarray(end)[:, 2:].any()
    wanted = np.linalg.norm(x @ x.T - matrix) / np.linalg.norm(matrix)
    assert float(error) == pytest.approx(wanted)


def test_all_entries_complete_and_few_do_not(problem, descent):
    matrix, place, start = problem
    with jax.enable_x64(True):
        full = descent(matrix, place, start, 78, steps=2000)
        few = descent(matrix, place, start, 15, steps=2000)
    assert float(full[0]) < DONE
    assert np.allclose(full[2] @ full[2].T, matrix, atol=DONE)
    assert float(few[0]) > 0.05


def test_the_threshold_is_where_a_step_is():
    """Failure up to density 4, success from 5 on: 4.5, by the area."""
    claim = load("matrix-completion")(ranks=(1, 2), sets=3, real=3)
    densities = claim.densities[[0, 3], None]
    errors = np.where(densities < 4.5, 1.0, 0.0)
    assert claim.thresholds(errors).tolist() == [[4.5], [4.5]]
    assert claim.thresholds(0 * errors).tolist() == [[1], [2]]


def test_what_diverged_has_failed():
    claim = load("matrix-completion")(ranks=(1, 2))
    errors = np.zeros((2, 1, 7))
    errors[:, :, 0] = np.nan
    assert claim.thresholds(errors).tolist() == [[1.5], [2.5]]


def test_orders_are_permutations_of_the_upper_triangle():
    places = draw_orders(np.random.default_rng(0), 3, 5)
    assert np.array_equal(places, np.swapaxes(places, 1, 2))
    for place in places:
        assert sorted(place[np.triu_indices(5)]) == list(range(15))
    assert not np.array_equal(places[0], places[1])


def test_the_direction_by_the_polynomial_along_it():
    """Along Δ ¼‖P_Ω(XXᵀ − M)‖² is a quartic, whose coefficients obey Ge's identity."""
    rng = np.random.default_rng(4)
    matrix = draw(rng, 8, 2, 0.0)
    mask = draw_orders(rng, 1, 8)[0] < 25
    x = rng.normal(size=(3, 8, 2)) / 2
    levels, vectors = np.linalg.eigh(matrix)
    root = vectors[:, -2:] * np.sqrt(levels[-2:])
    answer = improvement(x, matrix, mask)

    def risk(x):
        return (mask * (x @ x.T - matrix) ** 2).sum() / 4

    for i in range(3):
        left, _, right = np.linalg.svd(root.T @ x[i])
        delta = x[i] - root @ left @ right
        places = np.arange(-2, 3)
        along, bend = np.polyfit(places, [risk(x[i] + t * delta) for t in places], 4)[[3, 2]]
        bend = 2 * bend
        outer = (mask * (delta @ delta.T) ** 2).sum()
        identity = outer / 2 - 6 * risk(x[i]) + 4 * along
        assert bend == pytest.approx(identity, abs=1e-10)
        assert answer.direction[i] == pytest.approx(min(-along, bend) / outer)
        assert answer.ratio[i] == pytest.approx(outer / (4 * risk(x[i])))


def test_the_ratio_by_its_definition():
    rng = np.random.default_rng(1)
    matrix = draw(rng, 8, 1, 0.0)
    levels, vectors = np.linalg.eigh(matrix)
    root = vectors[:, -1:] * levels[-1] ** 0.5
    x = rng.normal(size=(1, 8, 1))
    near = root if (root.T @ x[0]).item() > 0 else -root
    delta = x[0] - near
    mask = masked(jax.random.key(0), matrix, 20).mask
    top = (mask * (delta @ delta.T) ** 2).sum()
    bottom = (mask * (x[0] @ x[0].T - matrix) ** 2).sum()
    assert improvement(x, matrix, mask).ratio[0] == pytest.approx(top / bottom)
    assert improvement(0 * x, matrix, mask).ratio[0] == pytest.approx(1)


def test_digits_and_spikes():
    images = np.random.default_rng(2).normal(size=(9, 20))
    matrix = _truncated(images, 3)
    assert np.linalg.matrix_rank(matrix) == 3
    assert np.linalg.norm(matrix, 2) == pytest.approx(1)
    assert np.allclose(matrix.sum(0), 0)
    rng = np.random.default_rng(3)
    assert _leverage(draw(rng, 40, 1, 10.0), 1) > 0.9
    assert _leverage(draw(rng, 40, 1, 0.0), 1) < 0.6
