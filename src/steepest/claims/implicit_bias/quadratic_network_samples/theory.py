"""From how many labels the positive matrix of least trace is the teacher's: by a convex program, no network."""

from typing import Any

import numpy as np

LEVEL = 0.3  # relative error from which a teacher counts as learned
ITERATIONS = 300
THRESHOLD = 0.3  # of eigenvalues; any number gives the same minimum


def least_trace(
    products: np.ndarray, labels: np.ndarray, iterations: int = ITERATIONS
) -> np.ndarray:
    """Minimize tr M over M ⪰ 0 with ⟨x_ixᵢᵀ, M⟩ = y_i, by Douglas and Rachford's splitting.

    Args:
        products: the x xᵀ as rows, ``(n, d²)``.
        labels: y, ``(n,)``.
        iterations: of the splitting; the default is enough to tell whether a teacher is learned.

    Returns:
        M, ``(d, d)``.
    """
    size = round(products.shape[1] ** 0.5)
    inverse = np.linalg.pinv(products)
    point = np.zeros((size, size))
    positive = point
    for _ in range(iterations):
        # proximal map of tr M on M ⪰ 0: eigenvalues fall by the threshold, and are cut at zero
        eigenvalues, vectors = np.linalg.eigh(point - THRESHOLD * np.eye(size))
        positive = (vectors * np.maximum(eigenvalues, 0)) @ vectors.T
        reflected = 2 * positive - point
        missing = labels - products @ reflected.ravel()
        # z + P(2p − z) − p, with P the projection on the equations ⟨xxᵀ, M⟩ = y
        point = point + reflected - positive + (inverse @ missing).reshape(size, size)
    return positive


def needed(inputs: np.ndarray, teacher: np.ndarray) -> int:
    """Return the fewest of the first inputs whose labels give the teacher back, by bisection.

    Args:
        inputs: ``(N, d)``.
        teacher: the matrix A of labels xᵀAx, ``(d, d)``.
    """
    products = np.einsum("ni,nj->nij", inputs, inputs).reshape(len(inputs), -1)
    labels = products @ teacher.ravel()
    few = 1
    many = len(inputs)
    while many - few > 1:
        middle = (few + many) // 2
        error = np.linalg.norm(least_trace(products[:middle], labels[:middle]) - teacher)
        learned = error < LEVEL * np.linalg.norm(teacher)
        few, many = (few, middle) if learned else (middle, many)
    return many


def all_numbers(dimension: int) -> int:
    """Return how many numbers a symmetric matrix has.

    >>> all_numbers(3)
    6
    """
    return dimension * (dimension + 1) // 2


def numbers_of_rank(rank: Any, dimension: int) -> Any:
    """Return how many numbers a symmetric matrix has whose rank is no larger, elementwise over ranks.

    >>> numbers_of_rank(np.array([1, 2, 3, 5]), 3)
    array([3, 5, 6, 6])
    """
    rank = np.minimum(rank, dimension)
    # rd − r(r + 1)/2 numbers of a frame of r orthonormal vectors, and r eigenvalues
    return rank * dimension - rank * (rank - 1) // 2
