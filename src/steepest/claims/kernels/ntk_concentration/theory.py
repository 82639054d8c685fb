"""The Gaussian matrix to which the error of a kernel tends."""

import numpy as np

DRAWS = 400  # of Gaussian matrices


def gaussian_norm(m: int, off: float, on: float) -> float:
    """Return the mean norm of a symmetric Gaussian matrix of m rows.

    Args:
        m: rows.
        off: standard deviation of entries off the diagonal, which are independent but for the symmetry.
        on: that of entries on the diagonal.
    """
    normals = np.random.default_rng(0).standard_normal((DRAWS, m, m))
    upper = off * np.triu(normals, 1)
    diagonal = on * np.einsum("sii,ij->sij", normals, np.eye(m))
    values = np.linalg.eigvalsh(upper + upper.swapaxes(1, 2) + diagonal)
    # operator norm: the larger of the two extreme eigenvalues in size
    return float(np.abs(values[:, [0, -1]]).max(1).mean())
