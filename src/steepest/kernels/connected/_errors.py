"""What errors of expectations are behind the layers, and how far an error of K moves the expectations of the next.

An expectation of a Gaussian pair moves with the covariance, at fixed variances.

Let σ have the jumps J_i at c_i and elsewhere the derivative g, and θ be the angle of the pair, ``cos θ = ρ``. By Price
(1958) ``∂E σσ/∂K_αβ = E (g + Σ J_i δ_i)(u) (g + Σ J_i δ_i)(v)``, times ``−√(K_αα K_ββ) sin θ`` for ``∂/∂θ``, where

    √(K_αα K_ββ) sin θ |E g(u) g(v)|      ≤ √(K_αα K_ββ) sin θ √(E g(u)² E g(v)²),
    √(K_αα K_ββ) sin θ |E δ_i(u) g(v)|    ≤ √(K_ββ sin θ E g(v)²/2π),
    √(K_αα K_ββ) sin θ  E δ_i(u) δ_j(v)   ≤ 1/2π.

The second is Cauchy and Schwarz for v given u = c, whose density is at most ``exp(c²/2K_αα)/sin θ`` times v's. So
what moves is Lipschitz in K_αβ without jumps, and in θ with jumps: by the root of what ρ moves where ρ is near ±1.

Where g is not square integrable, as for ``|z|^{3/2}``, increments of equal variances bound it: with the coefficients of
Mehler's series, ``Σ |h_k h'_k| |ρ'^k − ρ^k| ≤ √(Σ h_k² (r^k − s^k)) √(Σ h'_k² (r^k − s^k))`` for 0 ≤ s ≤ r.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from steepest.kernels.duals._expectations import Moments, Vector
from steepest.kernels.duals._moments import certified_means, padded
from steepest.nn.activations import (
    Activation,
    Elementwise,
    gaussian_mean,
    homogeneous_slopes,
    jumps,
)
from steepest.nn.networks import LayerLimit

ROUNDING = 8 * float(np.finfo(float).eps)
"""Of a correlation behind the first layer."""


class Pair(NamedTuple):
    """Two pre-activations, for many pairs of inputs at a time.

    Attributes:
        first: variance of u, shape ``(t,)``.
        second: variance of v.
        covariance: of both.
        root: of ``K_αα K_ββ − K_αβ²``.
    """

    first: Vector
    second: Vector
    covariance: Vector
    root: Vector

    @property
    def scale(self) -> Vector:
        """Return ``√(K_αα K_ββ)``."""
        return np.sqrt(self.first) * np.sqrt(self.second)


class Movement(NamedTuple):
    """How far both expectations may be from what was computed, shape ``(t,)`` each."""

    value: Vector
    slope: Vector


class Errors(NamedTuple):
    """Bounds of the absolute errors of both kernels, shape ``(t,)`` each."""

    k: Vector
    theta: Vector

    @classmethod
    def begin(cls, count: int) -> "Errors":
        """Return those in the first layer, which has no expectations."""
        return cls(np.zeros(count), np.zeros(count))

    def behind(
        self,
        layer: LayerLimit,
        kept: float,
        both: Vector,
        moved: Movement,
        slope: Vector,
        theta: Vector,
    ) -> "Errors":
        """Return those behind the next layer.

        Args:
            layer: its coefficients.
            kept: r², the share of both kernels that a residual branch keeps.
            both: product of the deviations by which a normalization divides.
            moved: how far the layer's expectations may be off.
            slope: E σ'σ' as it was computed.
            theta: Θ of the layer before, as it was computed.
        """
        k = kept * self.k + layer.c_w * moved.value
        # |S̃Θ̃ − SΘ| ≤ |S̃ − S| |Θ̃| + |S| |Θ̃ − Θ|, with |S| ≤ |S̃| + |S̃ − S|
        turned = moved.slope * np.abs(theta) + (np.abs(slope) + moved.slope) * self.theta
        tangent = kept * self.theta + layer.t_w * moved.value + layer.c_w / both * turned
        return Errors(k, tangent)


def movement(
    activation: Activation, pair: Pair, moments: Moments, error: Vector, tolerance: float
) -> Movement:
    """Bound how far expectations are off, by their own errors and by an error of the covariance."""
    if any(value for _, value, _ in jumps(activation)):
        moved = moved_value(activation, pair, error, tolerance)
        return Movement(moments.value_error + moved, np.zeros_like(moved))
    turned = moved_slope(activation, pair, error, tolerance)
    slope = moments.slope_error + turned
    # Price: ∂E σσ/∂K_αβ = E σ'σ', which is itself off by this much at most on the way
    value = moments.value_error + (np.abs(moments.slope) + slope) * error
    return Movement(value, slope)


def moved_value(activation: Activation, pair: Pair, error: Vector, tolerance: float) -> Vector:
    """Bound how far E σσ of a σ that jumps moves with a covariance that is off by ``error``."""
    sizes = [abs(value) for _, value, _ in jumps(activation) if value]
    functions = activation.function, activation.slope
    return _moved(activation, sizes, *functions, pair, error, tolerance)


def moved_slope(activation: Activation, pair: Pair, error: Vector, tolerance: float) -> Vector:
    """Bound how far E σ'σ' of a σ without jumps moves with a covariance that is off by ``error``."""
    sizes = [abs(slope) for _, _, slope in jumps(activation) if slope]
    second = _nothing if homogeneous_slopes(activation) else _second(activation)
    return _moved(activation, sizes, activation.slope, second, pair, error, tolerance)


def _moved(
    activation: Activation,
    sizes: list[float],
    function: Elementwise,
    derivative: Elementwise,
    pair: Pair,
    error: Vector,
    tolerance: float,
) -> Vector:
    """Bound it for a function with jumps of these sizes and a derivative elsewhere."""
    kinks = activation.kinks
    of_first = _square(derivative, kinks, pair.first)
    of_second = _square(derivative, kinks, pair.second)
    if not (np.isfinite(of_first).all() and np.isfinite(of_second).all()):
        return _increment(activation, function, pair, error, tolerance)
    smooth = np.sqrt(of_first * of_second)
    if not sizes:
        return smooth * error
    total = sum(sizes)
    # |E δ(u − c) g(v)| at u, and the same at v
    at_first = np.sqrt(pair.second * of_second / (2 * math.pi))
    at_second = np.sqrt(pair.first * of_first / (2 * math.pi))
    rate = total**2 / (2 * math.pi) + total * (at_first + at_second) + pair.scale * smooth
    return rate * _turned(pair, error)


def _increment(
    activation: Activation, function: Elementwise, pair: Pair, error: Vector, tolerance: float
) -> Vector:
    """Bound it by means at equal variances and correlations r and s, which are δ apart."""
    live = pair.scale > 0
    scale = np.where(live, pair.scale, 1.0)
    size = np.abs(pair.covariance) / scale
    moved = error / scale
    r = np.minimum(size + moved, 1.0)
    s = np.maximum(r - moved, 0.0)
    name = activation.name
    square = 1.0
    for variances in (pair.first, pair.second):
        means = []
        for rho in (r, s):
            triples = np.stack([variances, variances, rho * variances], axis=1)
            roots = variances * np.sqrt((1 - rho) * (1 + rho))
            of_equal = (function, function, triples, activation.kinks, tolerance, name, roots)
            with jax.enable_x64(True):
                means.append(certified_means(*of_equal))
        (high, high_error), (low, low_error) = (map(np.asarray, estimate) for estimate in means)
        square = square * np.maximum(high - low + high_error + low_error, 0.0)
    # across ρ = 0 powers of both signs count
    return np.where(live & (moved > 0), np.where(size < moved, 2.0, 1.0) * np.sqrt(square), 0.0)


def _turned(pair: Pair, error: Vector) -> Vector:
    """Return how far the angle moves at most, where both signals are there."""
    live = pair.scale > 0
    scale = np.where(live, pair.scale, 1.0)
    moved = error / scale
    theta = np.arctan2(pair.root, pair.covariance)
    # (1 − cos θ)/2 = sin²(θ/2), which ρ moves by half as much
    half = np.sin(theta / 2) ** 2
    lower = 2 * np.arcsin(np.sqrt(np.clip(half - moved / 2, 0.0, 1.0)))
    upper = 2 * np.arcsin(np.sqrt(np.clip(half + moved / 2, 0.0, 1.0)))
    return np.where(live & (moved > 0), np.maximum(theta - lower, upper - theta), 0.0)


def _square(derivative: Elementwise, kinks: tuple[float, ...], variances: Vector) -> Vector:
    """Return E g² at these variances; infinite where g is not square integrable."""
    if derivative is _nothing:
        return np.zeros_like(variances)
    distinct, places = np.unique(variances, return_inverse=True)
    with jax.enable_x64(True):
        arrays = _mean_square(derivative, kinks)(padded(distinct, 64))
    value, error = (np.asarray(array)[: len(distinct)] for array in arrays)
    # an integral of what is not integrable changes with the rule
    certain = np.where(error <= 1e-3 * np.abs(value) + 1e-300, value + error, np.inf)
    return np.where(distinct > 0, certain, 0.0)[places]


def _nothing(z: Array) -> Array:
    """Return the derivative of a constant."""
    return jnp.zeros_like(z)


@lru_cache
def _mean_square(derivative: Elementwise, kinks: tuple[float, ...]) -> Callable:
    def one(variance):
        return tuple(gaussian_mean(lambda z: derivative(z) ** 2, variance, kinks))

    return jax.jit(lambda variances: jax.lax.map(one, variances, batch_size=64))


@lru_cache
def _second(activation: Activation) -> Elementwise:
    """Return σ'' away from the kinks."""
    return lambda z: jax.jvp(activation.slope, (z,), (jnp.ones_like(z),))[1]
