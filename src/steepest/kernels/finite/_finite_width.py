"""Corrections of finite width to the kernel of a random network, to first order in 1/n, layer by layer.

Given layer l, the pre-activations ``z^{l+1} = b + W σ(z^l)`` of one input are independent Gaussians whose variance
``Σ^{l+1} = C_b + (C_W/n_l) Σ_j σ(z_j^l)²`` is itself random. At infinite width it is the number ``K^{l+1} = F(K^l)``
with ``F(K) = C_b + C_W E σ(√K x)²``; here are its variance and the shift of its mean.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest.core.compiling import compile_quickly
from steepest.core.errors import UserError
from steepest.kernels._arguments import as_count, as_floats, as_number
from steepest.kernels.connected._recursion import check_variances, chi_parallel
from steepest.nn.activations import Activation, by_name, gaussian_mean, homogeneous_slopes


@dataclass(frozen=True)
class FiniteWidth:
    """The kernel of one input in every layer, at infinite width and corrected to first order in 1/n.

    Every array has shape ``(layers,)``; the first entry is the layer that reads the input, whose Σ does not fluctuate.

    Attributes:
        kernel: K, the variance of a pre-activation at infinite width.
        variance: of the conditional variance Σ over networks, of order 1/n.
        kurtosis: excess kurtosis ``E z⁴/(E z²)² − 3`` of a pre-activation, ``3 Var Σ/K²``, of order 1/n.
        mean_shift: ``E Σ − K``, of order 1/n: what finite width adds to the variance ``E z²``.
    """

    kernel: Float[np.ndarray, " layers"]
    variance: Float[np.ndarray, " layers"]
    kurtosis: Float[np.ndarray, " layers"]
    mean_shift: Float[np.ndarray, " layers"]


@by_name
def finite_width(
    activation: Activation, c_w: float, c_b: float, start: float, widths: Sequence[int]
) -> FiniteWidth:
    """Compute corrections of order 1/n to the kernel of one input, in all layers of a random network.

    ``Var Σ^{l+1} = C_W² Var σ(z)²/n_l + χ∥² Var Σ^l`` and ``δ^{l+1} = χ∥ δ^l + ½ F''(K) Var Σ^l`` with
    ``z ~ N(0, K^l)``, exact up to terms of order 1/n². Source: Roberts, Yaida and Hanin 2022, chapter 4, for one input.

    Args:
        activation: σ.
        c_w: weight variance times fan-in, C_W ≥ 0.
        c_b: bias variance, C_b ≥ 0.
        start: variance of the first pre-activation, ``C_b + C_W ‖x‖²/d``, at least 0.
        widths: n_1, n_2, …, the widths of the hidden layers; the result has one layer more.

    Raises:
        UserError: for a negative variance, or a width below one.

    >>> from steepest.nn.activations import activation
    >>> corrections = finite_width(activation("relu"), 2.0, 0.0, 1.0, (100, 50))
    >>> corrections.kurtosis.round(6).tolist(), (corrections.mean_shift.round(6) + 0.0).tolist()  # 3 · (5/100 + 5/50)
    ([0.0, 0.15, 0.45], [0.0, 0.0, 0.0])
    """
    check_variances(c_w, c_b)
    start = as_number("the first layer's variance", start, 0.0)
    given = as_floats("widths", widths)
    if given.ndim != 1:
        raise UserError(f"widths are several whole numbers, one a hidden layer, got {widths!r}")
    widths = [as_count("each of the widths", n, 1) for n in given]
    path = _finite_width(
        activation, c_w, c_b, jnp.asarray(start, float), jnp.asarray(widths, float)
    )
    kernel, variance, shift = (np.asarray(values, float) for values in path)
    return FiniteWidth(kernel, variance, 3 * _over(variance, kernel**2), shift)


@partial(compile_quickly, static_argnums=0)
def _finite_width(activation, c_w, c_b, start, widths):
    def layer(state, width):
        k, spread, shift = state
        second, fourth = (
            gaussian_mean(lambda z, p=p: activation(z) ** p, k, activation.kinks).value
            for p in (2, 4)
        )
        chi = chi_parallel(activation, c_w, k)
        # F'' grows like 1/K² times a rounding error as K → 0, but Var Σ/K² stays of order 1/n, so only K² F'' is used.
        bend = _scaled_curvature(activation, c_w, k) * spread / jnp.where(k > 0, k, 1.0) ** 2
        # χ∥ may be infinite at K = 0, where nothing moves
        moved = lambda slope, x: jnp.where(x == 0, 0.0, slope * x)
        # total variance: E Var(Σ' | Σ) = C_W² Var σ²/n, and Var E(Σ' | Σ) = χ∥² Var Σ;
        # the mean of F(Σ) to second order: F + χ∥ δ + ½ F'' Var Σ
        following = (
            c_b + c_w * second,
            c_w**2 * jnp.maximum(fourth - second**2, 0.0) / width + moved(chi**2, spread),
            moved(chi, shift) + bend / 2,
        )
        return following, following

    first = (start, jnp.zeros_like(start), jnp.zeros_like(start))
    _, path = jax.lax.scan(layer, first, widths)
    return jax.tree.map(lambda one, later: jnp.append(one, later), first, path)


@by_name
def variance_curvature(
    activation: Activation, c_w: float, k: Float[Array, "*batch"] | float
) -> Float[Array, "*batch"]:
    """Return ``F''(K) = (C_W/4) E[σ(z)² He₄(z/√K)]/K²`` of the variance map, ``z ~ N(0, K)``, K > 0.

    ``He₄(x) = x⁴ − 6x² + 3`` comes from differentiating the Gaussian density twice in K, so that nothing is ever
    differentiated across a kink of σ. The absolute rounding error is about 1e-16 C_W E σ²/K².

    >>> from steepest.nn.activations import activation
    >>> round(float(variance_curvature(activation("quadratic"), 1.0, 0.7)), 9)  # F = 3 C_W K²
    6.0
    """
    k = jnp.asarray(k, dtype=float)
    return _scaled_curvature(activation, c_w, k) / k**2


def _scaled_curvature(
    activation: Activation, c_w, k: Float[Array, "*batch"]
) -> Float[Array, "*batch"]:
    """Return ``K² F''(K)``; zero at K = 0."""

    def weighted(z):
        scale = jnp.where(k > 0, k, 1.0)
        # (*batch,) or (*batch, nodes)
        square = z**2 / (scale if z.shape == k.shape else scale[..., None])
        # He₄(z/√K)
        return activation(z) ** 2 * (square**2 - 6 * square + 3)

    return jnp.where(k > 0, c_w / 4 * gaussian_mean(weighted, k, activation.kinks).value, 0.0)


@by_name
def homogeneous_kurtosis(activation: Activation, widths: Sequence[int]) -> float:
    """Return ``E z⁴/(3 (E z²)²)`` of the output of a scale-invariant network without biases, exact at every width.

    Each hidden layer multiplies Σ by an independent factor, hence the product ``Π(1 + κ/n_l)`` with
    ``κ = E σ⁴/(E σ²)² − 1 = 6 (a₊⁴ + a₋⁴)/(a₊² + a₋²)² − 1``: 5 for ReLU, 2 for a linear network. It does not depend
    on C_W or on the input. Source: ORF 543, lecture 11/30; Hanin 2018.

    Raises:
        UserError: for an activation that is not scale invariant, or zero.

    >>> from steepest.nn.activations import activation
    >>> homogeneous_kurtosis(activation("relu"), (5, 10))
    3.0
    """
    slopes = homogeneous_slopes(activation)
    if slopes is None or not any(slopes):
        raise UserError(
            f"the exact kurtosis is known for scale-invariant activations only, {activation.name} is not one"
        )
    second, fourth = (sum(a**p for a in slopes) for p in (2, 4))
    # E σ^p = (a₊^p + a₋^p) E z^p/2: E σ⁴/(E σ²)² = (3/2) fourth/(second/2)²
    return math.prod(1 + (6 * fourth / second**2 - 1) / n for n in widths)


@by_name
def recommended_width(
    activation: Activation, c_w: float, c_b: float, start: float, depth: int, accuracy: float
) -> int:
    """Return the smallest width at which the last layer's kernel is as accurate as wanted, to first order in 1/n.

    Both the relative standard deviation of Σ over networks, of order n^{-1/2}, and the relative shift of its mean, of
    order 1/n, are at most ``accuracy`` then.

    Args:
        activation: σ.
        c_w: weight variance times fan-in, C_W ≥ 0.
        c_b: bias variance, C_b ≥ 0.
        start: variance of the first pre-activation.
        depth: how many hidden layers, all of the same width.
        accuracy: relative, above 0 and below 1.

    Raises:
        UserError: for an accuracy outside these limits, or a kernel that vanishes or explodes before the last layer.

    >>> from steepest.nn.activations import activation
    >>> recommended_width(activation("relu"), 2.0, 0.0, 1.0, depth=8, accuracy=0.1)  # 5 · 8/0.1²
    4000
    """
    depth = as_count("depth", depth, 0)
    if not 0 < as_number("accuracy", accuracy) < 1:
        raise UserError(f"accuracy is relative, between 0 and 1, got {accuracy}; try 0.1")
    # both corrections are proportional to 1/n
    unit = finite_width(activation, c_w, c_b, start, (1,) * depth)
    kernel = unit.kernel[-1]
    if not (math.isfinite(kernel) and kernel > 0):
        raise UserError(
            f"the kernel is {kernel:g} after {depth} hidden layers; choose C_W and C_b nearer criticality"
        )
    needed = max(
        unit.variance[-1] / (kernel * accuracy) ** 2,
        abs(unit.mean_shift[-1]) / (kernel * accuracy),
        1.0,
    )
    return math.ceil(needed * (1 - 1e-9))  # a whole number stays itself in spite of rounding


def _over(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
