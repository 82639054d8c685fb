"""Relative distances between arrays."""

import numpy as np
from jaxtyping import Float


def relative_distance(
    value: Float[np.ndarray, "..."],
    reference: Float[np.ndarray, "..."],
    axes: int | tuple[int, int] = -1,
) -> Float[np.ndarray, "..."]:
    """Return ``‖value - reference‖ / ‖reference‖`` in ℓ2 along an axis, or in Frobenius' norm along two.

    Args:
        value: vectors or matrices along the axes; leading axes are broadcast.
        reference: what they are compared with.
        axes: -1 for vectors, (-2, -1) for matrices.

    >>> float(relative_distance(np.array([3.0, 5.0]), np.array([3.0, 4.0])))
    0.2
    """
    return np.linalg.norm(value - reference, axis=axes) / np.linalg.norm(reference, axis=axes)
