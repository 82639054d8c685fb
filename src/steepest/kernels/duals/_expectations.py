"""Three ways to the expectations of one layer, for many pairs at once: closed form, Hermite expansion, quadrature."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from steepest.kernels.duals._moments import certified_means, padded
from steepest.nn.activations import Activation, DualForm, closed_form, gaussian_mean, jumps

# the trapezoidal rule is exact to rounding for smooth σ at deviations to 20
REACH = 13.0
NODES = 2049
TERMS = 1024
Vector = NDArray[np.float64]


class Moments(NamedTuple):
    """Expectations of one layer over pairs (α, β) of inputs, with absolute errors."""

    value: Vector
    """E σ(u)σ(v), shape ``(t,)``."""
    slope: Vector
    """E σ'(u)σ'(v), shape ``(t,)``."""
    value_error: Vector
    slope_error: Vector


def single_moments(activation: Activation, variances: Vector) -> tuple[Vector, Vector]:
    """Compute ``E σ(z)²`` and ``E σ'(z)²`` (NaN when σ jumps) under N(0, K), of the variances' shape, in float64."""
    with jax.enable_x64(True):
        form = closed_form(activation)
        k = padded(variances, 64)
        value, slope = (
            _compiled(form)(k, k, k, jnp.zeros_like(k)) if form else _single_of(activation)(k)
        )
        value, slope = (np.asarray(array)[: len(variances)] for array in (value, slope))
    if not np.all(
        variances
    ):  # of a signal that is zero σ' is its value there, on no side of a kink
        still, steepness = at_rest(activation)
        value = np.where(variances == 0, still**2, value)
        slope = np.where(variances == 0, steepness**2, slope)
    if any(jump for _, jump, _ in jumps(activation)):
        slope = np.full_like(value, np.nan)
    return value, slope


@lru_cache
def at_rest(activation: Activation) -> tuple[float, float]:
    """Return σ(0) and σ'(0), as finite networks have them at a signal that is zero."""
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        zero = jnp.zeros(())
        # compiled ahead, as vmap would trace a function with a derivative of its own even here
        still, steepness = (
            jax.jit(function).lower(zero).compile()(zero)
            for function in (activation, activation.slope)
        )
        return float(still), float(steepness)


def single_means(activation: Activation, variances: Vector) -> tuple[Vector, Vector]:
    """Compute ``E σ(z)`` and ``E σ'(z)`` (without jumps) under N(0, K), shape ``(n,)``, in float64."""
    with jax.enable_x64(True):
        arrays = _mean_of(activation)(padded(variances, 4))
        value, slope = (np.asarray(array)[: len(variances)] for array in arrays)
    still, steepness = at_rest(activation)
    silent = variances == 0
    return np.where(silent, still, value), np.where(silent, steepness, slope)


@lru_cache
def _mean_of(activation: Activation) -> Callable:
    def one(k):
        value = gaussian_mean(activation.function, k, activation.kinks).value
        return value, gaussian_mean(activation.slope, k, activation.kinks).value

    return jax.jit(lambda variances: jax.lax.map(one, variances, batch_size=64))


@lru_cache
def _compiled(form: DualForm) -> Callable:
    return jax.jit(form)


@lru_cache
def _single_of(activation: Activation) -> Callable:
    def one(k):
        value = gaussian_mean(lambda z: activation(z) ** 2, k, activation.kinks).value
        return value, gaussian_mean(lambda z: activation.slope(z) ** 2, k, activation.kinks).value

    return jax.jit(lambda variances: jax.lax.map(one, variances, batch_size=64))


def pair_moments(
    activation: Activation,
    variances: Vector,
    first: NDArray,
    second: NDArray,
    covariances: Vector,
    roots: Vector,
    tolerance: float,
) -> Moments:
    """Compute expectations over ``(variances[first], variances[second], covariances)``; roots of determinants.

    By closed form where one is known; for smooth σ by Hermite expansion (Mehler 1866), whose remainder is bounded by
    Parseval's equation; where that is above the tolerance, or σ has kinks, by quadrature.

    Raises:
        UserError: where none of them meets the tolerance.
    """
    silent = (variances[first] == 0) | (variances[second] == 0)
    if silent.any():
        pairs = first, second, covariances, roots
        return _with_silence(activation, variances, silent, *pairs, tolerance)
    with jax.enable_x64(True):
        form = closed_form(activation)
        if form is not None:
            arrays = variances[first], variances[second], covariances, roots
            return _closed(_compiled(form)(*(padded(array, 1024) for array in arrays)), len(roots))
        if not activation.kinks:
            moments = _hermite(activation, variances, first, second, covariances, tolerance)
            if moments is not None:
                return moments
        triples = np.stack([variances[first], variances[second], covariances], axis=1)
        return _quadrature(activation, triples, roots, tolerance)


def _with_silence(
    activation, variances, silent, first, second, covariances, roots, tolerance
) -> Moments:
    """Compute pairs of which one signal is zero, which is independent of every other, apart from the rest."""
    means = single_means(activation, variances)
    # a signal that is zero is no random number: E σ(u)σ(v) = E σ(u) E σ(v)
    value, slope = (mean[first[silent]] * mean[second[silent]] for mean in means)
    out = Moments(*(np.zeros(len(first)) for _ in range(4)))
    rounding = 64 * np.finfo(float).eps
    of_silent = Moments(value, slope, rounding * np.abs(value), rounding * np.abs(slope))
    for whole, part in zip(out, of_silent, strict=True):
        whole[silent] = part
    live = ~silent
    if live.any():
        positive = np.where(variances > 0, variances, variances.max())
        some = first[live], second[live], covariances[live], roots[live]
        of_live = pair_moments(activation, positive, *some, tolerance)
        for whole, part in zip(out, of_live, strict=True):
            whole[live] = part
    return out


def _closed(pair, count: int) -> Moments:
    value, slope = (np.asarray(array)[:count] for array in pair)
    rounding = 64 * np.finfo(float).eps
    return Moments(value, slope, rounding * np.abs(value), rounding * np.abs(slope))


def _quadrature(activation, triples, roots, tolerance) -> Moments:
    name = activation.name
    kinks = activation.kinks
    value = certified_means(
        activation.function, activation.function, triples, kinks, tolerance, name, roots
    )
    slope = certified_means(
        activation.slope, activation.slope, triples, kinks, tolerance, name, roots
    )
    return Moments(
        *(np.asarray(array) for array in (value.value, slope.value, value.error, slope.error))
    )


# ---------------------------------------------------------------------------------------- Hermite expansion


class Basis(NamedTuple):
    """The trapezoidal rule against the normal density, and normalized Hermite polynomials on it."""

    nodes: Vector
    """Shape ``(nodes,)``."""
    weights: Vector
    """Times the density."""
    values: NDArray[np.float64]
    """``he_k`` times the weights, shape ``(nodes, terms)``."""


@lru_cache
def trapezoid_basis(count: int, terms: int) -> Basis:
    """Return a rule with so many nodes on ±13 deviations, and so many polynomials."""
    nodes = np.linspace(-REACH, REACH, count)
    weights = np.exp(-(nodes**2) / 2) / np.sqrt(2 * np.pi) * (nodes[1] - nodes[0])
    basis = np.empty((terms, count))
    # the square root of the density goes into the recurrence, so that high orders do not overflow
    before = np.zeros_like(nodes)
    now = np.sqrt(weights)
    for k in range(terms):
        basis[k] = now * np.sqrt(weights)
        # √(k + 1) he_{k+1} = x he_k − √k he_{k−1}, normalized to E he_k² = 1
        following = (nodes * now - np.sqrt(k) * before) / np.sqrt(k + 1)
        before = now
        now = following
    return Basis(nodes, weights, basis.T)


@lru_cache
def _on_nodes(activation: Activation) -> Callable:
    return jax.jit(
        lambda deviations: activation(deviations[:, None] * trapezoid_basis(NODES, TERMS).nodes)
    )


def hermite_coefficients(
    activation: Activation, variances: Vector, terms: int = TERMS
) -> NDArray[np.float64]:
    """Return ``h_k(K) = E σ(√K x) he_k(x)``, he_k normalized, shape ``(variances, terms)``, for smooth σ only.

    >>> from steepest.nn.activations import activation
    >>> hermite_coefficients(activation("quadratic"), np.array([2.0]), 3)[0, ::2].round(9).tolist()  # 2 (1 + √2 he_2)
    [2.0, 2.828427125]
    """
    with jax.enable_x64(True):
        deviations = padded(np.sqrt(variances), 16)
        values = np.asarray(_on_nodes(activation)(deviations))[: len(variances)]
    return values @ trapezoid_basis(NODES, TERMS).values[:, :terms]


def _hermite(activation, variances, first, second, covariances, tolerance) -> Moments | None:
    """Sum ``Σ_k h_k(K_αα) h_k(K_ββ) ρ^k`` and its derivative in K_αβ, or return None above the tolerance."""
    deviations = np.sqrt(variances)
    if deviations.max() > 20 or deviations.min() == 0:
        return None
    squares, slopes = single_moments(activation, variances)
    terms = 64
    k = np.arange(TERMS)
    while True:  # what Parseval's equation leaves for the orders beyond the last
        h = hermite_coefficients(activation, variances, terms)
        # Parseval: E σ² = Σ_k h_k², and E σ'² = Σ_k k h_k²/K
        remainder = np.abs(squares - (h**2).sum(1)) + 1e-15 * squares
        rest_slope = np.abs(slopes - (k[:terms] * h**2).sum(1) / variances) + 1e-15 * slopes
        if (remainder <= tolerance * squares).all() and (rest_slope <= tolerance * slopes).all():
            break
        terms *= 4
        if terms > TERMS:
            return None
    # Mehler: E he_j(x) he_k(y) = δ_jk ρ^k
    rho = covariances / (deviations[first] * deviations[second])
    value = np.zeros_like(rho)
    slope = np.zeros_like(rho)
    columns = np.ascontiguousarray(h.T)
    for i in reversed(range(terms)):  # Horner
        product = columns[i][first] * columns[i][second]
        value = value * rho + product
        if i:
            slope = slope * rho + i * product
    # dρ/dK_αβ
    slope /= deviations[first] * deviations[second]
    # |Σ_{k ≥ T} h_k h'_k ρ^k| ≤ √(Σ h_k² Σ h'_k²), by Cauchy and Schwarz
    return Moments(
        value,
        slope,
        np.sqrt(remainder[first] * remainder[second]),
        np.sqrt(rest_slope[first] * rest_slope[second]),
    )
