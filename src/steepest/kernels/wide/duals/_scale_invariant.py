"""Expectations of a scale-invariant activation, through the angle."""

import math
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from steepest.kernels.wide.duals._bounds import Bends, Singles, Tolerances
from steepest.nn.activations import arc_cosines


@dataclass(frozen=True)
class ScaleInvariant:
    """σ(z) = a± z for ±z > 0: everything depends on the cosine ρ.

    Attributes:
        left: a₋.
        right: a₊.
        still: σ'(0), which finite networks have at positions where no signal arrives.
        empty: whether some variances are zero, at such positions.
    """

    left: float
    right: float
    still: float
    empty: bool

    @property
    def size(self) -> float:
        """Return ``(a₊ − a₋)²/2π``, the factor of the angle."""
        return (self.right - self.left) ** 2 / (2 * math.pi)

    def tolerances(self, eps: float) -> Tolerances:
        """Return its errors in an arithmetic of this precision."""
        # |arccos(ρ) − arccos(ρ')| ≤ (π/2) √(2|Δρ|), with equality between 1 and −1
        return Tolerances(8 * eps, 8 * eps, self.size * math.pi / math.sqrt(2))

    def singles(self, variances: NDArray[np.float64]) -> Singles:
        """Return expectations at single positions."""
        value, slope, mean = self.moments(variances, np)
        return Singles(value, slope, np.zeros_like(variances), mean)

    def bends(self, variances: NDArray[np.float64]) -> Bends:
        """Return how the first expectation changes with a variance; the second does as its corner says.

        ``E σ''(u)σ(v)`` is ``(a₊ − a₋)`` times the density of u at zero times E σ(v) given u = 0, at most
        ``(a₊ − a₋)/π √(E σ(v)²/K)``.
        """
        # (a₊ − a₋)²/2π √(K_v/K) by E[σ(v) | u = 0]; (a₊ − a₋)/2 ≤ √((a₊² + a₋²)/2) does the rest
        jump = (self.right - self.left) / math.pi
        second = np.divide(jump**2, variances, out=np.zeros_like(variances), where=variances > 0)
        return Bends(second, None)

    def mean(self, variances: Any, xp: Any = jnp) -> Any:
        """Return E σ(z), in JAX or NumPy."""
        root, *_ = self.sides(variances, xp)
        # E max(z, 0) = √(K/2π), and minus that on the left
        return (self.right - self.left) / math.sqrt(2 * math.pi) * root

    def moments(self, variances: Any, xp: Any) -> tuple[Any, Any, Any]:
        """Return E σ², E σ'² and E σ, in JAX or NumPy."""
        # E σ² = K (a₊² + a₋²)/2, and E σ'² the same without K
        square = (self.left**2 + self.right**2) / 2
        live = xp.where(variances > 0, square, self.still**2)
        return square * variances, live, self.mean(variances, xp)

    @property
    def pairing(self) -> "ScaleInvariant":
        """Return what programs are compiled for: all of it."""
        return self

    @property
    def arrays(self) -> int:
        """Count the arrays of ``sides``."""
        return 3 if self.empty else 2

    def sides(self, variances: Any, xp: Any = np) -> list[Any]:
        """Return what a pair needs of each position: the deviation and its inverse, zero where there is none."""
        live = variances > 0
        safe = xp.sqrt(xp.where(live, variances, 1.0))
        sides = [xp.where(live, safe, 0.0), xp.where(live, 1 / safe, 0.0)]
        return [*sides, xp.where(live, 1.0, 0.0)] if self.empty else sides

    def pair(self, k: Array, one: list[Array], two: list[Array]) -> tuple[Array, Array]:
        """Compute ``E σ(u)σ(v)`` and ``E σ'(u)σ'(v)``."""
        rho = jnp.clip(k * (one[1] * two[1]), -1.0, 1.0)
        value, supplement = arc_cosines(rho)
        value = value * (self.size * one[0] * two[0])
        slope = self.size * supplement
        # σ = (a₊ − a₋) relu + a₋ z and E u relu(v) = K_αβ/2: linear parts add up to a₊a₋ K_αβ
        product = self.left * self.right
        if product:
            value = value + product * k
            slope = slope + product
        if self.empty:
            # a signal that is zero has the derivative at 0, whatever the other signal
            live = one[2] * two[2]
            dead = (1 - one[2]) * (1 - two[2])
            # E σ'(v) = (a₊ + a₋)/2 of a signal that is there, times σ'(0)
            half = self.still * (self.left + self.right) / 2
            slope = live * slope + dead * self.still**2 + (1 - live - dead) * half
        return value, slope
