"""Projections of the network's gradients, and what is read off the batches."""

import jax
import numpy as np
from scipy import stats

from steepest.claims.noise.batch_noise_gaussian.claim import (
    BatchNoiseGaussian,
    _fixed,
    _standardized,
)
from steepest.nn.data import digits
from steepest.nn.losses import squared
from steepest.nn.networks import mlp
from steepest.noise import gradient_moments


def test_projections_are_inner_products_with_gradients():
    claim = BatchNoiseGaussian(width=3, directions=2)
    key = jax.random.key(0)
    ours = np.asarray(claim.projected(key))
    data = digits()
    x = data.x - data.x.mean(0)
    net = mlp((64, 3, 10), "tanh", c_w=1.0)
    for_net, for_directions = jax.random.split(key)
    params = net.init(for_net)
    leaves, _tree = jax.tree.flatten(params)
    keys = jax.random.split(for_directions, len(leaves))
    drawn = [jax.random.normal(k, (2, *p.shape)) for k, p in zip(keys, leaves, strict=True)]
    for example in (0, 500):
        one = lambda p, i=example: squared(net.apply(p, x[i : i + 1]), data.y[i : i + 1])[0]
        slopes = jax.tree.leaves(jax.grad(one)(params))
        expected = sum((d * s).reshape(2, -1).sum(1) for d, s in zip(drawn, slopes, strict=True))
        assert np.allclose(ours[example], expected)


def test_readings_are_those_of_scipy():
    values = np.random.default_rng(0).gamma(2.0, size=(500, 3))
    variance, skewness, excess, lean = _standardized(values)
    assert np.allclose(variance, values.var(0))
    assert np.allclose(skewness, stats.skew(values))
    assert np.allclose(excess, stats.kurtosis(values))
    assert np.allclose(lean, (values < values.mean(0)).mean(0) - 0.5)


def test_batches_of_a_fixed_size_have_the_centred_covariance():
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(30, 2)) + 1
    drawn = _fixed(gradients, 5, 20000, rng)
    expected = np.diag(gradient_moments(gradients, 5, "fixed").covariance)
    assert np.allclose(drawn.var(0), expected, rtol=0.05)
