"""Expectations of a smooth activation as a Hermite series, from tables or, where JAX traces variances, integrals."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.kernels.duals._expectations import at_rest, hermite_coefficients, trapezoid_basis
from steepest.kernels.wide.duals._bounds import Bends, Singles, Tolerances, bends
from steepest.kernels.wide.duals._tables import TERMS, Interpolant, series_table, third_table
from steepest.nn.activations import Activation

UNROLLED = 128  # terms that are not zero, up to which each is written into the program
GRID = (
    2**0.5
)  # ratio of the variances to which ranges are widened, so that inputs and coefficients share tables
SHAPES = 16  # numbers of terms are multiples of it, so that few shapes are compiled
RULE = 1025  # nodes of the trapezoidal rule where JAX traces variances: exact to rounding up to deviations of ten
POSITIONS = 4096  # at which these integrals are computed at a time


class NoSeriesError(UserError):
    """A Hermite series does not meet the tolerance."""


@dataclass(frozen=True)
class Series:
    """Smooth σ: ``E σ(u)σ(v) = Σ_k h_k(K_αα) h_k(K_ββ) ρ^k``.

    Attributes:
        activation: σ.
        low: smallest variance.
        high: largest.
        terms: of the series.
        step: 2 where all odd or all even coefficients are zero.
        first: 1 where the even ones are.
        value_error: what the dropped terms can be, in units of ``√(E σ(u)² E σ(v)²)``.
        slope_error: the same of ``E σ'σ'``.
        empty: whether some variances are zero, at positions where no signal arrives.
    """

    activation: Activation
    low: float
    high: float
    terms: int
    step: int
    first: int
    value_error: float
    slope_error: float
    empty: bool

    @property
    def _table(self) -> "Interpolant":
        """Return E σ², E σ'², E σ''², E σ and the ``h_k`` as functions of the variance."""
        count = next(count for count in TERMS if self.terms <= count)
        return series_table(self.activation, self.low, self.high, count)

    def tolerances(self, eps: float) -> Tolerances:
        """Return its errors in an arithmetic of this precision."""
        return Tolerances(self.value_error + 16 * eps, self.slope_error + 16 * eps)

    def singles(self, variances: NDArray[np.float64]) -> Singles:
        """Return expectations at single positions."""
        table = self._table
        curvature = table.only(slice(2, 3)).at(variances)[..., 0]
        value, slope, mean = self.moments(variances, np)
        return Singles(value, slope, curvature, mean)

    def moments(self, variances: Any, xp: Any) -> tuple[Any, Any, Any]:
        """Return E σ², E σ'² and E σ, in JAX or NumPy."""
        table = self._table
        value, slope, _, mean = xp.moveaxis(table.only(slice(4)).at(variances, xp), -1, 0)
        if not self.empty:
            return value, slope, mean
        still, steepness = at_rest(self.activation)
        or_at_rest = lambda values, still: xp.where(variances > 0, values, still)
        value = or_at_rest(value, still**2)
        slope = or_at_rest(slope, steepness**2)
        return value, slope, or_at_rest(mean, still)

    def covers(self, variances: Any) -> Any:
        """Tell of each variance whether it is in range."""
        inside = (self.low <= variances) & (variances <= self.high)
        return inside | ((variances == 0) if self.empty else False)

    def bends(self, variances: NDArray[np.float64]) -> Bends:
        """Return how both expectations change with a variance."""
        third = third_table(self.activation, self.low, self.high).at(variances)[..., 0]
        return bends(self.singles(variances).curvature, third)

    @property
    def pairing(self) -> "Mehler":
        """Return what programs are compiled for; how many terms there are is a shape."""
        return Mehler(self.step, self.first, self.empty, self.terms > UNROLLED * self.step)

    @property
    def arrays(self) -> int:
        """Count the arrays of ``sides``."""
        return 3 if self.empty else 2

    def sides(self, variances: Any, xp: Any = np) -> list[Any]:
        """Return what a pair needs of each position: one over the deviation, and ``h_k``, k first.

        Where no signal arrives they are zero, but σ(0), and E σ' is needed too.
        """
        table = self._table
        chosen = slice(4 + self.first, 4 + self.terms, self.step)
        h = xp.moveaxis(table.only(chosen).at(variances, xp), -1, 0)
        inverse = 1 / xp.sqrt(xp.maximum(variances, self.low))
        if not self.empty:
            return [inverse, h]
        # E σ'(u) = h_1/√K by Stein
        mean_slope = table.only(slice(5, 6)).at(variances, xp)[..., 0] * inverse
        return _or_at_rest(self, variances, inverse, h, mean_slope, xp)


@dataclass(frozen=True)
class Expansion:
    """The series of a smooth σ where JAX traces variances: its coefficients are integrals by the trapezoidal rule.

    Attributes:
        activation: σ.
        step: 2 where all odd or all even coefficients are zero.
        first: 1 where the even ones are.
        terms: of the series, zero ones among them.
    """

    activation: Activation
    step: int
    first: int
    terms: int = 256

    def moments(self, variances: Array, xp: Any) -> tuple[Any, Any, Any]:
        """Return E σ², E σ'² and E σ, in JAX."""
        del xp
        value, slope, mean, _ = self._integrals(variances)
        still, steepness = at_rest(self.activation)
        live = variances > 0
        return (
            jnp.where(live, value, still**2),
            jnp.where(live, slope, steepness**2),
            jnp.where(live, mean, still),
        )

    def remainder(self, variances: Array) -> Array:
        """Return what the series leaves of E σ² and E σ'² at most, relative to them: by Parseval's equation."""
        value, slope, _, h = self._integrals(variances)
        orders = self.first + self.step * jnp.arange(h.shape[0], dtype=h.dtype)
        orders = orders.reshape(-1, *(1 for _ in variances.shape))
        left = 1 - (h**2).sum(0) / value
        left_slope = 1 - (orders * h**2).sum(0) / (variances * slope)
        return jnp.where(variances > 0, jnp.maximum(jnp.abs(left), jnp.abs(left_slope)), 0.0)

    @property
    def pairing(self) -> "Mehler":
        """Return what programs are compiled for."""
        return Mehler(self.step, self.first, empty=True, rolled=True)

    @property
    def arrays(self) -> int:
        """Count the arrays of ``sides``."""
        return 3

    def sides(self, variances: Any, xp: Any = jnp) -> list[Any]:
        """Return what ``Series`` does, of variances that may be zero."""
        h = self._integrals(variances)[3]
        inverse = 1 / jnp.sqrt(jnp.where(variances > 0, variances, 1.0))
        # E σ'(u) = h_1/√K by Stein, zero if all odd coefficients are
        mean_slope = h[0 if self.first else 1] * inverse if self.first or self.step == 1 else 0.0
        return _or_at_rest(self, variances, inverse, h, mean_slope, xp)

    def _integrals(self, variances: Array) -> tuple[Array, Array, Array, Array]:
        """Return E σ², E σ'², E σ and the ``h_k``, k first, some positions at a time."""
        basis = trapezoid_basis(RULE, self.terms)
        nodes = jnp.asarray(basis.nodes, variances.dtype)
        weights = jnp.asarray(basis.weights, variances.dtype)
        orders = jnp.asarray(basis.values[:, self.first :: self.step], variances.dtype)

        @jax.checkpoint  # or all positions' values at all nodes are kept for derivatives
        def one(variance: Array) -> tuple[Array, ...]:
            z = jnp.sqrt(jnp.where(variance > 0, variance, 1.0)) * nodes
            σ = self.activation(z)
            slope = self.activation.slope(z)
            return (σ**2) @ weights, (slope**2) @ weights, σ @ weights, σ @ orders

        value, slope, mean, h = jax.lax.map(one, variances.ravel(), batch_size=POSITIONS)
        shaped = lambda numbers: numbers.reshape(variances.shape)
        return shaped(value), shaped(slope), shaped(mean), h.T.reshape(-1, *variances.shape)


def _or_at_rest(
    series: "Series | Expansion", variances: Any, inverse: Any, h: Any, mean_slope: Any, xp: Any
) -> list[Any]:
    """Return the numbers of a series where some variances are zero: there only σ(0) and σ'(0) are left."""
    live = variances > 0
    still, steepness = at_rest(series.activation)
    orders = series.first + series.step * np.arange(h.shape[0])
    at_zero = np.where(orders == 0, still, 0.0).reshape(-1, *(1 for _ in variances.shape))
    return [
        xp.where(live, inverse, 0.0),
        xp.where(live, h, at_zero),
        xp.where(live, mean_slope, steepness),
    ]


@dataclass(frozen=True)
class Mehler:
    """``E σ(u)σ(v) = Σ_k h_k(K_αα) h_k(K_ββ) ρ^k`` and its derivative, for any coefficients.

    Attributes:
        step: 2 where all odd or all even coefficients are zero.
        first: 1 where the even ones are.
        empty: whether some variances are zero, at positions where no signal arrives.
        rolled: whether terms are a loop of the program: compiled soon, also with derivatives, and slower afterwards.
    """

    step: int
    first: int
    empty: bool
    rolled: bool = False

    def pair(self, k: Array, one: list[Array], two: list[Array]) -> tuple[Array, Array]:
        """Compute both by Horner's rule, in ρ² where every other term is zero."""
        scale = one[0] * two[0]
        rho = jnp.clip(k * scale, -1.0, 1.0)
        power = rho**self.step
        sums = jnp.zeros_like(rho), jnp.zeros_like(rho)
        orders = self.first + self.step * np.arange(one[1].shape[0])
        constant = int(orders[0] == 0)  # a term that the derivative does not have

        def add(sums: tuple[Array, Array], term: tuple) -> tuple[tuple[Array, Array], None]:
            order, first, second = term
            product = first * second
            return (sums[0] * power + product, sums[1] * power + order * product), None

        if self.rolled:
            terms = jnp.asarray(orders, rho.dtype), one[1], two[1]
            beyond = tuple(array[constant:] for array in terms)
            sums, _ = jax.lax.scan(add, sums, beyond, reverse=True)
        else:
            for i in reversed(range(constant, len(orders))):
                sums, _ = add(sums, (orders[i], one[1][i], two[1][i]))
        value, slope = sums
        if constant:
            value = value * power + one[1][0] * two[1][0]
        odd = bool(self.first)
        if odd:  # a factor ρ is left in the value
            value = value * rho
        # d/dK_αβ = scale d/dρ of Σ h_k h'_k ρ^k; an even series leaves one ρ beside powers of ρ²
        slope = slope * scale * (rho if self.step == 2 and not odd else 1.0)
        if self.empty:  # a signal that is zero is independent of every other
            slope = jnp.where(scale > 0, slope, one[2] * two[2])
        return value, slope


def on_grid(low: float, high: float) -> tuple[float, float]:
    """Widen a range of variances to numbers of the grid."""
    step = math.log(GRID)
    return GRID ** math.floor(math.log(low) / step), GRID ** math.ceil(math.log(high) / step)


@lru_cache(maxsize=256)
def covering_series(
    activation: Activation, low: float, high: float, tolerance: float, empty: bool
) -> Series:
    first, *later = TERMS
    try:
        return _series_of(activation, low, high, tolerance, empty, first)
    except NoSeriesError:
        return _series_of(activation, low, high, tolerance, empty, *later)


def _series_of(
    activation: Activation, low: float, high: float, tolerance: float, empty: bool, count: int
) -> Series:
    table = series_table(activation, low, high, count)
    values = table.at(np.geomspace(low, high, 65))
    square = values[:, 0]
    slope = values[:, 1]
    h = values[:, 4:]
    k = np.arange(h.shape[1])
    middle = np.geomspace(low, high, 65)
    # Parseval: what Σ_{k<T} h_k² leaves of E σ², and Σ k h_k²/K of E σ'², for every T: (count,)
    left = np.abs(1 - np.cumsum(h**2, 1) / square[:, None]).max(0)
    left_slope = np.abs(1 - np.cumsum(k * h**2, 1) / middle[:, None] / slope[:, None]).max(0)
    enough = np.flatnonzero(np.maximum(left, left_slope) <= tolerance)
    if not len(enough):
        raise NoSeriesError(
            f"a Hermite series of {activation.name} cannot meet the tolerance {tolerance:g} at variances from "
            f"{low:.3g} to {high:.3g}: pass tolerance={2 * np.maximum(left, left_slope).min():.0e}, which it meets, or "
            "use a smaller c_w"
        )
    terms = -(-int(enough[0] + 1) // SHAPES) * SHAPES
    step, first = _parity_of(h)
    errors = float(left[terms - 1]), float(left_slope[terms - 1])
    rounded = [error + table.error for error in errors]
    return Series(activation, low, high, terms, step, first, rounded[0], rounded[1], empty)


def _parity_of(h: NDArray[np.float64]) -> tuple[int, int]:
    """Return the step between coefficients that are not zero, and the first of them."""
    size = np.abs(h).max()
    odd = np.abs(h[:, 1::2]).max() > 1e-13 * size
    even = np.abs(h[:, ::2]).max() > 1e-13 * size
    return 1 if odd and even else 2, int(not even)


@lru_cache
def parity(activation: Activation) -> tuple[int, int]:
    with jax.ensure_compile_time_eval():
        return _parity_of(hermite_coefficients(activation, np.array([1.0]), TERMS[0]))
