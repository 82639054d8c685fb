"""ReLU networks whose test errors are compared: gradients, tangent kernels and starts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.descent.catapult_forgets_start.experiment import (
    errors_of_steps,
    forward,
    relu_slopes,
    relu_tops,
)
from steepest.kernels import empirical_ntk

RNG = np.random.default_rng(0)
U = RNG.normal(size=(2, 6, 5))
V = RNG.normal(size=(2, 6))
X = RNG.normal(size=(2, 4, 5))
Y = RNG.normal(size=(2, 4))


def output(params, x):
    u, v = params
    return np.sqrt(2 / 6) * jax.nn.relu(np.sqrt(2 / 5) * x @ u.T) @ v


def test_outputs_and_slopes_are_those_of_automatic_differentiation():
    risk = lambda params, x, y: 0.5 * jnp.mean((output(params, x) - y) ** 2)
    with jax.enable_x64(True):
        by_u, by_v = jax.vmap(jax.grad(risk))((jnp.array(U), jnp.array(V)), X, Y)
        outputs = jax.vmap(output)((jnp.array(U), jnp.array(V)), X)
    slopes = relu_slopes(U, V, X, Y)
    np.testing.assert_allclose(slopes[0], by_u, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(slopes[1], by_v, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(forward(U, V, X)[2], outputs, rtol=1e-5)


def test_the_top_is_that_of_the_tangent_kernel():
    with jax.enable_x64(True):
        for u, v, x, top in zip(U, V, X, relu_tops(U, V, X), strict=True):
            kernel = empirical_ntk(output, (jnp.array(u), jnp.array(v)), jnp.array(x))
            assert top == pytest.approx(np.linalg.eigvalsh(kernel / 4)[-1], rel=1e-5)


def test_errors_of_images_that_are_apart_vanish():
    """Two far classes on the line, with a constant: nearly all that is left is right, from either start."""
    labels = np.repeat([-1.0, 1.0], 30)
    images = np.stack([4 * labels + RNG.normal(size=60), np.ones(60)], 1)
    for silent in (False, True):
        rng = np.random.default_rng(1)
        lazy, thrown = errors_of_steps(rng, images, labels, (5, 40, 20), 3.0, silent=silent)
        assert lazy.shape == (5,) and thrown.shape == (5, 2)
        assert lazy.max() < 0.05
        # labels that are fair coins are not learned
        coins = np.random.default_rng(2).choice([-1.0, 1.0], 60)
        lazy, _ = errors_of_steps(rng, images, coins, (5, 40, 20), 3.0, silent=silent)
        assert 0.3 < lazy.mean() < 0.7
