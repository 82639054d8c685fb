"""The interpolant nearest to a start in a Bregman divergence: where mirror descent on least squares ends."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.programs._inputs import check_inputs
from steepest.programs._interpolation import Interpolation, min_norm_interpolation
from steepest.programs._potentials import Potential
from steepest.programs._solving import solve_tightly

# A least weight of a positive interpolant below this is on the boundary of the domain.
_INTERIOR = 1e-9
# ‖∇ψ(w) - ∇ψ(w_0) - Xᵀν‖, relative to the dual weights, above which the mirror maps do not belong to ψ.
_STATIONARY = 1e-7
# Part of the mean curvature that is added to the dual Hessian, relative to the residual.
_REGULAR = 1e-3
# Halvings of a step: from a start of size 1e-20 the first Newton step is 1e20 times too long.
_HALVINGS = 120


@checked
def bregman_interpolation(
    x: Float[Any, "n d"],
    y: Float[Any, " n"],
    potential: Potential,
    start: Float[Any, " d"] | None = None,
    tolerance: float = 1e-12,
    max_iterations: int = 500,
) -> Interpolation:
    """Find the interpolant nearest to a start, ``argmin D(w, w_0)`` subject to ``Xw = y``, D the divergence of ψ.

    Newton's method with line search on the dual, ``max_ν ⟨ν, y⟩ - ψ*(∇ψ(w_0) + Xᵀν)``, whose optimality condition is
    ``X w(ν) = y`` with ``w(ν) = ∇ψ*(∇ψ(w_0) + Xᵀν)``. That w is optimal is checked by the derivative of ψ itself,
    not by its mirror maps.

    Args:
        x: inputs, shape ``(n, d)``.
        y: targets, shape ``(n,)``.
        potential: ψ, such as ``simplex_entropy()``.
        start: ``w_0``, shape ``(d,)``; by default the least point of ψ.
        tolerance: wanted ``‖Xw - y‖ / ‖y‖``.
        max_iterations: give up after so many Newton steps; ``converged`` is then False.

    Returns:
        ``value`` is ``D(w, w_0)`` and ``dual`` is ν: ``∇ψ(w) - ∇ψ(w_0) = Xᵀν`` (up to a constant on the simplex). Data
        without an interpolant in the domain are an outcome: ``interpolable = False`` with a reason.

    Raises:
        UserError: if shapes do not match, an entry is not finite, or the start is outside the domain.

    Source: Gunasekar, Lee, Soudry and Srebro 2018.

    >>> from steepest.programs import simplex_entropy
    >>> bregman_interpolation([[0.0, 1.0, 2.0]], [1.0], simplex_entropy()).beta.round(6).tolist()
    [0.333333, 0.333333, 0.333333]
    """
    x, y = check_inputs("interpolation", x, y)
    with jax.enable_x64(True):
        w0 = (
            potential.center(x.shape[1])
            if start is None
            else jnp.asarray(np.asarray(start, dtype=float))
        )
        if w0.shape != x.shape[1:]:
            raise UserError(
                f"interpolation: expected a start of shape ({x.shape[1]},), got shape {w0.shape}"
            )
        z0 = potential.mirror(potential.check(w0)) if start is not None else jnp.zeros(x.shape[1])
        if missing := _missing(x, y, potential):
            return missing
        nu, iterations, residual = _newton(
            x, y, potential, np.asarray(z0), tolerance, max_iterations
        )
        moved = x.T @ nu
        w, slope, value = (np.asarray(part) for part in _end(potential, z0, moved, w0))
        error = _stationarity(potential, slope, np.asarray(z0), moved)
    converged = residual <= tolerance and error <= _STATIONARY
    # by equality in Fenchel's inequality at w(ν), value minus dual value is ⟨ν, Xw - y⟩
    return Interpolation(
        w, nu, float(value), float(nu @ (x @ w - y)), residual, True, iterations, bool(converged)
    )


def _missing(x: np.ndarray, y: np.ndarray, potential: Potential) -> Interpolation | None:
    """Return the least-squares fit with a reason, if the domain holds no interpolant."""
    plain = min_norm_interpolation(x, y)
    if not plain.interpolable:
        return plain
    if potential.domain == "all":
        return None
    import cvxpy as cp

    w = cp.Variable(x.shape[1])
    least = cp.Variable()
    unit = np.linalg.norm(y) or 1.0
    limits = [x @ w == y / unit, w >= least, least <= 1]
    limits += [cp.sum(w) == 1 / unit] if potential.domain == "simplex" else []
    try:
        solve_tightly(cp.Problem(cp.Maximize(least), limits))
        smallest = float(least.value) * unit if least.value is not None else -np.inf
    except UserError:  # no weights of sum one fit at all
        smallest = -np.inf
    if smallest > _INTERIOR:
        return None
    where = "positive weights" if potential.domain == "positive" else "positive weights of sum 1"
    reason = f"no {where} solve Xw = y: the least weight of a solution is at most {smallest:.1e}"
    return Interpolation(
        plain.beta, plain.dual, plain.value, plain.gap, plain.residual, False, 0, True, reason
    )


def _newton(
    x: np.ndarray,
    y: np.ndarray,
    potential: Potential,
    z0: np.ndarray,
    tolerance: float,
    budget: int,
) -> tuple[np.ndarray, int, float]:
    """Maximize the dual; the Hessian is regularized in proportion to the residual, which keeps the steps bounded."""
    problem = (potential, *(jnp.asarray(part) for part in (x, y, z0)))
    size = np.linalg.norm(y) or 1.0
    # Where the derivative of ∇ψ* vanishes (a norm's at 0), Newton has nothing to start from.
    nu = np.linalg.lstsq(x.T, np.linalg.lstsq(x, y)[0])[0] if not np.any(z0) else np.zeros(len(y))
    nu = nu if float(_dual(*problem, nu)[0]) < float(_dual(*problem, 0 * nu)[0]) else 0 * nu
    for spent in range(budget + 1):
        value, slope = (np.asarray(part) for part in _dual(*problem, nu))
        residual = float(np.linalg.norm(slope) / size)
        if residual <= tolerance or spent == budget:
            break
        hessian = np.asarray(_curvature(*problem, nu))
        # vanishes with the residual: steps become Newton's own
        ridge = _REGULAR * min(residual, 1.0) * np.trace(hessian) / len(y) + np.finfo(float).tiny
        step = -np.linalg.lstsq(hessian + ridge * np.eye(len(y)), slope)[0]
        for length in 0.5 ** np.arange(_HALVINGS):
            dual, ahead = _dual(*problem, nu + length * step)
            # Armijo: a tenth of what the slope promises
            lower = float(dual) <= float(value) + 0.1 * length * float(slope @ step)
            # Near the end the value is constant up to rounding, and the residual decides.
            if lower or np.linalg.norm(ahead) <= (1 - 0.1 * length) * np.linalg.norm(slope):
                break
        else:
            break
        nu = nu + length * step
    return nu, spent, residual


@partial(jax.jit, static_argnums=0)
def _dual(potential: Potential, x: Array, y: Array, z0: Array, nu: Array) -> tuple[Array, Array]:
    """Return the dual's negative, ``ψ*(z) - ⟨ν, y⟩`` at ``z = z_0 + Xᵀν``, and its gradient ``X∇ψ*(z) - y``."""
    z = z0 + x.T @ nu
    w = potential.unmirror(z)
    # ψ*(z) = ⟨z, w⟩ - ψ(w) at w = ∇ψ*(z).
    return jnp.dot(z, w) - potential.value(w) - jnp.dot(nu, y), x @ w - y


@partial(jax.jit, static_argnums=0)
def _curvature(potential: Potential, x: Array, y: Array, z0: Array, nu: Array) -> Array:
    return x @ jax.jacfwd(potential.unmirror)(z0 + x.T @ nu) @ x.T  # X ∇²ψ*(z) Xᵀ, shape (n, n)


@partial(jax.jit, static_argnums=0)
def _end(
    potential: Potential, z0: Array, moved: Array, w0: Array
) -> tuple[Float[Array, " d"], Float[Array, " d"], Float[Array, ""]]:
    """Return the weights where the dual variables end, ∇ψ there by differentiating ψ, and ``D(w, w_0)``."""
    w = potential.unmirror(z0 + moved)
    return w, jax.grad(potential.value)(w), potential.divergence(w, w0)


def _stationarity(
    potential: Potential, slope: np.ndarray, z0: np.ndarray, moved: np.ndarray
) -> float:
    error = slope - z0 - moved
    if potential.domain == "simplex":
        error = error - error.mean()  # dual weights count up to a constant here
    return float(np.abs(error).max() / (1 + np.abs(z0 + moved).max()))
