"""Convolutional networks against sums written out, and their Fourier transforms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.nn.networks import convolutional, convolved


@pytest.mark.parametrize("d", [1, 5, 6])
def test_convolution_is_the_sum_over_positions(d, key):
    u, v = jax.random.normal(key, (2, d))
    by_hand = [sum(float(u[j] * v[(i - j) % d]) for j in range(d)) / d**0.5 for i in range(d)]
    np.testing.assert_allclose(convolved(jnp.stack([u, v])), by_hand, atol=1e-12)


def test_unitary_transforms_multiply(key):
    filters = jax.random.normal(key, (3, 8))
    transforms = np.fft.fft(np.asarray(filters), axis=1, norm="ortho")
    np.testing.assert_allclose(
        np.fft.fft(convolved(filters), norm="ortho"), transforms.prod(0), atol=1e-12
    )


def test_it_is_homogeneous_and_starts_at_its_scale(key):
    net = convolutional(400, depth=3, scale=0.5)
    params = net.init(key)
    x = jax.random.normal(key, (4, 400))
    assert params.shape == (3, 400)
    np.testing.assert_allclose(
        jnp.linalg.norm(params, axis=1), 0.5, rtol=0.2
    )  # 4 standard deviations: 1/√(2d)
    np.testing.assert_allclose(net.apply(2 * params, x), 8 * net.apply(params, x), rtol=1e-10)


def test_bad_input_is_one_sentence():
    with pytest.raises(UserError, match="depth ≥ 1"):
        convolutional(4, depth=0)
