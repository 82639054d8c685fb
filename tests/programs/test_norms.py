"""Norms of weight matrices against NumPy's dense ones, and the convention of the (2,1) norm."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.core.errors import UserError
from steepest.nn.networks import mlp
from steepest.programs._norms import (
    frobenius_norm,
    row_group_norm,
    spectral_norm,
    stable_rank,
    weight_matrices,
)

SHAPES = [(1, 1), (5, 3), (3, 5), (40, 40)]


def matrix(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_norms_match_the_dense_oracle(shape):
    w = matrix(shape)
    assert float(spectral_norm(jnp.array(w))) == pytest.approx(np.linalg.norm(w, 2), rel=1e-12)
    assert float(frobenius_norm(jnp.array(w))) == pytest.approx(np.linalg.norm(w, "fro"), rel=1e-12)
    singular = np.linalg.svd(w, compute_uv=False)
    assert float(stable_rank(jnp.array(w))) == pytest.approx(
        (singular**2).sum() / singular[0] ** 2, rel=1e-12
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_the_group_norm_is_that_of_the_transpose_columns_first(shape):
    """‖A‖_{p,q} takes the p-norm of every column, then the q-norm; the bound holds it of A = Wᵀ."""
    w = matrix(shape)
    columns_first = sum(np.linalg.norm(w.T[:, j], 2) for j in range(w.T.shape[1]))
    assert float(row_group_norm(jnp.array(w))) == pytest.approx(columns_first, rel=1e-12)


def test_permuting_the_neurons_and_turning_the_inputs_leave_the_group_norm():
    """Incoming weights may be turned, neurons renumbered; a rotation of the neurons changes it."""
    w = matrix((3, 3))
    turn = np.linalg.qr(matrix((3, 3), 1))[0]
    expected = float(row_group_norm(jnp.array(w)))
    assert float(row_group_norm(jnp.array(w[[2, 0, 1]] @ turn))) == pytest.approx(
        expected, rel=1e-12
    )
    assert abs(float(row_group_norm(jnp.array(turn @ w))) - expected) > 1e-3


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(SHAPES), st.floats(1e-6, 1e6))
def test_inequalities_and_scaling(seed, shape, factor):
    """‖W‖₂ ≤ ‖W‖_F ≤ ‖Wᵀ‖_{2,1} ≤ √out ‖W‖_F, 1 ≤ stable rank ≤ rank; all norms are homogeneous."""
    w = jnp.array(matrix(shape, seed))
    spectral, frobenius, group = (
        float(norm(w)) for norm in (spectral_norm, frobenius_norm, row_group_norm)
    )
    slack = 1 + 1e-12
    assert spectral <= frobenius * slack
    assert frobenius <= group * slack
    assert group <= shape[0] ** 0.5 * frobenius * slack
    assert 1 / slack <= float(stable_rank(w)) <= min(shape) * slack
    for norm, value in (
        (spectral_norm, spectral),
        (frobenius_norm, frobenius),
        (row_group_norm, group),
    ):
        assert float(norm(-factor * w)) == pytest.approx(factor * value, rel=1e-11)
    assert float(stable_rank(factor * w)) == pytest.approx(float(stable_rank(w)), rel=1e-11)


def test_the_zero_matrix():
    zero = jnp.zeros((3, 2))
    assert (
        float(spectral_norm(zero))
        == float(frobenius_norm(zero))
        == float(row_group_norm(zero))
        == 0
    )
    assert np.isnan(float(stable_rank(zero)))


def test_the_gradient_of_the_spectral_norm_is_the_outer_product_of_its_singular_vectors():
    w = matrix((4, 6))
    left, _, right = np.linalg.svd(w)
    assert np.allclose(
        jax.jit(jax.grad(spectral_norm))(jnp.array(w)), np.outer(left[:, 0], right[0]), atol=1e-10
    )


def test_weight_matrices_of_a_network_compose_to_it():
    """W_2 relu(W_1 x) with the matrices alone, in order, without biases."""
    net = mlp((3, 7, 2), bias=False)
    x = jnp.array(matrix((5, 3)))
    params = net.init(jax.random.key(0))
    first, second = weight_matrices(params)
    assert np.allclose(net.apply(params, x), np.maximum(x @ first.T, 0) @ second.T, atol=1e-12)
    assert len(weight_matrices(mlp((3, 7, 2)).init(jax.random.key(0)))) == 2


@pytest.mark.parametrize("function", [spectral_norm, frobenius_norm, row_group_norm, stable_rank])
def test_a_vector_is_refused(function):
    with pytest.raises(UserError, match="matrix must be"):
        function(jnp.ones(3))


@pytest.mark.parametrize(
    "params", [3, {"w": jnp.ones((2, 2))}, [{"kernel": jnp.ones((2, 2))}], [jnp.ones((2, 2))]]
)
def test_parameters_of_another_kind_are_refused(params):
    with pytest.raises(UserError, match="sequence of layers"):
        weight_matrices(params)
