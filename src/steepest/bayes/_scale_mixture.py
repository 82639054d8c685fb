"""Deep linear networks that interpolate: posterior and evidence as integrals over one scale."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, loggamma, psi

from steepest.core.errors import UserError
from steepest.core.signatures import checked

NODES = 256
"""Of the first trapezoid; it is halved until two agree."""
AGREEMENT = 1e-12
LARGE = 40.0
"""From where on Stirling's series with three terms is exact in double precision."""
NEGLIGIBLE = -42.0
"""Logarithm of what is left out at the ends, relative to the largest value."""


@checked
def scale_mixture(widths: Sequence[float], power: float, rate: float) -> float:
    r"""Return log E[s^(−power) e^(−rate/s)] for s = Π χ²_{n_l}/n_l, the squared scale of a deep linear network.

    The factors are independent. Mellin and Barnes make it one integral over a line, here through the saddle point,
    where the trapezoid converges exponentially:

    .. math::
        E[s^{-a}e^{-c/s}] = \frac{1}{2πi}\int Γ(z)\,c^{-z}\prod_l
        \Big(\frac{2}{n_l}\Big)^{z-a}\frac{Γ(n_l/2+z-a)}{Γ(n_l/2)}\,dz, \quad
        \mathrm{Re}\,z > \max(0, a - \min_l n_l/2)

    Args:
        widths: n_l of the hidden layers; none of them for s = 1.
        power: a, any real number.
        rate: c, not negative; with zero a must be below half of the smallest width.

    Returns:
        the logarithm, to about 1e-12, and 1e-10 for thousands of data or layers.

    Raises:
        UserError: a width that is not positive, a negative rate, or an expectation that is infinite.

    Source: the integral is a Meijer G-function, as in Hanin and Zlokapa 2023.

    >>> scale_mixture((), 3.0, 0.5)  # without hidden layers s is one
    -0.5
    >>> round(float(np.exp(scale_mixture((10, 20), -1.0, 0.0))), 12)  # the mean of s
    1.0
    >>> shallow, deep = (scale_mixture((20,) * depth, 10.0, 30.0) for depth in (1, 64))
    >>> bool(deep > shallow)  # data larger than the prior expects have more evidence in deep networks
    True
    """
    sizes, counts = _checked(widths, power, rate)
    if sizes.size == 0:
        return -float(rate)
    if rate == 0:  # E[s^(−a)] is a product over independent layers
        return float(counts @ _log_moment(sizes, -power))
    lowest = max(0.0, power - sizes.min() / 2)  # right of all poles of Γ(z) and of Γ(n_l/2 + z − a)
    logarithm = np.log(rate)

    def slope(x: float) -> float:
        # derivative of the exponent on the real line; it rises as ψ does: one zero, the saddle
        return float(psi(x) - logarithm + counts @ (np.log(2 / sizes) + psi(sizes / 2 + x - power)))

    def exponent(z: np.ndarray) -> Any:
        # log of Γ(z) c^(−z) E[s^(z − a)]; axes of z, then of the different widths
        return loggamma(z) - z * logarithm + _log_moment(sizes, z[..., None] - power) @ counts

    abscissa = _zero_above(slope, lowest)
    top = exponent(np.array(abscissa + 0j)).real

    def value(t: np.ndarray) -> np.ndarray:
        # the integrand over its largest value
        return np.exp(exponent(abscissa + 1j * t) - top).real

    end = 1.0
    while exponent(np.array(abscissa + 1j * end)).real - top > NEGLIGIBLE:
        end *= 1.3
    # (1/2πi)∫ dz = (1/2π)∫ dt over the line, whose real part is even in t: (1/π)∫ from 0
    return float(top + np.log(_trapezoid(value, end) / np.pi))


@checked
def posterior_scale(
    widths: Sequence[float], points: float, size: float, moment: float = 1.0
) -> float:
    r"""Return a posterior moment of the squared scale s of a deep linear network that interpolates noise-free data.

    Given s the weights θ are N(0, σ̃² s/n_0); given the data s has its prior's density times s^(−P/2) e^(−PA/2s):

    .. math:: E[s^k \mid X, y] = E[s^{k-P/2}e^{-PA/2s}]\,/\,E[s^{-P/2}e^{-PA/2s}]

    What lies off the data's span is Gaussian given s, so that E‖θ_⊥‖² = σ̃²(1 − P/n_0) E[s | X, y]. There must be
    fewer data than inputs, P < n_0; otherwise no network interpolates, or θ_⊥ vanishes.

    Args:
        widths: n_l of the hidden layers.
        points: P, the number of data.
        size: A = n_0‖θ_∥‖²/(P σ̃²), the data's size beside what the prior expects of them.
        moment: k.

    Raises:
        UserError: no data, or data that vanish.

    >>> round(posterior_scale((20, 20), 20, 3.0), 4), round(posterior_scale((), 20, 3.0), 4)
    (2.1285, 1.0)
    """
    _check_data(points, size)
    rate = points * size / 2  # c = PA/2
    above = scale_mixture(widths, points / 2 - moment, rate)  # a = P/2 − k
    return float(np.exp(above - scale_mixture(widths, points / 2, rate)))


@checked
def log_evidence(
    widths: Sequence[float],
    points: float,
    size: float,
    *,
    inputs: float | None = None,
    variance: float = 1.0,
    log_det: float = 0.0,
) -> float:
    r"""Return log Z, the logarithm of the prior density of the data under a deep linear network.

    .. math::
        Z = \Big(\frac{2πσ̃^2}{n_0}\Big)^{-P/2}\det(X^TX)^{-1/2}\,
        E\big[s^{-P/2}e^{-PA/(2σ̃^2s)}\big]

    Args:
        widths: n_l of the hidden layers.
        points: P.
        size: A = n_0‖θ_∥‖²/P, here without the variance; θ_∥ is the least interpolant.
        inputs: n_0, at least P; P where it is left out, since it only adds a constant.
        variance: σ̃² = σ^(2(L+1)), of all layers together.
        log_det: log det XᵀX, which only adds a constant too.

    Raises:
        UserError: no data, data that vanish, a variance that is not positive, more data than inputs.

    >>> depths = (0, 1, 8, 64)
    >>> evidence = [log_evidence((20,) * depth, 20, 3.0) for depth in depths]
    >>> [round(value - evidence[0], 2) for value in evidence]  # at P = n depth has an optimum
    [0.0, 4.73, 6.63, 5.49]
    """
    _check_data(points, size)
    if variance <= 0:
        raise UserError(f"the prior's variance must be positive, got {variance}; try 1")
    if inputs is not None and not inputs >= points:
        raise UserError(
            f"log_evidence: expected at most as many data as inputs, since no network interpolates more, got "
            f"P = {points} and n_0 = {inputs}; try inputs={points} or more"
        )
    constant = np.log(2 * np.pi * variance / (points if inputs is None else inputs))
    mixture = scale_mixture(widths, points / 2, points * size / (2 * variance))
    return float(mixture - points / 2 * constant - log_det / 2)


@checked
def best_variance(widths: Sequence[float], points: float, size: float) -> float:
    r"""Return the prior variance σ̃² at which the evidence is largest.

    There the posterior mean of A/(σ̃² s) is one. As widths n_l and P grow it tends to A, whatever the architecture;
    to leading order log(σ̃²/A) is m − q/m with m = 1/P + Σ1/n_l and q = 1/P² + Σ1/n_l², which is L/P where all n_l = P.

    Args:
        widths: n_l of the hidden layers.
        points: P.
        size: A = n_0‖θ_∥‖²/P.

    Raises:
        UserError: as :func:`log_evidence`.

    >>> round(best_variance((), 20, 3.0), 10), round(best_variance((20,), 20, 3.0), 2)
    (3.0, 3.15)
    """
    _check_data(points, size)

    def slope(log_variance: float) -> float:
        ratio = np.exp(-log_variance)
        # (2/P) d log Z/d log σ̃² = (A/σ̃²) E[1/s | X, y] − 1, with ratio = A/σ̃²
        return float(ratio * posterior_scale(widths, points, ratio, -1.0) - 1)

    # the slope falls from +∞ to −1, since the evidence tends to zero at both ends
    low, high = -1.0, 1.0
    while slope(low) < 0:
        low -= 1
    while slope(high) > 0:
        high += 1
    return float(size * np.exp(_root(slope, low, high)))  # log_variance is log(σ̃²/A)


@checked
def limit_scale(depth: float, size: float, layers: float = np.inf) -> float:
    r"""Return what s tends to when data, widths and perhaps layers grow together, at effective depth λ = PΣ1/n_l.

    .. math::
        s = e^u, \qquad u = λ(Ae^{-u} - 1) \quad (L → ∞), \qquad
        u = L\log\big(1 + \tfrac{λ}{L}(Ae^{-u} - 1)\big) \quad (\text{L equal layers})

    At λ = 0 it is 1, a kernel's posterior; as λ → ∞ it tends to A, which the best prior variance gives without depth.

    Args:
        depth: λ.
        size: A, positive.
        layers: L; infinite where it is left out.

    Raises:
        UserError: a negative depth, a size that is not positive, fewer than one layer.

    >>> [round(limit_scale(depth, 3.0), 3) for depth in (0, 2, 32, 1e6)]
    [1.0, 2.164, 2.903, 3.0]
    """
    if not (depth >= 0 and 0 < size < np.inf and layers >= 1):
        raise UserError(
            "limit_scale: expected a depth of at least zero, a positive finite size and at least one layer, got "
            f"{depth}, {size} and {layers}; try depth 1 and size 3"
        )
    if depth == 0:
        return 1.0
    if np.isinf(depth):
        return float(size)

    def excess(u: float) -> float:
        pull = depth * (size * np.exp(-u) - 1)  # λ(A e^{−u} − 1)
        if np.isinf(layers):
            return float(pull - u)
        # in place of u = L log(1 + pull/L), so that no logarithm meets a negative number
        return float(pull - layers * np.expm1(u / layers))

    # pull vanishes at u = log A and is λ(A − 1) at u = 0: the excess changes sign between them
    ends = sorted((0.0, float(np.log(size))))
    if ends[0] == ends[1]:
        return 1.0
    return float(np.exp(_root(excess, ends[0], ends[1])))


@checked
def scale_density(widths: Sequence[float], u: np.ndarray) -> np.ndarray:
    r"""Return the prior density of u = log s, s = Π χ²_{n_l}/n_l, by Fourier inversion.

    .. math:: p(u) = \frac{1}{2π}\int e^{-itu}\prod_l (2/n_l)^{it}\,Γ(n_l/2 + it)/Γ(n_l/2)\,dt

    Times s^(−P/2) e^(−PA/2s) it is the posterior's, up to a constant.

    Args:
        widths: n_l of the hidden layers, at least one.
        u: where, shape ``(points,)``.

    Returns:
        the density, shape ``(points,)``, to about 1e-12 absolute.

    Raises:
        UserError: no layer, or a width that is not positive.

    >>> u = np.linspace(-12, 6, 2001)
    >>> density = scale_density((5, 8), u)
    >>> bool(abs(np.trapezoid(density * np.exp(u), u) - 1) < 1e-9)  # the mean of s
    True
    """
    sizes, counts = _checked(widths, 0.0, 1.0)
    if sizes.size == 0:
        raise UserError(
            "without hidden layers the scale is one and has no density; give widths such as (20, 20)"
        )
    end = 1.0
    # |E[s^{it}]| below the negligible
    while float(_log_moment(sizes, 1j * end).real @ counts) > NEGLIGIBLE:
        end *= 1.3
    # the sum repeats with period 2π/step, beyond everything that is asked for and everything that has weight
    reach = 2 * float(np.abs(u).max()) + 40 * float(np.sqrt(counts @ (2 / sizes))) + 40
    t = np.arange(0, end, 2 * np.pi / reach)
    transform = np.exp(_log_moment(sizes, 1j * t[:, None]) @ counts)
    transform[0] /= 2  # the trapezoid's end: half a weight at t = 0
    waves: Any = np.exp(-1j * np.outer(u, t))
    # E[s^{−it}] is the conjugate: (1/2π)∫ over the line is (1/π) Re ∫ from 0
    return (waves @ transform).real * (t[1] - t[0]) / np.pi


def _checked(widths: Sequence[float], power: float, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the different widths and how many layers have each."""
    sizes, counts = np.unique(np.asarray(widths, float), return_counts=True)
    if sizes.size and not (sizes[0] > 0 and np.isfinite(sizes[-1])):
        raise UserError(f"widths must be positive numbers, got {tuple(widths)}; try (20, 20)")
    if not (rate >= 0 and np.isfinite(rate) and np.isfinite(power)):
        raise UserError(
            f"scale_mixture: expected a finite power and a finite rate of at least zero, got {power} and {rate}"
        )
    if rate == 0 and sizes.size and power >= sizes[0] / 2:
        raise UserError(
            f"E[s^(−{power:g})] is infinite at width {sizes[0]:g}; it needs a power below half the smallest width, "
            "or a positive rate"
        )
    return sizes, counts.astype(float)


def _check_data(points: float, size: float) -> None:
    if points <= 0 or size <= 0:
        raise UserError(
            f"expected a positive number of data and data of positive size, got P = {points} and A = {size}; "
            "try P = 20 and A = 3"
        )


def _log_moment(sizes: np.ndarray, k: Any) -> Any:
    """Return log E[(χ²_n/n)^k], k real or not.

    Where n is large the gamma functions cancel, so that Stirling's series is subtracted term by term.
    """
    half = sizes / 2
    moved = half + k
    ratio = k / half
    # log(1 + ratio) that keeps its digits near zero
    real = np.log1p(2 * ratio.real + np.abs(ratio) ** 2) / 2
    logarithm = real + 1j * np.angle(1 + ratio) if np.iscomplexobj(ratio) else real
    # with m = n/2 + k: (m − ½) log m − (n/2 − ½) log(n/2) − k + k log(2/n)
    # is (m − ½) log(1 + 2k/n) − k, in which no large terms cancel
    stirling = (moved - 0.5) * logarithm - k + _stirling(moved) - _stirling(half)
    large = np.minimum(half, np.abs(moved)) > LARGE
    small = np.where(large, half, moved)
    plain = k * np.log(2 / sizes) + loggamma(small) - gammaln(half)
    return np.where(large & (np.real(moved) > 0), stirling, plain)


def _stirling(z: Any) -> Any:
    """Return what Stirling's formula leaves out of log Γ(z)."""
    return 1 / (12 * z) - 1 / (360 * z**3) + 1 / (1260 * z**5)


def _zero_above(slope: Callable[[float], float], lowest: float) -> float:
    """Return the zero of a function that rises from −∞ at ``lowest`` to +∞."""
    step = 1.0
    while slope(lowest + step) > 0:
        step /= 2
    low = lowest + step
    while slope(lowest + step) < 0:
        step *= 2
    return _root(slope, low, lowest + step)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    root: Any = brentq(function, low, high, xtol=1e-13)
    return float(root)


def _trapezoid(value: Callable[[np.ndarray], np.ndarray], end: float) -> float:
    """Integrate an even function from 0 to ``end``, where it is negligible, halving the step until two sums agree."""
    nodes = NODES
    values = value(np.linspace(0, end, nodes + 1))
    total = (values.sum() - values[0] / 2) * end / nodes
    change = np.inf
    while True:
        step = end / nodes
        between = value(np.linspace(step / 2, end - step / 2, nodes)).sum() * step
        last_change = change
        change = abs(between - total) / 2  # half the step: the mean of trapezoid and midpoint sums
        total = (total + between) / 2
        # terms of size 1e5 in the exponent leave rounding above the agreement that is asked for
        if change <= AGREEMENT * abs(total) or change >= last_change:
            return float(total)
        nodes *= 2
