"""Where diagonal networks of any depth end on the squared loss."""

from typing import Any

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.programs._inputs import check_inputs, check_positive
from steepest.programs._interpolation import (
    _ROUGH,
    Interpolation,
    _descending,
    _euclidean,
    hypentropy_interpolation,
)


@checked
def depth_interpolation(
    x: Float[Any, "n d"],
    y: Float[Any, " n"],
    depth: int,
    scale: Float[Any, " d"] | float,
    tolerance: float = 1e-10,
    max_iterations: int = 500,
) -> Interpolation:
    """Find where gradient flow of ``β = θ₊^L - θ₋^L`` on the squared loss ends, from ``θ± = a``.

    Along the flow ``θ±^{2-L}`` is linear in the integral of ``Xᵀ`` times the residuals, so that for ``L ≥ 3``

        ``β_i = a_i^L h_L(z_i)``, ``h_L(z) = (1-z)^{-L/(L-2)} - (1+z)^{-L/(L-2)}``, ``z_i = a_i^{L-2} (Xᵀν)_i``

    with ``|z_i| < 1``. This is the optimality condition of ``argmin Σ a_i² q_L(β_i/a_i^L)`` subject to ``Xβ = y``,
    where ``q_L' = h_L⁻¹``; ``L = 2`` is the hypentropy. As ``a = αθ_0`` grows the penalty tends to ``Σ β_i²`` with the
    weights ``θ_0^{2-2L}``. As it shrinks, it tends to the ℓ1 norm with the weights ``θ_0^{2-L}``: for ``L ≥ 3``
    the shape of the start is not forgotten, but no depth gives a norm of order below one.

    Newton's method on the dual ``max_ν ⟨ν, y⟩ - Σ a_i² q_L*(z_i)``, with
    ``q_L*(z) = ((L-2)/2) ((1-z)^{-r} + (1+z)^{-r} - 2)``, ``r = 2/(L-2)``. A step that would use up a fraction ``m`` of
    some ``1 - |z_i|`` is damped by ``(1 - (1 + (r+1)m)^{-1/(r+1)})/m``, for which descent is guaranteed because
    the curvature grows at most like ``(1 - |z|)^{-(r+2)}``: no line search, and no ``|z_i|`` reaches 1.

    Args:
        x: inputs, shape ``(n, d)``.
        y: targets, shape ``(n,)``.
        depth: ``L ≥ 2``.
        scale: the start ``a = α θ_0 > 0``, a number or an array of shape ``(d,)``.
        tolerance: wanted ``‖Xβ - y‖ / ‖y‖``. Floating point ends at about ``1e-14 / min(a)^{L-2}``.
        max_iterations: give up after so many Newton steps; ``converged`` is then False.

    Raises:
        UserError: if shapes do not match, an entry is not finite, the depth is below 2 or a scale is not positive. Data
            without an interpolant are an outcome: ``interpolable = False``.

    Source: Woodworth et al. 2020, §6 (the start ones; there ``q_L`` and its limits).

    >>> for depth in (2, 3, 4):
    ...     print([depth_interpolation([[2.0, 1.0]], [2.0], depth, a).beta.round(3).tolist() for a in (1e-3, 1e3)])
    [[1.0, 0.001], [0.8, 0.4]]
    [[1.0, 0.0], [0.8, 0.4]]
    [[1.0, 0.0], [0.8, 0.4]]
    """
    if depth < 2:
        raise UserError(
            f"interpolation: expected depth ≥ 2, got {depth}; depth 1 is min_norm_interpolation"
        )
    x, y = check_inputs("interpolation", x, y)
    whole = np.broadcast_to(np.asarray(scale, dtype=float), x.shape[1:])
    a = check_positive("interpolation", "scale", whole, x.shape[1])
    if depth == 2:
        return hypentropy_interpolation(x, y, a**2, tolerance, max_iterations)
    start = _euclidean(x, y, np.ones(x.shape[1]))
    if not start.interpolable:
        return start
    s = a**depth
    unit = a.max() ** (depth - 2)
    columns = x * a ** (depth - 2) / unit
    mu = np.zeros(len(y))  # μ = ν unit, so that z = columnsᵀ μ
    iterations = 0
    residual = np.inf
    for larger in _descending(float(np.abs(start.beta).max() / s.min())):
        wanted = tolerance if larger == 1 else _ROUGH
        system = (x, y, columns, larger * s, start.beta)
        budget = max_iterations - iterations
        mu, spent, residual = _newton(system, depth, mu, wanted, budget)
        iterations += spent
    z = columns.T @ mu
    beta = s * _slope(z, depth)
    nu = mu / unit
    # equality in Fenchel's inequality
    value = float((x.T @ nu) @ beta - np.sum(a**2 * _conjugate(z, depth)))
    gap = float(nu @ (x @ beta - y))  # value minus dual value, as the two differ by ⟨ν, Xβ - y⟩
    return Interpolation(
        beta, nu, value, gap, residual, True, iterations, bool(residual <= tolerance)
    )


def _slope(z: np.ndarray, depth: int) -> np.ndarray:
    """Return ``h_L(z)``, without cancellation at small z."""
    power = depth / (depth - 2)
    # (1 ∓ z)^{-p} = (1 - z²)^{-p/2} e^{±p artanh z}, whose difference is a hyperbolic sine
    return 2 * ((1 - z) * (1 + z)) ** (-power / 2) * np.sinh(power * np.arctanh(z))


def _curvature(z: np.ndarray, depth: int) -> np.ndarray:
    """Return ``h_L'(z)``."""
    power = depth / (depth - 2)
    return power * ((1 - z) ** (-power - 1) + (1 + z) ** (-power - 1))


def _conjugate(z: np.ndarray, depth: int) -> np.ndarray:
    """Return ``q_L*(z)``, the integral of ``h_L``, as ``(2/r) ((1 - z²)^{-r/2} cosh(r atanh z) - 1)``."""
    r = 2 / (depth - 2)
    grown = np.expm1(-r / 2 * np.log1p(-(z**2)))
    wide = 2 * np.sinh(r * np.arctanh(z) / 2) ** 2  # cosh - 1 = 2 sinh² of the half
    return 2 / r * (grown + wide + grown * wide)  # (1 + grown)(1 + wide) - 1


def _newton(
    system: tuple, depth: int, mu: np.ndarray, tolerance: float, budget: int
) -> tuple[np.ndarray, int, float]:
    """Take damped Newton steps on the dual, each a least-squares problem: the conditioning is not squared."""
    x, y, columns, s, interpolant = system
    size = np.linalg.norm(y) or 1.0
    power = depth / (depth - 2)  # r + 1
    # a_i^{L-2}/unit, by which columns are scaled
    lengths = np.linalg.norm(x, axis=0)
    scaled = np.linalg.norm(columns, axis=0)
    weights = np.divide(scaled, lengths, out=np.ones_like(scaled), where=lengths > 0)
    for spent in range(budget + 1):
        z = columns.T @ mu
        beta = s * _slope(z, depth)
        residual = float(np.linalg.norm(x @ beta - y) / size)
        if not residual > tolerance or spent == budget:
            break
        # the Hessian in μ is X diag(s · weights · h') Xᵀ
        root = np.sqrt(s * weights * _curvature(z, depth))
        # X root² Xᵀ step = X (β_I - β), as X β_I = y
        step = np.linalg.lstsq(root[:, None] * x.T, (interpolant - beta) / root)[0]
        # largest share of a distance 1 - |z_i| that the full step uses
        used = float((np.abs(columns.T @ step) / (1 - np.abs(z))).max())
        mu = mu + step * (-np.expm1(-np.log1p(power * used) / power) / used if used > 0 else 1.0)
    return mu, spent, residual
