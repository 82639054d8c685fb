"""All graphs of a few nodes, one of each class of isomorphism."""

import itertools
from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int
from numpy import ndarray

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.linalg import sequential

LARGEST = {1: 7, 2: 6, 3: 5}
"""Most nodes by number of colours, so that a list takes seconds and not hours."""


class Graphs(NamedTuple):
    """Graphs of equally many nodes, with a colour at every node.

    Attributes:
        adjacency: symmetric, without loops, shape ``(graphs, n, n)``.
        colours: 0, 1, …, shape ``(graphs, n)``.
    """

    adjacency: Bool[ndarray, "graphs n n"]
    colours: Int[ndarray, "graphs n"]


@checked
def small(nodes: int, colours: int = 1) -> Graphs:
    """Return one graph of each class of isomorphism, with every colouring of its nodes, up to isomorphism.

    A graph of n nodes is one of n − 1 nodes and a last node of the largest degree. Of all these the one is kept whose
    edges, read as binary digits, give the largest number over the n! orders of its nodes; with colours, the digits of
    the colours follow those of the edges. Nothing is stored: six nodes take less than a
    tenth of a second, seven about five.

    Args:
        nodes: n, at most 7; at most 6 with two colours and 5 with three.
        colours: how many, at most 3. Not all need occur.

    Raises:
        UserError: for other numbers.

    Source: tests compare with networkx's atlas; counts are those of the Online Encyclopedia of Integer Sequences
    (A000088: 1, 2, 4, 11, 34, 156, 1044; with two colours A000666: 2, 6, 20, 90, 544).

    >>> [len(small(n).adjacency) for n in range(1, 6)], len(small(4, colours=2).adjacency)
    ([1, 2, 4, 11, 34], 90)
    """
    if colours not in LARGEST or not 1 <= nodes <= LARGEST[colours]:
        limits = ", ".join(f"{most} nodes in {number}" for number, most in LARGEST.items())
        raise UserError(
            f"small graphs are listed up to {limits} colours, got {nodes} nodes in {colours} colours; try small(6)"
        )
    plain = _plain(nodes)
    patterns = np.array(list(itertools.product(range(colours), repeat=nodes)))
    codes = [
        _largest_codes(np.broadcast_to(one, (len(patterns), nodes, nodes)), patterns)
        for one in plain
    ]
    chosen = [np.unique(code, return_index=True)[1] for code in codes]
    adjacency = np.concatenate(
        [
            np.broadcast_to(one, (len(pick), nodes, nodes))
            for one, pick in zip(plain, chosen, strict=True)
        ]
    )
    return Graphs(adjacency, np.concatenate([patterns[pick] for pick in chosen]))


@cache
def _plain(nodes: int) -> np.ndarray:
    """Return the adjacency of each graph without colours, shape ``(graphs, n, n)``."""
    if nodes == 1:
        return np.zeros((1, 1, 1), bool)
    below = _plain(nodes - 1)
    neighbours = np.array(list(itertools.product((False, True), repeat=nodes - 1)))
    grown = np.zeros((len(below), len(neighbours), nodes, nodes), bool)
    grown[..., :-1, :-1] = below[:, None]
    grown[..., -1, :-1] = neighbours
    grown[..., :-1, -1] = neighbours
    degrees = grown.sum(-1)
    # the new node has the largest degree, without loss
    grown = grown[degrees[..., -1] == degrees.max(-1)]
    codes = _largest_codes(grown, np.zeros((len(grown), nodes), int))
    # isomorphic if and only if of one largest code
    return grown[np.unique(codes, return_index=True)[1]]


@sequential
def _largest_codes(adjacency: np.ndarray, colours: np.ndarray) -> np.ndarray:
    """Return the largest number that a graph's edges and colours give over all orders of its nodes, ``(graphs,)``."""
    nodes = colours.shape[1]
    rows, columns = np.triu_indices(nodes, 1)
    place = np.zeros((nodes, nodes), int)
    place[rows, columns] = np.arange(len(rows))  # the binary digit of each edge
    place += place.T
    base = 4**nodes  # base 4 holds up to three colours for each node, below the digits of the edges
    digits = adjacency[:, rows, columns].astype(float)
    best = np.full(len(colours), -1.0)
    every = np.array(list(itertools.permutations(range(nodes))))
    for orders in np.split(every, range(720, len(every), 720)):
        # weight of each edge and of each node's colour in the number, by order: (orders, pairs) and (orders, n)
        edges = 2.0 ** place[orders[:, rows], orders[:, columns]]
        paint = 4.0**orders
        numbers = base * (digits @ edges.T) + colours @ paint.T  # below 2^(21 + 14): exact
        best = np.maximum(best, numbers.max(1))
    return best
