"""Where weight decay has brought a diagonal network at a time, by a convex program.

Gradient flow on the squared loss of β = θ₊² − θ₋² with decay λ, started at α, has θ± = α e^(−λt ± u/2) with u = Xᵀν
for some ν. So β = 2s sinh u with s = (α e^(−λt))², and once the data are fitted β is the interpolant of least
hypentropy at the scale s: a start of size α e^(−λt) without decay would have chosen it. The fit lags behind by a
residual of order λ, as ν has to move on: Xβ − y = −(n/4) dν/dt.
"""

import numpy as np
from scipy.optimize import brentq

from steepest.nn.types import Values
from steepest.programs import hypentropy_interpolation


def scale(alpha: float, decay: float, time: float) -> float:
    """Return s, the square of the size of the start that decay leaves.

    >>> float(scale(2.0, 0.1, 0.0))
    4.0
    """
    return (alpha * np.exp(-decay * time)) ** 2


def interpolant(x: Values, y: Values, size: float) -> Values:
    """Return the interpolant of least hypentropy at a scale s, ``(d,)``: the limit of slow decay."""
    return hypentropy_interpolation(x, y, size).beta


def residual(x: Values, y: Values, beta: Values, size: float, decay: float) -> Values:
    """Return Xβ − y to first order in λ, ``(n,)``.

    As y = X 2s sinh(Xᵀν) holds along the path, dν/d log s = −(X D Xᵀ)⁻¹y with D = 2s cosh u = √(β² + 4s²), and
    d log s/dt = −2λ.
    """
    # D = 2s cosh u where β = 2s sinh u
    weights = np.sqrt(beta**2 + 4 * size**2)
    moved = np.linalg.solve((x * weights) @ x.T, y)
    # −(n/4) dν/dt with dν/dt = 2λ(X D Xᵀ)⁻¹y
    return -len(y) * decay / 2 * moved


def weights_at(x: Values, y: Values, size: float, decay: float) -> Values:
    """Return β where decay has brought the scale to s, to first order in λ, ``(d,)``."""
    limit = interpolant(x, y, size)
    return interpolant(x, y + residual(x, y, limit, size, decay), size)


def error_at(x: Values, y: Values, truth: Values, size: float, decay: float) -> float:
    """Return ‖β − β*‖² there."""
    return float(((weights_at(x, y, size, decay) - truth) ** 2).sum())


def moment_of_half(
    x: Values, y: Values, truth: Values, decay: float, plateau: float, last: float
) -> float:
    """Return c, the λt − log α at which the error falls to a half of the plateau."""

    def excess(moment: float) -> float:
        # s = (α e^(−λt))² = e^(−2c)
        return error_at(x, y, truth, np.exp(-2 * moment), decay) / plateau - 0.5

    return float(np.asarray(brentq(excess, -1.0, last, xtol=1e-4)))
