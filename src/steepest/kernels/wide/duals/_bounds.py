"""What each way to expectations says of single positions and of its errors."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Singles(NamedTuple):
    """What certificates and diagonals need at each position, arrays of one shape.

    Attributes:
        value: E σ².
        slope: E σ'².
        curvature: E σ''², the Lipschitz constant of ``E σ'σ'``, without what corners bring.
        mean: E σ.
    """

    value: NDArray[np.float64]
    slope: NDArray[np.float64]
    curvature: NDArray[np.float64]
    mean: NDArray[np.float64]


class Bends(NamedTuple):
    """How expectations change where a variance does, by ``½ E σ''(u)σ(v)`` and ``½ E σ‴(u)σ'(v)`` times that.

    Attributes:
        value: S with ``E σ''(u)σ(v) ≤ √(S E σ(v)²)``: E σ''² of a smooth σ.
        slope: the same of ``E σ'σ'``, E σ‴²; None where that is only sure to a corner's root.
    """

    value: NDArray[np.float64]
    slope: NDArray[np.float64] | None


class Tolerances(NamedTuple):
    """Errors of one dual activation.

    Attributes:
        value: of ``E σσ``, in units of ``√(E σ(u)² E σ(v)²)``.
        slope: of ``E σ'σ'``, in units of ``√(E σ'(u)² E σ'(v)²)``.
        corner: b where ``E σ'σ'`` of a σ with corners is only sure to ``b √|Δρ|``, ρ the correlation; else 0.
        jump: the same of ``E σσ`` for a σ that jumps.
    """

    value: float
    slope: float
    corner: float = 0.0
    jump: float = 0.0
