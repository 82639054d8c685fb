"""The experiment of weisfeiler-lehman: graphs with copies, hard pairs, and which of them representations tell apart."""

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import pdist, squareform

from steepest.graphs import Graphs

SAME = 1e-9
"""Distance below which two representations are the same; rounding is 1e-13, the smallest true distance 1e-4."""
DIRECTIONS = 8
"""Random directions in which representations are compared."""


class Division(NamedTuple):
    """Which graphs networks tell apart."""

    labels: np.ndarray  # equal where two are not told apart, (networks, k, graphs)
    gap: np.ndarray  # largest distance of those together, smallest of those apart, (networks, k, 2)
    unclear: int  # pairs at a distance near SAME


def divide(outputs: np.ndarray) -> Division:
    """Tell graphs apart whose representations, ``(networks, graphs, k, width)``, differ in some random direction."""
    networks, graphs, depth, width = outputs.shape
    directions = np.random.default_rng(0).standard_normal((width, DIRECTIONS)) / width**0.5
    shadows = outputs @ directions
    labels = np.zeros((networks, depth, graphs), int)
    gap = np.zeros((networks, depth, 2))
    unclear = 0
    for network, k in np.ndindex(networks, depth):
        # the largest difference over directions
        distances = pdist(shadows[network, :, k], "chebyshev")
        together = distances < SAME
        unclear += int(((distances > SAME / 100) & (distances < 100 * SAME)).sum())
        gap[network, k] = (
            distances[together].max(initial=0.0),
            distances[~together].min(initial=np.inf),
        )
        matrix = squareform(together)
        np.fill_diagonal(matrix, True)
        # the first of the graphs that are together names them
        labels[network, k] = matrix.argmax(1)
    return Division(labels, gap, unclear)


def count_different(rows: np.ndarray) -> int:
    """Count the rows ``(m, d)`` that differ by more than rounding, projected on one random direction."""
    numbers = np.sort(rows @ np.random.default_rng(0).standard_normal(rows.shape[1]))
    return 1 + int((np.diff(numbers) > SAME).sum())


def indicators(colours: np.ndarray) -> np.ndarray:
    """Return colours as features: 1 in the place of its colour, 0 in the other."""
    return (colours[..., None] == np.arange(2)).astype(float)


def with_copies(graphs: Graphs, rng: np.random.Generator) -> Graphs:
    """Return the graphs, and once more with the nodes of each in another order."""
    orders = rng.permuted(
        np.tile(np.arange(graphs.colours.shape[1]), (len(graphs.colours), 1)), axis=1
    )
    rows = np.arange(len(orders))
    adjacency = graphs.adjacency[rows[:, None, None], orders[:, :, None], orders[:, None, :]]
    colours = graphs.colours[rows[:, None], orders]
    return Graphs(
        np.concatenate([graphs.adjacency, adjacency]), np.concatenate([graphs.colours, colours])
    )


def _ring(nodes: int) -> np.ndarray:
    """Return the adjacency of a ring."""
    step = np.roll(np.eye(nodes), 1, axis=1)
    return np.maximum(step, step.T)


def _joined(*rings: int) -> np.ndarray:
    """Return two rings with a bond between them."""
    nodes = sum(rings)
    graph = np.zeros((nodes, nodes))
    graph[: rings[0], : rings[0]] = _ring(rings[0])
    graph[rings[0] :, rings[0] :] = _ring(rings[1])
    graph[0, rings[0]] = 1
    graph[rings[0], 0] = 1
    return graph


def _torus(steps: list[tuple[int, int]]) -> np.ndarray:
    """Return the graph on the 4 × 4 torus whose nodes are joined at these steps, there and back."""
    graph = np.zeros((16, 16))
    for row, column in np.ndindex(4, 4):
        for down, right in steps:
            neighbour = 4 * ((row + down) % 4) + (column + right) % 4
            graph[4 * row + column, neighbour] = 1
            graph[neighbour, 4 * row + column] = 1
    return graph


def hard_pairs() -> np.ndarray:
    """Return the pairs of graphs, with nodes on their own beside to make them 16: ``(pairs, 2, 16, 16)``."""
    decalin = _ring(10)
    decalin[0, 5] = 1
    decalin[5, 0] = 1
    pairs = (
        (_ring(6), np.kron(np.eye(2), _ring(3))),
        (decalin, _joined(5, 5)),
        (_torus([(0, 1), (0, 2), (1, 0), (2, 0)]), _torus([(0, 1), (1, 0), (1, 1)])),
        (_joined(5, 5), _joined(4, 6)),
    )
    padded = np.zeros((len(pairs), 2, 16, 16))
    for place, pair in enumerate(pairs):
        for side, graph in enumerate(pair):
            padded[place, side, : len(graph), : len(graph)] = graph
    return padded
