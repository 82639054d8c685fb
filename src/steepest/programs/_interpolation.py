"""Interpolants of least norm: which of the many exact fits a descent ends at."""

from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.programs._inputs import check_inputs, check_positive
from steepest.programs._potentials import hyperbolic_entropy
from steepest.programs._solving import solve_tightly

# A least-squares residual above this fraction of the targets means that no interpolant exists.
_INTERPOLABLE = 1e-9
# Wanted residual at the scales that Newton's method only passes through.
_ROUGH = 1e-2


@dataclass(frozen=True)
class Interpolation:
    """The interpolant that minimizes a penalty, ``argmin P(β)`` subject to ``Xβ = y``, with its certificate.

    Attributes:
        beta: the minimizer, shape ``(d,)``; the least-squares fit if there is no interpolant.
        dual: the Lagrange multipliers ``ν``, shape ``(n,)``: ``Xᵀν`` is a (sub)gradient of P at beta.
        value: ``P(β)``.
        gap: value minus the dual value; the minimum lies within this below the value.
        residual: ``‖Xβ - y‖ / ‖y‖``.
        interpolable: whether an interpolant exists.
        iterations: Newton steps, where the method is Newton's.
        converged: whether the method reached its tolerance.
        reason: why there is no interpolant, if there is none.
    """

    beta: Float[np.ndarray, " d"]
    dual: Float[np.ndarray, " n"]
    value: float
    gap: float
    residual: float
    interpolable: bool
    iterations: int = 0
    converged: bool = True
    reason: str = ""


@checked
def min_norm_interpolation(
    x: Float[Any, "n d"], y: Float[Any, " n"], norm: Literal["l1", "l2"] | Float[Any, " d"] = "l2"
) -> Interpolation:
    """Find the interpolant of least norm, ``argmin ‖β‖`` subject to ``Xβ = y``.

    Args:
        x: inputs, shape ``(n, d)``.
        y: targets, shape ``(n,)``.
        norm: ``"l1"`` (a linear program, by Clarabel), ``"l2"``, or positive weights ``ω`` of shape ``(d,)`` for
            ``√(Σ ω_i β_i²)`` (both by orthogonal factorization).

    Raises:
        UserError: if shapes do not match, an entry is not finite, or a weight is not positive. Data without an
            interpolant are an outcome: ``interpolable = False``.

    >>> min_norm_interpolation([[2.0, 1.0]], [2.0], "l1").beta.round(6).tolist()
    [1.0, 0.0]
    >>> min_norm_interpolation([[2.0, 1.0]], [2.0], "l2").beta.round(6).tolist()
    [0.8, 0.4]
    """
    x, y = check_inputs("interpolation", x, y)
    if isinstance(norm, str):
        if norm not in ("l1", "l2"):
            raise UserError(
                f"interpolation: expected the norm 'l1', 'l2' or an array of weights, got {norm!r}"
            )
        weights = np.ones(x.shape[1])
    else:
        weights = check_positive("interpolation", "weights", norm, x.shape[1])
    euclidean = _euclidean(x, y, weights)
    return (
        _basis_pursuit(x, y)
        if isinstance(norm, str) and norm == "l1" and euclidean.interpolable
        else euclidean
    )


@checked
def hypentropy(beta: Float[ArrayLike, " d"], scale: ArrayLike) -> Array:
    """Return the penalty ``Q(β) = Σ_i s_i q(β_i/s_i)``, ``q(z) = 2 - √(4 + z²) + z asinh(z/2)``.

    Its gradient is ``asinh(β/2s)``. Where ``s`` is large, ``Q ≈ Σ β²/4s``; where it is small,
    ``Q / log(1/s) → ‖β‖₁`` (the notes leave out the logarithm).

    Args:
        beta: weights, shape ``(d,)``.
        scale: ``s = α² θ_0²``, a number or an array of shape ``(d,)``.

    Source: ORF 543, lecture 11/9; Woodworth et al. 2020; Ghai, Hazan and Singer 2020 (the name).

    >>> float(hypentropy(jnp.array([0.0, 0.0]), 1.0))
    0.0
    >>> round(float(hypentropy(jnp.array([1.0]), 100.0)) * 400, 3)
    1.0
    """
    return hyperbolic_entropy(jnp.asarray(scale)).value(jnp.asarray(beta))


@checked
def hypentropy_interpolation(
    x: Float[Any, "n d"],
    y: Float[Any, " n"],
    scale: Float[Any, " d"] | float,
    tolerance: float = 1e-11,
    max_iterations: int = 200,
) -> Interpolation:
    """Find the interpolant of least hypentropy, ``argmin Q(β)`` subject to ``Xβ = y``.

    Newton's method on the dual, ``max_ν ⟨ν, y⟩ - Σ 2 s_i (cosh (Xᵀν)_i - 1)``, whose optimality condition is
    ``X β(ν) = y`` with ``β(ν) = 2 s sinh(Xᵀν)``. A step that would move some ``(Xᵀν)_i`` by ``m`` is damped by
    ``log(1 + m)/m``, for which descent is guaranteed because ``|cosh'| ≤ cosh``: no line search. Small scales are
    approached from larger ones, a decade at a time. ``bregman_interpolation`` is the general method for any potential,
    which compiles for each; this one takes a millisecond, and each is the other's test.

    Args:
        x: inputs, shape ``(n, d)``.
        y: targets, shape ``(n,)``.
        scale: ``s = α² θ_0² > 0``, a number or an array of shape ``(d,)``.
        tolerance: wanted ``‖Xβ - y‖ / ‖y‖``.
        max_iterations: give up after so many Newton steps; ``converged`` is then False.

    Raises:
        UserError: if shapes do not match, an entry is not finite, or a scale is not positive. Data without an
            interpolant are an outcome: ``interpolable = False``.

    Source: ORF 543, lecture 11/9; Woodworth et al. 2020. Damping: Sun and Tran-Dinh 2019.

    >>> small = hypentropy_interpolation([[2.0, 1.0]], [2.0], scale=1e-12)
    >>> large = hypentropy_interpolation([[2.0, 1.0]], [2.0], scale=1e+6)
    >>> small.beta.round(4).tolist(), large.beta.round(4).tolist()
    ([1.0, 0.0], [0.8, 0.4])
    """
    x, y = check_inputs("interpolation", x, y)
    s = check_positive(
        "interpolation",
        "scale",
        np.broadcast_to(np.asarray(scale, dtype=float), x.shape[1:]),
        x.shape[1],
    )
    start = _euclidean(x, y, np.ones(x.shape[1]))
    if not start.interpolable:
        return start
    nu = np.zeros(len(y))
    iterations = 0
    residual = np.inf
    for larger in _descending(float(np.abs(start.beta).max() / s.min())):
        wanted = tolerance if larger == 1 else _ROUGH
        nu, spent, residual = _newton(
            x, y, start.beta, larger * s, nu, wanted, max_iterations - iterations
        )
        iterations += spent
    u = x.T @ nu
    beta = 2 * s * np.sinh(u)  # β = ∇Q*(u), where the conjugate is Σ 2 s (cosh u - 1)
    value = float(hypentropy(beta, s))
    # cosh u - 1 = 2 sinh²(u/2), without cancellation at small u.
    gap = value - float(nu @ y - np.sum(4 * s * np.sinh(u / 2) ** 2))
    return Interpolation(
        beta, nu, value, gap, residual, True, iterations, bool(residual <= tolerance)
    )


def _descending(top: float) -> list[float]:
    """Return factors from ``top`` down to 1, a decade apart: small scales are reached from the easy, large ones."""
    decades = int(np.ceil(np.log10(top))) if top > 1 else 0
    return [10.0**power for power in range(decades, -1, -1)]


def _newton(
    x: np.ndarray,
    y: np.ndarray,
    interpolant: np.ndarray,
    s: np.ndarray,
    nu: np.ndarray,
    tolerance: float,
    budget: int,
) -> tuple[np.ndarray, int, float]:
    size = np.linalg.norm(y) or 1.0
    for spent in range(budget + 1):
        residual = float(np.linalg.norm(x @ (2 * s * np.sinh(x.T @ nu)) - y) / size)
        if residual <= tolerance or spent == budget:
            break
        nu = nu + _newton_step(x, interpolant, s, nu)
    return nu, spent, residual


def _newton_step(
    x: np.ndarray, interpolant: np.ndarray, s: np.ndarray, nu: np.ndarray
) -> np.ndarray:
    """Take one damped Newton step on the dual, as a least-squares problem: the conditioning is not squared.

    Gradient ``X (β(ν) - β_I)`` for any interpolant ``β_I``; Hessian ``X diag(2 s cosh) Xᵀ``.
    """
    u = x.T @ nu
    root = np.sqrt(2 * s * np.cosh(u))
    step = np.linalg.lstsq(root[:, None] * x.T, (interpolant - 2 * s * np.sinh(u)) / root)[0]
    move = np.abs(x.T @ step).max()
    return step * (np.log1p(move) / move if move > 0 else 1.0)


def _euclidean(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Interpolation:
    root = np.sqrt(weights)
    beta = np.linalg.lstsq(x / root, y)[0] / root  # least √(Σ ω β²): least ‖√ω β‖₂
    size = np.linalg.norm(y)
    residual = float(np.linalg.norm(x @ beta - y) / size) if size > 0 else 0.0
    value = float(np.linalg.norm(root * beta))
    # Stationarity: Xᵀν = ω β / value.
    nu = (
        np.linalg.lstsq(x.T / root[:, None], root * beta / value)[0]
        if value > 0
        else np.zeros(len(y))
    )
    possible = residual <= _INTERPOLABLE
    gap = value - float(nu @ y)  # value minus ⟨ν, y⟩, the dual of a norm on its unit ball
    reason = (
        ""
        if possible
        else f"Xw = y has no solution: least squares leaves a relative residual of {residual:.1e}"
    )
    return Interpolation(beta, nu, value, gap, residual, possible, reason=reason)


def _basis_pursuit(x: np.ndarray, y: np.ndarray) -> Interpolation:
    import cvxpy as cp

    unit = np.linalg.norm(y) or 1.0
    beta = cp.Variable(x.shape[1])
    fit = x @ beta == y / unit
    solve_tightly(cp.Problem(cp.Minimize(cp.norm1(beta)), [fit]))
    weights = unit * np.asarray(beta.value)
    nu = fit.dual_value
    # the solver's sign of an equality's multiplier is a convention
    nu = nu * (1 if nu @ y >= 0 else -1)
    # Shrunk into the dual ball ‖Xᵀν‖_∞ ≤ 1, so that its value is a proof.
    nu = nu / max(1.0, np.abs(x.T @ nu).max())
    value = float(np.abs(weights).sum())
    residual = float(np.linalg.norm(x @ weights - y) / unit)
    return Interpolation(weights, nu, value, value - float(nu @ y), residual, True)
