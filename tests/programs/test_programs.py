"""Maximum margins against closed forms, scikit-learn, scipy and their own certificates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.svm import SVC

from steepest.core.errors import UserError
from steepest.programs import hard_margin, separable

ORDER = {"l1": 1, "l2": 2, "linf": np.inf}


def clouds(seed, n=30, d=4, gap=0.5):
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=d)
    direction /= np.linalg.norm(direction)
    x = rng.normal(size=(n, d))
    y = np.where(x @ direction > 0, 1.0, -1.0)
    return x + gap * y[:, None] * direction, y


def test_two_points_are_separated_halfway():
    """With a bias, the ℓ2 margin of two points is half their distance."""
    found = hard_margin([[3.0, 4.0], [0.0, 0.0]], [1, -1], bias=True)
    assert found.margin == pytest.approx(2.5, rel=1e-10)
    assert np.allclose(found.direction, [0.6, 0.8], atol=1e-10)
    assert found.bias == pytest.approx(-2.5, rel=1e-9)
    assert np.allclose(found.dual, 0.5)


@pytest.mark.parametrize(
    ("norm", "margin", "direction"),
    [("l2", 5.0, (0.6, 0.8)), ("l1", 4.0, (0.0, 1.0)), ("linf", 7.0, (1.0, 1.0))],
)
def test_one_point_has_its_dual_norm_as_margin(norm, margin, direction):
    """max_{‖w‖ ≤ 1} ⟨w, x⟩ = ‖x‖_*."""
    found = hard_margin([[3.0, 4.0]], [1], norm=norm)
    assert found.margin == pytest.approx(margin, rel=1e-9)
    assert np.allclose(found.direction, direction, atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_l2_agrees_with_a_support_vector_machine(seed):
    """scikit-learn's hard-margin limit finds the same separator, bias and support vectors."""
    x, y = clouds(seed)
    machine = SVC(C=1e8, kernel="linear", tol=1e-8).fit(x, y)
    size = np.linalg.norm(machine.coef_)
    found = hard_margin(x, y, bias=True)
    assert found.margin == pytest.approx(1 / size, rel=1e-6)
    assert np.allclose(found.direction, machine.coef_[0] / size, atol=1e-6)
    assert found.bias == pytest.approx(machine.intercept_[0] / size, abs=1e-6)
    assert set(found.support) == set(machine.support_)
    # The multipliers of min ½‖w‖² are q/γ̂².
    assert np.allclose(
        found.dual[machine.support_] / found.margin**2, np.abs(machine.dual_coef_[0]), rtol=1e-5
    )


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_polyhedral_margins_agree_with_scipy(norm, bias):
    """The same linear program, written for scipy's simplex code."""
    x, y = clouds(7)
    n, d = x.shape
    # Variables w₊, w₋ ≥ 0, b, γ: minimize -γ.
    signed = y[:, None] * x
    rows = np.hstack([-signed, signed, -y[:, None] * bias, np.ones((n, 1))])
    top, room = (1, np.zeros(n)) if norm == "linf" else (None, np.append(np.zeros(n), 1.0))
    if norm == "l1":
        rows = np.vstack([rows, np.concatenate([np.ones(2 * d), [0.0, 0.0]])])
    bounds = [(0, top)] * (2 * d) + [(None, None)] * 2
    expected = linprog(np.append(np.zeros(2 * d + 1), -1.0), A_ub=rows, b_ub=room, bounds=bounds)
    assert hard_margin(x, y, norm=norm, bias=bias).margin == pytest.approx(-expected.fun, rel=1e-8)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["l1", "l2", "linf"]), st.booleans())
def test_the_certificate_proves_the_margin(seed, norm, bias):
    """Unit direction; multipliers on the simplex; margin attained; gap tiny; no random direction does better."""
    x, y = clouds(seed, n=12, d=3)
    found = hard_margin(x, y, norm=norm, bias=bias)
    if not found.separable:
        return
    assert np.linalg.norm(found.direction, ord=ORDER[norm]) == pytest.approx(1, abs=1e-12)
    assert (found.dual >= 0).all() and found.dual.sum() == pytest.approx(1, abs=1e-12)
    values = y * (x @ found.direction + found.bias)
    assert values.min() == pytest.approx(found.margin, rel=1e-12)
    assert 0 <= found.gap <= 1e-8 * found.margin
    assert np.allclose(values[found.support], found.margin, rtol=1e-5)
    if bias:
        assert abs(found.dual @ y) < 1e-12


@pytest.mark.parametrize("order", [1.0, 1.5, 2.0, 3.0, 8.0, np.inf])
def test_any_order_has_its_certificate_and_beats_other_directions(order):
    x, y = clouds(3)
    found = hard_margin(x, y, order)
    assert found.gap < 1e-9 * found.margin
    assert np.linalg.norm(found.direction, ord=order) == pytest.approx(1, rel=1e-9)
    others = np.random.default_rng(0).normal(size=(2000, x.shape[1])) * 0.1 + found.direction
    margins = (y * (others @ x.T)).min(1) / np.linalg.norm(others, ord=order, axis=1)
    assert margins.max() <= found.margin * (1 + 1e-9)


@pytest.mark.parametrize(("order", "name"), [(1, "l1"), (2.0, "l2"), (np.inf, "linf")])
def test_named_norms_are_orders(order, name):
    x, y = clouds(4)
    assert hard_margin(x, y, order).margin == hard_margin(x, y, name).margin


def test_margins_scale_with_the_inputs():
    """γ̂(cX) = c γ̂(X), also for very large and very small inputs."""
    x, y = clouds(3)
    base = hard_margin(x, y).margin
    for factor in (1e-6, 1e6):
        assert hard_margin(factor * x, y).margin == pytest.approx(factor * base, rel=1e-9)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_data_without_a_separator_get_a_certificate(norm):
    """Gordan: some mixture of the signed examples is zero."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    y = np.where(rng.random(60) > 0.5, 1.0, -1.0)
    found = hard_margin(x, y, norm=norm, bias=True)
    assert not found.separable and found.margin == 0 and "no separator" in found.reason
    assert found.dual.min() >= 0 and found.dual.sum() == pytest.approx(1)
    assert np.abs(found.dual @ (y[:, None] * x)).max() < 1e-7
    assert abs(found.dual @ y) < 1e-12
    assert not separable(x, y, bias=True)


def test_separability_may_need_the_bias():
    assert not separable([[1.0], [2.0]], [1, -1])
    assert separable([[1.0], [2.0]], [1, -1], bias=True)
    assert not separable([[0.0, 0.0]], [1])


def test_multipliers_point_at_the_separator():
    """ŵ γ̂ = Σ q_i y_i x_i for the ℓ2 norm."""
    x, y = clouds(11)
    found = hard_margin(x, y)
    assert np.allclose(found.dual @ (y[:, None] * x), found.margin * found.direction, atol=1e-9)


@pytest.mark.parametrize(
    ("x", "y", "options", "message"),
    [
        ([[1.0], [np.nan]], [1, -1], {}, "finite"),
        ([1.0, 2.0], [1, -1], {}, "shape"),
        ([[1.0], [2.0]], [1], {}, "shape"),
        ([[1.0], [2.0]], [0, 1], {}, "only -1 and"),
        ([[1.0], [2.0]], [1, -1], {"norm": "l3"}, "norm"),
        ([[1.0], [2.0]], [1, 1], {"bias": True}, "both labels"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(x, y, options, message):
    with pytest.raises(UserError, match=message):
        hard_margin(x, y, **options)


@pytest.mark.parametrize("thin", [1e-9, 1e-10, 1e-11])
def test_a_margin_below_what_is_resolved_is_within_the_gap(thin):
    """Two classes on both sides of a line: the margin is thin/√2, and nothing says that there is none."""
    x = [[1, 1 + thin], [1, 1 - thin], [2, 2 + thin], [2, 2 - thin]]
    found = hard_margin(x, [1, -1, 1, -1])
    if found.separable:
        assert found.margin == pytest.approx(thin / 2**0.5, rel=1e-4)
    else:
        assert found.gap >= thin / 2**0.5 - 1e-16


@pytest.mark.parametrize("thin", [2e-5, 7e-7, 1.3e-7, 7e-8, 5e-8, 3e-8, 6e-9])
def test_a_thin_margin_is_found_within_its_gap(thin):
    """Rows over so thin a margin are too much for the second program; the first one's separator is judged instead."""
    x = [[1, 1 + thin], [1, 1 - thin], [2, 2 + thin], [2, 2 - thin]]
    program = hard_margin(x, [1, -1, 1, -1])
    assert program.separable
    exact = thin / 2**0.5
    assert exact - 1.5 * program.gap <= program.margin <= exact * (1 + 1e-7)
    assert program.gap <= 1e-4 * exact
