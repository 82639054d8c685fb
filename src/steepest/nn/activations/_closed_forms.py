"""Dual activations in closed form: E σ(u)σ(v) and E σ'(u)σ'(v) for a centred Gaussian pair.

Angles are computed by a square root and a polynomial, which compile to vector instructions; the library's arctangent
does not. Each form is a function of the arrays ``(K_αα, K_ββ, K_αβ)``, which broadcast, and gives both arrays. The
second is also the derivative of the first with respect to K_αβ (Price 1958), which is what the tests check. Who knows
``root = √(K_αα K_ββ − K_αβ²)`` better than the rounded covariances tell gives it as a fourth array.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest.core.signatures import checked

Pair = tuple[Float[Array, "*shape"], Float[Array, "*shape"]]
DualForm = Callable[..., Pair]
"""``form(K_αα, K_ββ, K_αβ, root=None)``; see the module."""


@lru_cache
def _arc_series(terms: int) -> tuple[float, ...]:
    """Expand ``arccos(s)/√(1−s)`` on [0, 1], highest power first: 9 terms are 1e-8, 21 terms 1e-16 from it."""
    s = (np.polynomial.chebyshev.chebpts1(4 * terms) + 1) / 2
    # arccos s = 2 arcsin √((1 − s)/2) keeps its digits at s = 1; over √(1 − s) it is analytic
    values = 2 * np.arcsin(np.sqrt((1 - s) / 2)) / np.sqrt(1 - s)
    series = np.polynomial.Chebyshev.fit(s, values, terms - 1, domain=[0, 1])
    return tuple(
        float(coefficient)
        for coefficient in series.convert(kind=np.polynomial.Polynomial).coef[::-1]
    )


@checked
def angle_of(root: Float[Array, "*shape"], c: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return ``arctan2(root, c)`` for root ≥ 0: the angle θ between u and v, zero where both are zero.

    >>> with jax.enable_x64(True):
    ...     print(round(float(angle_of(jnp.float64(1.0), jnp.float64(-1.0)) / math.pi), 12))
    0.75
    """
    root = jnp.asarray(root, float)
    c = jnp.asarray(c, float)
    size = jnp.abs(c)
    length = jnp.sqrt(root**2 + size**2)
    safe = jnp.where(length > 0, length, 1.0)
    value = jnp.zeros_like(length)
    for coefficient in _arc_series(9 if length.dtype == jnp.float32 else 21):
        value = value * (size / safe) + coefficient
    # √(1 − s) = root / √(length (length + size))
    value = value * root / jnp.sqrt(safe * (safe + size))
    return jnp.where(c < 0, math.pi - value, value)


@lru_cache
def _supplement_series(terms: int) -> tuple[float, ...]:
    """Expand ``√(1+s) − s arccos(s)/√(1−s)`` on [0, 1], highest power first, as ``_arc_series`` does."""
    s = (np.polynomial.chebyshev.chebpts1(4 * terms) + 1) / 2
    # sin θ + (π − θ) cos θ at ρ = −s, over √(1 − s); at ρ = s the term π s is added
    values = np.sqrt(1 + s) - s * 2 * np.arcsin(np.sqrt((1 - s) / 2)) / np.sqrt(1 - s)
    series = np.polynomial.Chebyshev.fit(s, values, terms - 1, domain=[0, 1])
    return tuple(
        float(coefficient)
        for coefficient in series.convert(kind=np.polynomial.Polynomial).coef[::-1]
    )


@jax.custom_jvp
def arc_cosines(rho: Float[Array, "*shape"]) -> Pair:
    """Return ``sin θ + (π − θ) cos θ`` and ``π − θ`` of ``cos θ = ρ`` in [−1, 1]: arc-cosine kernels, times 2π and π.

    With ``s = |ρ|`` both are a polynomial of s times √(1 − s), and nothing or a multiple of ρ; each is computed from ρ
    alone, so that a compiler that fuses them into different loops repeats little.

    >>> with jax.enable_x64(True):
    ...     [round(float(value), 12) for value in arc_cosines(jnp.float64(0.0))]
    [1.0, 1.570796326795]
    """
    size = jnp.abs(rho)
    root = jnp.sqrt(1 - size)
    terms = 9 if size.dtype == jnp.float32 else 21
    value = _horner(_supplement_series(terms), size) * root + math.pi * jnp.maximum(rho, 0.0)
    angle = _horner(_arc_series(terms), size) * root
    return value, jnp.where(rho < 0, angle, math.pi - angle)


@arc_cosines.defjvp
def _arc_cosines_jvp(at, change):
    """The derivative of the first is the second, whose own is infinite at ρ = ±1, where zero is taken."""
    (rho,) = at
    (step,) = change
    value, angle = arc_cosines(rho)
    inside = jnp.abs(rho) < 1
    # d(π − arccos ρ)/dρ = 1/√(1 − ρ²), factored
    sine = jnp.sqrt(jnp.where(inside, (1 - rho) * (1 + rho), 1.0))
    return (value, angle), (angle * step, jnp.where(inside, step / sine, 0.0))


def _horner(coefficients: tuple[float, ...], x: Array) -> Array:
    total = jnp.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


def homogeneous(left: float, right: float) -> DualForm:
    """Return the dual of σ(z) = a± z for ±z > 0: the arc-cosine kernel of degree one.

    ``(a₊−a₋)² √(K_αα K_ββ) (sin θ + (π−θ) cos θ)/2π + a₊a₋ K_αβ``. Source: Cho and Saul 2009.
    """

    def form(a, b, c, root=None):
        root = _root(a, b, c, root)
        supplement = math.pi - angle_of(root, c)  # π − θ
        # √(K_αα K_ββ) (sin θ + (π−θ) cos θ), by its series where the terms cancel: sin δ − δ cos δ, δ = π − θ
        near = (
            jnp.sqrt(a * b)
            * supplement**3
            * jnp.polyval(jnp.asarray(_SERIES, supplement.dtype), supplement**2)
        )
        # σ = (a₊ − a₋) relu + a₋ z, and E u relu(v) = K_αβ/2
        size = (right - left) ** 2 / (2 * math.pi)
        value = size * jnp.where(supplement < 0.5, near, root + supplement * c) + left * right * c
        return value, size * supplement + left * right

    return form


# sin δ − δ cos δ = Σ_k (−1)^{k+1} 2k δ^{2k+1}/(2k + 1)!
_SERIES = [(-1) ** (k + 1) * 2 * k / math.factorial(2 * k + 1) for k in range(9, 0, -1)]


@jax.custom_jvp
def determinant(a, b, c) -> Float[Array, "*shape"]:
    """Return ``K_αα K_ββ − K_αβ²`` without cancellation, zero where it is negative.

    The rounding errors of both products are computed exactly and subtracted too (Dekker 1971), so that covariances
    near perfect correlation keep all the digits that they have.

    >>> with jax.enable_x64(True):
    ...     print(float(determinant(jnp.float64(1 + 2**-30), jnp.float64(1 - 2**-30), jnp.float64(1 - 2**-40))) > 0)
    True
    """
    a, b, c = (jnp.asarray(entry, float) for entry in (a, b, c))
    (product, lost) = _product(a, b)
    (square, lost_too) = _product(c, c)
    return jnp.maximum((product - square) + (lost - lost_too), 0.0)


@determinant.defjvp
def _determinant_jvp(at, change):
    (a, b, c) = at
    (da, db, dc) = change
    return determinant(a, b, c), b * da + a * db - 2 * c * dc


def _product(a, b):
    """Return the rounded product and its rounding error."""
    digits = jnp.finfo(a.dtype).nmant + 1

    def halves(x):
        # Veltkamp's splitting: halves so short that their products are exact
        scaled = x * (2.0 ** ((digits + 1) // 2) + 1)
        high = scaled - (scaled - x)
        return high, x - high

    product = a * b
    (a_high, a_low) = halves(a)
    (b_high, b_low) = halves(b)
    return product, a_low * b_low - (
        ((product - a_high * b_high) - a_low * b_high) - a_high * b_low
    )


def _root(a, b, c, root):
    """Return ``√(K_αα K_ββ − K_αβ²)``, unless it is known."""
    return jnp.sqrt(determinant(a, b, c)) if root is None else root


def _square(a, b, c, root):
    return determinant(a, b, c) if root is None else root**2


def step(a, b, c, root=None) -> Pair:
    """Return the dual of the step, the probability ``(π − θ)/2π``; its derivative is the density at (0, 0)."""
    root = _root(a, b, c, root)
    return (math.pi - angle_of(root, c)) / (2 * math.pi), 1 / (2 * math.pi * root)


def erf(a, b, c, root=None) -> Pair:
    """Return ``(2/π) arcsin(2 K_αβ / √((1 + 2 K_αα)(1 + 2 K_ββ)))`` (Williams 1997)."""
    # arcsin(2c/H) = arctan(2c/√(H² − 4c²)), and H² − 4c² = 1 + 2a + 2b + 4 det K
    adjacent = jnp.sqrt(1 + 2 * a + 2 * b + 4 * _square(a, b, c, root))
    return 2 / math.pi * jnp.sign(c) * angle_of(2 * jnp.abs(c), adjacent), 4 / math.pi / adjacent


def gelu(a, b, c, root=None) -> Pair:
    """Return the dual of σ(z) = z Φ(z), by Stein's lemma from ``I = E Φ(u)Φ(v)``, a probability of a quadrant.

    ``E uv Φ(u)Φ(v) = K_αβ I + (K_αα K_ββ + K_αβ²) I_uv + K_αβ (K_αα I_uu + K_ββ I_vv)``, where subscripts are
    derivatives under the mean: ``I_uv = 1/(2πD)``, ``I_uu = −K_αβ/(2π(1 + K_αα)D)``, ``D² = (1+K_αα)(1+K_ββ) − K_αβ²``.
    """
    det = _square(a, b, c, root)
    square = 1 + a + b + det  # D²
    d = jnp.sqrt(square)
    # P(X < u, Y < v) for standard normal X, Y: covariance c, variances 1 + a, 1 + b
    quadrant = (math.pi - angle_of(d, c)) / (2 * math.pi)
    # the terms over 2πD are ab + c² (1 − a/(1 + a) − b/(1 + b)) = det K + c² s, none of them below zero
    s = 1 / (1 + a) + 1 / (1 + b)
    value = c * quadrant + (det + c**2 * s) / (2 * math.pi * d)
    # by c, with I' = 1/2πD and (1/D)' = c/D³: 2 s − 1 + (det K + c² s)/D², in which c² = ab − det K leaves s + 1/D²
    return value, quadrant + c / (2 * math.pi * d) * (s + 1 / square)


def sin(a, b, c, root=None) -> Pair:
    """Return ``exp(−(K_αα + K_ββ)/2) sinh K_αβ``, and cosh, without overflow or cancellation."""
    size = jnp.abs(c)
    # e^{|c|} is taken out: |c| ≤ (a + b)/2, so that no exponential overflows
    scale = jnp.exp(size - (a + b) / 2) / 2
    return jnp.sign(c) * scale * -jnp.expm1(-2 * size), scale * (1 + jnp.exp(-2 * size))


def cos(a, b, c, root=None) -> Pair:
    """Return ``exp(−(K_αα + K_ββ)/2) cosh K_αβ``, and sinh."""
    odd, even = sin(a, b, c)
    return even, odd


def exponential(a, b, c, root=None) -> Pair:
    """Return the dual of exp z, ``exp((K_αα + K_ββ)/2 + K_αβ)``, its own derivative."""
    value = jnp.exp((a + b) / 2 + c)
    return value, value


def gaussian(a, b, c, root=None) -> Pair:
    """Return the dual of exp(−z²/2): ``1/D`` with ``D² = (1+K_αα)(1+K_ββ) − K_αβ²``, and ``K_αβ/D³``."""
    # E exp(−(u² + v²)/2) = det(I + K)^{−1/2}
    square = 1 + a + b + _square(a, b, c, root)
    return square**-0.5, c * square**-1.5


def polynomial(coefficients: Sequence[float]) -> DualForm:
    """Return the dual of Σ p_j z^j by Hermite expansion, ``Σ_k k! h_k(K_αα) h_k(K_ββ) K_αβ^k``.

    ``h_k(K) = Σ_j p_j (j choose k) (j−k−1)!! K^{(j−k)/2}`` over j − k even.
    """
    slopes = [j * p for j, p in enumerate(coefficients)][1:]
    return lambda a, b, c, root=None: (
        _hermite_sum(coefficients, a, b, c),
        _hermite_sum(slopes, a, b, c),
    )


def _hermite_sum(p: Sequence[float], a, b, c):
    def h(k, variance):
        # z^j = Σ_k (j choose k)(j − k − 1)!! K^{(j−k)/2} He_k(z; K), and E He_k(u) He_k(v) = k! c^k
        terms = [
            p[j] * math.comb(j, k) * _odd_factorial(j - k) * variance ** ((j - k) // 2)
            for j in range(k, len(p), 2)
        ]
        return sum(terms, start=jnp.zeros_like(variance))

    zero = jnp.zeros_like(a * b * c)
    return sum((math.factorial(k) * h(k, a) * h(k, b) * c**k for k in range(len(p))), start=zero)


def _odd_factorial(even: int) -> int:
    """Return ``(m − 1)!!``, the m-th moment of a standard Gaussian for even m."""
    return math.prod(range(1, even, 2))


def relu_square(a, b, c, root=None) -> Pair:
    """Return the arc-cosine kernel of degree two, ``K_αα K_ββ (3 sin θ cos θ + (π−θ)(1 + 2 cos²θ))/2π``."""
    angle = angle_of(_root(a, b, c, root), c)
    rho = jnp.cos(angle)
    # E relu(u)² relu(v)² = ab J₂/2π, and the derivative 2 relu gives four times degree one
    turned = 3 * jnp.sin(angle) * rho + (math.pi - angle) * (1 + 2 * rho**2)
    return a * b * turned / (2 * math.pi), 4 * homogeneous(0.0, 1.0)(a, b, c, root)[0]
