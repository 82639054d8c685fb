"""Solutions against dense linear algebra and scikit-learn; residuals that are true; each diagnosis."""

import numpy as np
import pytest
import scipy.linalg
from sklearn.kernel_ridge import KernelRidge

from steepest.core.errors import UserError
from steepest.kernels._gram import gram
from steepest.kernels.prediction._conjugate import (
    Preconditioner,
    conjugate_gradients,
    partial_cholesky,
)
from steepest.kernels.prediction._diagnosis import diagnose
from steepest.kernels.prediction._solve import solve
from steepest.kernels.tiled._compute import tiled_gram
from steepest.nn.networks import mlp

LIMIT = mlp((6, 10, 10, 1), "relu", parameterized="ntk", c_w=2.0, bias=False).limit()
METHODS = ["cholesky", "cg"]


def inputs(n, dtype=float):
    return np.random.default_rng(0).standard_normal((n, 6)).astype(dtype)


def targets(n, *columns):
    return np.random.default_rng(1).standard_normal((n, *columns))


def smooth(n):
    """A Gaussian kernel on a line: eigenvalues fall to rounding."""
    t = np.linspace(0, 3, n)[:, None]
    return np.exp(-((t - t.T) ** 2) / 2)


def residual(matrix, y, regularization, found):
    left = matrix.astype(float) @ found.coefficients + regularization * found.coefficients - y
    return np.max(np.linalg.norm(left, axis=0) / np.linalg.norm(y, axis=0))


class Operator:
    """The least that can be solved with."""

    def __init__(self, matrix):
        self.matrix = matrix
        self.shape = matrix.shape
        self.dtype = matrix.dtype

    def matvec(self, v):
        return self.matrix @ v


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("columns", [(), (3,)])
@pytest.mark.parametrize("regularization", [0.0, 0.3])
def test_agrees_with_dense_linear_algebra(dtype, method, columns, regularization):
    """Also in float32, for the matrix as it is: its rounding is in the entries, not in the solution."""
    matrix = gram(LIMIT, inputs(400, dtype)).nngp
    y = targets(400, *columns)
    found = solve(matrix, y, regularization, method=method)
    wanted = np.linalg.solve(matrix.astype(float) + regularization * np.eye(400), y)
    assert found.converged and found.residual <= 1e-8 and found.method == method
    assert found.residual == pytest.approx(
        residual(matrix, y, regularization, found), rel=0.5, abs=1e-12
    )
    np.testing.assert_allclose(found.coefficients, wanted, atol=1e-5 * np.abs(wanted).max())
    assert found.coefficients.dtype == np.float64 and found.coefficients.shape == y.shape


def test_cholesky_is_accurate_and_knows_the_determinant():
    matrix = gram(LIMIT, inputs(300)).ntk
    y = targets(300)
    found = solve(matrix, y, 0.1)
    wanted = KernelRidge(alpha=0.1, kernel="precomputed").fit(matrix, y).dual_coef_
    np.testing.assert_allclose(found.coefficients, wanted, rtol=1e-10)
    assert found.residual < 1e-12
    assert found.log_determinant == pytest.approx(
        np.linalg.slogdet(matrix + 0.1 * np.eye(300))[1], rel=1e-12
    )
    assert solve(matrix, y, 0.1, method="cg").log_determinant is None


def test_float32_is_refined_to_float64_accuracy():
    """A factor in float32 and residuals in float64; where the factor is too coarse, another in float64."""
    matrix = gram(LIMIT, inputs(300, np.float32)).ntk
    y = targets(300)
    assert solve(matrix, y).iterations > 1 and solve(matrix, y).residual < 1e-12
    coarse = (smooth(300) + 1e-4 * np.eye(300)).astype(np.float32)
    with pytest.raises(np.linalg.LinAlgError):
        scipy.linalg.cholesky(coarse - 1e-4 * np.eye(300, dtype=np.float32))
    assert solve(coarse, y).converged


@pytest.mark.parametrize("tolerance", [1e-3, 1e-8, 1e-11])
def test_conjugate_gradients_stop_at_the_tolerance_they_were_given(tolerance):
    matrix = gram(LIMIT, inputs(500)).nngp
    y = targets(500, 2)
    found = solve(matrix, y, method="cg", tolerance=tolerance)
    assert tolerance / 1e4 < found.residual <= tolerance
    assert found.residual == pytest.approx(residual(matrix, y, 0.0, found), rel=1e-3)


def test_a_tolerance_beyond_the_precision_is_said_not_claimed():
    """κ = 1e11: random targets cannot be met to 1e-8, and the residual says how far they were."""
    matrix = smooth(300) + 1e-9 * np.eye(300)
    y = targets(300)
    for method in METHODS:
        found = solve(matrix, y, method=method)
        assert not found.converged and 1e-8 < found.residual < 1e-2
        assert found.residual == pytest.approx(residual(matrix, y, 0.0, found), rel=0.2)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tiles_on_disk(tmp_path, dtype):
    tiles = tiled_gram(LIMIT, inputs(500, dtype), tmp_path / "gram", tile=100)
    y = targets(500, 2)
    found = solve(tiles.nngp, y, 0.01)
    assert found.method == "cg" and found.converged
    assert found.residual == pytest.approx(residual(tiles.nngp.toarray(), y, 0.01, found), rel=1e-2)
    wanted = solve(tiles.nngp.toarray(), y, 0.01).coefficients
    np.testing.assert_allclose(found.coefficients, wanted, atol=1e-6 * np.abs(wanted).max())


def test_only_shape_and_matvec():
    matrix = gram(LIMIT, inputs(200)).ntk
    y = targets(200)
    found = solve(Operator(matrix), y, 0.1)
    assert found.converged and found.method == "cg"
    np.testing.assert_allclose(found.coefficients, solve(matrix, y, 0.1).coefficients, atol=1e-7)


def test_products_that_are_not_finite():
    with pytest.raises(UserError, match="products with the Gram matrix are not finite"):
        solve(Operator(broken()), targets(40))


def test_targets_of_zero():
    for method in METHODS:
        found = solve(np.eye(3), np.zeros((3, 2)), method=method)
        assert found.residual == 0 and not found.coefficients.any()


def test_conjugate_gradients_end_after_as_many_steps_as_there_are_eigenvalues():
    rng = np.random.default_rng(3)
    q = np.linalg.qr(rng.standard_normal((50, 50)))[0]
    matrix = (q * np.repeat([1.0, 2.0, 7.0, 20.0, 90.0], 10)) @ q.T
    y = rng.standard_normal((50, 2))
    found = conjugate_gradients(lambda v: matrix @ v, lambda v: v, y, 1e-8 * np.ones(2), 100)
    assert found.iterations == 5
    np.testing.assert_allclose(matrix @ found.solution, y, atol=1e-8)


def test_partial_cholesky_never_exceeds_the_matrix_and_comes_close():
    """K − FᵀF is positive semidefinite, and its trace at most ten times the least of that rank."""
    matrix = smooth(400) + 0.1 * gram(LIMIT, inputs(400)).nngp
    values = np.linalg.eigvalsh(matrix)
    for rank in (10, 50, 200):
        factor = partial_cholesky(matrix, rank)
        rest = matrix - factor.T @ factor
        assert len(factor) <= rank
        assert np.linalg.eigvalsh(rest)[0] > -1e-10 * values[-1]
        assert np.trace(rest) <= 10 * values[:-rank].sum()
    assert np.abs(matrix - (whole := partial_cholesky(matrix, 500)).T @ whole).max() < 1e-10


def test_the_preconditioner_saves_iterations():
    matrix = gram(LIMIT, inputs(900)).nngp
    y = targets(900, 1)
    goal = 1e-8 * np.linalg.norm(y, axis=0)
    run = lambda precondition: (
        conjugate_gradients(lambda v: matrix @ v, precondition, y, goal, 5000).iterations
    )
    assert run(Preconditioner.of(matrix, 300, 0.0)) < run(lambda v: v) / 3


def test_the_preconditioner_is_the_inverse_when_it_knows_everything():
    matrix = gram(LIMIT, inputs(60)).nngp
    applied = Preconditioner.of(matrix, 60, 0.2)(matrix + 0.2 * np.eye(60))
    np.testing.assert_allclose(applied, applied[0, 0] * np.eye(60), atol=1e-10)


def repeated(dtype=float):
    x = inputs(40, dtype)
    x[17] = x[31] = x[3]
    return gram(LIMIT, x).ntk


def broken():
    matrix = gram(LIMIT, inputs(40)).ntk.copy()
    matrix[5, 2] = matrix[2, 5] = np.nan
    return matrix


def lopsided():
    matrix = gram(LIMIT, inputs(40)).ntk.copy()
    matrix[4, 9] += 0.1
    return matrix


def indefinite():
    x = inputs(40)
    return -np.linalg.norm(x[:, None] - x, axis=-1)


DISEASES = {
    "NaN": (broken, r"entry \(2, 5\) that is not finite"),
    "asymmetry": (lopsided, r"not symmetric, most at \(4, 9\)"),
    "indefinite": (
        indefinite,
        r"smallest eigenvalue is -\d.* more than rounding, so no kernel gives it",
    ),
    "duplicates": (
        repeated,
        r"inputs 3 and 17 are the same up to the rounding of float64, and so are 2 other pairs",
    ),
    "conditioning": (
        lambda: smooth(200),
        r"precision of float64: its smallest eigenvalue .* is rounding",
    ),
    "precision": (
        lambda: smooth(60)[::4, ::4].astype(np.float32),
        r"float32: .* compute it in float64, or set",
    ),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("make", "words"), DISEASES.values(), ids=DISEASES)
def test_what_cannot_be_solved_is_diagnosed_and_cured(make, words, method):
    matrix = make()
    y = targets(len(matrix))
    with pytest.raises(UserError, match=words) as refusal:
        solve(matrix, y, method=method)
    found = diagnose(matrix)
    assert not found.sound and str(found) == str(refusal.value)
    if np.isfinite(found.regularization):
        assert f"at least {found.regularization:.0e}" in str(found)
        cured = solve(matrix, y, found.regularization, method=method, tolerance=1e-2)
        assert cured.residual == pytest.approx(
            residual(matrix, y, found.regularization, cured), rel=0.5, abs=1e-12
        )


def test_too_little_regularization_is_named():
    with pytest.raises(UserError, match=r"at least .* \(got 1e-15\)"):
        solve(smooth(200), targets(200), 1e-15)


def test_the_facts_of_a_diagnosis():
    found = diagnose(repeated())
    assert [tuple(pair) for pair in found.duplicates] == [(3, 17), (3, 31), (17, 31)]
    values = np.linalg.eigvalsh(repeated())
    assert (
        found.largest == pytest.approx(values[-1])
        and abs(found.smallest) < found.rounding < values[2]
    )
    assert tuple(diagnose(broken()).broken) == (2, 5) and tuple(
        diagnose(lopsided()).asymmetric
    ) == (4, 9)
    healthy = diagnose(gram(LIMIT, inputs(40)).ntk)
    assert (
        healthy.sound
        and healthy.regularization == 0
        and "positive definite: its eigenvalues" in str(healthy)
    )


def test_tiles_are_diagnosed_tile_by_tile(tmp_path):
    x = inputs(60)
    x[41] = x[7]
    tiles = tiled_gram(LIMIT, x, tmp_path / "gram", tile=25)
    assert [tuple(pair) for pair in diagnose(tiles.ntk).duplicates] == [(7, 41)]
    with pytest.raises(UserError, match="inputs 7 and 41 are the same"):
        solve(tiles.ntk, targets(60))
    values = np.array(tiles.read(0, 1))
    values[1, 3, 2] = np.nan
    tiles.write(0, 1, values)
    with pytest.raises(UserError, match=r"entry \(3, 22\) that is not finite"):
        solve(tiles.ntk, targets(60))


def test_large_matrices_are_diagnosed_by_lanczos(monkeypatch):
    """The same facts without all eigenvalues; an unknown smallest one is not made up."""
    monkeypatch.setattr("steepest.kernels.prediction._diagnosis.EXACT", 10)
    x = np.linalg.qr(np.random.default_rng(0).standard_normal((50, 50)))[0]
    bad = (x * np.linspace(-1, 5, 50)) @ x.T
    found = diagnose((bad + bad.T) / 2)
    assert found.smallest == pytest.approx(-1, rel=0.02) and found.largest == pytest.approx(
        5, rel=0.02
    )
    with pytest.raises(
        UserError, match=r"precision of float64: its smallest eigenvalue .*is rounding"
    ):
        solve(smooth(200), targets(200))
    assert not solve(Operator(smooth(200)), targets(200)).converged


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gram": np.ones((3, 2))}, "square"),
        ({"targets": np.ones(4)}, r"one row for each of the 3 inputs, got shape \(4,\)"),
        ({"targets": np.array([1, np.nan, 0])}, "finite"),
        ({"regularization": -1.0}, "≥ 0"),
        ({"method": "lu"}, "'auto', 'cholesky' or 'cg'"),
        ({"gram": Operator(np.eye(3)), "method": "cholesky"}, "in memory"),
    ],
)
def test_mistakes(change, words):
    with pytest.raises(UserError, match=words):
        solve(**{"gram": np.eye(3), "targets": np.ones(3)} | change)


def test_tiles_between_two_sets_are_no_system(tmp_path):
    tiles = tiled_gram(LIMIT, inputs(10), tmp_path / "gram", inputs(10)[::-1].copy(), tile=5)
    with pytest.raises(UserError, match="one set of inputs"):
        solve(tiles.ntk, targets(10))
