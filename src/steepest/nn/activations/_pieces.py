"""Functions that are sums of ``c z^m exp(rz)`` between knots: their derivatives, products and parts.

Such a function is a polynomial, the *base*, plus a *ramp* for each knot, which is zero on the side of the knot that
looks to the origin. So at small variances ramps are exponentially small and the base is all that is left.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

DEGREE = 3  # largest degree of the polynomials that are found from values
ROUNDING = 64 * float(np.finfo(float).eps)  # of sums of coefficients, relative to the summands


class Term(NamedTuple):
    """The function ``coefficient · z^power · exp(rate · z)``."""

    coefficient: float
    power: int = 0
    rate: float = 0.0


class Ramp(NamedTuple):
    """A function that is zero on one side of a knot.

    Attributes:
        knot: where it starts.
        side: 1 if it lives to the right of the knot, −1 if to the left.
        terms: of the distance from the knot, positive on its side.
    """

    knot: float
    side: int
    terms: tuple[Term, ...]

    @property
    def distance(self) -> float:
        """Return the distance of the knot from the origin."""
        return abs(self.knot)

    def derivative(self) -> "Ramp":
        """Differentiate in z beyond the knot."""
        slope = tuple(
            term._replace(coefficient=self.side * term.coefficient)
            for term in _derivative(self.terms)
        )
        return self._replace(terms=slope)

    def times_argument(self) -> "Ramp":
        """Multiply by ``z = t ± ζ``."""
        moved = [
            term
            for c, power, rate in self.terms
            for term in (Term(c * self.knot, power, rate), Term(c * self.side, power + 1, rate))
        ]
        return self._replace(terms=_collected(moved))

    @property
    def start(self) -> float:
        """Return the value next to the knot, which is a jump there."""
        values = [term.coefficient for term in self.terms if term.power == 0]
        total = math.fsum(values)
        return total if abs(total) > ROUNDING * sum(map(abs, values)) else 0.0


class Split(NamedTuple):
    """A piecewise function as a polynomial and ramps.

    Attributes:
        base: coefficients of the polynomial, of the constant first.
        ramps: one a knot and side.
    """

    base: tuple[float, ...]
    ramps: tuple[Ramp, ...]

    def derivative(self) -> "Split":
        """Differentiate inside of the intervals."""
        base = tuple(power * c for power, c in enumerate(self.base))[1:] or (0.0,)
        return Split(base, tuple(ramp.derivative() for ramp in self.ramps))

    def turned(self) -> "Split":
        """Return ``z f'(z)``."""
        slope = self.derivative()
        ramps = tuple(ramp.times_argument() for ramp in slope.ramps)
        return Split((0.0, *slope.base), ramps)

    @property
    def gap(self) -> float:
        """Return how far from the origin the function is zero: 0.0 if it is not."""
        return 0.0 if any(self.base) else min((ramp.distance for ramp in self.ramps), default=0.0)

    @property
    def continuous(self) -> bool:
        """Tell whether no ramp jumps."""
        return not any(ramp.start for ramp in self.ramps)


@dataclass(frozen=True)
class Pieces:
    """A function by its terms on each interval between knots.

    Attributes:
        knots: increasing.
        terms: of each interval, of which there is one more than knots.
    """

    knots: tuple[float, ...]
    terms: tuple[tuple[Term, ...], ...]

    def __call__(self, z: Array) -> Array:
        """Return the function, entry by entry; a knot belongs to the interval on its left."""
        z = jnp.asarray(z, float)
        total = _value(self.terms[0], z)
        for knot, terms in zip(self.knots, self.terms[1:], strict=True):
            total = jnp.where(z > knot, _value(terms, z), total)
        return total

    def values(self, z: NDArray) -> NDArray[np.float64]:
        """Return the function in NumPy, in float64."""
        with jax.ensure_compile_time_eval(), jax.enable_x64(True):
            return np.asarray(self(jnp.asarray(z)))

    def derivative(self) -> "Pieces":
        """Differentiate inside of the intervals."""
        return Pieces(self.knots, tuple(_derivative(terms) for terms in self.terms))

    def times(self, other: "Pieces") -> "Pieces":
        """Multiply by a function with the same knots."""
        return Pieces(self.knots, tuple(map(products, self.terms, other.terms)))

    def times_argument(self) -> "Pieces":
        """Return ``z f(z)``."""
        return self.times(Pieces(self.knots, ((Term(1.0, 1),),) * len(self.terms)))

    def split(self) -> Split | None:
        """Return the polynomial around the origin and the ramps beyond it.

        None where that does not exist: for exponentials around the origin, or that grow away from it.
        """
        start = self._start()
        if start is None:
            return None
        left, right, base = start
        ramps = [_ramp(knot, 1, *around) for knot, around in right]
        ramps += [_ramp(knot, -1, after, before) for knot, (before, after) in left]
        ramps = [ramp for ramp in ramps if ramp.terms]
        if any(term.rate > 0 for ramp in ramps for term in ramp.terms):
            return None
        return Split(_coefficients(base), tuple(ramps))

    def _start(self) -> tuple[list, list, tuple[Term, ...]] | None:
        """Return knots with the terms on both of their sides, left and right of the base, and the base."""
        around = list(zip(self.knots, pairwise(self.terms), strict=True))
        first = sum(knot < 0 for knot in self.knots)
        candidates = [first, first + 1] if 0.0 in self.knots else [first]
        for index in candidates:
            if all(term.rate == 0 for term in self.terms[index]):
                return around[:index], around[index:], self.terms[index]
        if len(candidates) == 1:
            return None
        # both sides of a knot at the origin are exponentials: ramps to either side, and nothing else
        left = [*around[:first], (0.0, (self.terms[first], ()))]
        right = [(0.0, ((), self.terms[first + 1])), *around[first + 1 :]]
        return left, right, ()


def _value(terms: tuple[Term, ...], z: Array) -> Array:
    total = jnp.zeros_like(z)
    for coefficient, power, rate in terms:
        # exponentials of an interval that does not hold z are cut where they would be infinite
        growth = jnp.exp(jnp.minimum(rate * z, 700.0)) if rate else 1.0
        total = total + coefficient * z**power * growth
    return total


def _collected(terms: Iterable[Term]) -> tuple[Term, ...]:
    """Add up terms of one kind, and drop what is rounding."""
    summands = defaultdict(list)
    for coefficient, power, rate in terms:
        summands[power, rate].append(coefficient)
    total = {kind: math.fsum(values) for kind, values in summands.items()}
    size = {kind: sum(map(abs, values)) for kind, values in summands.items()}
    kept = [kind for kind in sorted(total) if abs(total[kind]) > ROUNDING * size[kind]]
    return tuple(Term(total[kind], *kind) for kind in kept if total[kind])


def _derivative(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    lowered = [Term(c * power, power - 1, rate) for c, power, rate in terms if power]
    return _collected([*lowered, *(Term(c * rate, power, rate) for c, power, rate in terms)])


def products(one: tuple[Term, ...], two: tuple[Term, ...]) -> tuple[Term, ...]:
    """Multiply two sums of terms."""
    return _collected(
        Term(a.coefficient * b.coefficient, a.power + b.power, a.rate + b.rate)
        for a in one
        for b in two
    )


def _ramp(knot: float, side: int, before: tuple[Term, ...], after: tuple[Term, ...]) -> Ramp:
    """Return what changes at a knot, as a function of the distance from it."""
    negated = [Term(-c, power, rate) for c, power, rate in before]
    # c z^m exp(rz) at z = t + sζ, by the binomial theorem
    moved = [
        Term(
            c * math.exp(rate * knot) * math.comb(power, j) * knot ** (power - j) * side**j,
            j,
            side * rate,
        )
        for c, power, rate in [*negated, *after]
        for j in range(power + 1)
    ]
    return Ramp(knot, side, _collected(moved))


def _coefficients(terms: tuple[Term, ...]) -> tuple[float, ...]:
    """Return the coefficients of a polynomial."""
    degree = max((term.power for term in terms), default=0)
    coefficients = [0.0] * (degree + 1)
    for term in terms:
        coefficients[term.power] += term.coefficient
    return tuple(coefficients)


@lru_cache
def pieces_from_values(function, knots: tuple[float, ...]) -> Pieces | None:
    """Find the cubic polynomials that a function is between its knots, or return None if it is none, to 1e-12."""
    ends = [-math.inf, *sorted(knots), math.inf]
    terms = []
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        for low, high in pairwise(ends):
            polynomial = _polynomial(function, low, high)
            if polynomial is None:
                return None
            terms.append(polynomial)
    return Pieces(tuple(sorted(knots)), tuple(terms))


def _polynomial(function, low: float, high: float) -> tuple[Term, ...] | None:
    """Interpolate between two knots, and compare elsewhere: on an outer interval over five decades."""
    start, length = _interval(low, high)
    places = np.array([0.125, 0.375, 0.625, 0.875])
    grid = np.linspace(0.02, 0.98, 15)
    if math.isinf(low) or math.isinf(high):
        grid = np.concatenate([grid, np.geomspace(1.0, 1e3, 10)])
    values = _values(function, start + length * places)
    if not np.isfinite(values).all():
        return None
    local = np.linalg.solve(np.vander(places, increasing=True), values)
    local = np.where(np.abs(local) > 1e-13 * np.abs(local).max(), local, 0.0)
    size = np.vander(grid, DEGREE + 1, increasing=True)
    difference = np.abs(_values(function, start + length * grid) - size @ local)
    if not (difference <= 1e-12 * (size @ np.abs(local) + np.abs(local).max())).all():
        return None
    # of x = (z − start)/length
    line = np.polynomial.Polynomial([-start / length, 1 / length])
    whole = np.polynomial.Polynomial(local)(line).coef
    return tuple(Term(_nearest_fraction(c), power) for power, c in enumerate(whole) if c)


def _nearest_fraction(c: float) -> float:
    """Return the fraction with a small denominator that a number is up to rounding, or the number."""
    fraction = float(Fraction(c).limit_denominator(1000))
    return fraction if abs(fraction - c) <= ROUNDING * max(abs(c), 1.0) else float(c)


def _interval(low: float, high: float) -> tuple[float, float]:
    """Return where an interval starts and its length, negative if it has no left end; of an outer one a part."""
    if math.isinf(low):
        return (0.0, 1.0) if math.isinf(high) else (high, -1.0)
    return low, 1.0 if math.isinf(high) else high - low


def _values(function, z: NDArray) -> NDArray:
    return np.asarray(function(jnp.asarray(z)), float)
