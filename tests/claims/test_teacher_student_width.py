"""The splitting formula of teacher-student-width by drawn inputs, and Wilson's interval."""

import jax
import numpy as np
import pytest

from steepest.claims.descent._shares import equal_share, wilson
from steepest.claims.descent.teacher_student_width.experiment import (
    WidthPoint,
    split,
    split_direction,
)
from steepest.kernels import teacher_risk

RISK = jax.jit(teacher_risk)


def test_a_split_moves_the_risk_by_its_form():
    """Away from critical points too: halves that part along ±u change nothing to first order."""
    weights = np.random.default_rng(0).normal(size=(3, 4))
    form, direction = split_direction(weights, 1)
    assert direction @ weights[1] == pytest.approx(0, abs=1e-12)
    assert np.linalg.norm(direction) == pytest.approx(1)
    push = 1e-4
    with jax.enable_x64(True):
        before = float(RISK(weights, np.eye(4))[0])
        still = float(RISK(split(weights, 1, direction, 0.0), np.eye(4))[0])
        after = float(RISK(split(weights, 1, direction, push), np.eye(4))[0])
    assert still == pytest.approx(before, abs=1e-13)
    assert (after - before) / push**2 == pytest.approx(2 * form, rel=5e-3)


def test_the_form_is_the_mean_of_the_residual_on_the_hyperplane():
    """E[(f − y) x xᵀ δ(w·x)] by drawing x on the hyperplane, of density 1/(√(2π) ‖w‖)."""
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(2, 3))
    form, direction = split_direction(weights, 0)
    unit = weights[0] / np.linalg.norm(weights[0])
    x = rng.normal(size=(400_000, 3))
    x -= np.outer(x @ unit, unit)
    gap = np.maximum(x @ weights.T, 0).sum(1) - np.maximum(x, 0).sum(1)
    drawn = gap * (x @ direction) ** 2 / (np.sqrt(2 * np.pi) * np.linalg.norm(weights[0]))
    error = drawn.std() / np.sqrt(len(drawn))
    assert abs(drawn.mean() - form) < 4 * error


def test_wilsons_interval():
    """Against its definition: the ends are where the normal test of the share is at z = 1.96."""
    hits = np.arange(20) < 7
    band = wilson(hits)
    for end in (band.low, band.high):
        assert abs(hits.mean() - end) == pytest.approx(1.96 * np.sqrt(end * (1 - end) / 20))
    assert wilson(np.zeros(28, bool)).high < 0.13


def test_what_is_shown_of_a_share_is_the_share():
    check = equal_share("stuck", 0.0, np.zeros(28, bool), 0.15, label="share stuck")
    assert check.measured == 0
    assert check.verdict.value == "holds"
    assert (check.interval.low, check.interval.high) == (0, pytest.approx(0.1206, abs=1e-4))


def test_boundaries_follow_the_axes():
    point = WidthPoint(teacher=6, ratio=1.0, lr=0.1, steps=5, seeds=3)
    across = point.boundaries("teacher", "ratio")
    along = point.boundaries("ratio", "teacher")
    np.testing.assert_array_equal(across[0].x, along[0].y)
    assert point.boundaries("teacher", "lr") == ()
