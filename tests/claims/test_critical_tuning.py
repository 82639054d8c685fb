"""What critical-tuning measures with: networks drawn layer by layer, roots of covariances, the C_W that it finds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.signals.critical_tuning.experiment import (
    Case,
    draw_noise,
    located,
    perturbations,
    sample_grams,
    triangular_root,
)
from steepest.nn.activations import activation
from steepest.nn.networks import mlp
from steepest.nn.networks import sample_grams as of_library

INPUTS = np.array([[1.0, 0.0], [0.6, 0.9], [-0.4, 1.0]])


@pytest.mark.parametrize("name", ["relu", "tanh", "gelu"])
def test_grams_are_those_of_networks_with_weights_and_of_the_library(name):
    """Means over networks, layer by layer, beside weight matrices that are really drawn."""
    case = Case(activation(name), 1.7, 0.1, INPUTS)
    drawn = sample_grams(draw_noise(jax.random.key(0), 4, (2000, 3, 40)), case)
    theirs = of_library(jax.random.key(1), 2000, *case[:3], 40, 3, jnp.asarray(INPUTS))
    net = mlp((2, 40, 40, 40, 40, 1), name, c_w=1.7, c_b=0.1)

    def grams(key):
        z = net.preactivations(net.init(key), jnp.asarray(INPUTS))[:-1]
        return jnp.stack([layer @ layer.T / 40 for layer in z])

    weights = jax.vmap(grams)(jax.random.split(jax.random.key(2), 2000))
    for other in (theirs, weights):
        size = np.abs(drawn.mean(0)).max((1, 2), keepdims=True)
        assert (np.abs(drawn.mean(0) - np.asarray(other).mean(0)) < 0.04 * size).all()
        np.testing.assert_allclose(drawn.std(0), np.asarray(other).std(0), rtol=0.15, atol=0.01)


def test_roots_are_triangular_and_give_back_the_covariance():
    half = np.random.default_rng(0).normal(size=(50, 3, 3))
    half[0, :, 1:] = 0  # of rank one
    half[1, :, 2] = 0
    covariance = half @ half.swapaxes(1, 2)
    root = triangular_root(covariance)
    np.testing.assert_allclose(root @ root.swapaxes(1, 2), covariance, atol=1e-12)
    np.testing.assert_allclose(np.triu(root, 1), 0, atol=1e-12)
    # the same numbers give nearly the same networks at a C_W nearby
    np.testing.assert_allclose(triangular_root(covariance[2:] * 1.0001), root[2:], rtol=1e-3)


def test_the_neutral_c_w_is_found_where_growth_changes_sign():
    c_w = 2 * np.array([0.97, 1.0, 1.03])
    rate = np.log(c_w / 2.02) * 8 + 3 * np.log(c_w / 2.02) ** 2
    paths = np.exp(np.linspace(0, 1, 9) * rate[:, None, None] * np.ones((1, 10, 1)))
    np.testing.assert_allclose(located(c_w, paths), 2.02, rtol=1e-6)


def test_perturbations_are_differences_of_length_and_squared_distances():
    x = np.random.default_rng(0).normal(size=(1, 20, 2, 3, 5))
    along, across = perturbations(x @ x.swapaxes(-1, -2))
    of_group = x[:, :2]  # the first of ten groups
    lengths = (of_group[..., 1, :] ** 2 - of_group[..., 0, :] ** 2).sum(-1).mean(1)
    distances = ((of_group[..., 0, :] - of_group[..., 2, :]) ** 2).sum(-1).mean(1)
    np.testing.assert_allclose(along[:, 0], np.abs(lengths))
    np.testing.assert_allclose(across[:, 0], distances)
