"""Expectations of activations that are polynomials and decaying exponentials between knots."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from steepest.kernels.duals._expectations import at_rest
from steepest.kernels.duals._piecewise import (
    base_means,
    envelope,
    mean_of,
    ramp_means,
    ramp_sizes,
)
from steepest.kernels.duals._wedges import ramp_expectations
from steepest.kernels.wide.duals._bounds import Bends, Singles, Tolerances
from steepest.nn.activations import Activation, Pieces, Split, jumps, pieces_of

FARTHEST = 8.0  # deviations of the nearest knot, of an activation that is zero around the origin
UNKNOWN = 1e3  # variance up to which expectations are exact where JAX traces variances


@dataclass(frozen=True)
class Piecewise:
    """σ with knots: a polynomial around the origin, and ramps beyond knots (``nn/activations/_pieces.py``).

    Attributes:
        activation: σ.
        high: largest variance.
        empty: whether some variances are zero, at positions where no signal arrives.
    """

    activation: Activation
    high: float
    empty: bool

    @property
    def pieces(self) -> Pieces:
        """Return σ by its terms between knots."""
        pieces = pieces_of(self.activation)
        assert pieces is not None
        return pieces

    @property
    def split(self) -> Split:
        """Return σ as a polynomial and ramps."""
        split = self.pieces.split()
        assert split is not None
        return split

    @property
    def jumps(self) -> bool:
        """Tell whether σ jumps, so that there is no tangent kernel."""
        return any(value for _, value, _ in jumps(self.activation))

    @property
    def nodes(self) -> int:
        """Count the nodes of the rule for angles.

        Exponentials are sharp at large variances. So are far knots where nothing else is left to compare with.
        """
        rates = [-term.rate for ramp in self.split.ramps for term in ramp.terms]
        steepness = max(rates, default=0.0) * math.sqrt(self.high)
        steepness = max(steepness, FARTHEST if self.split.gap else 0.0)
        return max(16, 8 * math.ceil((4 + 12 * math.sqrt(steepness)) / 8))

    def tolerances(self, eps: float) -> Tolerances:
        """Return its errors in an arithmetic of this precision."""
        corner = _root_law(sum(abs(slope) for _, _, slope in jumps(self.activation)))
        jump = _root_law(sum(abs(value) for _, value, _ in jumps(self.activation)))
        decays = any(term.rate for ramp in self.split.ramps for term in ramp.terms)
        # differences of exponentials come from a polynomial that is 3e-15 from Mills' ratio
        # h has its rounding, and with it exp(−h²/2), of which all is made where σ is zero around the origin
        eps = 16 * eps if self.split.gap else eps
        rounding = (32 * eps + 2e-13 * decays) * _cancellation(self.activation, self.high)
        return Tolerances(rounding, rounding, corner, jump)

    def singles(self, variances: NDArray[np.float64]) -> Singles:
        """Return expectations at single positions."""
        value, slope, mean = self.moments(variances, np)
        second = self.pieces.derivative().derivative()
        live = np.where(variances > 0, variances, self.high)
        curvature = mean_of(second.times(second), live, np)
        # E σ''(u)σ''(v) has also a mass of one and the smooth part of the other: α_p β_q + β_p α_q at most
        mass = sum(abs(slope) for _, _, slope in jumps(self.activation))
        beside = envelope(second, live)
        if mass and beside.any():
            curvature = curvature + mass**2 / live + beside**2
        return Singles(value, slope, curvature, mean)

    def moments(self, variances: Any, xp: Any) -> tuple[Any, Any, Any]:
        """Return E σ², E σ'² and E σ, in JAX or NumPy."""
        live = variances > 0
        safe = xp.where(live, variances, 1.0)
        slopes = self.pieces.derivative()
        value = mean_of(self.pieces.times(self.pieces), safe, xp)
        slope = mean_of(slopes.times(slopes), safe, xp)
        if self.jumps:
            slope = slope * math.nan
        mean = mean_of(self.pieces, safe, xp)
        if not self.empty:
            return value, slope, mean
        still, steepness = at_rest(self.activation)
        return (
            xp.where(live, value, still**2),
            xp.where(live, slope, math.nan if self.jumps else steepness**2),
            xp.where(live, mean, still),
        )

    def bends(self, variances: NDArray[np.float64]) -> Bends:
        """Return how both expectations change with a variance, by ``E σ''(u)σ(v)`` and ``E σ‴(u)σ'(v)``.

        The smooth part of the first factor is ``√(E σ''²)`` at most. A mass J at a knot t leaves J times the density
        of u there times E[σ(v) | u = t], at most ``Γ √(E σ(v)²)/√K`` with a number Γ of the activation.
        """
        live = np.where(variances > 0, variances, self.high)
        value = _bend(self.pieces, live)
        if self.jumps or any(slope for _, _, slope in jumps(self.activation)):
            return Bends(value, None)
        return Bends(value, _bend(self.pieces.derivative(), live))

    @property
    def pairing(self) -> "Wedges":
        """Return what programs are compiled for."""
        value, slope = at_rest(self.activation) if self.empty else (0.0, 0.0)
        return Wedges(self.split, self.nodes, self.jumps, self.empty, value, slope)

    @property
    def arrays(self) -> int:
        """Count the arrays of ``sides``."""
        return 1 + 2 * self.pairing.orders

    def sides(self, variances: Any, xp: Any = np) -> list[Any]:
        """Return what a pair needs of each position: the deviation, means of the polynomial, and means of the ramps.

        Where no signal arrives the deviation is zero, and σ(0) and σ'(0) are all the means.
        """
        orders = self.pairing.orders
        live = variances > 0
        safe = xp.where(live, variances, 1.0)
        base = base_means(self.split, safe, orders)
        ramps = ramp_means(self.split, safe, xp, orders)
        if self.empty:
            at_zero = [*at_rest(self.activation), *(0.0,) * orders]
            base = [xp.where(live, mean, value) for mean, value in zip(base, at_zero, strict=False)]
            ramps = [xp.where(live, mean, 0.0) for mean in ramps]
        return [xp.where(live, xp.sqrt(safe), 0.0), *base, *ramps]


@dataclass(frozen=True)
class Wedges:
    """``E σσ`` and ``E σ'σ'`` of a piecewise σ, from numbers of each position and integrals over angles.

    Attributes:
        split: σ as a polynomial and ramps.
        nodes: of the rule for angles.
        jumps: whether there is no tangent kernel.
        empty: whether some variances are zero, at positions where no signal arrives.
        still: σ(0), where some are.
        steepness: σ'(0), where some are.
    """

    split: Split
    nodes: int
    jumps: bool
    empty: bool
    still: float
    steepness: float

    @property
    def orders(self) -> int:
        """Count the derivatives of which means are needed, order zero too."""
        return max(2, len(self.split.base))

    def pair(self, k: Array, one: list[Array], two: list[Array]) -> tuple[Array, Array]:
        """Compute ``E σ(u)σ(v)`` and ``E σ'(u)σ'(v)``."""
        roots = [
            jnp.where(side[0] > 0, side[0], 1.0) if self.empty else side[0] for side in (one, two)
        ]
        slope = self.split.derivative()
        functions = ((self.split, self.split),) if self.jumps else ((self.split,) * 2, (slope,) * 2)
        # fewer nodes will do for single precision
        nodes = self.nodes if k.dtype == jnp.float64 else max(12, self.nodes // 2)
        ramps = ramp_expectations(functions, nodes, k, *roots)
        if self.empty:
            live = one[0] * two[0] > 0
            ramps = [jnp.where(live, ramp, 0.0) for ramp in ramps]
        terms = self._terms(one, two)
        value = ramps[0] + _power_sum(k, terms)
        if self.jumps:
            return value, jnp.full_like(value, jnp.nan)
        # Price: by K_αβ the coefficient of K^k/k! moves down by one
        return value, ramps[1] + _power_sum(k, terms[1:])

    def _terms(self, one: list[Array], two: list[Array]) -> list[Array]:
        """Return ``E f^(k) E g^(k)`` of the polynomial with itself and with the ramps, for each k."""
        split = 1 + self.orders
        bases = zip(one[1:split], two[1:split], strict=True)
        ramps = zip(one[split:], two[split:], strict=True)
        return [
            base * other + base * other_ramp + ramp * other
            for (base, other), (ramp, other_ramp) in zip(bases, ramps, strict=True)
        ]


def _power_sum(k: Array, terms: list[Array]) -> Array:
    """Return ``Σ_j terms[j] k^j/j!`` by Horner's rule."""
    total = jnp.zeros_like(k)
    for j in reversed(range(len(terms))):
        total = terms[j] + total * k / (j + 1)
    return total


def _root_law(masses: float) -> float:
    """Return b of ``|ΔE| ≤ b √|Δρ|`` for masses ``Σ|J|``, whose density is ``(Σ|J|)²/(2π√(1 − ρ²))`` at most."""
    # |arcsin(ρ) − arcsin(ρ')| ≤ (π/2) √(2|Δρ|), with equality between 1 and −1
    return masses**2 / (2 * math.sqrt(2))


@lru_cache
def _cancellation(activation: Activation, high: float) -> float:
    """Return how much larger the parts of σ are than σ, at most, in second moments."""
    pieces = pieces_of(activation)
    assert pieces is not None
    variances = np.geomspace(1e-12 * high, high, 49)
    size = mean_of(pieces.times(pieces), variances, np)
    parts = ramp_sizes(pieces, variances)
    ratios = np.divide(parts, size, out=np.ones_like(size), where=size > 0)
    return float(max(1.0, ratios.max()))


def _bend(pieces: Pieces, variances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return S of ``Bends`` for a continuous function."""
    second = pieces.derivative().derivative()
    smooth = np.sqrt(mean_of(second.times(second), variances, np))
    split = pieces.split()
    assert split is not None
    masses = sum(abs(ramp.start) for ramp in split.derivative().ramps)
    return (smooth + masses * _ridge(pieces) / np.sqrt(variances)) ** 2


@lru_cache
def _ridge(pieces: Pieces) -> float:
    """Return Γ, the largest ``φ(h) E|f(√K(ρh + √(1 − ρ²) z))|/√(E f²)`` over h, ρ and K, on a grid, and a tenth."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    h = np.linspace(0, 5, 26)[:, None, None]
    rho = np.linspace(-1, 1, 11)[:, None]
    places = rho * h + np.sqrt(1 - rho**2) * nodes
    density = np.exp(-(h[..., 0] ** 2) / 2) / math.sqrt(2 * math.pi)
    largest = 0.0
    for variance in np.geomspace(1e-6, 1e6, 25):
        mean = np.abs(pieces.values(math.sqrt(variance) * places)) @ weights / weights.sum()
        size = mean_of(pieces.times(pieces), np.array(variance), np)
        if size > 1e-200:
            largest = max(largest, float((density * mean).max() / math.sqrt(size)))
    return 1.1 * largest
