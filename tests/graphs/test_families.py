"""Single graphs: against networkx, and what they must be."""

import networkx
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.graphs import connected, karate_club, nearest_neighbours, random_regular, ring


def test_the_karate_club_is_that_of_networkx():
    theirs = networkx.to_numpy_array(networkx.karate_club_graph()) > 0
    np.testing.assert_array_equal(karate_club(), theirs)


def test_the_ring_is_that_of_networkx():
    np.testing.assert_array_equal(ring(7), networkx.to_numpy_array(networkx.cycle_graph(7)) > 0)


@pytest.mark.parametrize("degree", [3, 4, 5])
def test_random_regular_graphs(degree):
    rng = np.random.default_rng(degree)
    first, second = (random_regular(20, degree, rng) for _ in range(2))
    for graph in (first, second):
        assert (graph == graph.T).all()
        assert not graph.diagonal().any()
        assert (graph.sum(0) == degree).all()
        assert networkx.is_connected(networkx.from_numpy_array(graph.astype(int)))
    assert (first != second).any()


def test_random_regular_graphs_are_equally_likely():
    """Of the cubic graphs on six labelled nodes 60 are prisms and 10 are complete bipartite."""
    rng = np.random.default_rng(0)
    triangles = [
        np.trace(np.linalg.matrix_power(random_regular(6, 3, rng) * 1.0, 3)) for _ in range(700)
    ]
    share = np.mean(np.array(triangles) == 0)
    assert share == pytest.approx(1 / 7, abs=4 * (1 / 7 * 6 / 7 / 700) ** 0.5)


def test_nearest_neighbours_by_loops():
    x = np.random.default_rng(0).standard_normal((15, 3))
    expected = np.zeros((15, 15), bool)
    for i, point in enumerate(x):
        for j in np.argsort(np.linalg.norm(x - point, axis=1))[1:4]:
            expected[i, j] = True
            expected[j, i] = True
    np.testing.assert_array_equal(nearest_neighbours(x, 3), expected)


def test_connected():
    assert connected(ring(5))
    assert not connected(np.kron(np.eye(2), np.ones((3, 3))) > 0)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: ring(2), "at least 3 nodes"),
        (lambda: random_regular(7, 3, np.random.default_rng(0)), "even number"),
        (lambda: random_regular(30, 8, np.random.default_rng(0)), "degree from 3 to 5"),
        (lambda: nearest_neighbours(np.zeros((4, 2)), 4), "from 1 to n − 1"),
    ],
)
def test_refused(build, words):
    with pytest.raises(UserError, match=words):
        build()
