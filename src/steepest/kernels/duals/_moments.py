"""The maps of the covariance and of the variance through one layer, with derivatives and certified errors."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.kernels._arguments import as_floats
from steepest.kernels.duals._pair_mean import pair_means
from steepest.nn.activations import (
    Activation,
    Elementwise,
    Estimate,
    by_name,
    closed_form,
    determinant,
    gaussian_mean,
    jumps,
)

LEVELS = 4  # of refinement, before a tolerance is refused


class Bounded(NamedTuple):
    """A number, or an array of them, with a bound of its absolute error; float64 NumPy arrays."""

    value: NDArray[np.float64]
    error: NDArray[np.float64]


class MapJet(NamedTuple):
    """A map and its first two derivatives."""

    value: Bounded
    first: Bounded
    second: Bounded


@by_name
def covariance_map(
    activation: Activation, covariance: Float[np.ndarray, "*batch 2 2"], tolerance: float = 1e-10
) -> MapJet:
    """Compute the dual activation ``K_αβ ↦ E σ(u)σ(v)`` at fixed variances, with its first two derivatives.

    The derivatives are ``E σ'(u)σ'(v)`` and ``E σ''(u)σ''(v)`` (Price 1958), where a jump of σ or a corner of σ
    contributes the density at its place: the derivatives of the map, and not the means of classical derivatives. A
    corner makes the second derivative infinite at perfect correlation, a jump already the first. By closed form where
    one is known, else by quadrature, refined until the bound is below the tolerance.

    Args:
        activation: σ.
        covariance: of the pair (u, v): matrices ``(..., 2, 2)`` or triples ``(K_αα, K_ββ, K_αβ)``, ``(..., 3)``.
        tolerance: largest error relative to ``√(E f(u)² E f(v)²)`` with f the σ, or σ', in question (smooth part).

    Returns:
        ``MapJet`` of estimates with the shape of the batch, computed in float64. The second derivative is NaN where
        none exists (σ jumps) or none can be certified (σ'' is not square integrable at a kink).

    Raises:
        UserError: if an entry is no covariance, σ grows too fast, or the tolerance cannot be met; the message names
            what could be met.

    >>> from steepest.nn.activations import activation
    >>> jet = covariance_map(activation("tanh"), np.array([[1.0, 0.5], [0.5, 1.0]]))
    >>> print(f"{jet.value.value:.10f}", jet.value.error < 1e-12)
    0.1863244132 True
    """
    triples = as_triples(covariance)
    flat = triples.reshape(-1, 3)
    with jax.enable_x64(True):
        form = closed_form(activation)
        if form is not None:
            estimates = _closed_jet(form, activation, flat)
        else:
            estimates = tuple(_derivative(activation, k, flat, tolerance) for k in range(3))
    shaped = [
        Bounded(*(np.asarray(array).reshape(triples.shape[:-1]) for array in one))
        for one in estimates
    ]
    return MapJet(*shaped)


@by_name
def variance_map(activation: Activation, variance: Float[np.ndarray, "*batch"] | float) -> MapJet:
    """Compute the variance map ``K ↦ E σ(z)²``, z ~ N(0, K), with its first two derivatives.

    They are ``E[σ² He₂(z/√K)]/(2K)`` and ``E[σ² He₄(z/√K)]/(4K²)``: the derivatives fall on the density, so that
    kinks and jumps need no care. Source: ORF 543, lecture 9/19; ``χ∥ = C_W`` times the first.

    Raises:
        UserError: for a variance that is not positive and finite.

    >>> from steepest.nn.activations import activation
    >>> jet = variance_map(activation("quadratic"), 2.0)  # 3 K²
    >>> [round(float(estimate.value), 9) for estimate in jet]
    [12.0, 12.0, 6.0]
    """
    variance = as_floats("variances", variance).astype(float)
    if not (np.isfinite(variance).all() and (variance > 0).all()):
        raise UserError(
            f"the variance map needs finite variances > 0, got {variance}; at 0 use one_sided_taylor"
        )
    with jax.enable_x64(True):
        estimates = _variance_jet(activation)(padded(variance.ravel(), 4))
    shaped = [
        np.asarray(estimate)[: variance.size].reshape(variance.shape) for estimate in estimates
    ]
    return MapJet(*(Bounded(*shaped[2 * k : 2 * k + 2]) for k in range(3)))


@lru_cache
def _variance_jet(activation: Activation) -> Callable:
    # ∂_K p = ½ p'' for the Gaussian density p: He₂(z/√K)/2K, and He₄(z/√K)/4K² for ∂_K²
    weights = (lambda x: 1.0 + 0 * x, lambda x: (x**2 - 1) / 2, lambda x: (x**4 - 6 * x**2 + 3) / 4)

    def one(k):  # in standard units the kinks move with K, so that each variance has its own panels
        deviation = jnp.sqrt(k)
        estimates = []
        for power, weight in enumerate(weights):
            f = lambda z, weight=weight: activation(z) ** 2 * weight(z / deviation)
            estimates += [estimate / k**power for estimate in gaussian_mean(f, k, activation.kinks)]
        return tuple(estimates)

    return jax.jit(lambda variances: jax.lax.map(one, variances))


def as_triples(covariance) -> np.ndarray:
    """Return checked triples ``(K_αα, K_ββ, K_αβ)`` of covariance matrices, or the triples themselves.

    Raises:
        UserError: wrong shape, NaN, not symmetric, negative variance, indefinite.
    """
    given = as_floats("a covariance", covariance).astype(float)
    if given.shape[-2:] == (2, 2):
        if not np.allclose(given[..., 0, 1], given[..., 1, 0], rtol=1e-12, atol=0, equal_nan=True):
            raise UserError(
                "the covariance of a pair must be symmetric, got K_αβ ≠ K_βα; try (K + K.T)/2"
            )
        given = np.stack([given[..., 0, 0], given[..., 1, 1], given[..., 0, 1]], axis=-1)
    if given.ndim < 1 or given.shape[-1] != 3:
        raise UserError(
            f"a covariance is a matrix (..., 2, 2) or (K_αα, K_ββ, K_αβ), got shape {given.shape}"
        )
    if not np.isfinite(given).all():
        raise UserError(
            "a covariance must be finite, got NaN or infinity; check the inputs for missing values"
        )
    a, b, c = np.moveaxis(given, -1, 0)
    roots = np.sqrt(np.maximum(a, 0)) * np.sqrt(np.maximum(b, 0))
    wrong = (a < 0) | (b < 0) | (np.abs(c) > (1 + 1e-12) * roots)
    if wrong.any():
        a, b, c = given[wrong][0]
        raise UserError(
            f"no covariance has K_αα = {a:g}, K_ββ = {b:g}, K_αβ = {c:g}: variances are ≥ 0 and |K_αβ| ≤ √(K_αα K_ββ)"
        )
    return given


def _closed_jet(
    form: Callable, activation: Activation, triples: np.ndarray
) -> tuple[Estimate, Estimate, Estimate]:
    a, b, c = jnp.asarray(triples).T
    # the form gives E σσ and E σ'σ'; the derivative of the latter in K_αβ is the second
    (value, first), (_, second) = jax.jvp(lambda c: form(a, b, c), (c,), (jnp.ones_like(c),))
    if any(value_jump for _, value_jump, _ in jumps(activation)):
        second = jnp.full_like(second, jnp.nan)
    eps = jnp.finfo(value.dtype).eps
    # √(E f(u)² E f(v)²) for f = σ, σ': the scale to which rounding in the forms is relative
    scales = [jnp.sqrt(form(a, a, a)[k] * form(b, b, b)[k]) for k in range(2)]
    errors = [
        64 * eps * (jnp.abs(v) + jnp.where(jnp.isfinite(s), s, 0.0))
        for v, s in zip((value, first), scales, strict=True)
    ]
    return (
        Estimate(value, errors[0]),
        Estimate(first, errors[1]),
        Estimate(second, 256 * eps * jnp.abs(second)),
    )


# ------------------------------------------------------------------------------------------------ by quadrature


@lru_cache
def _classical(activation: Activation, order: int) -> Elementwise:
    """Return σ, σ' or σ'' away from the kinks."""
    if order == 0:
        return activation.function
    if order == 1:
        return activation.slope
    return lambda z: jax.jvp(activation.slope, (z,), (jnp.ones_like(z),))[1]


def _derivative(
    activation: Activation, order: int, triples: np.ndarray, tolerance: float
) -> Estimate:
    """Compute ``E σ^(k)(u) σ^(k)(v)`` with the part of jumps and corners."""
    f = _classical(activation, order)
    nothing = jnp.full(len(triples), jnp.nan)
    if order == 2 and any(value for _, value, _ in jumps(activation)):
        return Estimate(nothing, nothing)
    try:
        smooth = certified_means(f, f, triples, activation.kinks, tolerance, activation.name)
    except UserError:
        if order < 2:
            raise
        return Estimate(nothing, nothing)
    points = [
        (kink, sizes[order - 1]) for kink, *sizes in jumps(activation) if order and sizes[order - 1]
    ]
    if not points:
        return smooth
    singular = jnp.stack([_at_jumps(f, points, activation.kinks, triple) for triple in triples])
    return Estimate(smooth.value + singular, smooth.error + 1e-14 * jnp.abs(singular))


def _at_jumps(f: Elementwise, points, kinks, triple) -> jax.Array:
    """Return what Dirac masses ``Σ J_i δ(z − c_i)`` in both factors add to ``E f(u)f(v)``."""
    a, b, c = (float(entry) for entry in triple)
    spread = float(determinant(a, b, c))
    total = 0.0
    for one, other in ((a, b), (b, a)):
        # of the other variable, given that the first is at 1: its mean and its variance
        along, spread_left = (c / one, spread / one) if one else (0.0, other)
        for kink, size in points:
            mean = along * kink
            given = gaussian_mean(
                lambda z, mean=mean: f(mean + z), spread_left, tuple(k - mean for k in kinks)
            ).value
            # E δ(u − c) f(v) = p_u(c) E[f(v) | u = c], v of mean K_αβ c/K_αα, variance det K/K_αα
            total += size * _density(kink, one) * float(given)
        if one is a:
            # both masses: E δ(u − c_i) δ(v − c_j) = p_u(c_i) p(c_j | u = c_i), once
            pairs = [(i, j, p * q) for i, p in points for j, q in points]
            total += sum(
                size * _density(i, a) * _density(j - along * i, spread_left) for i, j, size in pairs
            )
    return jnp.asarray(total)


def _density(z: float, variance: float) -> float:
    """Return the density of N(0, K) at z; of a point mass, at K = 0, infinite at 0 and nothing elsewhere."""
    if variance == 0:
        return math.inf if z == 0 else 0.0
    return math.exp(-(z**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def padded(values: np.ndarray, least: int) -> jax.Array:
    """Repeat the last entry up to a power of two, at least this one, so that few shapes are compiled."""
    size = max(least, 1 << (len(values) - 1).bit_length())
    return jnp.asarray(np.concatenate([values, np.repeat(values[-1:], size - len(values), axis=0)]))


@lru_cache
def _second_moment(f: Elementwise, kinks: tuple[float, ...]) -> Callable:
    square = lambda z: f(z) ** 2
    return jax.jit(lambda variances: gaussian_mean(square, variances, kinks).value)


def certified_means(
    f: Elementwise,
    g: Elementwise,
    triples: np.ndarray,
    kinks: tuple[float, ...],
    tolerance: float,
    name: str,
    roots: np.ndarray | None = None,
) -> Estimate:
    """Compute ``E f(u) g(v)`` of many pairs until the error relative to ``√(E f² E g²)`` is below the tolerance.

    Raises:
        UserError: with what could be met, or that the growth is too fast.
    """
    count = len(triples)
    squares = [
        _second_moment(factor, kinks)(padded(k, 4))
        for factor, k in zip((f, g), triples.T, strict=False)
    ]
    scale = np.sqrt(np.asarray(squares[0] * squares[1]))[:count]
    if not np.isfinite(scale).all():
        raise UserError(
            f"{name} grows so fast that E σ² overflows at variance {triples[:, :2].max():g}; try smaller ones"
        )
    roots = np.sqrt(np.asarray(determinant(*triples.T))) if roots is None else roots
    todo = np.arange(len(triples))
    value = np.zeros(len(triples))
    error = np.full(len(triples), np.inf)
    for level in range(LEVELS):
        estimate = pair_means(f, g, padded(triples[todo], 2), padded(roots[todo], 2), kinks, level)
        values, found_error = (np.asarray(array)[: len(todo)] for array in estimate)
        better = found_error < error[todo]
        value[todo[better]] = values[better]
        error[todo[better]] = found_error[better]
        todo = np.flatnonzero(~(error <= tolerance * scale))
        if len(todo) == 0:
            return Estimate(jnp.asarray(value), jnp.asarray(error))
        if np.isinf(error[todo]).any():
            raise UserError(
                f"{name} grows faster than the Gaussian of variance {triples[todo, :2].max():g} falls, so that "
                "E σ(u)σ(v) is infinite or beyond double precision; try a smaller variance"
            )
    met = float(np.max(error[todo] / scale[todo]))
    raise UserError(
        f"a relative tolerance of {tolerance:g} cannot be met for {name}: {2 * met:.0e} could; declare its kinks"
    )
