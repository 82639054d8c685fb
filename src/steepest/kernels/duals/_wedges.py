"""Expectations ``E f(u)g(v)`` of piecewise functions over a Gaussian pair: one integral over an angle for two ramps.

A ramp of u and one of v live on a wedge of the plane. With ``x = u/√K_αα``, ``y = v/√K_ββ`` and thresholds h, k, and in
coordinates in which the pair is isotropic, the wedge has the angle ``Ω = π/2 + arcsin ρ``, a point at the distance r
from its corner in the direction ψ has ``x − h = r sin ψ`` and ``y − k = r sin(Ω − ψ)``, and the density

    exp(−|c|²/2)/2π · exp(−r²/2 − r c(ψ)),   c(ψ) = (c_1 sin ψ + c_0 sin(Ω − ψ))/sin Ω,

with the corner c, ``|c|² = h² + c_0²``, ``c_0 = (k − ρh)/sin Ω`` and ``c_1 = (h − ρk)/sin Ω``. So the integral over
r of powers of r is a moment of Mills' ratio. ``exp(−p(x − h))`` adds ``p sin Ω`` to c_1, and its like for y to c_0. For
h = k = 0 these are the arc-cosine kernels (Cho and Saul 2009).

Where c_0 < 0 the foot of the perpendicular from the origin is on the edge x = h, and as ρ → 1 the density turns into a
ridge along it. Then the wedge is the half plane x > h, a one-dimensional expectation in closed form, without the wedge
beyond the other edge, on which c(ψ) ≥ 0 and nothing is sharp. So one rule of Gauss and Legendre serves all
correlations and thresholds.
"""

import math
from collections import defaultdict
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from steepest.kernels.duals._mills import Differences, moment_differences, moments
from steepest.nn.activations import Ramp, Split, arc_cosines

FLAT = {4: 1e-18, 8: 1e-30}  # least 1 ± ρ, by whose root is divided


class Wedge(NamedTuple):
    """Which two ramps meet, up to their coefficients: all of one kind share their integrals.

    Attributes:
        first: distance of the first knot from the origin.
        second: of the second.
        orientation: 1 if both ramps are on one side of the origin, else −1.
        first_rate: at which the first ramp decays.
        second_rate: at which the second does.
    """

    first: float
    second: float
    orientation: int
    first_rate: float
    second_rate: float

    @property
    def cone(self) -> bool:
        """Tell whether both knots are at the origin."""
        return self.first == 0 and self.second == 0


class Product(NamedTuple):
    """Powers of both distances, and which difference of the moment belongs to them (``Differences``)."""

    powers: tuple[int, int]
    corner: str


Weights = dict[Product, list[float]]
"""Coefficients of each product, one for each expectation that is computed."""
Sums = tuple[tuple[Wedge, tuple[tuple[Product, tuple[float, ...]], ...]], ...]


Pair = tuple[Split, Split]


class Site(NamedTuple):
    """What is needed of one of both variables.

    Attributes:
        root: its deviation, not zero.
        inverse: one over it.
    """

    root: Any
    inverse: Any


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def ramp_expectations(
    pairs: tuple[Pair, ...], nodes: int, c: Array, one: Array, two: Array
) -> list[Array]:
    """Return ``E ω_f(u)ω_g(v)`` of the ramps ω of each pair (f, g) of functions.

    Derivatives are expectations of derivatives where both functions are continuous (Price 1958). Where one jumps they
    follow from the formula, and are zero at ρ = ±1, where there are none.

    Args:
        pairs: of piecewise functions.
        nodes: of the rule for the angle.
        c: covariances.
        one: deviations of u, positive; arrays that broadcast.
        two: of v.
    """
    return _expectations(pairs, nodes, c, one, two)


def _expectations(
    pairs: tuple[Pair, ...], nodes: int, c: Array, deviation: Array, other_deviation: Array
) -> list[Array]:
    first = Site(deviation, 1 / deviation)
    second = Site(other_deviation, 1 / other_deviation)
    rho = jnp.clip(c * (first.inverse * second.inverse), -1.0, 1.0)
    return _integrals(wedges_of(pairs), len(pairs), nodes, first, second, rho)


@ramp_expectations.defjvp
def _ramp_expectations_jvp(pairs, nodes, at, change):
    c, deviation, other_deviation = at
    c_change, change_here, change_there = change
    smooth = tuple(pair for pair in pairs if all(f.continuous for f in pair))
    rough = tuple(pair for pair in pairs if pair not in smooth)
    derived = [
        pair
        for f, g in smooth
        for pair in ((f.derivative(), g.derivative()), (f.turned(), g), (f, g.turned()))
    ]
    values = ramp_expectations((*pairs, *derived), nodes, c, deviation, other_deviation)
    tangents = {}
    for index, pair in enumerate(smooth):
        slope, first, second = values[len(pairs) + 3 * index :][:3]
        # ∂/∂√K_αα = √K_αα E f''(u)g(v) = (E[u f'(u)g(v)] − K_αβ E f'g')/√K_αα by Stein's lemma
        in_first = (first - c * slope) / deviation
        in_second = (second - c * slope) / other_deviation
        tangents[pair] = slope * c_change + in_first * change_here + in_second * change_there
    if rough:
        formula = lambda *at: _expectations(rough, nodes, *at)
        _, changes = jax.jvp(formula, at, change)
        inside = jnp.abs(c) < deviation * other_deviation
        for pair, tangent in zip(rough, changes, strict=True):
            tangents[pair] = jnp.where(inside, tangent, 0.0)
    return values[: len(pairs)], [tangents[pair] for pair in pairs]


@lru_cache
def wedges_of(pairs: tuple[Pair, ...]) -> Sums:
    """List the wedges of some expectations ``E f(u)g(v)`` and their coefficients."""

    def weights_of_wedge() -> Weights:
        return defaultdict(lambda: [0.0] * len(pairs))

    sums: dict[Wedge, Weights] = defaultdict(weights_of_wedge)
    for index, (f, g) in enumerate(pairs):
        for ramp in f.ramps:
            for other in g.ramps:
                _add(sums, ramp, other, index)
    return tuple(
        (wedge, tuple((product, tuple(c)) for product, c in weights.items() if any(c)))
        for wedge, weights in _merged(sums).items()
    )


def _add(sums: dict[Wedge, Weights], ramp: Ramp, other: Ramp, index: int) -> None:
    orientation = ramp.side * other.side
    cone = ramp.knot == other.knot == 0
    terms = _from_origin if cone else _as_they_are
    for c, power, rate, differs in terms(ramp):
        for d, other_power, other_rate, differs_too in terms(other):
            wedge = Wedge(ramp.distance, other.distance, orientation, rate, other_rate)
            corner = _CORNERS[differs, differs_too]
            sums[wedge][Product((power, other_power), corner)][index] += c * d


_CORNERS = {
    (False, False): "start",
    (True, False): "first",
    (False, True): "second",
    (True, True): "mixed",
}


def _as_they_are(ramp: Ramp) -> list[tuple[float, int, float, bool]]:
    """Return coefficient, power and rate of decay of each term."""
    return [(c, power, -rate, False) for c, power, rate in ramp.terms]


def _from_origin(ramp: Ramp) -> list[tuple[float, int, float, bool]]:
    """Write exponentials as ``1 + (exp − 1)``, so that a ramp that starts slowly has no large terms that cancel."""
    exponentials = [(c, power, -rate, True) for c, power, rate in ramp.terms if rate]
    powers: dict[int, list[float]] = defaultdict(list)
    for c, power, _ in ramp.terms:
        powers[power].append(c)
    sums = {power: (math.fsum(values), sum(map(abs, values))) for power, values in powers.items()}
    kept = [
        (total, m, 0.0, False) for m, (total, size) in sums.items() if abs(total) > 1e-14 * size
    ]
    return exponentials + kept


def _merged(sums: dict[Wedge, Weights]) -> dict[Wedge, Weights]:
    """Let products without a difference share the moments of products with one."""
    merged: dict[Wedge, Weights] = {}
    most_first = sorted(sums, key=lambda w: -((w.first_rate > 0) + (w.second_rate > 0)))
    for wedge in most_first:
        host = next((w for w in merged if wedge.cone and _hosts(w, wedge)), wedge)
        merged.setdefault(host, {}).update(sums[wedge])
    return merged


def _hosts(host: Wedge, guest: Wedge) -> bool:
    return (
        host.cone
        and host.orientation == guest.orientation
        and guest.first_rate in (0.0, host.first_rate)
        and guest.second_rate in (0.0, host.second_rate)
    )


# ------------------------------------------------------------------------------------------------ the integral


class _Turn(NamedTuple):
    """The angle of wedges of one orientation.

    Attributes:
        rho: the correlation, its sign turned where the ramps are on different sides.
        less: 1 − ρ, but never zero.
        angle: Ω.
        beyond: π − Ω.
        sine: sin Ω, but never zero.
    """

    rho: Array
    less: Array
    angle: Array
    beyond: Array
    sine: Array


class _Sector(NamedTuple):
    """What is integrated over an angle: the wedge, or what it lacks of a half plane.

    Attributes:
        wedge: the kind.
        products: whose integrals are taken, with the coefficients in each expectation.
        angle: its opening.
        density: what the integrand is multiplied by.
        steepness: slopes of the exponent along both edges, over sin Ω.
        beyond: whether the foot of the perpendicular is on the first edge, or the second; None if never.
    """

    wedge: Wedge
    products: tuple[tuple[Product, tuple[float, ...]], ...]
    angle: Array
    density: Array
    steepness: tuple[Array, Array]
    beyond: tuple[Array, Array] | None


def _integrals(sums: Sums, count: int, nodes: int, one: Site, two: Site, rho: Array) -> list[Array]:
    """Sum the integrals of each expectation, of which there are ``count``, at correlations in [−1, 1]."""
    turns = {side: _turn(side * rho) for side in {wedge.orientation for wedge, _ in sums}}
    totals = [jnp.zeros_like(rho * one.root * two.root)] * count
    sectors = []
    for wedge, products in sums:
        turn = turns[wedge.orientation]
        if wedge.cone:
            sectors.append(_cone(wedge, products, turn))
            continue
        sector, halves = _sector(wedge, products, turn, one, two)
        sectors.append(sector)
        totals = [total + half for total, half in zip(totals, halves, strict=True)]
    places, weights = np.polynomial.legendre.leggauss(nodes)
    steps = jnp.asarray(np.stack([(1 + places) / 2, (1 - places) / 2, weights / 2], 1), rho.dtype)

    def add(totals: list[Array], step: Array) -> tuple[list[Array], None]:
        for sector in sectors:
            parts = _integrand(sector, step[0], step[1], one, two, count)
            totals = [t + step[2] * part for t, part in zip(totals, parts, strict=True)]
        return totals, None

    return jax.lax.scan(add, totals, steps)[0]


def _turn(rho: Array) -> _Turn:
    # both factors of 1 − ρ² as they are where it counts, and their limits where ρ is ±1
    least = FLAT[rho.dtype.itemsize]
    less = jnp.maximum(1 - rho, least)
    sine = jnp.sqrt(less * jnp.maximum(1 + rho, least))
    return _Turn(rho, less, arc_cosines(rho)[1], arc_cosines(-rho)[1], sine)


def _cone(wedge: Wedge, products: Any, turn: _Turn) -> _Sector:
    """Return the sector of two knots at the origin, where the density is isotropic."""
    zero = jnp.zeros_like(turn.rho)
    return _Sector(wedge, products, turn.angle, turn.angle / (2 * math.pi), (zero, zero), None)


def _sector(
    wedge: Wedge, products: Any, turn: _Turn, one: Site, two: Site
) -> tuple[_Sector, list[Array]]:
    """Return the sector of any wedge, and what the half plane adds where it is the sector beyond."""
    h = wedge.first * one.inverse
    k = wedge.second * two.inverse
    p = wedge.first_rate * one.root
    q = wedge.second_rate * two.root
    # k − ρh without cancellation where ρ is near one and the thresholds are near each other
    ahead = (k - h) + turn.less * h
    behind = (h - k) + turn.less * k
    along_first = ahead / turn.sine + q * turn.sine
    along_second = behind / turn.sine + p * turn.sine
    beyond = along_first < 0, along_second < 0
    crossed = beyond[0] | beyond[1]
    angle = jnp.where(crossed, turn.beyond, turn.angle)
    density = jnp.exp(-(h**2 + (ahead / turn.sine) ** 2) / 2) * angle / (2 * math.pi)
    steepness = jnp.abs(along_second) / turn.sine, jnp.abs(along_first) / turn.sine
    sector = _Sector(wedge, products, angle, density, steepness, beyond)
    # the foot is on the edge of the first threshold where along_first < 0, else on the second's
    first = beyond[0]
    threshold = jnp.where(first, h + p + turn.rho * q, k + q + turn.rho * p)
    tilt = jnp.where(first, q, p)
    gap = jnp.where(first, ahead, behind)
    level = jnp.where(first, h, k)
    half = _half_plane(products, threshold, tilt, gap, level, turn, first, one, two)
    return sector, [jnp.where(crossed, part, 0.0) for part in half]


def _half_plane(
    products: Any,
    threshold: Array,
    tilt: Array,
    gap: Array,
    level: Array,
    turn: _Turn,
    first: Array,
    one: Site,
    two: Site,
) -> list[Array]:
    """Integrate over x > h, or y > k where ``first`` is not: in ξ = x − h and, freely, in η along the edge.

    The other distance is ``y − k = ρξ + η sin Ω`` there, and η is Gaussian with the mean ``−c_0`` and variance one.
    """
    # mean and variance of η sin Ω, with c_0 sin Ω = k − ρh + q sin² Ω
    spread = turn.sine**2
    mean = -(gap + tilt * spread)
    # exp((c_0² − |c|²)/2): the tilt q leaves q(2(k − ρh) + q sin² Ω)/2 beside the threshold's density
    exponent = -(level**2) / 2 + tilt * (2 * gap + tilt * spread) / 2
    density = jnp.exp(jnp.minimum(exponent, 0.0)) / math.sqrt(2 * math.pi)
    order = max(sum(product.powers) for product, _ in products)
    ratio = moments(jnp.maximum(threshold, 0.0), order)
    of_edge = _normal_moments(mean, spread, order)

    def integral(power: int, other: int) -> Array:
        total = jnp.zeros_like(density)
        for j in range(other + 1):
            chosen = math.comb(other, j) * turn.rho**j * of_edge[other - j]
            total = total + chosen * ratio[power + j]
        return total

    totals = [jnp.zeros_like(density)] * len(products[0][1])
    for product, coefficients in products:
        power, other = product.powers
        value = integral(power, other)
        if power != other:
            value = jnp.where(first, value, integral(other, power))
        value = density * value * one.root**power * two.root**other
        totals = [t + c * value if c else t for t, c in zip(totals, coefficients, strict=True)]
    return totals


def _normal_moments(mean: Array, variance: Array, order: int) -> list[Array]:
    """Return ``E η^n`` for n = 0, …, order, by ``E η^{n+1} = m E η^n + n s E η^{n−1}``."""
    orders = [jnp.ones_like(mean)]
    for n in range(order):
        before = n * variance * orders[-2] if n else 0.0
        orders.append(mean * orders[-1] + before)
    return orders


def _integrand(
    sector: _Sector, share: Array, share_left: Array, one: Site, two: Site, count: int
) -> list[Array]:
    """Return what is integrated at a share of the angle, times the densities."""
    towards = _sine(sector.angle * share)
    away = _sine(sector.angle * share_left)
    order = 1 + max(sum(product.powers) for product, _ in sector.products)
    c = sector.steepness[0] * towards + sector.steepness[1] * away
    wedge = sector.wedge
    if wedge.cone and (wedge.first_rate or wedge.second_rate):
        steps = wedge.first_rate * one.root * towards, wedge.second_rate * two.root * away
        first_step, second_step = jnp.broadcast_arrays(*steps)
        at = moment_differences(first_step, second_step, order)
    elif wedge.cone:
        at = [Differences(moment, 0.0, 0.0, 0.0) for moment in _at_zero(order)]
    else:
        at = [Differences(moment, 0.0, 0.0, 0.0) for moment in moments(c, order)]
    first = towards * one.root
    second = away * two.root
    totals = [jnp.zeros_like(c)] * count
    for product, coefficients in sector.products:
        power, other = product.powers
        moment = getattr(at[power + other + 1], product.corner)
        distances = first**power * second**other * _sign(sector, power, other)
        value = sector.density * distances * moment
        totals = [t + a * value if a else t for t, a in zip(totals, coefficients, strict=True)]
    return totals


def _sign(sector: _Sector, power: int, other: int) -> Any:
    """Return the sign of a product: a half plane has the sector too much, where the other distance is negative."""
    if sector.beyond is None:
        return 1.0
    first, second = sector.beyond
    return jnp.where(first, -((-1.0) ** other), jnp.where(second, -((-1.0) ** power), 1.0))


def _at_zero(order: int) -> list[float]:
    """Return ``∫ r^n exp(−r²/2) dr = 2^{(n−1)/2} Γ((n + 1)/2)``."""
    return [2 ** ((n - 1) / 2) * math.gamma((n + 1) / 2) for n in range(order + 1)]


@lru_cache
def _sine_series(terms: int) -> NDArray[np.float64]:
    """Expand ``sin(x)/x`` in powers of x² on [0, π], highest first."""
    square = (np.polynomial.chebyshev.chebpts1(4 * terms) + 1) / 2 * math.pi**2
    values = np.sinc(np.sqrt(square) / math.pi)
    fitted = np.polynomial.Chebyshev.fit(square, values, terms - 1, domain=[0, math.pi**2])
    return np.asarray(fitted.convert(kind=np.polynomial.Polynomial).coef[::-1], float)


def _sine(x: Array) -> Array:
    """Return sin x on [0, π] by a polynomial, which compiles to vector instructions."""
    total: Any = 0.0
    for coefficient in _sine_series(6 if x.dtype == jnp.float32 else 11):
        total = total * x**2 + float(coefficient)
    return x * total
