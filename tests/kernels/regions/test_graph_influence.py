"""Influence at infinite width: the recursion from below, wide networks, and the limits of many layers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.graphs import influence, karate_club, lazy_walk, random_regular
from steepest.kernels import graph_influence
from steepest.nn.networks import graph_convolution

PATH = lazy_walk(np.eye(4, k=1) + np.eye(4, k=-1))
X = np.random.default_rng(0).standard_normal((4, 3))


def test_the_recursion_from_below():
    """T_y upward for every y, with expectations by Monte Carlo in place of closed forms."""
    rng = np.random.default_rng(1)
    T = np.array([2 * np.outer(PATH[:, y], PATH[:, y]) for y in range(4)])
    K = 2 * PATH @ (X @ X.T / 3) @ PATH.T
    for k, ours in enumerate(graph_influence(PATH, X, 3)):
        root = np.sqrt(np.einsum("yxx->xy", T))
        np.testing.assert_allclose(ours, root / root.sum(1, keepdims=True), atol=0.003)
        z = rng.standard_normal((400_000, 4)) @ np.linalg.cholesky(K + 1e-12 * np.eye(4)).T
        gates = (z > 0) * 1.0
        T = 2 * PATH @ (T * (gates.T @ gates / len(z))) @ PATH.T
        positive = np.maximum(z, 0)
        K = 2 * PATH @ (positive.T @ positive / len(z)) @ PATH.T
        assert k < 3


def test_wide_networks():
    net = graph_convolution(PATH, 3, 400, 3)

    def squares(key):
        return influence(net, net.init(key), jnp.asarray(X), power=2.0)

    keys = jax.random.split(jax.random.key(0), 60)
    mean = np.sqrt(np.asarray(jax.jit(lambda keys: jax.lax.map(squares, keys))(keys))).mean(0)
    mean /= mean.sum(-1, keepdims=True)
    theory = graph_influence(PATH, X, 3)
    walk = np.stack([np.linalg.matrix_power(PATH, k) for k in (1, 2, 3)])
    np.testing.assert_allclose(mean, theory, atol=0.004)
    assert np.abs(mean - walk).max() > 0.012


def test_equal_gates_walk_and_some_nodes_are_rows_of_all():
    alike = graph_influence(PATH, np.ones((4, 1)), 5)
    np.testing.assert_allclose(alike[-1], np.linalg.matrix_power(PATH, 5), atol=1e-12)
    some = graph_influence(PATH, X, 3, nodes=[2])
    np.testing.assert_allclose(some[:, 0], graph_influence(PATH, X, 3)[:, 2])


def test_equal_gates_walk_whatever_the_features_and_independent_ones_do_not():
    club = lazy_walk(karate_club())
    features = np.random.default_rng(0).standard_normal((34, 8))
    equal = graph_influence(club, features, 4, gates=np.full((34, 34), 0.5))
    apart = graph_influence(club, features, 4, gates=np.full((34, 34), 0.25) + np.eye(34) / 4)
    # by the recursion of T from below
    T = 2 * club.T[:, :, None] * club.T[:, None, :]
    for k in range(4):
        walk = np.linalg.matrix_power(club, k + 1)
        np.testing.assert_allclose(equal[k], walk, atol=1e-12)
        root = np.sqrt(np.einsum("yxx->xy", T))
        np.testing.assert_allclose(apart[k], root / root.sum(1, keepdims=True), atol=1e-12)
        T = 2 * club @ (T * (np.full((34, 34), 0.25) + np.eye(34) / 4)) @ club.T
    off = lambda rows: np.abs(rows - np.linalg.matrix_power(club, 2)).sum(-1).mean() / 2
    assert off(apart[1]) == pytest.approx(0.0278, abs=1e-4)
    assert off(graph_influence(club, features, 2)[1]) == pytest.approx(0.016, abs=0.002)


@pytest.mark.parametrize("graph", ["karate", "regular"])
def test_nodes_become_alike_at_the_rate_of_the_walk_but_not_at_its_law(graph):
    rng = np.random.default_rng(0)
    adjacency = karate_club() if graph == "karate" else random_regular(34, 4, rng)
    walk = lazy_walk(adjacency)
    deep = graph_influence(walk, rng.standard_normal((34, 8)), 60)
    spread = np.abs(deep - deep.mean(1, keepdims=True)).sum(-1).mean(-1)
    second = np.sort(np.abs(np.linalg.eigvals(walk)))[-2]
    assert np.log(spread[59] / spread[39]) / 20 == pytest.approx(np.log(second), rel=0.01)
    stationary = (adjacency.sum(1) + 1) / (adjacency.sum() + 34)
    off = np.abs(deep[-1] - stationary).sum(-1).mean() / 2
    assert off == pytest.approx({"karate": 0.04, "regular": 0.02}[graph], abs=0.01)


def test_gates_of_another_shape_are_refused():
    with pytest.raises(UserError, match="expected gates"):
        graph_influence(PATH, X, 2, gates=np.ones((3, 3)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((PATH, X[:3], 2), "expected a walk"),
        ((PATH, X, 0), "depth of at least 1"),
        ((PATH, 0 * X, 2), "average to zero"),
    ],
)
def test_refused(arguments, words):
    with pytest.raises(UserError, match=words):
        graph_influence(*arguments)
