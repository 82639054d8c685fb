"""Lists of small graphs: against networkx's atlas, and colourings against a count of orbits."""

import itertools
from math import factorial

import networkx
import numpy as np
import pytest
from networkx.generators.atlas import graph_atlas_g

from steepest.core.errors import UserError
from steepest.graphs import small


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 5, 6])
def test_each_graph_of_the_atlas_is_listed_once(nodes):
    atlas = [graph for graph in graph_atlas_g() if len(graph) == nodes]
    ours = [networkx.from_numpy_array(one.astype(int)) for one in small(nodes).adjacency]
    assert len(ours) == len(atlas)
    # the largest code is one name a class, so that equal hashes need a look
    groups = {}
    for graph in ours:
        groups.setdefault(networkx.weisfeiler_lehman_graph_hash(graph), []).append(graph)
    for graph in atlas:
        candidates = groups[networkx.weisfeiler_lehman_graph_hash(graph)]
        assert sum(networkx.is_isomorphic(graph, other) for other in candidates) == 1


def test_seven_nodes():
    assert len(small(7).adjacency) == 1044


@pytest.mark.parametrize(("nodes", "colours"), [(3, 2), (4, 2), (5, 2), (3, 3)])
def test_colourings_are_counted_by_burnside(nodes, colours):
    """The mean over all orders of the numbers of graphs and colourings that an order keeps."""
    pairs = list(itertools.combinations(range(nodes), 2))
    kept = 0
    for order in itertools.permutations(range(nodes)):
        images = [pairs.index(tuple(sorted((order[i], order[j])))) for i, j in pairs]
        kept += 2 ** _cycles(images) * colours ** _cycles(order)
    listed = small(nodes, colours)
    assert len(listed.colours) == len(listed.adjacency) == kept // factorial(nodes)
    assert set(np.unique(listed.colours)) <= set(range(colours))


def _cycles(images):
    left = set(range(len(images)))
    count = 0
    while left:
        count += 1
        place = left.pop()
        while images[place] in left:
            place = images[place]
            left.remove(place)
    return count


@pytest.mark.parametrize(("nodes", "colours"), [(0, 1), (8, 1), (7, 2), (4, 4)])
def test_too_many_are_refused(nodes, colours):
    with pytest.raises(UserError, match="small graphs are listed up to"):
        small(nodes, colours)
