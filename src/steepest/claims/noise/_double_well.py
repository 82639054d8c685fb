"""The double well that claims on Langevin dynamics share, and how far their grids go."""

from typing import Any

import numpy as np

DEPTH = 36.0  # βf over its minimum where grids end: exp(−36) = 2e-16


def well(x: Any) -> Any:
    """Return the double well ``(x² − 1)²/4``."""
    return (x**2 - 1) ** 2 / 4


def reach(beta: float) -> float:
    """Return where grids end: βf = 36 in the double well."""
    return float(np.sqrt(1 + np.sqrt(4 * DEPTH / beta)))
