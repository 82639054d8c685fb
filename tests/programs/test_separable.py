"""The split of a data set against its certificates, brute force, scikit-learn and cvxpy."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from steepest.core.errors import UserError
from steepest.nn.data import breast_cancer
from steepest.programs import hard_margin, logistic_split, split_coordinates


def mixed(seed, apart=8, rest=20, d=5, k=2):
    """Random labels in a plane, and examples off the plane on the right side of a hyperplane through it."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    x = rng.normal(size=(apart + rest, d))
    y = np.where(rng.random(apart + rest) > 0.5, 1.0, -1.0)
    x[apart:, k:] = 0
    x[:apart, k] = y[:apart] * (0.3 + np.abs(x[:apart, k]))
    order = rng.permutation(len(x))
    return x[order] @ turn.T, y[order], (np.arange(len(x)) < apart)[order], turn[:, :k]


@pytest.mark.parametrize("seed", range(5))
def test_the_part_is_found_with_both_certificates(seed):
    x, y, part, plane = mixed(seed)
    found = logistic_split(x, y)
    signed = y[:, None] * x
    np.testing.assert_array_equal(found.part, part)
    np.testing.assert_allclose(found.basis @ found.basis.T, plane @ plane.T, atol=1e-10)
    assert (signed @ found.separator)[part].min() >= 1 - 1e-9
    np.testing.assert_allclose((signed @ found.separator)[~part], 0, atol=1e-9)
    np.testing.assert_allclose(
        found.multipliers @ signed, 0, atol=1e-8 * np.abs(signed).max() * len(y)
    )
    assert found.multipliers[~part].min() >= 1 - 1e-9 and found.multipliers.min() >= 0


@pytest.mark.parametrize("seed", range(3))
def test_every_example_by_a_program_of_its_own(seed):
    """Example i belongs to the part if max y_i⟨u, x_i⟩ > 0 over u with no negative margin, one program each."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=(12, 4)))
    y = np.where(rng.random(12) > 0.5, 1.0, -1.0)
    found = logistic_split(x, y)
    signed = y[:, None] * x
    for i in range(12):
        u = cp.Variable(4)
        best = cp.Problem(
            cp.Maximize(signed[i] @ u), [signed @ u >= 0, cp.norm(u, "inf") <= 1]
        ).solve(cp.CLARABEL)
        assert (best > 1e-6) == found.part[i]


def test_the_optimum_is_that_of_a_cone_program_and_of_scikit_learn():
    x, y, part, _ = mixed(1)
    found = logistic_split(x, y)
    rows = (y[:, None] * x)[~part] @ found.basis
    v = cp.Variable(rows.shape[1])
    least = cp.Problem(cp.Minimize(cp.sum(cp.logistic(-rows @ v)))).solve(solver=cp.CLARABEL)
    assert found.risk == pytest.approx(least / len(y), rel=1e-7)
    np.testing.assert_allclose(found.offset, found.basis @ v.value, atol=1e-4)
    machine = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=10_000)
    machine.fit(x[~part] @ found.basis, y[~part])
    np.testing.assert_allclose(found.offset, found.basis @ machine.coef_[0], atol=1e-4)


def test_the_ray_is_the_hard_margin_off_the_span():
    x, y, part, plane = mixed(2)
    found = logistic_split(x, y)
    away = x[part] @ (np.eye(5) - plane @ plane.T)
    program = hard_margin(away, y[part])
    assert found.margin == pytest.approx(program.margin, rel=1e-9)
    np.testing.assert_allclose(found.direction, program.direction, atol=1e-7)
    np.testing.assert_allclose(plane.T @ found.direction, 0, atol=1e-7)


def test_coordinates_turn_the_span_into_a_coordinate_plane():
    x, y, part, _ = mixed(3)
    found = logistic_split(x, y)
    turned = split_coordinates(found, x)
    np.testing.assert_allclose(found.turn.T @ found.turn, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(turned @ found.turn.T, x, atol=1e-12)
    assert not turned[~part][:, 2:].any() and turned[part][:, 2:].any(1).all()


def test_the_two_ends_are_separable_data_and_data_without_a_part():
    data = breast_cancer()
    x = np.asarray(data.x)
    y = np.asarray(data.y)
    whole = logistic_split(np.column_stack([x, np.ones(len(x))]), y)
    assert whole.part.all() and whole.risk == 0 and whole.basis.shape == (31, 0)
    assert whole.margin == pytest.approx(
        hard_margin(np.column_stack([x, np.ones(len(x))]), y).margin, rel=1e-6
    )
    twice = logistic_split(np.vstack([x, x]), np.append(y, -y))
    assert not twice.part.any() and twice.margin == 0 and not twice.direction.any()
    np.testing.assert_allclose(twice.offset, 0, atol=1e-10)
    assert twice.risk == pytest.approx(np.log(2), rel=1e-12)


def test_bad_input_is_refused_in_one_sentence():
    with pytest.raises(UserError, match="only -1 and"):
        logistic_split([[1.0], [2.0]], [0, 1])
    with pytest.raises(UserError, match="finite"):
        logistic_split([[np.nan], [2.0]], [-1, 1])
