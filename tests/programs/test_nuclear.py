"""Least nuclear norm against closed forms, the ℓ1 program on diagonals, and reweighted least squares."""

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.programs import (
    common_eigenvectors,
    commuting_limit,
    hard_margin,
    min_norm_interpolation,
    nuclear_norm_completion,
    nuclear_norm_interpolation,
    nuclear_norm_margin,
)


def gaussian(m, d1, d2, seed=0, symmetric=False):
    a = np.random.default_rng(seed).normal(size=(m, d1, d2))
    return (a + a.transpose(0, 2, 1)) / 2 if symmetric else a


def reweighted(a, y, steps=4000):
    """``argmin tr(W (WᵀW + ε²)^{-1/2} Wᵀ)``, ε → 0, by repeated least squares: shares nothing with the program."""
    flat = a.reshape(len(a), -1)
    (_, d1, d2) = a.shape
    w = np.linalg.lstsq(flat, y)[0].reshape(d1, d2)
    epsilon = 1.0
    for _ in range(steps):
        values, vectors = np.linalg.eigh(w.T @ w)
        root = (
            vectors * np.sqrt(np.sqrt(np.maximum(values, 0) + epsilon**2))
        ) @ vectors.T  # (WᵀW + ε²)^{1/4}
        w = np.linalg.lstsq((a @ root).reshape(len(a), -1), y)[0].reshape(d1, d2) @ root
        epsilon = max(0.995 * epsilon, 1e-8)
    return w


def test_one_measurement_is_met_along_its_top_singular_vectors():
    """W = (y/σ₁) u vᵀ and ‖W‖_* = |y|/σ₁."""
    (a,) = gaussian(1, 4, 3)
    left, sizes, right = np.linalg.svd(a)
    found = nuclear_norm_interpolation([a], [-2.0])
    np.testing.assert_allclose(
        found.matrix, -2 / sizes[0] * np.outer(left[:, 0], right[0]), atol=1e-6
    )
    assert found.value == pytest.approx(2 / sizes[0], rel=1e-8)
    assert found.uniqueness == pytest.approx(1 / np.linalg.norm(sizes / sizes[0]), rel=1e-6)


def test_diagonal_measurements_are_the_l1_program():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4, 7))
    y = rng.normal(size=4)
    found = nuclear_norm_interpolation(x[:, :, None] * np.eye(7), y)
    sparse = min_norm_interpolation(x, y, "l1")
    assert found.value == pytest.approx(sparse.value, rel=1e-7)
    np.testing.assert_allclose(np.diag(found.matrix), sparse.beta, atol=1e-5)


@pytest.mark.parametrize("shape", [(8, 4, 5), (14, 6, 4)])
def test_the_certificate_proves_the_minimum_and_another_algorithm_finds_it(shape):
    a = gaussian(*shape, seed=2)
    y = np.random.default_rng(3).normal(size=len(a))
    found = nuclear_norm_interpolation(a, y)
    assert found.interpolable and found.residual < 1e-10
    assert -1e-12 <= found.gap <= 1e-6 * found.value
    assert np.linalg.norm(np.tensordot(found.dual, a, 1), 2) <= 1 + 1e-12
    other = reweighted(a, y)
    assert found.value == pytest.approx(np.linalg.svd(other, compute_uv=False).sum(), rel=1e-5)
    np.testing.assert_allclose(found.matrix, other, atol=5e-3)
    assert found.uniqueness > 1e-2


def test_the_semidefinite_program_is_the_trace_and_finds_a_rank_one_truth():
    a = gaussian(18, 6, 6, seed=4, symmetric=True)
    u = np.arange(1.0, 7.0)
    found = nuclear_norm_interpolation(a, np.einsum("mij,i,j->m", a, u, u), semidefinite=True)
    np.testing.assert_allclose(found.matrix, np.outer(u, u), atol=1e-5)
    assert found.value == pytest.approx(u @ u, rel=1e-6)  # as its gap below
    assert np.linalg.eigvalsh(np.tensordot(found.dual, a, 1))[-1] <= 1 + 1e-12
    assert -1e-10 <= found.gap < 1e-6 * found.value


def test_no_semidefinite_perturbation_lowers_the_trace():
    """Nuclear norms of the fits W + t N, N seen by no measurement, are at least the program's."""
    a = gaussian(8, 5, 5, seed=5, symmetric=True)
    u = np.random.default_rng(6).normal(size=(5, 2))
    found = nuclear_norm_interpolation(a, np.einsum("mij,ij->m", a, u @ u.T), semidefinite=True)
    rows = np.array(
        [x[np.triu_indices(5)] * np.where(np.eye(5), 1, 2)[np.triu_indices(5)] for x in a]
    )
    unseen = np.linalg.svd(rows)[2][len(a) :]
    rng = np.random.default_rng(7)
    for size in (1e-3, 1e-1, 1.0):
        for weights in rng.normal(size=(40, len(unseen))):
            move = np.zeros((5, 5))
            move[np.triu_indices(5)] = weights @ unseen
            other = found.matrix + size * (move + np.triu(move, 1).T)
            np.testing.assert_allclose(
                np.einsum("mij,ij->m", a, other), np.einsum("mij,ij->m", a, u @ u.T), atol=1e-9
            )
            assert np.linalg.svd(other, compute_uv=False).sum() >= found.value - 1e-8


def test_completion_of_a_rank_one_matrix():
    """All but one entry of u vᵀ with equal entries: the missing one is filled in; with it unseen twice it is not."""
    truth = np.outer([1.0, 1.0, 1.0], [2.0, 2.0, 2.0])
    seen = ~np.eye(3, dtype=bool)
    seen[0, 0] = seen[1, 1] = True
    found = nuclear_norm_completion(np.where(seen, truth, np.nan), seen)
    np.testing.assert_allclose(found.matrix, truth, atol=1e-5)
    alone = nuclear_norm_completion([[3.0, 0.0]], [[True, False]])
    np.testing.assert_allclose(alone.matrix, [[3.0, 0.0]], atol=1e-6)


def test_completion_counts_mirrored_entries_once_if_semidefinite():
    found = nuclear_norm_completion(
        [[1.0, 2.0], [2.0, 0.0]], [[True, True], [True, False]], semidefinite=True
    )
    np.testing.assert_allclose(found.matrix, [[1.0, 2.0], [2.0, 4.0]], atol=1e-5)


def test_several_minimizers_are_seen():
    """With the trace measured every semidefinite fit has the same nuclear norm."""
    found = nuclear_norm_interpolation([np.eye(3)], [1.0], semidefinite=True)
    assert found.value == pytest.approx(1.0) and found.uniqueness == 0


def test_dependent_measurements_are_no_obstacle():
    a = gaussian(5, 4, 4, seed=8)
    y = np.random.default_rng(9).normal(size=5)
    once = nuclear_norm_interpolation(a, y)
    twice = nuclear_norm_interpolation(np.vstack([a, a]), np.append(y, y))
    np.testing.assert_allclose(once.matrix, twice.matrix, atol=1e-5)
    assert twice.gap < 1e-6 * twice.value
    assert np.allclose(nuclear_norm_interpolation(a, np.zeros(5)).matrix, 0, atol=1e-8)


def test_measurements_that_nothing_fits_are_an_outcome():
    found = nuclear_norm_interpolation([np.eye(2), np.eye(2)], [0.0, 1.0])
    assert not found.interpolable and "least squares" in found.reason
    assert nuclear_norm_interpolation([np.eye(2)], [-1.0]).interpolable
    found = nuclear_norm_interpolation([np.eye(2)], [-1.0], semidefinite=True)
    assert not found.interpolable and "semidefinite" in found.reason


def commuting(m, d, seed):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(d, d)))[0]
    x = rng.normal(size=(m, d))
    values = rng.lognormal(size=d)
    return basis, x, x @ values, (basis * x[:, None]) @ basis.T


def test_the_commuting_limit_is_where_the_matrix_flow_ends():
    """dW/dt = -2 (G W + W G), G = Σ r_i A_i, by scipy."""
    from scipy.integrate import solve_ivp

    _, _, y, a = commuting(2, 3, 10)

    def slope(t, w):
        w = w.reshape(3, 3)
        g = np.tensordot(np.einsum("mij,ij->m", a, w) - y, a, 1)
        return -2 * (g @ w + w @ g).ravel()

    end = solve_ivp(
        slope, (0, 2000), (0.01 * np.eye(3)).ravel(), method="LSODA", rtol=1e-10, atol=1e-13
    ).y[:, -1]
    np.testing.assert_allclose(commuting_limit(a, y, 0.1), end.reshape(3, 3), atol=1e-6)


def test_the_commuting_limit_is_an_exponential_and_tends_to_the_program():
    basis, x, y, a = commuting(3, 6, 11)
    least = nuclear_norm_interpolation(a, y, semidefinite=True).value
    excess = []
    for scale in (1e-1, 1e-2, 1e-3):
        w = commuting_limit(a, y, scale)
        np.testing.assert_allclose(np.einsum("mij,ij->m", a, w), y, atol=1e-9)
        values = np.diag(basis.T @ w @ basis)
        kept = values > 1e-11  # what is smaller is rounding of W
        logs = np.log(values[kept] / scale**2)
        rows = x[:, kept].T
        assert kept.sum() > 3
        np.testing.assert_allclose(rows @ np.linalg.lstsq(rows, logs)[0], logs, atol=1e-3)
        excess.append(np.trace(w) - least)
    assert excess[0] > excess[1] > excess[2] > -1e-8


def test_the_commuting_limit_of_a_tiny_start_is_the_root_of_one_equation():
    """One measurement: Σ a_i α² exp(ν a_i) = y for the one unknown ν, down to α = 1e-12; smaller ones are refused."""
    from scipy.optimize import brentq

    a = np.array([0.5, 1.0, 2.0])
    for scale in (1e-2, 1e-8, 1e-10, 1e-12):
        nu = brentq(lambda nu, s=scale: s**2 * a @ np.exp(nu * a) - 3.0, 0, 100, xtol=1e-14)
        expected = scale**2 * np.exp(nu * a)
        found = np.diag(commuting_limit([np.diag(a)], [3.0], scale))
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    with pytest.raises(UserError, match="choose a larger one"):
        commuting_limit([np.diag(a)], [3.0], 1e-60)


def test_common_eigenvectors_diagonalize_or_refuse():
    basis, x, _, a = commuting(3, 5, 12)
    found = common_eigenvectors(a)
    np.testing.assert_allclose(found.T @ found, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(np.abs(found.T @ basis).max(0), 1, atol=1e-8)
    with pytest.raises(UserError, match="commute"):
        common_eigenvectors(gaussian(2, 4, 4, symmetric=True))
    with pytest.raises(UserError, match="shape"):
        common_eigenvectors(np.ones((2, 3, 4)))
    with pytest.raises(UserError, match="positive scale"):
        commuting_limit(a, x @ np.ones(5), 0.0)
    with pytest.raises(UserError, match="positive definite"):
        commuting_limit([np.eye(2)], [-1.0], 0.1)


def test_bad_input_is_refused_in_one_sentence():
    with pytest.raises(UserError, match="measurements must be"):
        nuclear_norm_interpolation(np.eye(2), [1.0, 2.0])
    with pytest.raises(UserError, match="y must be .* where m = 1"):
        nuclear_norm_interpolation([np.eye(2)], [1.0, 2.0])
    with pytest.raises(UserError, match="finite"):
        nuclear_norm_interpolation([[[np.nan]]], [1.0])
    with pytest.raises(UserError, match="square|d, d"):
        nuclear_norm_interpolation(np.ones((1, 2, 3)), [1.0], semidefinite=True)
    with pytest.raises(UserError, match="at least one entry"):
        nuclear_norm_completion(np.eye(2), np.zeros((2, 2), bool))
    with pytest.raises(UserError, match="shape \\(d1, d2\\)"):
        nuclear_norm_completion(np.eye(2), np.ones((2, 3), bool))
    with pytest.raises(UserError, match="finite"):
        nuclear_norm_completion([[np.nan]], [[True]])


def played(a, rounds=20_000, lr=0.05):
    """The least ``‖Σ q A‖`` over the simplex, by multiplicative weights against top singular pairs, averaged."""
    logs = np.zeros(len(a))
    mean_q = np.zeros(len(a))
    mean_w = np.zeros(a.shape[1:])
    for step in range(rounds):
        q = np.exp(logs - logs.max())
        q /= q.sum()
        left, _, right = np.linalg.svd(np.tensordot(q, a, 1))
        pair = np.outer(left[:, 0], right[0])
        mean_q += q
        mean_w += pair
        logs -= lr / np.sqrt(1 + step / 100) * np.einsum("mij,ij->m", a, pair)
    upper = np.linalg.norm(np.tensordot(mean_q / rounds, a, 1), 2)
    w = mean_w / rounds
    return np.einsum("mij,ij->m", a, w).min() / max(1.0, np.linalg.norm(w, "nuc")), upper


def test_the_largest_margin_is_between_both_sides_of_a_game():
    best = nuclear_norm_margin(a := gaussian(9, 3, 4, seed=3))
    assert best.separable
    assert 0 <= best.gap < 1e-6 * best.margin
    assert np.linalg.norm(best.matrix, "nuc") == pytest.approx(1, abs=1e-6)
    assert np.einsum("mij,ij->m", a, best.matrix).min() == pytest.approx(best.margin)
    lower, upper = played(a)
    assert lower <= best.margin * (1 + 1e-9) <= upper * (1 + 2e-9)
    assert upper - lower < 0.05 * best.margin


def test_margins_of_diagonals_and_of_rows_are_those_of_vectors():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(5, 7))
    ones = np.ones(5)
    of_diagonals = nuclear_norm_margin(x[:, :, None] * np.eye(7))
    assert of_diagonals.margin == pytest.approx(hard_margin(x, ones, "l1").margin, rel=1e-6)
    of_rows = nuclear_norm_margin(x[:, None])
    exact = hard_margin(x, ones, "l2")
    assert of_rows.margin == pytest.approx(exact.margin, rel=1e-6)
    np.testing.assert_allclose(of_rows.dual, exact.dual, atol=1e-4)
    assert of_rows.uniqueness > 0.01


def test_multipliers_of_a_measurement_that_comes_twice_are_not_told():
    a = gaussian(4, 3, 3, seed=5)
    assert nuclear_norm_margin(a).uniqueness > 0.01
    twice = np.concatenate([a, a[nuclear_norm_margin(a).dual.argmax()][None]])
    assert nuclear_norm_margin(twice).uniqueness < 1e-6


def test_opposite_measurements_are_not_separable():
    a = gaussian(1, 3, 3)
    best = nuclear_norm_margin(np.concatenate([a, -a]))
    assert not best.separable
    assert best.margin == 0
    assert best.gap == pytest.approx(0, abs=1e-6)
