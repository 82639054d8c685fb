"""When the known entries of a matrix of rank one determine it, and how many do."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree


def entries_that_determine(place: NDArray) -> int:
    """Return from how many known entries on a matrix uuᵀ without zeros is determined.

    Known entries are the edges of a graph between rows and columns, and the matrix is determined just when that graph
    is connected: then uᵢuⱼ is a product of known entries and their inverses along a path, and else the entries between
    two parts could all be multiplied by a number. The edge that connects it last is the latest of the spanning tree
    whose edges come earliest.

    Args:
        place: of each entry in the order in which they become known, from zero, symmetric, ``(n, n)``.

    >>> entries_that_determine(np.array([[0, 2], [2, 1]])), entries_that_determine(np.array([[0, 1], [1, 2]]))
    (3, 2)
    """
    n = len(place)
    rows, columns = np.divmod(np.arange(n * n), n)
    # from one on, as a sparse array takes a weight of zero for no edge
    edges = csr_array((place.ravel() + 1.0, (rows, n + columns)), shape=(2 * n, 2 * n))
    return int(minimum_spanning_tree(edges).max())


def expected_entries(size: ArrayLike) -> Any:
    r"""Return :math:`\tfrac12n(\log n+\gamma)`, the mean number of random entries that connect n rows, for large n.

    Rows without a neighbour go last. Among :math:`\tfrac12n(\log n+x)` entries there are as good as independently
    :math:`e^{-x}` of them, so that all are connected with the chance :math:`\exp(-e^{-x})`: Gumbel's law, of mean γ.
    """
    return np.asarray(size) / 2 * (np.log(size) + np.euler_gamma)


def chance_connected(entries: ArrayLike, size: ArrayLike) -> Any:
    """Return how often so many random entries connect n rows, for large n: Gumbel's law of 2m/n − log n."""
    return np.exp(-np.exp(np.log(size) - 2 * np.asarray(entries) / size))
