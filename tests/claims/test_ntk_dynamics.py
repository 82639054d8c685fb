"""What the claim about training in the kernel limit rests on: recursion, one neuron, and the rate of ReLU."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.kernels.ntk_dynamics.experiment import follow, network, repeat
from steepest.claims.kernels.ntk_dynamics.theory import (
    departures,
    draw_neurons,
    flow,
    kernel_times,
    limit_kernels,
    recursion,
)
from steepest.kernels import empirical_ntk, kernel_dynamics

RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 5))
Y = RNG.choice([-1.0, 1.0], 4)
M = len(Y)


@pytest.mark.parametrize("way", ["descent", "flow"])
def test_the_recursion_is_that_of_the_library(way):
    ntk = limit_kernels("erf", X).ntk
    dynamics = kernel_dynamics(ntk[:M, :M])
    rate = 1.5 / dynamics.eigenvalues[-1]
    steps = [1, 2, 7]
    ours = (recursion if way == "descent" else flow)(ntk, Y, rate, steps)
    start = RNG.normal(size=7)
    progress = (
        dynamics.descent(rate, steps) if way == "descent" else dynamics.flow(rate * np.array(steps))
    )
    of_library = dynamics.outputs(progress, ntk[:, :M], start, Y)
    np.testing.assert_allclose(ours.carried @ start + ours.gained, of_library, atol=1e-9)


@pytest.mark.parametrize("sigma", ["erf", "gelu"])
def test_the_mean_over_neurons_is_the_limit(sigma):
    limit = limit_kernels(sigma, X)
    neurons = draw_neurons(sigma, X, limit.nngp)
    for k in range(M):
        unit = np.zeros((len(neurons.value), M))
        unit[:, k] = 1
        products = kernel_times(neurons, X, unit)
        error = products.std(0) / np.sqrt(len(products))
        assert (np.abs(products.mean(0) - limit.ntk[:, k]) < 4.5 * error + 1e-9).all()


def test_the_departure_is_that_of_wide_kernels():
    """Kernels of 400 finite networks in the recursion, each from an independent start."""
    limit = limit_kernels("erf", X)
    n = 2000
    net = network("erf", n, X.shape[1])
    keys = jax.random.split(jax.random.key(0), 400)
    kernels = np.asarray(
        jax.lax.map(lambda key: empirical_ntk(net, net.init(key), jnp.asarray(X)), keys)
    )
    start = RNG.multivariate_normal(np.zeros(7), limit.nngp, len(keys))
    rate = 1.5 * M / np.linalg.eigvalsh(limit.ntk[:M, :M])[-1]
    by_own = repeat(start[:, None], kernels[:, :, :M], Y, [rate], 4)[:, 0]
    fixed = repeat(start[:, None], np.stack([limit.ntk[:, :M]] * len(keys)), Y, [rate], 4)[:, 0]
    measured = n * ((by_own - fixed)[:, 1:] ** 2).mean((0, 2))
    neurons = draw_neurons("erf", X, limit.nngp)
    predicted = departures(neurons, X, Y, limit.ntk, rate, [1, 2, 3, 4]).mean(1)
    np.testing.assert_allclose(measured, predicted, rtol=0.25)


@pytest.mark.parametrize("n", [512, 8192])
def test_relu_leaves_its_own_kernel_by_scatter_and_drift(n):
    """Scatter E|a|⁵ E|s|³/(3√(2π)) n^(−3/2) and the square of a drift of n^(−1/2), from gates that switch."""
    x = np.array([[1.0, 0.5], [-0.3, 1.0]])
    y = np.array([1.0, -1.0])
    net = network("relu", n, 2)

    def departure(key):
        params = net.init(key)
        path = follow(net, params, jnp.asarray(x), jnp.asarray(y), jnp.asarray(1.0), 1)
        by_own = path[0] - 0.5 * empirical_ntk(net, params, jnp.asarray(x)) @ (path[0] - y)
        return path[1] - by_own, path[0]

    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(1), 1000)
        off, start = map(np.asarray, jax.lax.map(departure, keys))
    predicted = np.array([second_moment_of_relu(x, y - start, n, i) for i in (0, 1)])
    np.testing.assert_allclose((off**2).mean(0), predicted, rtol=0.3)
    scatter_alone = np.array([second_moment_of_relu(x, y - start, n, i, drift=0) for i in (0, 1)])
    if n > 1000:
        assert ((off**2).mean(0) > 2 * scatter_alone).all()


def second_moment_of_relu(x, residuals, n, i, drift=1):
    """Return what one step of size one leaves at the i-th of two examples, mean over residuals."""
    density = 1 / math.sqrt(2 * math.pi * (x[i] @ x[i] / 2))
    k = 1 - i
    kernel = 1 + x @ x.T / 2
    # on neurons whose input vanishes on x_i the other gate is open or closed alike
    other = 0.5 * residuals[:, k, None] * np.array([0, 1]) * kernel[i, k]
    open_ = other + 0.5 * residuals[:, i, None] * kernel[i, i]
    a3 = 2 * math.sqrt(2 / math.pi)
    a5 = 8 * math.sqrt(2 / math.pi)
    scatter = a5 * density / 3 * (np.abs(open_) ** 3 + np.abs(other) ** 3).mean() / 2
    one_way = a3 * density / 4 * (np.sign(other) * other**2 - np.sign(open_) * open_**2).mean(1)
    return scatter * n**-1.5 + drift * (one_way**2).mean() / n
