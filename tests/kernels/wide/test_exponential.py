"""The exponential of normalized signals: by its formula, in other precision, by finite networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import check_layer, gram, gram_diagonal, kernel_function
from steepest.nn.layers import conv, dense, exp_normalized, global_pool, network, pool

OPTIONS = {"parameterized": "ntk", "c_w": 1.3, "c_b": 0.2}
GAMMA, SHIFT = 0.7, -0.4
ROWS = np.random.default_rng(0).normal(size=(5, 3))


def by_formula(x):
    """Follow both kernels of dense, exponential, dense, exponential, dense."""
    k = 1.3 * x @ x.T / x.shape[1] + 0.2
    theta = x @ x.T / x.shape[1] * 1.3 + 1.0
    for _ in range(2):
        size = np.sqrt(np.outer(np.diag(k), np.diag(k)))
        exponential = np.exp(GAMMA * (k / size + SHIFT))
        k, theta = size * exponential, GAMMA * exponential * theta
        k, theta = 1.3 * k + 0.2, 1.0 + 1.3 * k + 1.3 * theta
    return k, theta


def deep():
    layer = exp_normalized(GAMMA, SHIFT)
    return network(dense(8), layer, dense(8), layer, dense(1), shape=(3,), **OPTIONS)


def pooled(layer=None):
    """Variances behind a pool are means over pairs, which err."""
    layer = layer or exp_normalized(GAMMA, SHIFT)
    layers = [conv(8), layer, pool(2), conv(8), layer, global_pool(), dense(1)]
    return network(*layers, shape=(6, 2), **OPTIONS)


def test_two_layers_are_those_of_the_formula():
    kernels = gram(deep().limit(), ROWS)
    nngp, ntk = by_formula(ROWS)
    np.testing.assert_allclose(kernels.nngp, nngp, rtol=1e-13)
    np.testing.assert_allclose(kernels.ntk, ntk, rtol=1e-13)


def test_single_precision_is_within_the_bound():
    x = np.random.default_rng(1).normal(size=(4, 6, 2))
    limit = pooled().limit()
    double, single = gram(limit, x), gram(limit, x.astype(np.float32))
    for exact, rounded in ((double.nngp, single.nngp), (double.ntk, single.ntk)):
        scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
        assert np.max(np.abs(rounded - exact) / scale) < single.error < 1e-3


def test_coefficients_have_derivatives():
    x = np.random.default_rng(2).normal(size=(3, 6, 2))

    def entry(gamma):
        return gram(pooled(exp_normalized(gamma, SHIFT)).limit(), x).ntk[0, 1]

    step = 1e-5
    difference = (entry(GAMMA + step) - entry(GAMMA - step)) / (2 * step)
    assert jax.grad(entry)(GAMMA) == pytest.approx(difference, rel=1e-8)


def test_pairs_and_diagonals_agree():
    x = np.random.default_rng(3).normal(size=(2, 6, 2))
    limit = pooled().limit()
    kernels, of_pair = gram(limit, x), kernel_function(limit, x)
    np.testing.assert_allclose(of_pair(jnp.asarray(x[0]), x[1]).ntk, kernels.ntk[0, 1], rtol=1e-12)
    np.testing.assert_allclose(gram_diagonal(limit, x).ntk, np.diag(kernels.ntk), rtol=1e-12)


def test_a_signal_of_zero_gives_zero():
    layers = [dense(8), exp_normalized(GAMMA), dense(1)]
    net = network(*layers, shape=(3,), parameterized="ntk", bias=False)
    x = np.vstack([np.zeros(3), ROWS[:2]])
    kernels = gram(net.limit(), x)
    assert not kernels.nngp[0].any()
    assert np.isfinite(kernels.ntk).all()
    params = net.init(jax.random.key(0))
    assert net.apply(params, x)[0] == 0


def test_finite_networks_have_these_kernels():
    check = check_layer(exp_normalized(0.5), (3, 2), jax.random.key(0), width=64, count=300)
    assert check.broken == ()


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.nan, np.inf])
def test_no_kernel_without_a_positive_factor(gamma):
    with pytest.raises(UserError):
        exp_normalized(gamma)


def test_it_needs_gaussian_channels():
    with pytest.raises(UserError):
        network(dense(8), "relu", exp_normalized(), dense(1), shape=(3,), **OPTIONS).limit()
