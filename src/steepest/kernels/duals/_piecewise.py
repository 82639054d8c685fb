"""Expectations of piecewise functions of Gaussians: of one, and of a pair but for two ramps (``_wedges``).

With σ = p + ω, a polynomial and ramps, ``E p(u)f(v) = Σ_k K_αβ^k/k! E p^(k) E f^(k)``, by Stein's lemma k times, and
f^(k) with the masses that jumps leave. So all but the ramps among themselves are products of numbers of one position.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steepest.kernels.duals._mills import moment_differences, moments
from steepest.nn.activations import Pieces, Ramp, Split, Term, products


def base_means(split: Split, variance: Any, orders: int) -> list[Any]:
    """Return the means of the polynomial and of its derivatives, ``E p^(k)(u)`` for k < ``orders``."""
    return [
        sum(
            (
                c * math.perm(j, k) * math.prod(range(1, j - k, 2)) * variance ** ((j - k) // 2)
                for j, c in enumerate(split.base)
                if j >= k and (j - k) % 2 == 0
            ),
            start=0.0 * variance,
        )
        for k in range(orders)
    ]


def ramp_means(split: Split, variance: Any, xp: Any, orders: int) -> list[Any]:
    """Return the means of all ramps and of their derivatives, ``E ω^(k)(u)`` for k < ``orders``, at K > 0."""
    root = xp.sqrt(variance)
    means = []
    for order in range(orders):
        total = 0.0 * variance
        for ramp in split.ramps:
            total = total + _ramp_mean(ramp, order, root, xp)
        means.append(total)
    return means


def _ramp_mean(ramp: Ramp, order: int, root: Any, xp: Any) -> Any:
    """Return the mean of a derivative of a ramp: of its terms beyond the knot, and of the masses at the knot."""
    h = ramp.distance / root
    density = xp.exp(-(h**2) / 2) / math.sqrt(2 * math.pi)
    derivative = ramp
    masses = 0.0 * root
    for before in range(order):
        # ω^(k) has the derivatives δ^(j) of masses at the knot, j = k − 1 − l, times ω^(l) there
        j = order - 1 - before
        sign = ramp.side ** (j + 1)
        masses = masses + derivative.start * sign * _hermite(j, h, xp) / root ** (j + 1)
        derivative = derivative.derivative()
    return density * (masses + _beyond(derivative, h, root, xp))


def _hermite(order: int, h: Any, xp: Any) -> Any:
    """Return ``He_j(h)``, as ``E δ^(j)(x − h) = He_j(h) φ(h)``."""
    return np.polynomial.hermite_e.hermeval(h, [0.0] * order + [1.0]) + xp.zeros_like(h)


def _beyond(ramp: Ramp, h: Any, root: Any, xp: Any) -> Any:
    """Return ``E ω(u)`` over the density at the knot: ``∫ ω(√K s) exp(−s²/2 − hs) ds``."""
    total = 0.0 * root
    order = max((term.power for term in ramp.terms), default=0)
    for rate in sorted({term.rate for term in ramp.terms}):
        terms = [term for term in ramp.terms if term.rate == rate]
        if rate and ramp.knot == 0:
            p = -rate * root
            # of exp(−ps) − 1; the rest is with the powers below
            at = [m.first for m in moment_differences(p, xp.zeros_like(p), order)]
        else:
            at = moments(h - rate * root, order)
        for c, power, _ in terms:
            total = total + c * root**power * at[power]
    if ramp.knot == 0 and any(term.rate for term in ramp.terms):
        at = moments(h, order)
        for power in range(order + 1):
            # with the powers they add up to little where ω starts slowly, and exactly
            c = math.fsum(t.coefficient for t in ramp.terms if t.power == power and t.rate)
            total = total + c * root**power * at[power]
    return total


def mean_of(pieces: Pieces, variance: Any, xp: Any) -> Any:
    """Return ``E f(u)``, at K > 0."""
    split = pieces.split()
    assert split is not None
    return base_means(split, variance, 1)[0] + ramp_means(split, variance, xp, 1)[0]


def ramp_sizes(pieces: Pieces, variance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``(Σ √E f_i²)²`` of the polynomial and of the ramps f_i, at K > 0."""
    split = pieces.split()
    assert split is not None
    polynomial = Pieces((), (tuple(Term(c, power) for power, c in enumerate(split.base)),))
    total = np.sqrt(mean_of(polynomial.times(polynomial), variance, np))
    for ramp in split.ramps:
        square = ramp._replace(terms=products(ramp.terms, ramp.terms))
        of_ramp = ramp_means(Split((0.0,), (square,)), variance, np, 1)[0]
        total = total + np.sqrt(np.maximum(of_ramp, 0.0))
    return total**2


def envelope(pieces: Pieces, variance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bound the smooth part next to a knot: ``φ(h) E|f(√K(ρh + √(1 − ρ²) z))|`` for all h and ρ.

    By ``|z|^m ≤ (h + |z|)^m`` with ``max φ(h) E(h + |z|)^m``, and exponentials that are one at most.
    """
    split = pieces.split()
    assert split is not None
    sizes = [0.0] * 9
    for power, c in enumerate(split.base):
        sizes[power] += abs(c)
    for ramp in split.ramps:
        for c, power, _ in ramp.terms:
            sizes[power] += abs(c)
    return sum(
        (c * _farthest(power) * variance ** (power / 2) for power, c in enumerate(sizes) if c),
        start=np.zeros_like(variance),
    )


@lru_cache
def _farthest(power: int) -> float:
    """Return ``max_h φ(h) E(h + |z|)^m``."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    h = np.linspace(0, 6, 61)
    moments_of_sum = (h[:, None] + np.abs(nodes)) ** power @ weights / weights.sum()
    return float((np.exp(-(h**2) / 2) * moments_of_sum).max() / math.sqrt(2 * math.pi))
