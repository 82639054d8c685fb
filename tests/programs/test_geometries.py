"""Margins under groups, in the Fourier domain and in kernels, against other programs, transforms and machines."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.svm import SVC

from steepest.core.errors import UserError
from steepest.programs import fourier_margin, group_margin, hard_margin, kernel_margin
from tests.programs.test_programs import clouds


@pytest.mark.parametrize("seed", range(3))
def test_groups_of_one_are_l1_and_one_group_is_l2(seed):
    x, y = clouds(seed, d=5)
    assert group_margin(x, y, [[i] for i in range(5)]).margin == pytest.approx(
        hard_margin(x, y, "l1").margin, rel=1e-7
    )
    whole = group_margin(x, y, [list(range(5))], bias=True)
    assert whole.margin == pytest.approx(hard_margin(x, y, "l2", bias=True).margin, rel=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_weights_of_coordinates_and_of_groups(seed):
    """√(Σ ω w²) is ℓ2 after a change of units; and weights on single coordinates are a change of units of ℓ1."""
    x, y = clouds(seed, d=4)
    omega = np.random.default_rng(seed).uniform(0.2, 3.0, 4)
    found = hard_margin(x, y, omega)
    assert np.sqrt(omega @ found.direction**2) == pytest.approx(1, rel=1e-10)
    assert (y * (x @ found.direction)).min() == pytest.approx(found.margin, rel=1e-9)
    w = cp.Variable(4)
    problem = cp.Problem(
        cp.Minimize(cp.sum(cp.multiply(omega, w**2))), [cp.multiply(y, x @ w) >= 1]
    )
    assert found.margin == pytest.approx(problem.solve(solver=cp.CLARABEL) ** -0.5, rel=1e-5)
    single = group_margin(x, y, [[0], [1], [2], [3]], omega)
    assert single.margin == pytest.approx(hard_margin(x / omega, y, "l1").margin, rel=1e-7)
    assert single.gap <= 1e-7


@pytest.mark.parametrize("d", [1, 2, 7, 8])
def test_fourier_norm_is_that_of_the_transform(d):
    """The direction has ℓ1 norm one under NumPy's transform, and the dual bound is its largest coefficient."""
    rng = np.random.default_rng(d)
    x = rng.normal(size=(max(d // 2, 1), d))
    y = np.where(rng.random(len(x)) < 0.5, -1.0, 1.0)
    found = fourier_margin(x, y)
    transform = lambda w: np.abs(np.fft.fft(w, norm="ortho"))
    assert transform(found.direction).sum() == pytest.approx(1, rel=1e-8)
    assert (y * (x @ found.direction)).min() == pytest.approx(found.margin, rel=1e-8)
    # weak duality with NumPy's transform only: no unit vector beats ‖F(Σ q y x)‖_∞
    assert transform((found.dual * y) @ x).max() == pytest.approx(found.margin, rel=1e-6)


def test_kernel_margin_is_that_of_its_features_and_of_a_machine():
    x, y = clouds(4, n=25, d=3)
    linear = kernel_margin(x @ x.T, y)
    plain = hard_margin(x, y)
    assert linear.margin == pytest.approx(plain.margin, rel=1e-8)
    assert np.allclose(x.T @ linear.direction, plain.direction, atol=1e-7)
    y[:4] *= -1  # only a kernel separates these
    gram = np.exp(-((x[:, None] - x[None]) ** 2).sum(-1))
    found = kernel_margin(gram, y, bias=True)
    machine = SVC(C=1e9, kernel="precomputed", tol=1e-9).fit(gram, y)
    norm = np.sqrt(
        machine.dual_coef_[0]
        @ gram[np.ix_(machine.support_, machine.support_)]
        @ machine.dual_coef_[0]
    )
    assert found.margin == pytest.approx(1 / norm, rel=1e-5)
    assert found.direction @ gram @ found.direction == pytest.approx(1, rel=1e-8)


def test_not_separable_is_an_outcome():
    x = [[1.0, 0.0], [2.0, 0.0]]
    y = [1, -1]
    for found in (
        group_margin(x, y, [[0, 1]]),
        fourier_margin(x, y),
        kernel_margin([[1.0, 2.0], [2.0, 4.0]], y),
    ):
        assert not found.separable
        assert "no separator" in found.reason
    assert not kernel_margin(np.zeros((2, 2)), [1, 1]).separable


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: group_margin(np.eye(2), [1, -1], [[0]]),
            "hold each of the coordinates 0 to 1 once",
        ),
        (lambda: group_margin(np.eye(2), [1, -1], [[0], [1]], [1.0, -1.0]), "weights of shape"),
        (lambda: hard_margin(np.eye(2), [1, -1], [1.0, 0.0]), "finite and positive"),
        (lambda: fourier_margin(np.eye(2), [1, 2]), "-1 and"),
        (lambda: kernel_margin([[1.0, 2.0], [0.0, 1.0]], [1, -1]), "symmetric"),
        (lambda: kernel_margin([[1.0, 2.0], [2.0, 1.0]], [1, -1]), "semidefinite"),
        (lambda: fourier_margin([[np.nan, 1.0]], [1]), "finite inputs"),
    ],
)
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(UserError, match=message):
        call()
