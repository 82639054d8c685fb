"""Sampling without weights against networks with explicit weights, and against the infinite-width recursion."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.kernels import first_layer, propagate
from steepest.nn.activations import activation
from steepest.nn.networks import finite_grams, propagate_finite, semidefinite_root

INPUTS = jnp.array([[1.5, 0.5, -1.0], [0.2, 1.0, 1.3]])


def with_weights(key, activation, c_w, c_b, width, depth, inputs):
    """The oracle: draws every weight matrix and bias."""
    features = inputs.T
    rows = []
    for layer_key in jax.random.split(key, depth + 1):
        weights_key, bias_key = jax.random.split(layer_key)
        fan_in = features.shape[0]
        weights = jnp.sqrt(c_w / fan_in) * jax.random.normal(weights_key, (width, fan_in))
        z = weights @ features + jnp.sqrt(c_b) * jax.random.normal(bias_key, (width, 1))
        rows.append(jnp.stack([z[:, 0] @ z[:, 0], z[:, 1] @ z[:, 1], z[:, 0] @ z[:, 1]]) / width)
        features = activation(z)
    return jnp.stack(rows)


@pytest.mark.parametrize(("name", "width"), [("relu", 3), ("tanh", 16)])
def test_moments_have_the_law_of_explicit_weights(name, width):
    """Mean and variance of every second moment in every layer agree within four standard errors."""
    arguments = (activation(name), 1.3, 0.2, width, 2, INPUTS)
    keys = jax.random.split(jax.random.key(3), 2 * 3_000).reshape(2, -1)
    explicit = np.asarray(jax.jit(jax.vmap(lambda key: with_weights(key, *arguments)))(keys[0]))
    conditional = np.asarray(jax.vmap(lambda key: propagate_finite(key, *arguments))(keys[1]))
    for statistic in (lambda s: s, lambda s: (s - s.mean(axis=0)) ** 2):
        one = statistic(explicit)
        other = statistic(conditional)
        error = np.sqrt((one.var(axis=0) + other.var(axis=0)) / one.shape[0])
        assert np.abs((one.mean(axis=0) - other.mean(axis=0)) / error).max() <= 4


def test_relu_is_unbiased_at_every_width():
    """The mean over networks of the variance is exactly that of infinite width; the covariance's is not."""
    σ = activation("relu")
    depth = 3
    keys = jax.random.split(jax.random.key(5), 20_000)
    paths = np.asarray(
        jax.vmap(lambda key: propagate_finite(key, σ, 1.9, 0.1, 5, depth, INPUTS))(keys)
    )
    exact = np.asarray(propagate(σ, 1.9, 0.1, first_layer(INPUTS, 1.9, 0.1), depth))
    z = (paths.mean(axis=0) - exact) / (paths.std(axis=0) / np.sqrt(len(keys)))
    assert np.abs(z[:, :2]).max() <= 4
    assert np.abs(z[:, 2]).max() > 4


def test_equal_and_opposite_inputs_stay_so():
    inputs = jnp.stack([INPUTS[0], INPUTS[0], -INPUTS[0]])
    grams = np.asarray(finite_grams(jax.random.key(0), activation("tanh"), 1.2, 0.0, 50, 6, inputs))
    np.testing.assert_allclose(grams[:, 0, 1], grams[:, 0, 0], rtol=1e-10)
    np.testing.assert_allclose(grams[:, 0, 2], -grams[:, 0, 0], rtol=1e-10)


def test_root_of_a_covariance():
    """Lower triangular with R Rᵀ = K, also for a singular K."""
    half = jax.random.normal(jax.random.key(1), (4, 6))
    for covariance in (half @ half.T, half[:, :2] @ half[:, :2].T, jnp.zeros((3, 3))):
        root = semidefinite_root(covariance)
        np.testing.assert_allclose(root @ root.T, covariance, atol=1e-12)
        np.testing.assert_array_equal(root, jnp.tril(root))


def test_same_key_same_network_and_input_checks():
    arguments = (activation("relu"), 2.0, 0.0, 10, 3)
    one, two = (propagate_finite(jax.random.key(1), *arguments, INPUTS) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    with pytest.raises(ValueError, match="inputs must be"):
        propagate_finite(jax.random.key(1), *arguments, jnp.eye(3))
    with pytest.raises(ValueError, match="at least one neuron"):
        finite_grams(jax.random.key(1), activation("relu"), 2.0, 0.0, 0, 3, INPUTS)
