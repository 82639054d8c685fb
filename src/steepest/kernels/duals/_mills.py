"""Mills' ratio ``M(c) = ∫_0^∞ exp(−r²/2 − cr) dr`` and its moments, for c ≥ 0, and their differences."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

PLACE = 4.0  # c at the middle of the variable t = (c − 4)/(c + 4)
TERMS = {
    4: 12,
    8: 22,
}  # of the polynomial in t, by bytes of the floats: 2e-9 and 3e-15 from the ratio


class Differences(NamedTuple):
    """A function f of c at the corners c, c + p, c + q and c + p + q, as a value and differences that do not cancel.

    Attributes:
        start: ``f(c)``.
        first: ``f(c + p) − f(c)``.
        second: ``f(c + q) − f(c)``.
        mixed: ``f(c + p + q) − f(c + p) − f(c + q) + f(c)``.
    """

    start: Any
    first: Any
    second: Any
    mixed: Any

    def plus(self, other: "Differences") -> "Differences":
        """Add corner by corner."""
        return Differences(
            self.start + other.start,
            self.first + other.first,
            self.second + other.second,
            self.mixed + other.mixed,
        )

    def times(self, other: "Differences") -> "Differences":
        """Multiply corner by corner: each difference of the product is a sum with a difference in every term."""
        beyond_first = other.start + other.first
        beyond_second = other.start + other.second
        along_first = other.first + other.mixed
        along_second = other.second + other.mixed
        return Differences(
            self.start * other.start,
            self.first * beyond_first + self.start * other.first,
            self.second * beyond_second + self.start * other.second,
            self.mixed * (beyond_first + along_second)
            + self.first * along_second
            + self.second * along_first
            + self.start * other.mixed,
        )

    def scaled(self, factor: float) -> "Differences":
        """Multiply by a number."""
        return Differences(*(factor * part for part in self))


def constant(value: float) -> Differences:
    """Return the differences of a constant."""
    return Differences(value, 0.0, 0.0, 0.0)


@lru_cache
def _series(terms: int, order: int = 0) -> NDArray[np.float64]:
    """Return the coefficients of ``(c + 4)^{n+1} g_n(c)`` in powers of t, highest first."""
    t = np.polynomial.chebyshev.chebpts1(4 * terms)
    c = PLACE * (1 + t) / (1 - t)
    # ∫ r^n exp(−r²/2 − cr) dr with r = s/(c + 4): s follows the width of what is integrated
    s, weights = _radii()
    scale = c[:, None] + PLACE
    values = (s**order * np.exp(-((s / scale) ** 2) / 2 - s * (c[:, None] / scale))) @ weights
    fitted = np.polynomial.Chebyshev.fit(t, values, terms - 1, domain=[-1, 1])
    return np.asarray(fitted.convert(kind=np.polynomial.Polynomial).coef[::-1], float)


@lru_cache
def _radii() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights of Gauss and Legendre on panels of [0, 160]."""
    nodes, weights = np.polynomial.legendre.leggauss(32)
    ends = np.array([0.0, 1, 2, 4, 8, 16, 32, 64, 100, 160])
    half = np.diff(ends)[:, None] / 2
    return (ends[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()


def moments(c: Any, order: int) -> list[Any]:
    """Return ``g_n(c) = ∫_0^∞ r^n exp(−r²/2 − cr) dr`` for n = 0, …, order; c ≥ 0 of NumPy or JAX, any shape.

    Each has a polynomial of its own: the recurrence upwards loses all digits at large c.
    """
    x = 1 / (c + PLACE)
    t = 1 - 2 * PLACE * x
    orders = []
    for n in range(order + 1):
        total = 0.0
        for coefficient in _series(TERMS[c.dtype.itemsize], n):
            total = total * t + float(coefficient)
        orders.append(total * x ** (n + 1))
    return orders


def moment_differences(p: Any, q: Any, order: int) -> list[Differences]:
    """Return the ``g_n`` at the corners 0, p, q and p + q; p, q ≥ 0 arrays of one precision."""
    to_first, to_second, to_both = (1 / (step + PLACE) for step in (p, q, p + q))
    start = 1 / PLACE
    # of 1/(c + 4): each step brings the product of both ends
    inverse = Differences(
        start,
        -p * start * to_first,
        -q * start * to_second,
        p * q * start * to_both * (to_first + to_second),
    )
    t = constant(1.0).plus(inverse.scaled(-2 * PLACE))
    total = constant(0.0)
    for coefficient in _series(TERMS[p.dtype.itemsize]):
        total = total.times(t).plus(constant(float(coefficient)))
    place = Differences(0.0, p, q, 0.0)
    # g_1 = 1 − c g_0 and g_{n+1} = n g_{n−1} − c g_n, by parts
    orders = [total.times(inverse)]
    for n in range(order):
        before = orders[-2].scaled(float(n)) if n else constant(1.0)
        orders.append(before.plus(place.times(orders[-1]).scaled(-1.0)))
    return orders
