"""What the marginal kernel of a determinantal process says."""

import numpy as np

from steepest.nn.types import Values


def smoother(kernel: Values, ridge: float) -> Values:
    """Return K(K + λ)⁻¹, which takes targets to ridge regression's outputs, by the eigenvalues of K.

    >>> smoother(np.diag([1.0, 3.0]), 1.0).diagonal().tolist()
    [0.5, 0.75]
    """
    values, vectors = np.linalg.eigh(kernel)
    return (vectors * (values / (values + ridge))) @ vectors.T


def pair_chances(marginal: Values) -> Values:
    """Return M_ii M_jj − M_ij² for each pair, and M_ii on the diagonal."""
    alone = marginal.diagonal()
    chances = np.outer(alone, alone) - marginal**2  # determinant of the block of i and j
    np.fill_diagonal(chances, alone)
    return chances
