"""Colour refinement: what nodes and graphs can know of themselves after some rounds of messages."""

from collections import Counter
from collections.abc import Hashable, Sequence
from math import gcd
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Int
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from steepest.core.errors import UserError
from steepest.core.signatures import checked

By = Literal["multiset", "proportion", "set"]


class Refinement(NamedTuple):
    """Colours after 0, 1, …, k rounds: equal numbers in one round mean equal colours, in all graphs.

    Attributes:
        nodes: of the nodes, shape ``(k + 1, graphs, n)``.
        graphs: of the graphs, shape ``(k + 1, graphs)``: two are told apart where these differ.
    """

    nodes: Int[ndarray, "rounds graphs n"]
    graphs: Int[ndarray, "rounds graphs"]


@checked
def refine(
    adjacency: ArrayLike, colours: ArrayLike | None, rounds: int, by: By = "multiset"
) -> Refinement:
    """Refine the colours of nodes by those of their neighbours, and colour each graph by those of its nodes.

    ``c_{t+1}(v) = (c_t(v), {c_t(u) : u ~ v})``, where the neighbours' colours are taken as a multiset (the test of
    Weisfeiler and Leman), by their proportions (the multiset divided by its size), or as a set. A graph's colour is
    that of all its nodes, taken in the same way.

    Args:
        adjacency: symmetric, of zeros and ones, no loops, shape ``(n, n)`` or ``(graphs, n, n)``.
        colours: any numbers, equal where the nodes are alike, shape ``(n,)`` or ``(graphs, n)``; None for one colour.
        rounds: k.
        by: ``"multiset"``, ``"proportion"`` or ``"set"``.

    Raises:
        UserError: for a graph with loops or one-way edges, other shapes, or another word.

    Source: Weisfeiler and Leman 1968; Xu, Hu, Leskovec and Jegelka 2019.

    >>> ring = np.roll(np.eye(6), 1, axis=1)
    >>> triangle = np.ones((3, 3)) - np.eye(3)
    >>> two_triangles = np.kron(np.eye(2), triangle)
    >>> path = np.eye(6, k=1)
    >>> graphs = np.stack([ring + ring.T, two_triangles, path + path.T])
    >>> refine(graphs, None, 2).graphs.tolist()
    [[0, 0, 0], [0, 0, 1], [0, 0, 1]]
    """
    if by not in ("multiset", "proportion", "set"):
        raise UserError(f"colours are refined by 'multiset', 'proportion' or 'set', got {by!r}")
    if rounds < 0:
        raise UserError(f"refine needs a number of rounds that is not negative, got {rounds}")
    edges = check_adjacency(adjacency)
    edges = edges[None] if edges.ndim == 2 else edges
    start = np.zeros(edges.shape[:2], int) if colours is None else np.asarray(colours)
    start = start[None] if start.ndim == 1 else start
    if start.shape != edges.shape[:2]:
        raise UserError(
            f"colours must have one number a node, shape {edges.shape[:2]}, got {start.shape}"
        )
    neighbours = [[np.flatnonzero(row) for row in graph] for graph in edges]
    nodes = [_numbered(start.ravel().tolist()).reshape(start.shape)]
    for _ in range(rounds):
        signatures = [
            (own, _taken(colours[beside], by))
            for colours, lists in zip(nodes[-1], neighbours, strict=True)
            for own, beside in zip(colours, lists, strict=True)
        ]
        nodes.append(_numbered(signatures).reshape(start.shape))
    graphs = [_numbered([_taken(colours, by) for colours in round]) for round in nodes]
    return Refinement(np.stack(nodes), np.stack(graphs))


@checked
def check_adjacency(adjacency: ArrayLike) -> Bool[ndarray, "... n n"]:
    """Return the adjacency of graphs as truth values, shape ``(..., n, n)``.

    Raises:
        UserError: for a graph with loops or one-way edges, weights other than 0 and 1, or another shape.
    """
    edges = np.asarray(adjacency)
    if edges.ndim < 2 or edges.shape[-1] != edges.shape[-2] or 0 in edges.shape:
        raise UserError(f"an adjacency matrix has shape (n, n), got {edges.shape}")
    if not ((edges == 0) | (edges == 1)).all():
        raise UserError(
            "an adjacency matrix is of zeros and ones, got other numbers; weights are not supported"
        )
    if (edges != edges.swapaxes(-1, -2)).any():
        raise UserError(
            "an adjacency matrix must be symmetric; add its transpose for edges both ways"
        )
    if np.diagonal(edges, axis1=-2, axis2=-1).any():
        raise UserError(
            "a graph must have no loops; set the diagonal of its adjacency matrix to zero"
        )
    return edges.astype(bool)


def _taken(colours: NDArray, by: By) -> Hashable:
    """Return what is seen of some colours: which there are, and for all but sets how often each."""
    counts = Counter(sorted(colours.tolist()))  # sorted, so that equal multisets have equal tuples
    if by == "set":
        return tuple(counts)
    # counts over their common divisor: equal if and only if in proportion
    common = gcd(*counts.values()) if by == "proportion" else 1
    return tuple((colour, number // common) for colour, number in counts.items())


def _numbered(signatures: Sequence[Hashable]) -> NDArray:
    """Number the different signatures from zero, in the order in which they come."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(signature, len(numbers)) for signature in signatures])
