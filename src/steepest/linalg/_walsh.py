"""Correlations with all parities at once."""

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked


@checked
def parity_spectrum(values: Float[np.ndarray, "points *k"]) -> Float[np.ndarray, "points *k"]:
    """Compute the correlations E f χ_S of a function on {±1}^n with every parity, by the fast Walsh–Hadamard transform.

    The mean is over all 2^n points with equal weights. By Parseval Σ_S (E f χ_S)² = E f².

    Args:
        values: f at all 2^n points, in the order of ``nn.data.hypercube``: bit j of the row number is set where
            x_j = −1. Further axes are further functions.

    Returns:
        The same shape; row S, as a number whose bit j says whether x_j is in S.

    Raises:
        UserError: a number of rows that is no power of two.

    >>> parity_spectrum(np.array([1.0, -1.0, -1.0, 1.0])).tolist()  # x_0 x_1
    [0.0, 0.0, 0.0, 1.0]
    """
    points = len(values)
    if points == 0 or points & (points - 1):
        raise UserError(
            f"a function on all of {{±1}}^n has 2^n values, got {points}; give one row for every point"
        )
    spectrum = np.array(values, float)
    half = 1
    while half < points:
        # axis 1 is bit j of the row: x_j = 1, then x_j = −1; half = 2^j
        pairs = spectrum.reshape(-1, 2, half, *spectrum.shape[1:])
        total = pairs[:, 0] + pairs[:, 1]  # j outside S
        difference = pairs[:, 0] - pairs[:, 1]  # j in S: χ_S changes its sign with x_j
        spectrum = np.stack([total, difference], axis=1).reshape(spectrum.shape)
        half *= 2
    return spectrum / points
