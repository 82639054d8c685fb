"""Outliers of a spectrum, and the overlap of two subspaces."""

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError

FLOOR = (
    1e-3  # relative to the largest eigenvalue: what is smaller belongs to the bulk wherever it lies
)


def outlier_count(values: Float[np.ndarray, " k"], most: int, floor: float = FLOOR) -> int:
    """Count the eigenvalues above the widest gap, at most ``most``.

    The gap after the k-th eigenvalue is the ratio ``λ_k / max(λ_{k+1}, floor λ_1)``; the count is the k from 1 to
    ``most`` at which it is largest. So at least one eigenvalue always counts.

    Args:
        values: the largest eigenvalues, more than ``most`` of them.
        most: where the search for the gap ends.
        floor: relative to λ_1; eigenvalues below it, or negative, are as large as it.

    Raises:
        UserError: fewer eigenvalues than the search needs.

    >>> outlier_count(np.array([9.0, 8.0, 7.0, 0.5, 0.3, 0.1]), most=5)
    3
    """
    spectrum = np.sort(np.asarray(values, float))[::-1]
    if not 1 <= most < len(spectrum):
        raise UserError(
            f"a gap after at most {most} eigenvalues needs {most + 1} of them, got {len(spectrum)}"
        )
    level = np.maximum(spectrum[: most + 1], floor * spectrum[0])
    return int(np.argmax(level[:-1] / level[1:])) + 1


def subspace_overlap(one: Float[np.ndarray, "j p"], other: Float[np.ndarray, "k p"]) -> float:
    """Return the mean squared cosine of the smaller of two subspaces with the larger: about max(j, k)/p at random.

    Args:
        one: spans the first subspace by its rows, which need not be orthogonal.
        other: the second.

    >>> subspace_overlap(np.eye(4)[:2], np.eye(4)[1:3])
    0.5
    """
    a, b = (orthonormal(rows) for rows in (one, other))
    return float((((a @ b.T) ** 2).sum()) / min(len(a), len(b)))


def orthonormal(rows: Float[np.ndarray, "k p"], cut: float = 1e-8) -> Float[np.ndarray, "r p"]:
    """Return an orthonormal basis of the rows' span; directions shorter than ``cut`` times the longest are left out.

    >>> orthonormal(np.array([[2.0, 0.0], [1.0, 0.0]])).shape
    (1, 2)
    """
    basis, triangle = np.linalg.qr(np.asarray(rows, float).T)  # few rows of great length
    _, lengths, directions = np.linalg.svd(triangle.T, full_matrices=False)
    return directions[lengths > cut * lengths[0]] @ basis.T
