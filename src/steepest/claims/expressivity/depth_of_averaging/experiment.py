"""Noisy classes of nodes, averaged over neighbours, and read."""

from typing import Literal

import numpy as np
from scipy import sparse

from steepest.nn.types import Values

Noise = Literal["normal", "cauchy"]


def two_blocks(
    nodes: int, degree: float, across: float, rng: np.random.Generator
) -> tuple[Values, Values]:
    """Draw a graph of two blocks, each edge independently, and its classes ±1.

    Args:
        nodes: n, half of them in each block.
        degree: mean number of neighbours.
        across: share of edges that join the blocks.
        rng: NumPy's generator.

    Returns:
        Adjacency ``(n, n)`` and classes ``(n,)``.
    """
    classes = np.repeat([1.0, -1.0], nodes // 2)
    alike = np.equal.outer(classes, classes)
    # n/2 nodes of either block: (n/2)(2 degree/n) = degree neighbours, the share across among them
    chance = 2 * degree / nodes * np.where(alike, 1 - across, across)
    edges = np.triu(rng.random((nodes, nodes)) < chance, 1)
    return edges | edges.T, classes


def ring_of_arcs(nodes: int) -> tuple[Values, Values]:
    """Return a ring on which each node has the two nearest on either side, and each half is a class."""
    distance = np.abs(np.subtract.outer(np.arange(nodes), np.arange(nodes)))
    distance = np.minimum(distance, nodes - distance)
    return (distance == 1) | (distance == 2), np.repeat([1.0, -1.0], nodes // 2)


def averaged(graph: Values, x: Values, rounds: int) -> Values:
    """Return x after 0, 1, …, rounds averages over each node and its neighbours, ``(rounds + 1, n, draws)``."""
    neighbours = sparse.csr_array(graph.astype(float))
    size = 1 + np.asarray(neighbours.sum(1))[:, None]
    after = [x]
    for _ in range(rounds):
        after.append((after[-1] + neighbours @ after[-1]) / size)
    return np.stack(after)


def features(
    classes: Values, strength: float, draws: int, noise: Noise, rng: np.random.Generator
) -> Values:
    """Draw one noisy reading of the class of each node, ``(n, draws)``."""
    shape = (len(classes), draws)
    noises = rng.standard_normal(shape) if noise == "normal" else rng.standard_cauchy(shape)
    return strength * classes[:, None] + noises


def read(
    graph: Values,
    classes: Values,
    strength: float,
    rounds: int,
    *,
    groups: int,
    draws: int,
    noise: Noise,
    rng: np.random.Generator,
) -> tuple[Values, Values]:
    """Return how many nodes are told, after each number of rounds and with all of them, by group of draws.

    All rounds together are weighed alike at every node, by least squares on as many draws as there are in ten groups.

    Returns:
        Shares of nodes, ``(groups, rounds + 1)`` and ``(groups,)``.
    """
    x = averaged(graph, features(classes, strength, 10 * draws, noise, rng), rounds)
    columns = x.reshape(rounds + 1, -1).T
    # columns of one size, as late averages are small
    size = np.sqrt((columns**2).mean(0))
    targets = np.repeat(classes, 10 * draws)
    weights = np.linalg.lstsq(columns / size, targets)[0] / size
    single = np.empty((groups, rounds + 1))
    together = np.empty(groups)
    for group in range(groups):
        x = averaged(graph, features(classes, strength, draws, noise, rng), rounds)
        single[group] = (x * classes[:, None] > 0).mean((1, 2))
        together[group] = (np.tensordot(weights, x, 1) * classes[:, None] > 0).mean()
    return single, together
