"""Depth scales: how many layers a signal survives at any initialization, critical or not."""

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import numpy as np
from scipy.optimize import brentq

from steepest.core.compiling import compile_quickly
from steepest.core.precision import arithmetic
from steepest.kernels._arguments import as_number
from steepest.kernels.connected._recursion import check_variances, dual, pair_mean
from steepest.kernels.signals._criticality import VARIANCES, cleaned, grid_roots, moments
from steepest.nn.activations import Activation, by_name, homogeneous_slopes


@dataclass(frozen=True)
class DepthScales:
    """Fixed points of the recursion at ``(C_W, C_b)`` and how many layers they take to be approached.

    A depth scale is inf at slope 1, and negative where perturbations grow.

    Attributes:
        k_star: the variance that the recursion tends to; inf when it explodes.
        correlation: the correlation c* that two inputs tend to; 1 in the ordered phase, nan where K* is 0 or
            inf.
        chi_parallel: slope of the variance map at K*.
        chi_perpendicular: slope of the correlation map at correlation 1; above 1 the phase is chaotic.
        chi_correlation: slope ``C_W E σ'(u)σ'(v)`` of the correlation map at c*.
    """

    k_star: float
    correlation: float
    chi_parallel: float
    chi_perpendicular: float
    chi_correlation: float

    @property
    def xi_parallel(self) -> float:
        """Return the depth scale of the variance, ``−1/log χ∥``."""
        return _depth_scale(self.chi_parallel)

    @property
    def xi_perpendicular(self) -> float:
        """Return the depth scale at correlation 1, ``−1/log χ⊥``."""
        return _depth_scale(self.chi_perpendicular)

    @property
    def xi_correlation(self) -> float:
        """Return the depth scale of the correlation, ``−1/log`` of ``chi_correlation``."""
        return _depth_scale(self.chi_correlation)


@by_name
@arithmetic(double=True)
def depth_scales(activation: Activation, c_w: float, c_b: float, start: float = 1.0) -> DepthScales:
    """Find fixed variance, fixed correlation, slopes and depth scales ``ξ = −1/log χ`` of any ``(C_W, C_b)``.

    The variance goes to the nearest root of ``C_b + C_W E σ²(K) − K`` in the direction of its first step from
    ``start`` (searched up to 1e4). It is computed in double precision, whatever JAX is set to: single precision
    does not tell c* from 1 near the critical line. Source: ORF 543, lecture 9/19; Schoenholz et al. 2017.

    Raises:
        UserError: if C_W or C_b is negative, or ``start`` is not positive.

    >>> from steepest.nn.activations import activation
    >>> scales = depth_scales(activation("tanh"), c_w=1.5, c_b=0.0)
    >>> scales.chi_perpendicular > 1 > scales.chi_correlation, scales.correlation  # chaotic
    (True, 0.0)
    """
    check_variances(c_w, c_b)
    start = as_number("the variance to start from", start, 0.0, above=True)
    k = _fixed_variance(activation, c_w, c_b, start)
    # scale-invariant slopes depend on no K
    if math.isfinite(k) or homogeneous_slopes(activation) is not None:
        _, parallel, perpendicular = (c_w * moment for moment in moments(activation, min(k, 1e4)))
    else:
        parallel = perpendicular = math.nan
    fixed = _fixed_correlation(activation, c_w, c_b, k, perpendicular)
    slope = perpendicular
    if 0 <= fixed < 1:
        slope = c_w * float(_mean_slopes(activation, np.array([k, k, fixed * k])))
    return DepthScales(k, fixed, parallel, perpendicular, slope)


def _depth_scale(chi: float) -> float:
    if math.isnan(chi) or chi == 1:
        return math.nan if math.isnan(chi) else math.inf
    # a perturbation is multiplied by χ in each layer: χ^l = e^{−l/ξ}
    return 0.0 if chi <= 0 else -1 / math.log(chi)


def _fixed_variance(activation: Activation, c_w: float, c_b: float, start: float) -> float:
    def gain(k):
        # F(K) − K: the step of the variance in one layer
        return cleaned(c_b + c_w * moments(activation, k)[0] - k, k)

    grid = np.unique(np.append(VARIANCES, start))
    values = gain(grid)
    place = int(np.searchsorted(grid, start))
    roots = np.array(grid_roots(gain, grid, values))
    if values[place] == 0:
        return start
    if values[place] > 0:
        return float(min(roots[roots > start], default=math.inf))
    # Below the grid there is only 0, or a fixed point next to it.
    return float(max(roots[roots < start], default=c_b + c_w * moments(activation, 0.0)[0]))


@partial(compile_quickly, static_argnums=0)
def _mean_slopes(activation: Activation, triple: Any) -> Any:
    """E σ'(u)σ'(v) of a pair with these covariances, by one program instead of one an operation."""
    return pair_mean(activation.slope, activation.slope, triple, activation.kinks).value


@lru_cache(maxsize=32)
def _compiled(activation: Activation) -> Any:
    """Return the dual activation, compiled once however many points of a diagram ask for it."""
    return jax.jit(dual(activation))


def _fixed_correlation(
    activation: Activation, c_w: float, c_b: float, k: float, perpendicular: float
) -> float:
    """Find the stable root c of ``(C_b + C_W E σ(u)σ(v))/K* = c``; the map is convex with the root 1."""
    if not (0 < k < math.inf):
        return math.nan
    # a convex map with slope χ⊥ ≤ 1 at c = 1 stays above the diagonal, and 1 attracts
    if perpendicular <= 1 + 1e-9:
        return 1.0
    product = _compiled(activation)

    def gain(c: float) -> float:
        return (c_b + c_w * float(product(np.array([k, k, c * k])))) / k - c

    # (C_b + C_W (E σ)²)/K*: zero for odd σ without biases, and then c = 0 is the root
    at_zero = gain(0.0)
    if at_zero <= 1e-14:
        return 0.0
    nearly_one = 1 - 1e-6 * min(perpendicular - 1, 1.0)
    # χ⊥ is 1 up to rounding: the root is too near to 1 to be told from it
    if gain(nearly_one) >= 0:
        return 1.0
    root: Any = brentq(gain, 0.0, nearly_one, xtol=1e-14)
    return float(root)
