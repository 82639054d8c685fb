"""How far arrays lie apart."""

import numpy as np
from jaxtyping import Float


def relative_distance(
    found: Float[np.ndarray, "..."], reference: Float[np.ndarray, "..."], axes: int | tuple[int, int] = -1
) -> Float[np.ndarray, "..."]:
    """``‖found - reference‖ / ‖reference‖`` in ℓ2 along an axis, or in Frobenius' norm along two.

    Args:
        found: vectors or matrices along the axes; leading axes are broadcast.
        reference: what they are compared with.
        axes: -1 for vectors, (-2, -1) for matrices.

    >>> float(relative_distance(np.array([3.0, 5.0]), np.array([3.0, 4.0])))
    0.2
    """
    return np.linalg.norm(found - reference, axis=axes) / np.linalg.norm(reference, axis=axes)
