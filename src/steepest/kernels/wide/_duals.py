"""The expectations of one activation for all pairs of positions, from few numbers at each position.

Three ways: scale-invariant σ through the angle; a closed form of both variances; a Hermite series (Mehler 1866), whose
coefficients are numbers at each position. Each says how large its error can be, in units of ``√(E σ(u)² E σ(v)²)``.
Where JAX traces variances, the series' coefficients are integrals (``Expansion``) instead of tables (``Series``).

What pairs need beside these numbers is a ``Pairing``: programs are compiled for it, whatever the variances.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.kernels.duals._expectations import (
    at_rest,
    hermite_coefficients,
    single_moments,
    trapezoid_basis,
)
from steepest.nn.activations import (
    Activation,
    DualForm,
    arc_cosines,
    closed_form,
    gaussian_mean,
    homogeneous_slopes,
    jumps,
)

TERMS = (
    256,
    1024,
)  # of a series: tables have the first count if it will do, and the last is refused
UNROLLED = 128  # terms that are not zero, up to which each is written into the program
GRID = (
    2**0.5
)  # ratio of the variances to which ranges are widened, so that inputs and coefficients share tables
SHAPES = 16  # numbers of terms are multiples of it, so that few shapes are compiled
RULE = 1025  # nodes of the trapezoidal rule where JAX traces variances: exact to rounding up to deviations of ten
POSITIONS = 4096  # at which these integrals are computed at a time
NODES = (8, 16, 32, 64, 128, 256)
FLOOR = 1e-12  # relative to the largest variance: where an angle is asked for, smaller ones count as this


class NoSeriesError(UserError):
    """A Hermite series does not meet the tolerance."""


def has_series(activation: Activation) -> bool:
    """Tell whether expectations of an activation are summed as a Hermite series."""
    return (
        closed_form(activation) is None
        and not activation.kinks
        and homogeneous_slopes(activation) is None
    )


class Singles(NamedTuple):
    """What certificates and diagonals need at each position, arrays of one shape.

    Attributes:
        value: E σ².
        slope: E σ'².
        curvature: E σ''², the Lipschitz constant of ``E σ'σ'``; infinite where σ has corners.
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


def _bends(curvature: NDArray[np.float64], third: NDArray[np.float64]) -> Bends:
    """Return both without the sign of rounding: derivatives of a polynomial that vanish are interpolated as ±1e-20."""
    return Bends(np.maximum(curvature, 0.0), np.maximum(third, 0.0))


class Tolerances(NamedTuple):
    """Errors of one dual activation.

    Attributes:
        value: of ``E σσ``, in units of ``√(E σ(u)² E σ(v)²)``.
        slope: of ``E σ'σ'``, in units of ``√(E σ'(u)² E σ'(v)²)``.
        corner: b where ``E σ'σ'`` of a σ with corners is only sure to ``b √|Δρ|``, ρ the correlation; else 0.
    """

    value: float
    slope: float
    corner: float = 0.0


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
        # a line has no corner
        curvature = np.full_like(variances, np.inf if self.size else 0.0)
        return Singles(value, slope, curvature, mean)

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


@dataclass(frozen=True)
class Closed:
    """σ with a closed form of both variances and the covariance.

    Attributes:
        activation: σ.
    """

    activation: Activation

    @property
    def form(self) -> DualForm:
        """Return the closed form."""
        form = closed_form(self.activation)
        assert form is not None
        return form

    def tolerances(self, eps: float) -> Tolerances:
        """Return its errors in an arithmetic of this precision."""
        return Tolerances(64 * eps, 64 * eps)

    def singles(self, variances: NDArray[np.float64]) -> Singles:
        """Return expectations at single positions."""
        value, slope = single_moments(self.activation, variances.ravel())
        high = float(variances.max())
        low = max(float(variances.min()), FLOOR * high)
        curvature, mean = np.moveaxis(
            _moment_table(self.activation, low, high).at(variances), -1, 0
        )
        shape = variances.shape
        return Singles(value.reshape(shape), slope.reshape(shape), curvature, mean)

    def bends(self, variances: NDArray[np.float64]) -> Bends:
        """Return how both expectations change with a variance."""
        high = float(variances.max())
        low = max(float(variances.min()), FLOOR * high)
        third = _third_table(self.activation, low / 1.05, high * 1.05)
        return _bends(self.singles(variances).curvature, third.at(variances)[..., 0])

    def moments(self, variances: Array, xp: Any) -> tuple[Any, Any, Any]:
        """Return E σ², E σ'² and E σ, in JAX."""
        del xp
        value, slope = self.pair(variances, [variances], [variances])
        mean = gaussian_mean(self.activation.function, variances, self.activation.kinks).value
        return value, slope, mean

    @property
    def pairing(self) -> "Closed":
        """Return what programs are compiled for: all of it."""
        return self

    @property
    def arrays(self) -> int:
        """Count the arrays of ``sides``."""
        return 1

    def sides(self, variances: Any, xp: Any = np) -> list[Any]:
        """Return what a pair needs of each position: its variance."""
        del xp
        return [variances]

    def pair(self, k: Array, one: list[Array], two: list[Array]) -> tuple[Array, Array]:
        """Compute ``E σ(u)σ(v)`` and ``E σ'(u)σ'(v)``."""
        largest = jnp.sqrt(one[0] * two[0])
        return self.form(one[0], two[0], jnp.clip(k, -largest, largest))


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
        return _series_table(self.activation, self.low, self.high, count)

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
        third = _third_table(self.activation, self.low, self.high)
        return _bends(self.singles(variances).curvature, third.at(variances)[..., 0])

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


Dual = ScaleInvariant | Closed | Series | Expansion
Pairing = ScaleInvariant | Closed | Mehler


def dual_of(
    activation: Activation,
    variances: NDArray[np.float64] | None,
    tolerance: float,
    room: float = 1.05,
) -> Dual:
    """Choose the way of an activation at these variances, and at those larger or smaller by the factor ``room``.

    Of None, which stands for variances that JAX traces, the way is one at any variances.

    Raises:
        UserError: where no way meets the tolerance.
    """
    slopes = homogeneous_slopes(activation)
    if slopes is not None:
        empty = variances is None or not variances.all()
        return ScaleInvariant(*slopes, at_rest(activation)[1], empty=empty)
    if any(value for _, value, _ in jumps(activation)):
        raise UserError(
            f"{activation.name} jumps, so that there is no tangent kernel; nngp and ntk of mlp() take it without "
            "positions"
        )
    if closed_form(activation) is not None:
        return Closed(activation)
    if activation.kinks:
        raise UserError(
            f"{activation.name} has corners and no closed form: its kernel between positions is not known to a "
            "tolerance; use a smooth activation or one of relu, leaky_relu, abs, gelu, erf, or mlp() without positions"
        )
    if variances is None:
        return Expansion(activation, *_parity(activation))
    live = variances[variances > 0]
    high = float(live.max(initial=0.0)) or 1.0
    low = max(float(live.min(initial=high)), FLOOR * high)
    empty = len(live) < variances.size
    try:
        return _series(activation, *_on_grid(low / room, high * room), tolerance, empty)
    except NoSeriesError:  # the range itself asks for less
        return _series(activation, low / room, high * room, tolerance, empty)


def _on_grid(low: float, high: float) -> tuple[float, float]:
    """Widen a range of variances to numbers of the grid."""
    step = math.log(GRID)
    return GRID ** math.floor(math.log(low) / step), GRID ** math.ceil(math.log(high) / step)


@lru_cache(maxsize=256)
def _series(
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
    table = _series_table(activation, low, high, count)
    values = table.at(np.geomspace(low, high, 65))
    square, slope = values[:, 0], values[:, 1]
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
def _parity(activation: Activation) -> tuple[int, int]:
    with jax.ensure_compile_time_eval():
        return _parity_of(hermite_coefficients(activation, np.array([1.0]), TERMS[0]))


class Interpolant(NamedTuple):
    """Functions of the variance as Chebyshev series in its logarithm, times powers of it.

    Attributes:
        low: smallest variance.
        high: largest.
        series: coefficients, shape ``(nodes, functions)``.
        halves: twice the power of the variance that each function has besides, 0, 1 or 2: so what vanishes with the
            variance keeps its digits.
        error: between the nodes, relative to the largest value of each function or to the root of the first's.
    """

    low: float
    high: float
    series: NDArray[np.float64]
    halves: NDArray[np.int64]
    error: float

    def only(self, functions: slice) -> "Interpolant":
        """Return the same of some functions."""
        return self._replace(series=self.series[:, functions], halves=self.halves[functions])

    def at(self, variances: Any, xp: Any = np) -> Any:
        """Return all functions at variances of any shape, functions last; ``xp`` is NumPy or JAX's."""
        clipped = xp.clip(variances, self.low, self.high)
        # Chebyshev variable of log K, from −1 at the smallest variance to 1 at the largest
        place = 2 * xp.log(clipped / self.low) / math.log(self.high / self.low) - 1
        basis = [xp.ones_like(place), place]
        while len(basis) < len(self.series):
            basis.append(2 * place * basis[-1] - basis[-2])
        values = xp.stack(basis[: len(self.series)], axis=-1) @ self.series.astype(place.dtype)
        if not self.halves.any():
            return values
        powers = xp.stack([xp.ones_like(place), xp.sqrt(clipped), clipped], axis=-1)
        return values * powers[..., self.halves].astype(place.dtype)


@lru_cache(maxsize=64)
def _series_table(activation: Activation, low: float, high: float, count: int) -> Interpolant:
    """Interpolate E σ², E σ'², E σ''², E σ and ``h_k``.

    At small variances E σ² is like K and E σ like √K at most if σ(0) is zero; ``h_k`` is for every k > 0.
    """
    vanishes = at_rest(activation)[0] == 0
    halves = np.array([2, 0, 0, 1, 1] if vanishes else [0] * 5)
    halves = np.concatenate([halves, np.ones(count - 1, int)])

    def functions(variances: NDArray[np.float64]) -> NDArray[np.float64]:
        square, slope = single_moments(activation, variances)
        h = hermite_coefficients(activation, variances, count)
        k = np.arange(h.shape[1])
        # Stein: σ' has the coefficients √(k/K) h_k, so that E σ''² = Σ k (k − 1) h_k²/K²
        curvature = ((k * (k - 1.0)) * h**2).sum(1) / variances**2
        values = np.concatenate([np.stack([square, slope, curvature, h[:, 0]], axis=1), h], axis=1)
        return values / variances[:, None] ** (halves / 2)

    return _interpolate(functions, low, high)._replace(halves=halves)


@lru_cache(maxsize=64)
def _third_table(activation: Activation, low: float, high: float) -> Interpolant:
    """Interpolate E σ‴² = Σ k(k − 1)(k − 2) h_k²/K³; apart from the others, whose interpolation is counted."""

    def functions(variances: NDArray[np.float64]) -> NDArray[np.float64]:
        h = hermite_coefficients(activation, variances, TERMS[-1])
        k = np.arange(h.shape[1])
        # Stein three times: E σ‴² = Σ k (k − 1)(k − 2) h_k²/K³
        third = (k * (k - 1.0) * (k - 2.0) * h**2).sum(1) / variances**3
        return third[:, None]

    return _interpolate(functions, low, high)


def _interpolate(functions: Callable, low: float, high: float) -> Interpolant:
    """Raise the number of nodes until the functions agree between them."""
    between = np.geomspace(low, high, 17)[1:-1]
    exact = functions(between)
    scale = np.maximum(np.abs(exact).max(0), np.sqrt(np.abs(exact[:, 0]).max()))
    for count in NODES:
        points = np.cos((2 * np.arange(count) + 1) * np.pi / (2 * count))
        values = functions(np.sqrt(low * high) * (high / low) ** (points / 2))
        # T_j are orthogonal over the nodes: c_j = (2/N) Σ f T_j, c_0 half of it
        series = chebyshev.chebvander(points, count - 1).T @ values * (2 / count)
        series[0] /= 2
        table = Interpolant(low, high, series, np.zeros(series.shape[1], int), 0.0)
        error = float((np.abs(table.at(between) - exact) / scale).max())
        if error < 1e-13:
            break
    return table._replace(error=error)


@lru_cache(maxsize=64)
def _moment_table(activation: Activation, low: float, high: float) -> Interpolant:
    """Interpolate E σ''² and E σ, by quadrature."""
    moments = _moments_of(activation)

    def functions(variances: NDArray[np.float64]) -> NDArray[np.float64]:
        with jax.enable_x64(True):
            return np.stack([np.asarray(moment) for moment in moments(variances)], axis=1)

    return _interpolate(functions, low / 1.05, high * 1.05)


@lru_cache
def _moments_of(activation: Activation) -> Callable:
    second = jnp.vectorize(jax.grad(activation.slope))

    def one(variance):
        square = gaussian_mean(lambda z: second(z) ** 2, variance, activation.kinks).value
        return square, gaussian_mean(activation.function, variance, activation.kinks).value

    return jax.jit(lambda variances: jax.lax.map(one, variances, batch_size=64))
