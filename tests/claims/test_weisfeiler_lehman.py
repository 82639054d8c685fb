"""Message passing and refinement: counts by a second way, pairs that no test tells apart, fields that are refused."""

import itertools
from fractions import Fraction

import jax
import networkx
import numpy as np
import pytest

from steepest.claims.expressivity.weisfeiler_lehman.claim import (
    COLOURED,
    PLAIN,
    SEES,
    WeisfeilerLehman,
    _first_alike,
    _proportions,
    _subsets,
)
from steepest.claims.expressivity.weisfeiler_lehman.experiment import (
    SAME,
    divide,
    hard_pairs,
    with_copies,
)
from steepest.core.errors import UserError
from steepest.core.words import Verdict
from steepest.engine.run import execute, ready
from steepest.graphs import refine, small


def test_hard_pairs_are_not_isomorphic_and_alike_to_refinement():
    *hard, rings = hard_pairs()
    for first, second in hard:
        graphs = [networkx.from_numpy_array(one) for one in (first, second)]
        assert not networkx.is_isomorphic(*graphs)
        assert len(set(refine(np.stack([first, second]), None, 16).graphs[-1])) == 1
    assert sorted(rings[0].sum(0)) == sorted(rings[1].sum(0))
    assert refine(rings, None, 4).graphs[-1].tolist() == [0, 1]
    together = [len(set(labels)) == 1 for labels in refine(rings, None, 3).graphs]
    assert together == [True, True, True, False]  # three layers tell them apart
    # by name: a square lattice on a torus with rows and columns complete, and one more of degree six
    for one in hard[2]:
        assert networkx.is_strongly_regular(networkx.from_numpy_array(one))
    assert networkx.is_isomorphic(
        networkx.from_numpy_array(hard[2][0]),
        networkx.line_graph(networkx.complete_bipartite_graph(4, 4)),
    )


@pytest.mark.parametrize(("types", "largest"), [(3, 2), (4, 5), (6, 4)])
def test_counts_of_multisets_by_listing_them(types, largest):
    sets = set()
    shares = set()
    for size in range(largest + 1):
        for multiset in itertools.combinations_with_replacement(range(types), size):
            sets.add(frozenset(multiset))
            shares.add(frozenset((one, Fraction(multiset.count(one), size)) for one in multiset))
    assert _subsets(types, largest) == len(sets)
    assert _proportions(types, largest) == len(shares)


def test_equal_first_places_are_equal_partitions():
    assert _first_alike(np.array([5, 0, 0, 1])).tolist() == [0, 1, 1, 3]
    assert _first_alike(np.array([0, 9, 9, 2])).tolist() == [0, 1, 1, 3]
    assert _first_alike(np.array([0, 0, 0, 1])).tolist() == [0, 0, 0, 3]


def test_numbers_of_graphs_are_those_of_the_lists():
    assert all(len(small(nodes).colours) == PLAIN[nodes] for nodes in (5, 6))
    assert all(len(small(nodes, 2).colours) == count for nodes, count in COLOURED.items())


def test_labels_are_those_of_equal_rows():
    outputs = np.random.default_rng(0).standard_normal((1, 4, 1, 6))
    outputs[0, 3] = outputs[0, 1] + SAME / 1e4
    division = divide(outputs)
    assert division.labels.tolist() == [[[0, 1, 2, 1]]]
    assert division.unclear == 0
    outputs[0, 3] = outputs[0, 1] + SAME
    assert divide(outputs).unclear == 1


def test_copies_are_isomorphic():
    graphs = small(5, colours=2)
    both = with_copies(graphs, np.random.default_rng(0))
    classes = refine(both.adjacency, both.colours, 5).graphs[-1].reshape(2, -1)
    np.testing.assert_array_equal(*classes)  # at five nodes refinement tells all graphs apart
    assert (both.adjacency[: len(graphs.adjacency)] == graphs.adjacency).all()


def test_the_prediction_of_six_nodes():
    claim = WeisfeilerLehman()
    law = claim.predict(claim.setting(jax.random.key(0)))
    plain, coloured = (law["classes"][:, place].tolist() for place in range(2))
    assert plain[0] == [102, 152, 152, 152]
    assert plain[1][-1] == 6
    assert coloured[2] == [76, 170, 210, 210]
    # counted again, as the graphs that are the first of their class
    first = law["alike"] == np.arange(sum(claim.counts))
    assert first[..., : claim.counts[0]].sum(-1).tolist() == plain
    assert first[..., claim.counts[0] :].sum(-1).tolist() == coloured
    assert law["apart"].tolist() == [[0, 0, 0, depth >= 3] for depth in (1, 2, 3, 4)]


@pytest.mark.parametrize("nodes", COLOURED)
@pytest.mark.parametrize("depth", [2, 5])
def test_means_see_fewer_classes_than_sums_and_maxima_fewer_than_means(nodes, depth):
    """The differences that are judged are never zero."""
    graphs = small(nodes, colours=2)
    classes = [
        len(set(refine(graphs.adjacency, graphs.colours, depth, by).graphs[-1]))
        for by in SEES.values()
    ]
    assert classes[0] > classes[1] > classes[2]


@pytest.mark.parametrize("fields", [{"node_ids": True}, {"width": 64}])
def test_out_of_range(fields):
    small_run = {"nodes": 5, "coloured_nodes": 3, "depth": 2, "networks": 3, "largest": 2}
    assert (
        execute(ready("weisfeiler-lehman", changes={**small_run, **fields})).verdict
        is Verdict.OUT_OF_RANGE
    )


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"nodes": 8}, "at most 7"),
        ({"coloured_nodes": 6}, "at most 5"),
        ({"coloured_nodes": 2}, "at least 3"),  # there means and maxima see as many classes
        ({"nodes": 4}, "at least 5"),
        ({"networks": 2}, "at least 3"),
    ],
)
def test_refused(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        ready("weisfeiler-lehman", changes=fields)
