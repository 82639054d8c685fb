"""Angles between vectors, without cancellation."""

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError


def rotation(
    vectors: Float[np.ndarray, "... d"], start: Float[np.ndarray, "... d"]
) -> Float[np.ndarray, "..."]:
    """Return the angle from one vector to another in radians, by ``2 atan2(‖u − u₀‖, ‖u + u₀‖)`` of unit vectors.

    Small angles and angles near π keep their relative accuracy, which an arc cosine loses below 10⁻⁸. The angle of a
    zero vector is NaN.

    Args:
        vectors: shape ``(…, d)``, such as the input weights of neurons.
        start: shape ``(…, d)``; leading axes are broadcast.

    Raises:
        UserError: vectors of different lengths.

    Source: Kahan, How futile are mindless assessments of roundoff, section 12.

    >>> float(rotation(np.array([1.0, 1e-12]), np.array([2.0, 0.0])))
    1e-12
    >>> float(np.arccos(1 / np.sqrt(1 + 1e-24)))
    0.0
    """
    vectors = np.asarray(vectors, float)
    start = np.asarray(start, float)
    if vectors.shape[-1:] != start.shape[-1:] or vectors.ndim == 0:
        raise UserError(
            f"rotation: expected vectors of one length, got shapes {vectors.shape} and {start.shape}"
        )
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
        first = start / np.linalg.norm(start, axis=-1, keepdims=True)
    apart = np.linalg.norm(unit - first, axis=-1)
    together = np.linalg.norm(unit + first, axis=-1)
    return 2 * np.arctan2(apart, together)
