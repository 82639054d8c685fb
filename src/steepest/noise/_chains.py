"""Markov chains on a line or on finitely many states, exactly: stationary laws, exit times, spectral gaps."""

import numpy as np
from jaxtyping import Float
from scipy import linalg, sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import splu

from steepest.core.errors import UserError
from steepest.nn.types import Values

ROUNDING = 1e-8  # by which a row may miss its sum


def stationary(transitions: Values) -> Float[np.ndarray, " n"]:
    """Return the one stationary law of a chain, ``π P = π``, from a dense or sparse matrix.

    States that the chain leaves for ever have mass zero. Dense matrices are solved as ``π (I − P + E/n) = 1ᵀ/n`` with
    E all ones, sparse ones by a sparse LU factorization without the heaviest state: the error is rounding over the
    spectral gap.

    Args:
        transitions: P, rows from states to states, not negative, each row with sum one; shape ``(n, n)``.

    Raises:
        UserError: a matrix that is not stochastic, or a reducible chain, with several sets of states that it never
            leaves, whose stationary law depends on the start.

    >>> stationary(np.array([[0.9, 0.1], [0.3, 0.7]])).round(3).tolist()  # 1 → 2 at 0.1, 2 → 1 at 0.3
    [0.75, 0.25]
    """
    matrix = _square(transitions)
    rows = np.asarray(matrix.sum(1)).ravel()
    worst = np.abs(rows - 1).max()
    if not worst <= ROUNDING:
        raise UserError(
            f"stationary: expected rows of sum one, got one that is off by {worst:.2g}; divide each row by its sum"
        )
    closed = _closed_class(matrix)
    law = np.zeros(matrix.shape[0])
    if sparse.issparse(matrix):
        rows_of_class: Values = sparse.csr_array(matrix)[closed]
        law[closed] = _sparse_law(rows_of_class[:, closed])
    else:
        law[closed] = _dense_law(matrix[np.ix_(closed, closed)])
    return law


def _square(transitions: Values) -> Values:
    """Return the matrix as it is where sparse, else in NumPy, after a look at its shape and signs."""
    matrix = transitions if sparse.issparse(transitions) else np.asarray(transitions, float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise UserError(f"chain: expected a square matrix of transitions, got shape {matrix.shape}")
    values = matrix.tocoo().data if sparse.issparse(matrix) else matrix
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise UserError(
            "chain: expected chances that are finite and not negative, got others; rows are where it comes from"
        )
    return matrix


def _closed_class(matrix: Values) -> Values:
    """Return the states of the one set that the chain never leaves, in order."""
    graph = sparse.csr_array(matrix)
    graph.eliminate_zeros()
    count, labels = csgraph.connected_components(graph, directed=True, connection="strong")
    rows, columns = graph.nonzero()
    leaves = labels[rows] != labels[columns]
    closed = np.setdiff1d(np.arange(count), labels[rows][leaves])
    if len(closed) > 1:
        raise UserError(
            f"stationary: expected a chain with one stationary law, got a reducible one with {len(closed)} sets of "
            "states that it never leaves; take the rows and columns of one of them"
        )
    return np.flatnonzero(labels == closed[0])


def _dense_law(matrix: Values) -> Values:
    size = len(matrix)
    system = np.eye(size) - matrix + 1 / size
    law = linalg.solve(system.T, np.full(size, 1 / size))
    return np.maximum(law, 0) / np.maximum(law, 0).sum()


def _sparse_law(matrix: Values) -> Values:
    """Fix the mass of one state and solve for the others; twice, the second time with the heaviest state."""
    size = matrix.shape[0]
    law = np.ones(size)
    if size == 1:
        return law
    state = 0
    for _ in range(2):
        others = np.delete(np.arange(size), state)
        system = sparse.csc_array(sparse.eye_array(size - 1) - matrix[others][:, others].T)
        into = matrix[[state]][:, others].toarray().ravel()
        law = np.insert(splu(system).solve(into), state, 1.0)
        law = np.maximum(law, 0) / np.maximum(law, 0).sum()
        state = int(law.argmax())
    return law
