"""Muon: updates whose singular values five steps of a polynomial bring near one."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ANGLES = 4000  # of the quadrature


@dataclass(frozen=True)
class Muon:
    """Muon's update: x ← a x + b x³ + c x⁵ on the singular values of a gradient over its Frobenius norm.

    It has no edge here: its curvature is the largest dᵀHd over matrices d of spectral norm one, of which only lower
    bounds can be computed.

    Attributes:
        coefficients: a, b, c.
        iterations: how often the polynomial is applied.
    """

    coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315)
    iterations: int = 5

    def polynomial(self, values: NDArray) -> NDArray:
        """Return what the iterations make of singular values.

        >>> bool(abs(Muon().polynomial(np.array([0.5]))[0] - 1) < 0.3)
        True
        """
        a, b, c = self.coefficients
        for _ in range(self.iterations):
            values = a * values + b * values**3 + c * values**5
        return values

    def update_size(self, rows: int, columns: int) -> float:
        """Return the root mean square of the update of a Gaussian matrix; an orthogonal factor has 1/√max(m, n).

        The singular values over the Frobenius norm are √(λ/m), m the smaller side, with λ of Marchenko and Pastur's
        law: λ = 1 + r + 2√r cos φ, r = m/n, of density (2/π) sin²φ/λ.

        >>> 0.8 < Muon().update_size(64, 256) * 256**0.5 < 0.95
        True
        """
        small = min(rows, columns)
        large = max(rows, columns)
        ratio = small / large
        angles = (np.arange(ANGLES) + 0.5) * np.pi / ANGLES  # midpoints in (0, π)
        eigenvalues = 1 + ratio + 2 * ratio**0.5 * np.cos(angles)
        # (2/π) sin²φ/λ times dφ = π/ANGLES
        density = 2 * np.sin(angles) ** 2 / eigenvalues / ANGLES
        square = (density * self.polynomial(np.sqrt(eigenvalues / small)) ** 2).sum()
        return float((square / large) ** 0.5)  # Σ of m squares over m n entries
