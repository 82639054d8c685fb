"""Tangent kernels of finite networks against one gradient an example."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.kernels import empirical_ntk, ntk_top
from steepest.networks import mlp, two_layer
from tests.oracles import dense_hessian, dense_ntk

X = np.random.default_rng(0).normal(size=(5, 3))


@pytest.mark.parametrize(
    "net",
    [
        mlp((3, 6, 1), "tanh", parameterized="ntk", c_b=0.3),
        mlp((3, 6, 4, 1), "relu", bias=False),
        two_layer(3, 6, power=2),
    ],
    ids=lambda net: net.name,
)
def test_it_is_the_gram_matrix_of_the_gradients(net, key):
    params = net.init(key)
    kernel = jax.jit(lambda p: empirical_ntk(net.apply, p, X))(params)
    np.testing.assert_allclose(kernel, dense_ntk(net.apply, params, X), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(kernel, kernel.T, rtol=1e-12)
    assert np.linalg.eigvalsh(kernel)[0] >= -1e-12
    top = jax.jit(lambda p: ntk_top(net.apply, p, X))(params)
    assert top == pytest.approx(np.linalg.eigvalsh(kernel / 5)[-1], rel=1e-10)


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_a_linear_model_has_the_gram_matrix_of_its_inputs(seed):
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(5, 3)), rng.normal(size=3)
    linear = lambda w, x: x @ w
    np.testing.assert_allclose(empirical_ntk(linear, w, x), x @ x.T, rtol=1e-10, atol=1e-12)
    assert ntk_top(linear, w, x) == pytest.approx(np.linalg.norm(x, 2) ** 2 / 5, rel=1e-10)


def test_two_linear_layers_in_closed_form(key):
    """f = v·Ux/√(md): Θ(x, x') = (Ux·Ux' + ‖v‖² x·x')/(md)."""
    net = mlp((3, 6, 1), "linear", parameterized="ntk", bias=False)
    params = net.init(key)
    u, v = np.asarray(params[0]["w"]), np.asarray(params[1]["w"])
    expected = ((X @ u.T) @ (X @ u.T).T + (v**2).sum() * X @ X.T) / 18
    np.testing.assert_allclose(empirical_ntk(net.apply, params, X), expected, rtol=1e-10)


def test_at_interpolation_its_top_is_the_sharpness(key):
    """Where f = y the Hessian of ½ mean (f − y)² is its Gauss-Newton part, whose nonzero spectrum is Θ/n's."""
    net = mlp((3, 6, 1), "tanh", parameterized="ntk")
    params = net.init(key)
    y = net.apply(params, X)
    dense = dense_hessian(lambda p: 0.5 * jnp.mean((net.apply(p, X) - y) ** 2), params)
    assert ntk_top(net.apply, params, X) == pytest.approx(np.linalg.eigvalsh(dense)[-1], rel=1e-10)


def test_an_output_of_shape_n_1_counts_as_scalar(key):
    linear = lambda w, x: x @ w
    w = jax.random.normal(key, (3, 1))
    np.testing.assert_allclose(empirical_ntk(linear, w, X), X @ X.T, rtol=1e-10)
