"""Untied attention: the law by expectations over logits, heads against the library's layer, kernels by the limit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.kernels.untied_attention import experiment, theory
from steepest.claims.kernels.untied_attention.claim import UntiedAttention
from steepest.kernels import gram
from steepest.nn.layers import attention, dense, global_pool, network

RNG = np.random.default_rng(0)
Z = RNG.standard_normal((4, 3))
K = theory.covariance(Z)


def test_the_law_by_gaussian_logits():
    """Logits of one query as normals of their covariance, and softmax itself at a small sharpness."""
    width = 400
    sharpness = 0.5
    squares = []
    for p in range(4):
        root = np.linalg.cholesky(K + 1e-12 * np.eye(4)) * (sharpness**2 * K[p, p] / width) ** 0.5
        logits = RNG.standard_normal((100_000, 4)) @ root.T
        powers = np.exp(logits)
        away = powers / powers.sum(1, keepdims=True) - 0.25
        squares.append(((away @ K) * away).sum(1).mean())
    assert theory.distance(K, sharpness, width) == pytest.approx(np.mean(squares), rel=0.02)


@pytest.mark.parametrize("tied", [True, False])
def test_heads_are_those_of_the_layer(tied):
    """With the layer's own queries and keys in the place of random ones."""
    net = network(
        attention(6, heads=1, key=5, tied=tied), shape=(4, 3), parameterized="ntk", bias=False
    )
    params = net.init(jax.random.key(0))
    query = np.asarray(params[0]["query"]["w"]) / 3**0.5
    key = query if tied else np.asarray(params[0]["key"]["w"]) / 3**0.5
    value = np.asarray(params[0]["value"]["w"]) / 3**0.5
    output = np.asarray(params[0]["output"]["w"]) / 5**0.5

    class Fixed:
        matrices = iter([query, key])

        def standard_normal(self, shape):
            return next(self.matrices)[None] * 3**0.5

    weights = experiment.weights(Fixed(), Z, 1, 5, 1 / 5, tied=tied)[0]
    wanted = weights @ (Z @ value.T) @ output.T
    np.testing.assert_allclose(net.apply(params, jnp.asarray(Z)), wanted, atol=1e-5)


def test_equal_weights_have_no_distance():
    assert experiment.distance(np.full((2, 4, 4), 0.25), K) == 0


def test_its_kernel_is_that_of_average_pooling():
    x = RNG.standard_normal((3, 4, 3))
    options = {"shape": (4, 3), "parameterized": "ntk", "bias": False}
    mean = network(dense(8), global_pool(), dense(8), dense(1), **options)
    attends = network(attention(8, heads=2, key=4, tied=False), global_pool(), dense(1), **options)
    np.testing.assert_allclose(gram(attends.limit(), x).nngp, gram(mean.limit(), x).nngp)


def test_the_point_draws_like_the_claim():
    claim = UntiedAttention(widths=(16,), sharpnesses=(0.5,), heads=20, seeds=3)
    point = UntiedAttention.point.of(claim)
    key = jax.random.key(0)
    setting = claim.setting(key)
    noise = point.setting(key)
    law = claim.predict(setting)["distance"][0, 0, 0]
    assert point.predict(noise)["distance"] == pytest.approx(law)
    first = claim.observe(setting, key)["distance"][0, 0, 0, 0]
    drawn = jax.jit(point.observe)(noise, key)["distance"]
    assert float(drawn[0]) == pytest.approx(first, rel=1e-5)
