"""What matrix-completion rests on: its descent, its thresholds, Ge's ratio, the digits' matrices."""

import jax
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.optimization.matrix_completion.claim import _leverage, _ratio, _truncated
from steepest.claims.optimization.matrix_completion.experiment import (
    LR,
    MOMENTUM,
    begin,
    complete,
    draw,
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
    assert float(full[0]) < 1e-4
    assert float(full[1]) < 2e-5
    assert float(few[0]) > 0.05


def test_the_threshold_is_where_a_step_is():
    """Failure up to density 4, success from 5 on: 4.5, by the area."""
    claim = load("matrix-completion")(densities=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), ranks=(1, 2))
    errors = np.where(np.array(claim.densities) < 4.5, 1.0, 0.0)[None, None]
    assert claim.thresholds(errors)[0, 0] == 4.5
    assert claim.thresholds(0 * errors)[0, 0] == 1


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
    assert _ratio(x, matrix, mask)[0] == pytest.approx(top / bottom)
    assert _ratio(0 * x, matrix, mask)[0] == pytest.approx(1)


def test_digits_and_spikes():
    images = np.random.default_rng(2).normal(size=(9, 20))
    matrix = _truncated(images, 3)
    assert np.linalg.matrix_rank(matrix) == 3
    assert np.linalg.norm(matrix, 2) == pytest.approx(1)
    assert np.allclose(matrix.sum(0), 0)
    rng = np.random.default_rng(3)
    assert _leverage(draw(rng, 40, 1, 10.0), 1) > 0.9
    assert _leverage(draw(rng, 40, 1, 0.0), 1) < 0.6
