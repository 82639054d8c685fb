"""Dual activations to 50 digits with mpmath, by ways that the package does not use.

``python tests/kernels/references.py`` writes ``references.json``: for each activation and covariance (a, b, c) the
values of E σ(u)σ(v) and E σ'(u)σ'(v). One-dimensional integrals over the exact conditional mean of σ(v) given u, where
that is closed; for tanh, SiLU and softplus lattice sums in Fourier space.
"""

import json
import random
from pathlib import Path

import mpmath as mp

PLACE = Path(__file__).with_name("references.json")
DIGITS = 50
Q = mp.mpf


def covariances(count: int = 6, seed: int = 1) -> list[tuple[float, float, float]]:
    """Random covariances with σ_w² up to 400: ordinary, nearly parallel, nearly opposite, of unequal size."""
    rng = random.Random(seed)
    found = []
    for k in range(count):
        size = [0.5, 3.0, 20.0, 100.0, 400.0, 400.0][k % 6]
        a, b = (size * rng.uniform(0.2, 1.0) for _ in range(2))
        rho = [
            rng.uniform(-0.9, 0.9),
            0.999,
            -0.97,
            rng.uniform(0, 0.9),
            rng.uniform(-0.5, 0.5),
            0.9999,
        ][k % 6]
        found.append((a, b, rho * (a * b) ** 0.5))
    return found


# ------------------------------------------------------------------- by the conditional mean of the second variable


def _hinge(m, s):
    """E max(v, 0) for v ~ N(m, s²)."""
    return m * mp.ncdf(m / s) + s * mp.npdf(m / s)


def _left_exponential(m, s):
    """E e^v 1{v < 0}."""
    return mp.exp(m + s**2 / 2) * mp.ncdf(-(m + s**2) / s)


def _power(m, s, p):
    """E |v|^p, Kummer's function."""
    factor = s**p * mp.mpf(2) ** (p / 2) * mp.gamma((p + 1) / 2) / mp.sqrt(mp.pi)
    return factor * mp.hyp1f1(-p / 2, Q(1) / 2, -((m / s) ** 2) / 2)


def _signed_power(m, s, p):
    """E sign(v) |v|^p."""
    factor = s ** (p - 1) * mp.mpf(2) ** ((p + 1) / 2) * mp.gamma(p / 2 + 1) / mp.sqrt(mp.pi)
    return factor * m * mp.hyp1f1((1 - p) / 2, Q(3) / 2, -((m / s) ** 2) / 2)


def _gelu_slope(z):
    return mp.ncdf(z) + z * mp.npdf(z)


def _gelu_mean(m, s):
    w = mp.sqrt(1 + s**2)
    return m * mp.ncdf(m / w) + s**2 / w * mp.npdf(m / w)


def _gelu_slope_mean(m, s):  # the derivative of the mean with respect to m
    w = mp.sqrt(1 + s**2)
    return mp.ncdf(m / w) + m / w * mp.npdf(m / w) * (1 - s**2 / w**2)


LEAK = Q("0.2")
P = Q("1.5")
CONDITIONAL = {  # σ and E σ(v), then σ' and E σ'(v)
    "relu": ((lambda z: max(z, 0), _hinge), (lambda z: Q(z > 0), lambda m, s: mp.ncdf(m / s))),
    "leaky_relu(0.2)": (
        (lambda z: max(z, LEAK * z), lambda m, s: LEAK * m + (1 - LEAK) * _hinge(m, s)),
        (lambda z: Q(1) if z > 0 else LEAK, lambda m, s: LEAK + (1 - LEAK) * mp.ncdf(m / s)),
    ),
    "step": ((lambda z: Q(z > 0), lambda m, s: mp.ncdf(m / s)), None),
    "erf": (
        (mp.erf, lambda m, s: mp.erf(m / mp.sqrt(1 + 2 * s**2))),
        (
            lambda z: 2 / mp.sqrt(mp.pi) * mp.exp(-(z**2)),
            lambda m, s: 2 / mp.sqrt(mp.pi * (1 + 2 * s**2)) * mp.exp(-(m**2) / (1 + 2 * s**2)),
        ),
    ),
    "sin": (
        (mp.sin, lambda m, s: mp.exp(-(s**2) / 2) * mp.sin(m)),
        (mp.cos, lambda m, s: mp.exp(-(s**2) / 2) * mp.cos(m)),
    ),
    "gelu": ((lambda z: z * mp.ncdf(z), _gelu_mean), (_gelu_slope, _gelu_slope_mean)),
    "elu": (
        (
            lambda z: z if z > 0 else mp.expm1(z),
            lambda m, s: _hinge(m, s) + _left_exponential(m, s) - mp.ncdf(-m / s),
        ),
        (
            lambda z: Q(1) if z > 0 else mp.exp(z),
            lambda m, s: mp.ncdf(m / s) + _left_exponential(m, s),
        ),
    ),
    "abs_power(1.5)": (
        (lambda z: abs(z) ** P, lambda m, s: _power(m, s, P)),
        (lambda z: P * mp.sign(z) * abs(z) ** (P - 1), lambda m, s: P * _signed_power(m, s, P - 1)),
    ),
}


def by_conditional_mean(f, mean, a, b, c):
    """``∫ f(√a x) E[g(v) | x] φ(x) dx``, cut where f and the conditional mean turn."""
    deviation = mp.sqrt(a)
    rest = mp.sqrt(b - c**2 / a)
    turn = min(rest * mp.sqrt(a) / abs(c) if c else Q(4), Q(4))
    cuts = {Q(0)} | {
        side * each
        for side in (-1, 1)
        for each in (
            turn / 4,
            turn,
            3 * turn,
            8 * turn,
            1 / deviation,
            4 / deviation,
            1,
            2,
            4,
            7,
            11,
            16,
        )
    }
    ends = sorted(each for each in cuts if abs(each) <= 16)
    return mp.quad(
        lambda x: f(deviation * x) * mean(c / deviation * x, rest) * mp.npdf(x), ends, maxdegree=9
    )


# --------------------------------------------------------------------------------------------------- Fourier space


def lattice(a, b, c, period, terms):
    """``∫∫ exp(−(a s² + b t²)/2) term(s, t) / (sinh πs/p sinh πt/p)`` over s, t > 0, for terms even in s and in t.

    The trapezoidal rule off the axes; its error falls like exp(−2π d/h), with the nearest pole at d = p, and for the
    Gaussian like exp(−2π²/(a h²)).
    """
    nats = DIGITS * mp.log(10)
    step = [min(2 * mp.pi * period / nats, Q("0.41") / mp.sqrt(each)) for each in (a, b)]
    rho = abs(c) / mp.sqrt(a * b)
    rows = min(mp.sqrt(2 * nats / (a * (1 - rho**2))), nats * period / mp.pi) / step[0]
    band = int(mp.sqrt(2 * nats / b) / step[1]) + 1
    columns = [
        (j + Q(1) / 2) * step[1] for j in range(int(2 * nats * period / mp.pi / step[1]) + band)
    ]
    weights = [mp.exp(-b * t**2 / 2) / mp.sinh(mp.pi * t / period) for t in columns]
    totals = [Q(0)] * len(terms)
    for i in range(int(rows) + 1):
        s = (i + Q(1) / 2) * step[0]
        weight = mp.exp(-a * s**2 / 2) / mp.sinh(mp.pi * s / period)
        centre = int(abs(c) * s / b / step[1])  # where the Gaussian times exp(c s t) is largest
        for j in range(max(0, centre - band), min(centre + band, len(columns))):
            up = mp.exp(c * s * columns[j])
            odd = (up - 1 / up) / 2
            even = (up + 1 / up) / 2
            w = weight * weights[j]
            for k, term in enumerate(terms):
                totals[k] += w * term(s, columns[j], odd, even)
    return [total * step[0] * step[1] for total in totals]


def tanh(a, b, c):
    """``tanh z = ∫ sin(sz)/sinh(πs/2) ds`` over s > 0."""
    return lattice(a, b, c, 2, [lambda s, t, odd, even: odd, lambda s, t, odd, even: s * t * even])


def softplus(a, b, c):
    """``E σ'σ' = I`` with I the mean of two sigmoids, and σσ by integrating I over the covariance."""
    terms = [lambda s, t, odd, even: odd, lambda s, t, odd, even: (even - 1) / (s * t)]
    odd, even = lattice(a, b, c, 1, terms)
    ends = [-16, -8, -4, -2, -1, 0, 1, 2, 4, 8, 16]
    means = [
        mp.quad(lambda x, k=k: mp.log1p(mp.exp(mp.sqrt(k) * x)) * mp.npdf(x), ends, maxdegree=9)
        for k in (a, b)
    ]
    return [means[0] * means[1] + c / 4 + even, Q(1) / 4 + odd]


def silu(a, b, c):
    """``E uv g(u)g(v) = c I + (ab + c²) I_c + 2ac I_a + 2bc I_b`` with g the sigmoid (Stein), and its derivative."""
    terms = [
        lambda s, t, odd, even: odd,
        lambda s, t, odd, even: s * t * even,
        lambda s, t, odd, even: -(s**2) / 2 * odd,
        lambda s, t, odd, even: -(t**2) / 2 * odd,
        lambda s, t, odd, even: s**2 * t**2 * odd,
        lambda s, t, odd, even: -(s**3) * t / 2 * even,
        lambda s, t, odd, even: -s * t**3 / 2 * even,
    ]
    i, i_c, i_a, i_b, i_cc, i_ac, i_bc = lattice(a, b, c, 1, terms)
    i += Q(1) / 4
    value = c * i + (a * b + c**2) * i_c + 2 * a * c * i_a + 2 * b * c * i_b
    slope = (
        i
        + 3 * c * i_c
        + (a * b + c**2) * i_cc
        + 2 * a * (i_a + c * i_ac)
        + 2 * b * (i_b + c * i_bc)
    )
    return [value, slope]


def main() -> None:
    """Computes everything and writes the file."""
    found = []
    with mp.workdps(DIGITS):
        for name, pairs in CONDITIONAL.items():
            for a, b, c in covariances():
                exact = [Q(each) for each in (a, b, c)]
                values = [by_conditional_mean(*pair, *exact) if pair else None for pair in pairs]
                found.append(
                    [name, [a, b, c], [v if v is None else mp.nstr(v, 30) for v in values]]
                )
        for way in (tanh, softplus, silu):
            for a, b, c in covariances():
                values = way(*(Q(each) for each in (a, b, c)))
                found.append([way.__name__, [a, b, c], [mp.nstr(v, 30) for v in values]])
    PLACE.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
