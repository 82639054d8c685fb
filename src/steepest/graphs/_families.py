"""Single graphs that experiments use, by name, as adjacency matrices."""

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from steepest.core.errors import UserError
from steepest.core.signatures import checked

# Friendships after Zachary 1977, figure 1: of each member those with a larger number.
_FRIENDS = {
    1: (2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 18, 20, 22, 32),
    2: (3, 4, 8, 14, 18, 20, 22, 31),
    3: (4, 8, 9, 10, 14, 28, 29, 33),
    4: (8, 13, 14),
    5: (7, 11),
    6: (7, 11, 17),
    7: (17,),
    9: (31, 33, 34),
    10: (34,),
    14: (34,),
    15: (33, 34),
    16: (33, 34),
    19: (33, 34),
    20: (34,),
    21: (33, 34),
    23: (33, 34),
    24: (26, 28, 30, 33, 34),
    25: (26, 28, 32),
    26: (32,),
    27: (30, 34),
    28: (34,),
    29: (32, 34),
    30: (33, 34),
    31: (33, 34),
    32: (33, 34),
    33: (34,),
}


def karate_club() -> Bool[ndarray, "34 34"]:
    """Return the friendships in a karate club: 34 members, 78 edges.

    Source: Zachary 1977, "An information flow model for conflict and fission in small groups".

    >>> club = karate_club()
    >>> club.shape, int(club.sum()) // 2, int(club[0].sum())
    ((34, 34), 78, 16)
    """
    graph = np.zeros((34, 34), bool)
    for member, friends in _FRIENDS.items():
        for friend in friends:
            graph[member - 1, friend - 1] = True
    return graph | graph.T


@checked
def ring(nodes: int) -> Bool[ndarray, "n n"]:
    """Return the ring of n nodes.

    Raises:
        UserError: for fewer than three nodes.

    >>> ring(5).sum(0).tolist()
    [2, 2, 2, 2, 2]
    """
    if nodes < 3:
        raise UserError(f"a ring needs at least 3 nodes, got {nodes}")
    step = np.roll(np.eye(nodes, dtype=bool), 1, axis=1)
    return step | step.T


@checked
def random_regular(nodes: int, degree: int, rng: np.random.Generator) -> Bool[ndarray, "n n"]:
    """Draw a connected graph in which every node has the same number of neighbours, each of them equally likely.

    Ends of edges are paired at random until no pair is a loop or comes twice and the graph is connected (the
    configuration model), which takes about exp((degree² − 1)/4) tries.

    Args:
        nodes: n.
        degree: from 3 to 5, less than n.
        rng: NumPy's generator.

    Raises:
        UserError: for another degree, or an odd number of ends.

    >>> random_regular(10, 3, np.random.default_rng(0)).sum(0).tolist()
    [3, 3, 3, 3, 3, 3, 3, 3, 3, 3]
    """
    if not 3 <= degree <= 5 or degree >= nodes or nodes * degree % 2:
        raise UserError(
            "a random regular graph needs a degree from 3 to 5 that is less than the number of nodes, and an even "
            f"number of ends, got {nodes} nodes of degree {degree}; try 34 of degree 4"
        )
    ends = np.repeat(np.arange(nodes), degree)
    while True:
        pairs = rng.permutation(ends).reshape(-1, 2)  # a uniformly random pairing of all ends
        graph = np.zeros((nodes, nodes), bool)
        graph[pairs[:, 0], pairs[:, 1]] = True
        graph |= graph.T
        if (graph.sum(0) == degree).all() and not graph.diagonal().any() and connected(graph):
            return graph


@checked
def nearest_neighbours(x: Float[ndarray, "n d"], neighbours: int) -> Bool[ndarray, "n n"]:
    """Join points that are among each other's nearest, in one direction at least.

    Args:
        x: points, one a row.
        neighbours: how many nearest ones each point is joined to, less than n.

    Raises:
        UserError: for too many neighbours, or none.

    >>> nearest_neighbours(np.array([[0.0], [1.0], [3.0]]), 1).astype(int).tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    """
    x = np.asarray(x, float)
    if x.ndim != 2 or not 1 <= neighbours < len(x):
        raise UserError(
            f"nearest_neighbours needs points of shape (n, d) and from 1 to n − 1 neighbours, got shape {x.shape} and "
            f"{neighbours} neighbours"
        )
    squares = (x**2).sum(1)
    distances = squares[:, None] + squares - 2 * x @ x.T  # ‖x − y‖² = ‖x‖² + ‖y‖² − 2⟨x, y⟩
    np.fill_diagonal(distances, np.inf)
    near = np.argsort(distances, axis=1, kind="stable")[:, :neighbours]
    graph = np.zeros(distances.shape, bool)
    np.put_along_axis(graph, near, True, axis=1)
    return graph | graph.T


@checked
def connected(graph: Bool[ndarray, "n n"]) -> bool:
    """Return whether every node can be reached from the first."""
    reached = np.arange(len(graph)) == 0
    while True:
        further = reached | graph[reached].any(0)
        if (further == reached).all():
            return bool(reached.all())
        reached = further
