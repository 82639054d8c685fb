"""Influence: against finite differences, forward against backward, and powers of the walk."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.graphs import influence, karate_club, lazy_walk, ring
from steepest.nn.networks import graph_convolution

WALK = lazy_walk(ring(5))
NET = graph_convolution(WALK, 2, 4, 3)
X = np.random.default_rng(0).standard_normal((5, 2))


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_finite_differences(power):
    with jax.enable_x64(True):
        params = NET.init(jax.random.key(0))
        ours = np.asarray(influence(NET, params, jnp.asarray(X), power))
        expected = np.zeros((3, 5, 5))
        for node, feature in np.ndindex(5, 2):
            moved = X.copy()
            moved[node, feature] += 1e-6
            slope = (NET.apply(params, moved) - NET.apply(params, X)) / 1e-6
            expected[:, :, node] += (np.abs(slope) ** power).sum(-1)
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-6)


def test_backward_is_forward():
    params = NET.init(jax.random.key(1))
    whole = np.asarray(influence(NET, params, X))
    part = np.asarray(influence(NET, params, X, nodes=[3, 0], layers=[2]))
    np.testing.assert_allclose(part, whole[2:, [3, 0]], rtol=1e-5)


def test_linear_networks_walk():
    with jax.enable_x64(True):
        walk = lazy_walk(karate_club())
        net = graph_convolution(walk, 2, 3, 4, "linear")
        moved = np.asarray(influence(net, net.init(jax.random.key(0)), jnp.ones((34, 2))))
    moved = moved / moved.sum(-1, keepdims=True)
    np.testing.assert_allclose(moved[-1], np.linalg.matrix_power(walk, 4), rtol=1e-10, atol=1e-14)


def test_the_walk_is_one():
    walk = lazy_walk(karate_club())
    np.testing.assert_allclose(walk.sum(1), 1)
    degrees = karate_club().sum(1) + 1
    np.testing.assert_allclose(degrees @ walk, degrees)  # stationary


def test_the_network_is_what_it_says():
    params = NET.init(jax.random.key(2))
    h = X
    for k, matrix in enumerate(params):
        h = np.maximum(WALK @ h @ np.asarray(matrix).T, 0)
        np.testing.assert_allclose(NET.apply(params, X)[k], h, rtol=1e-5, atol=1e-6)
    wide = graph_convolution(WALK, 2, 300, 2).init(jax.random.key(0))
    assert float(wide[0].var()) == pytest.approx(1, rel=0.2)
    assert float(wide[1].var()) == pytest.approx(2 / 300, rel=0.05)


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: influence(NET, (), X, power=0.0), "power above zero"),
        (lambda: lazy_walk(np.eye(3)), "no loops"),
        (lambda: graph_convolution(np.zeros((2, 3)), 1, 1, 1), "shape"),
        (lambda: graph_convolution(np.full((2, 2), np.nan), 1, 1, 1), "finite"),
        (lambda: graph_convolution(WALK, 1, 1, 0), "depth of at least 1"),
    ],
)
def test_refused(use, words):
    with pytest.raises(UserError, match=words):
        use()
