"""Kernels averaged over random networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import empirical_ntk, gram, sampled_gram
from steepest.nn.layers import conv, dense, global_pool, network
from steepest.nn.networks import mlp
from steepest.nn.types import Network

X = np.random.default_rng(0).normal(size=(4, 3))


def test_mean_and_error_are_those_of_a_loop_over_draws():
    """Also for several outputs, over which both kernels are averaged."""
    net = mlp((3, 8, 5), "tanh", parameterized="ntk")
    key = jax.random.key(1)
    drawn = sampled_gram(net, X, key, X[:2], count=7)
    kernels = []
    for one in jax.random.split(key, 7):
        params = net.init(one)
        y, z = net.apply(params, X), net.apply(params, X[:2])
        theta = empirical_ntk(net.apply, params, X, X[:2], outputs="all", method="jacobian")
        kernels.append(np.stack([y @ z.T / 5, np.einsum("iaja->ij", theta) / 5]))
    mean, error = np.mean(kernels, 0), np.std(kernels, 0, ddof=1) / np.sqrt(7)
    np.testing.assert_allclose(drawn[:2], mean, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(drawn[2:], error, rtol=2e-4, atol=1e-6)


def test_the_limit_is_within_its_errors():
    net = mlp((3, 200, 1), "relu", parameterized="ntk", c_w=2.0)
    drawn = sampled_gram(net, X, jax.random.key(0), count=200)
    exact = gram(net.limit(), X)
    assert (np.abs(drawn.nngp - exact.nngp) <= 4 * drawn.nngp_error + 0.01 * exact.nngp.max()).all()
    assert (np.abs(drawn.ntk - exact.ntk) <= 4 * drawn.ntk_error + 0.01 * exact.ntk.max()).all()


def test_any_pair_of_functions_will_do():
    """A network with a maximum over channels has no limit that we know."""
    net = Network(lambda key: jax.random.normal(key, (6, 3)), lambda w, x: jnp.max(x @ w.T, -1))
    drawn = sampled_gram(net, X, jax.random.key(0), count=50)
    assert drawn.ntk.shape == (4, 4)
    # the gradient is the input at the winner and zero elsewhere
    np.testing.assert_allclose(np.diag(drawn.ntk), (X**2).sum(1), rtol=1e-5)


def test_with_masks_it_is_the_mean_of_shorter_inputs():
    """The same draws, as no weight depends on the length; the second set is whole."""
    layers = [conv(2), global_pool(), dense(2)]
    long = network(*layers, shape=(5, 2), parameterized="ntk")
    short = network(*layers, shape=(3, 2), parameterized="ntk")
    x = np.random.default_rng(0).normal(size=(2, 5, 2))
    mask = np.arange(5) < np.array([[3], [3]])
    other = np.random.default_rng(1).normal(size=(2, 3, 2))
    filled = np.concatenate([other, np.ones((2, 2, 2))], 1)
    drawn = sampled_gram(long, x, jax.random.key(0), filled, mask=mask, other_mask=mask, count=2)
    part = sampled_gram(short, x[:, :3], jax.random.key(0), other, count=2)
    np.testing.assert_allclose(drawn, part, rtol=1e-5, atol=1e-7)
    with pytest.raises(UserError, match=r"mlp\(\) has none"):
        sampled_gram(mlp((3, 8, 1), "relu"), X, jax.random.key(0), mask=np.ones((4, 3), bool))


def test_one_draw_is_refused():
    with pytest.raises(UserError, match="at least two networks, got count=1"):
        sampled_gram(mlp((3, 8, 1), "relu"), X, jax.random.key(0), count=1)
