"""What weight decay on L linear layers makes of one singular value s: least of ``½(s − z)² + ½λL z^{2/L}`` over z ≥ 0.

A product of singular value z costs Σ‖W_i‖² = L z^{2/L} at least, with the same singular value in every layer. A
stationary z > 0 has s = z + λ z^{2/L−1}; for L > 2 the right side is least, :func:`turning`, at z^{2−2/L} = λ(L − 2)/L.
The value of such a z equals ½s², that of zero, at z^{2−2/L} = λ(L − 2): there s is :func:`threshold` and z is
:func:`landing`.
"""

from typing import Any

from scipy.optimize import brentq


def cost(z: float, s: float, decay: float, layers: int) -> float:
    """Return ``½(s − z)² + ½λL z^{2/L}``."""
    return 0.5 * (s - z) ** 2 + 0.5 * decay * layers * z ** (2 / layers)


def landing(decay: float, layers: int) -> float:
    """Return the singular value of the product where zero ceases to be the best one; zero for two layers."""
    return (decay * (layers - 2)) ** _power(layers) if layers > 2 else 0.0


def threshold(decay: float, layers: int) -> float:
    """Return the singular value of the target up to which zero is the best one, ``landing (L − 1)/(L − 2)``.

    >>> threshold(0.25, 2), round(threshold(0.25, 3), 4), round(landing(0.25, 3), 4)
    (0.25, 0.7071, 0.3536)
    """
    if layers <= 2:
        return decay if layers == 2 else 0.0
    # there λz^(2/L − 2) = 1/(L − 2), so that s = z(1 + 1/(L − 2))
    return landing(decay, layers) * (layers - 1) / (layers - 2)


def turning(decay: float, layers: int) -> tuple[float, float]:
    """Return the singular value of the target from which on a minimum with z > 0 exists, and where it appears."""
    if layers == 2:
        return decay, 0.0
    z = (decay * (layers - 2) / layers) ** _power(layers)
    # there λz^(2/L − 2) = L/(L − 2), so that s = z(1 + L/(L − 2))
    return z * (2 * layers - 2) / (layers - 2), z


def kept(s: float, decay: float, layers: int) -> float:
    """Return the minimum with z > 0, zero where there is none.

    >>> kept(1.0, 0.25, 2)
    0.75
    """
    if layers == 1:
        # ½(s − z)² + ½λz² is ridge regression
        return s / (1 + decay)
    if layers == 2:
        # ½(s − z)² + λz is soft thresholding
        return max(s - decay, 0.0)
    least, at = turning(decay, layers)
    if s <= least:
        return 0.0
    # from ``at`` on z + λz^(2/L − 1) rises, and at z = s it is above s
    excess = lambda z: z + decay * z ** (2 / layers - 1) - s
    root: Any = brentq(excess, at, s, xtol=1e-14)
    return float(root)


def shrunk(s: float, decay: float, layers: int) -> float:
    """Return the best singular value of the product."""
    return kept(s, decay, layers) if s > threshold(decay, layers) else 0.0


def _power(layers: int) -> float:
    """Return L/(2L − 2), the exponent of λ in the threshold."""
    return layers / (2 * layers - 2)
