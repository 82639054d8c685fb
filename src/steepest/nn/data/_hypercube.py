"""All points of {±1}^n."""

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked

LARGEST = 24  # dimensions of which all points fit into memory: 3 GB


@checked
def hypercube(n: int) -> Float[np.ndarray, "points n"]:
    """Return all 2^n points of {±1}^n: in row i coordinate j is −1 where bit j of i is set.

    Raises:
        UserError: fewer than one dimension, or more than 24.

    >>> hypercube(2).astype(int).tolist()
    [[1, 1], [-1, 1], [1, -1], [-1, -1]]
    """
    if not 1 <= n <= LARGEST:
        raise UserError(
            f"all points of {{±1}}^n are listed for n = 1 to {LARGEST}, got {n}; draw a sample instead"
        )
    bits = np.arange(2**n)[:, None] >> np.arange(n) & 1
    return 1.0 - 2.0 * bits
