"""Least-norm and least-hypentropy interpolants against scipy, cvxpy and feasible perturbations."""

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import linprog

from steepest.core.errors import UserError
from steepest.programs import hypentropy, hypentropy_interpolation, min_norm_interpolation
from steepest.programs._solving import solve_tightly

SCALES = [1e-3, 1e-2, 0.1, 1.0, 10.0, 1e2]


def regression(seed=0, n=12, d=25, noise=0.2):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return (
        x,
        x[:, :3] @ np.array([1.0, -1.0, 1.0]) + noise * rng.normal(size=n),
        np.exp(0.5 * rng.normal(size=d)),
    )


def test_l1_agrees_with_scipy():
    x, y, _ = regression()
    d = x.shape[1]
    expected = linprog(np.ones(2 * d), A_eq=np.hstack([x, -x]), b_eq=y)
    found = min_norm_interpolation(x, y, "l1")
    assert found.value == pytest.approx(expected.fun, rel=1e-9)
    assert np.allclose(found.beta, expected.x[:d] - expected.x[d:], atol=1e-7)
    assert abs(found.gap) < 1e-9 and found.residual < 1e-9
    assert np.abs(x.T @ found.dual).max() <= 1 + 1e-12


def test_l2_is_the_pseudoinverse_and_weights_rescale_it():
    """ℓ2: X⁺y; weights ω: Ω⁻¹Xᵀ(XΩ⁻¹Xᵀ)⁻¹y."""
    x, y, weights = regression()
    assert np.allclose(min_norm_interpolation(x, y).beta, np.linalg.pinv(x) @ y, atol=1e-10)
    found = min_norm_interpolation(x, y, weights)
    expected = (x.T / weights[:, None]) @ np.linalg.solve((x / weights) @ x.T, y)
    assert np.allclose(found.beta, expected, atol=1e-10)
    assert abs(found.gap) < 1e-9


def test_hypentropy_slope_is_an_arcsinh():
    """∇Q = asinh(β/2s), through small and large β/s."""
    beta = jnp.array([0.0, 1e-9, 0.3, -2.0, 1e9])
    scale = jnp.array([1.0, 1.0, 2.0, 1e-4, 1e-4])
    slope = jax.grad(lambda b: hypentropy(b, scale))(beta)
    assert np.allclose(slope, jnp.arcsinh(beta / (2 * scale)), rtol=1e-9, atol=1e-12)


def test_hypentropy_has_two_limits():
    """4 s Q → ‖β‖² for large s; Q / log(1/s) → ‖β‖₁ for small s (the notes leave the logarithm out)."""
    beta = jnp.array([1.0, -0.5])
    assert float(4e8 * hypentropy(beta, 1e8)) == pytest.approx(1.25, rel=1e-6)
    # Q = Σ |β| (log(|β|/s) - 1) + o(1)
    tail = 1.5 * np.log(1e30) + float(jnp.sum(jnp.abs(beta) * (jnp.log(jnp.abs(beta)) - 1)))
    assert float(hypentropy(beta, 1e-30)) == pytest.approx(tail, rel=1e-10)


@pytest.mark.parametrize("alpha", SCALES)
@pytest.mark.parametrize("uniform", [True, False])
def test_newton_interpolates_with_a_tight_certificate(alpha, uniform):
    """Feasible to 1e-11, duality gap zero, and stationary: ∇Q lies in the row space."""
    x, y, shape = regression()
    scale = alpha**2 * (1.0 if uniform else shape**2)
    found = hypentropy_interpolation(x, y, scale)
    assert found.converged and found.interpolable and found.residual < 1e-11
    assert abs(found.gap) < 1e-9 * abs(found.value)
    assert np.allclose(
        np.arcsinh(found.beta / (2 * scale)), x.T @ found.dual, rtol=1e-8, atol=1e-12
    )


@pytest.mark.parametrize("alpha", SCALES)
def test_no_feasible_perturbation_lowers_the_penalty(alpha):
    """Q(β + Nz) > Q(β) for random directions N z of the null space: a way that shares nothing with Newton's."""
    x, y, shape = regression(1)
    scale = alpha**2 * shape**2
    found = hypentropy_interpolation(x, y, scale)
    rng = np.random.default_rng(2)
    moves = rng.normal(size=(50, x.shape[1] - len(y))) @ null_space(x).T
    least = float(hypentropy(found.beta, scale))
    for size in (1e-3, 1e-1):
        others = jax.vmap(lambda b: hypentropy(b, scale))(found.beta + size * moves)
        assert float(others.min()) > least


@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_newton_agrees_with_a_cone_program(alpha):
    """q(z) = max_u (z u - 2 cosh u + 2): cvxpy minimizes the dual's exponentials by an interior-point method."""
    x, y, shape = regression(n=6, d=10)
    scale = alpha**2 * shape**2
    nu = cp.Variable(len(y))
    u = x.T @ nu
    dual = nu @ y - cp.sum(cp.multiply(scale, cp.exp(u) + cp.exp(-u) - 2))
    solve_tightly(cp.Problem(cp.Maximize(dual)))
    found = hypentropy_interpolation(x, y, scale)
    assert found.value == pytest.approx(float(dual.value), rel=1e-6)
    assert np.allclose(found.beta, 2 * scale * np.sinh(x.T @ nu.value), atol=1e-4)


def test_the_ends_are_basis_pursuit_and_weighted_least_squares():
    """Weights 1/θ_0² as α → ∞; ℓ1 as α → 0, whatever the shape."""
    x, y, shape = regression()
    wide = hypentropy_interpolation(x, y, 1e8 * shape**2).beta
    assert np.allclose(wide, min_norm_interpolation(x, y, 1 / shape**2).beta, atol=1e-8)
    sparse = min_norm_interpolation(x, y, "l1").beta
    near = [hypentropy_interpolation(x, y, size * shape**2) for size in (1e-4, 1e-8, 1e-12)]
    distance = [np.linalg.norm(found.beta - sparse) for found in near]
    assert all(found.converged for found in near)
    # The weights off the support are of order s^(1 - |x_i·ν|): a power law, slow where some |x_i·ν| is almost 1.
    assert distance[0] > distance[1] > distance[2] and distance[2] < 0.1


def test_repeated_examples_are_no_obstacle():
    """A rank-deficient X with consistent targets."""
    x, y, _ = regression()
    once = hypentropy_interpolation(x, y, 0.01)
    twice = hypentropy_interpolation(np.vstack([x, x]), np.append(y, y), 0.01)
    assert twice.converged and np.allclose(once.beta, twice.beta, atol=1e-9)


def test_data_without_an_interpolant_are_an_outcome():
    x = np.ones((2, 3))
    y = np.array([0.0, 1.0])
    for found in (min_norm_interpolation(x, y, "l1"), hypentropy_interpolation(x, y, 1.0)):
        assert not found.interpolable and found.residual > 0.1


def test_zero_targets_have_the_zero_interpolant():
    x = np.eye(2, 4)
    for found in (
        min_norm_interpolation(x, [0, 0], "l1"),
        hypentropy_interpolation(x, [0, 0], 1.0),
    ):
        assert np.allclose(found.beta, 0, atol=1e-12) and found.residual == pytest.approx(
            0, abs=1e-12
        )


def test_bad_input_is_refused_in_one_sentence():
    x, y, _ = regression()
    with pytest.raises(UserError, match="positive"):
        hypentropy_interpolation(x, y, -1.0)
    with pytest.raises(UserError, match="norm must be"):
        min_norm_interpolation(x, y, "l0")
    with pytest.raises(UserError, match="shape \\(d,\\) where d = 25"):
        min_norm_interpolation(x, y, np.ones(3))
