"""Where signals survive depth: the critical initialization of an activation."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

from steepest.core.compiling import compile_quickly
from steepest.core.precision import arithmetic
from steepest.kernels.connected._recursion import chi_parallel, chi_perpendicular
from steepest.nn.activations import (
    Activation,
    by_name,
    gaussian_mean,
    homogeneous_slopes,
    one_sided_taylor,
)

VARIANCES = np.geomspace(1e-6, 1e4, 241)  # where roots are looked for


@dataclass(frozen=True)
class Criticality:
    """The critical initialization of an activation, or the reason why there is none.

    Near K* the variance moves as ``K^{l} − K* ≈ 1/(a l)^p`` with a = ``decay`` and p = ``decay_power``: K*
    attracts from above when a > 0 and from below when a < 0.

    Attributes:
        exists: whether K* = C_b + C_W E σ², χ∥ = 1 and χ⊥ = 1 have a common solution with C_b ≥ 0.
        reason: one sentence, why it exists or not.
        c_b: bias variance C_b; like all numbers here nan if none exists.
        c_w: weight variance times fan-in, C_W.
        k_star: fixed variance K*; nan when ``any_k``.
        any_k: every K is a fixed point (scale-invariant activations).
        universality_class: "scale invariant", "K*=0", "K*=0, unstable", "half-stable" or "none".
        residuals: of the three equations, ``(K* − C_b − C_W E σ², χ∥ − 1, χ⊥ − 1)``; for ``any_k`` at K = 1.
        decay: the coefficient a; nan where the variance does not move, or moves by no such power.
        decay_power: the power p.
    """

    exists: bool
    reason: str
    c_b: float = math.nan
    c_w: float = math.nan
    k_star: float = math.nan
    any_k: bool = False
    universality_class: str = "none"
    residuals: tuple[float, float, float] = (math.nan, math.nan, math.nan)
    decay: float = math.nan
    decay_power: int = 1


@by_name
@arithmetic(double=True)
def criticality(activation: Activation) -> Criticality:
    """Solve ``K* = C_b + C_W E σ²``, ``χ∥ = 1``, ``χ⊥ = 1`` for ``(C_b, C_W, K*)``, for any activation.

    ``χ∥ − χ⊥ = C_W E σσ''`` does not depend on C_b, and its zeros not on C_W: so K* is a root of ``E σσ''``
    (looked for between 1e-6 and 1e4, and at 0), ``C_W = 1/E σ'²`` and ``C_b = K* − C_W E σ²``, which must not
    be negative. A stable K* = 0 is preferred, then the smallest positive root, then an unstable K* = 0.
    It is computed in double precision, whatever JAX is set to.
    Source: ORF 543, lecture 9/19; Roberts, Yaida and Hanin 2022, chapter 5.

    >>> from steepest.nn.activations import activation
    >>> critical = criticality(activation("erf"))
    >>> round(critical.c_w / (3.141592653589793 / 4), 6), critical.c_b, critical.universality_class
    (1.0, 0.0, 'K*=0')
    >>> criticality(activation("sigmoid")).exists
    False
    """
    slopes = homogeneous_slopes(activation)
    if slopes is not None:
        return _scale_invariant(activation, *slopes)
    at_zero = _zero_fixed_point(activation)
    if at_zero is not None and at_zero.universality_class == "K*=0":
        return at_zero
    difference = _slope_difference(activation, VARIANCES)
    for k in grid_roots(partial(_slope_difference, activation), VARIANCES, difference):
        candidate = _half_stable(activation, k)
        if candidate.exists:
            return candidate
    return at_zero or Criticality(exists=False, reason=_why_none(activation, difference))


def _scale_invariant(activation: Activation, left: float, right: float) -> Criticality:
    if left == right == 0:
        return Criticality(
            exists=False, reason="σ is zero everywhere, so nothing passes through a layer."
        )
    # E σ² = K (a₊² + a₋²)/2, so that C_W E σ² = K
    c_w = 2 / (left**2 + right**2)
    return Criticality(
        exists=True,
        reason=f"σ(λz) = λσ(z) with slopes {left:g} and {right:g}: C_W = 2/(a₊² + a₋²) keeps every variance.",
        c_b=0.0,
        c_w=c_w,
        any_k=True,
        universality_class="scale invariant",
        residuals=_residuals(activation, 0.0, c_w, 1.0),
    )


def _zero_fixed_point(activation: Activation) -> Criticality | None:
    """Return the solution at K* = 0, which exists when σ(0) = 0 and σ' does not vanish on both sides of 0.

    ``C_W E σ² = K − b K^{3/2} − a K²``: b vanishes for smooth σ, and then K ≈ 1/(a l); else K ≈ (2/(b l))².
    """
    left, right = ([float(term) for term in side] for side in _one_sided_taylors(activation))
    slope = (left[1] ** 2 + right[1] ** 2) / 2
    if abs(right[0]) > 1e-20 or slope < 1e-20:
        return None
    c_w = 1 / slope
    # cubic terms of σ² are σ'σ'' z³ on each side, and E z³ 1[z > 0] = √(2/π) K^{3/2}
    b = -c_w * math.sqrt(2 / math.pi) * (right[1] * right[2] - left[1] * left[2])
    # quartic ones (σ'σ'''/3 + σ''²/4) z⁴, and E z⁴ 1[z > 0] = 3K²/2
    a = -c_w * sum(side[1] * side[3] + 0.75 * side[2] ** 2 for side in (left, right)) / 2
    # dK/dl = −a K² is solved by 1/(a l), and dK/dl = −b K^{3/2} by (2/(b l))² = 1/((b/2) l)²
    decay, power = (b / 2, 2) if abs(b) > 1e-6 else (a, 1)
    # σ² has neither power (hard tanh): a finite variance tells where it moves
    if abs(decay) < 1e-6:
        decay = math.nan
        stable = c_w * moments(activation, 0.1)[0] < 0.1
    else:
        stable = decay > 0
    return Criticality(
        exists=True,
        reason="σ(0) = 0, so C_b = 0 and C_W = 1/σ'(0)² solve the three equations at K* = 0, which "
        f"{'attracts' if stable else 'repels'} positive variances.",
        c_b=0.0,
        c_w=c_w,
        k_star=0.0,
        universality_class="K*=0" if stable else "K*=0, unstable",
        residuals=_residuals(activation, 0.0, c_w, 0.0),
        decay=decay,
        decay_power=power,
    )


def _half_stable(activation: Activation, k: float) -> Criticality:
    """Return the solution at a root K > 0 of E σσ''."""
    second, _, perpendicular = moments(activation, k)
    # χ⊥ = C_W E σ'² = 1, and χ∥ is the same at a root of E σσ''
    c_w = 1 / perpendicular
    c_b = k - c_w * second
    if c_b < 0:
        return Criticality(
            exists=False, reason=f"E σσ'' = 0 at K = {k:g}, but there C_b = {c_b:g} < 0."
        )
    step = 1e-3 * k
    lower, upper = (c_w * moments(activation, variance)[1] for variance in (k - step, k + step))
    decay = -(upper - lower) / (4 * step)  # K − K* gains χ∥'(K*)/2 times its square in every layer
    return Criticality(
        exists=True,
        reason=f"E σσ'' = 0 at K* = {k:.6g}, which attracts from {'above' if decay > 0 else 'below'} only.",
        c_b=c_b,
        c_w=c_w,
        k_star=k,
        universality_class="half-stable",
        residuals=_residuals(activation, c_b, c_w, k),
        decay=decay,
    )


def _why_none(activation: Activation, difference: np.ndarray) -> str:
    signs = set(np.sign(difference)) - {0.0}
    value, slope = (float(term) for term in _one_sided_taylors(activation)[1][:2])
    if len(signs) > 1:
        return "E σσ'' changes sign, but at each root C_b = K − C_W E σ² is negative, which no variance can be."
    if signs == {-1.0}:
        why = f"C_b = −C_W σ(0)² with σ(0) = {value:g}" if value else f"σ'(0) = {slope:g}"
        return f"E σσ'' < 0 for every K > 0, so χ∥ < χ⊥; K* = 0 is excluded by {why}."
    if signs == {1.0}:
        return "E σσ'' > 0 for every K > 0, so χ∥ > χ⊥ and the two slopes are never 1 together."
    return "χ∥ = χ⊥ was found at no isolated variance."


def moments(activation: Activation, k) -> tuple:
    """Return ``E σ²``, ``χ∥/C_W`` and ``χ⊥/C_W`` at variance K, as numpy arrays or floats of the shape of K."""
    moments = (np.asarray(moment, dtype=float) for moment in _traced_moments(activation, k))
    return tuple(moment if moment.ndim else moment.item() for moment in moments)


@partial(compile_quickly, static_argnums=0)
def _one_sided_taylors(activation: Activation):
    """Taylor coefficients on the left and on the right of zero, by one program instead of one an operation."""
    return [one_sided_taylor(activation, side) for side in (-1, 1)]


@partial(compile_quickly, static_argnums=0)
def _traced_moments(activation: Activation, k):
    second = gaussian_mean(lambda z: activation(z) ** 2, k, activation.kinks).value
    return second, chi_parallel(activation, 1.0, k), chi_perpendicular(activation, 1.0, k)


def _slope_difference(activation: Activation, k):
    """Return ``(χ∥ − χ⊥)/C_W = E σσ''``, and exactly zero where rounding hides its sign."""
    _, parallel, perpendicular = moments(activation, k)
    return cleaned(parallel - perpendicular, perpendicular)


def cleaned(difference, scale):
    """Return the difference of two computed numbers, exactly zero where rounding hides its sign."""
    precision = jnp.finfo(float).eps
    return np.where(np.abs(difference) > 2e3 * precision * scale, difference, 0.0)


def _residuals(
    activation: Activation, c_b: float, c_w: float, k: float
) -> tuple[float, float, float]:
    second, parallel, perpendicular = moments(activation, k)
    return k - c_b - c_w * second, c_w * parallel - 1, c_w * perpendicular - 1


def grid_roots(f: Callable, grid: np.ndarray, values: np.ndarray) -> list[float]:
    """Find the roots of f between neighbouring grid points where it changes sign."""
    roots = []
    for i in np.flatnonzero(values[:-1] * values[1:] < 0):
        ends = grid[i], grid[i + 1]
        # in single precision one point may differ from the same point in a batch
        if f(ends[0]) * f(ends[1]) < 0:
            root: Any = brentq(f, *ends, xtol=1e-300, rtol=np.float64(1e-14))
            roots.append(float(root))
    return roots
