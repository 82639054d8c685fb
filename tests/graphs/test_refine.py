"""Colour refinement: against networkx, against trees unrolled by hand, and what it refuses."""

from collections import Counter
from fractions import Fraction

import networkx
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.graphs import check_adjacency, refine, small


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_multisets_are_those_of_networkx(rounds):
    graphs = small(6)
    classes = refine(graphs.adjacency, None, rounds).graphs[-1]
    hashes = []
    for one in graphs.adjacency:
        graph = networkx.from_numpy_array(one.astype(int))
        networkx.set_node_attributes(graph, "0", "colour")  # else it starts from degrees
        hashes.append(
            networkx.weisfeiler_lehman_graph_hash(graph, node_attr="colour", iterations=rounds)
        )
    # networkx's hash is of all rounds together, which the last one implies
    assert _partition(classes) == _partition(hashes)


@pytest.mark.parametrize("by", ["multiset", "proportion", "set"])
def test_colours_are_unrolled_trees(by):
    graphs = small(4, colours=2)
    rounds = refine(graphs.adjacency, graphs.colours, 3, by)
    for depth in range(4):
        trees = []
        whole = []
        for adjacency, colours in zip(graphs.adjacency, graphs.colours, strict=True):
            unrolled = [_unroll(adjacency, colours, node, depth, by) for node in range(4)]
            trees += unrolled
            whole.append(_gathered(unrolled, by))
        assert _partition(rounds.nodes[depth].ravel()) == _partition(trees)
        assert _partition(rounds.graphs[depth]) == _partition(whole)


def _unroll(adjacency, colours, node, depth, by):
    if depth == 0:
        return int(colours[node])
    below = [
        _unroll(adjacency, colours, other, depth - 1, by)
        for other in np.flatnonzero(adjacency[node])
    ]
    return (_unroll(adjacency, colours, node, depth - 1, by), _gathered(below, by))


def _gathered(values, by):
    counts = Counter(values)
    if by == "set":
        return frozenset(counts)
    share = len(values) if by == "proportion" else 1
    return frozenset((value, Fraction(count, max(share, 1))) for value, count in counts.items())


def _partition(labels):
    groups = {}
    for place, label in enumerate(labels):
        groups.setdefault(label, []).append(place)
    return sorted(groups.values())


def test_one_graph_is_a_list_of_one():
    path = np.eye(3, k=1) + np.eye(3, k=-1)
    assert refine(path, [0, 0, 0], 1).nodes.tolist() == [[[0, 0, 0]], [[0, 1, 0]]]


@pytest.mark.parametrize(
    ("adjacency", "words"),
    [
        (np.eye(3), "no loops"),
        (np.eye(3, k=1), "symmetric"),
        (2 * (np.ones((3, 3)) - np.eye(3)), "zeros and ones"),
        (np.zeros((2, 3)), "shape"),
    ],
)
def test_other_graphs_are_refused(adjacency, words):
    for use in (check_adjacency, lambda edges: refine(edges, None, 1)):
        with pytest.raises(UserError, match=words) as caught:
            use(adjacency)
        assert "\n" not in str(caught.value)


def test_other_words_and_shapes_are_refused():
    graph = np.zeros((3, 3))
    with pytest.raises(UserError, match="'multiset'"):
        refine(graph, None, 1, by="bag")
    with pytest.raises(UserError, match="one number a node"):
        refine(graph, [0, 1], 1)
    with pytest.raises(UserError, match="not negative"):
        refine(graph, None, -1)
