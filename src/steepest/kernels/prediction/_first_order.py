"""Gradient flow of a model that is quadratic in its parameters, to first order in the bend, in closed form."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from steepest.core import given
from steepest.core.errors import UserError
from steepest.kernels._arguments import as_floats

RANK = 1e-10  # smallest singular value of Φ over the largest, below which the model does not interpolate


class FirstOrder(NamedTuple):
    """Where the flow is, ``θ_t = linear + ε (inside + outside) + O(ε²)``.

    Attributes:
        linear: θ^F, the parameters of the linear model, shape ``(p,)``.
        inside: what ε adds in the span of the features, shape ``(p,)``.
        outside: what ε adds outside of it, shape ``(p,)``; the linear model never moves there.
        drift: F_α (θ^F − θ_0), by how much the features φ_α + ε F_α θ move per ε, shape ``(m, p)``; ``(n, k, p)`` of k
            outputs.
    """

    linear: Float[np.ndarray, " p"]
    inside: Float[np.ndarray, " p"]
    outside: Float[np.ndarray, " p"]
    drift: Float[np.ndarray, "*m p"]


def first_order_flow(
    phi: Float[Any, "p *m"],
    bend: Callable[[np.ndarray], Any],
    y: Float[Any, "*m"],
    start: Float[Any, " p"],
    time: float = np.inf,
) -> FirstOrder:
    r"""Expand the gradient flow of ``z_α = φ_αᵀθ + (ε/2) θᵀF_αθ`` on ``½ Σ (z_α − y_α)²`` to first order in ε.

    With ``Φ = U S Vᵀ``, ``r_0 = Φᵀθ_0 − y`` and ``θ^F_t = θ^F + Σ_j u_j c_j e^{−s_j² t}``, ``c = S⁻¹Vᵀr_0``, the flow
    obeys

    .. math:: \dot θ^I = -ΦΦ^⊤θ^I - \tfrac12 Σ_α φ_α\, θ_t^{F⊤}F_αθ^F_t - Σ_α F_αθ^F_t\, r_t(α),

    whose right-hand side is a sum of exponentials and is integrated term by term. At the end the part in the span is
    the pseudo-inverse of Φᵀ applied to ``Y^I_α = −½ θ^{F⊤}F_αθ^F``; the part outside is

    .. math:: θ^I_⊥ = -P_⊥ Σ_α F_α\Big[θ^F (K^{-1}r_0)_α + Σ_{jk} u_j c_j
              \frac{V_{αk} (V^⊤r_0)_k}{s_j^2 + s_k^2}\Big], \qquad K = Φ^⊤Φ,

    and depends on the path.

    Args:
        phi: Φ, one feature vector a column, of rank m. Of a model with k outputs α counts outputs of examples, and Φ
            has the shape ``(p, n, k)``, with m = n k.
        bend: maps v of shape ``(p,)`` to ``F_α v`` for all α, shape ``(m, p)``, or ``(n, k, p)``; linear, with
            symmetric F_α. Of a network it is the derivative of the Jacobian along v. It is called ``m + 2`` times.
        y: targets, shape ``(m,)``, or ``(n, k)``.
        start: θ_0.
        time: t; the limit by default.

    Raises:
        UserError: shapes that do not match, numbers that are not finite, or features of rank below m, which leave a
            residual that bends the path for ever.

    Source: ORF 543, lecture 11/2; the part outside of the span is not in the notes.

    >>> flat = first_order_flow(np.array([[1.0], [0.0]]), lambda v: np.array([[v[1], v[0]]]), [1.0], [0.0, 0.0])
    >>> flat.linear.tolist(), flat.inside.tolist(), flat.outside.tolist()  # z = θ_1 + ε θ_1 θ_2
    ([1.0, 0.0], [0.0, 0.0], [0.0, 0.5])
    """
    phi, y, start = _checked(phi, y, start, time)
    if not callable(bend):
        raise UserError(
            f"first-order flow: expected bend to map v to F v, got {given.shown(bend)}; try lambda v: forms @ v"
        )
    shape = (*y.shape, len(phi))
    phi = phi.reshape(len(phi), -1)
    y = y.ravel()
    u, s, vt = np.linalg.svd(phi, full_matrices=False)
    if s.size < len(y) or not s.size or s[-1] < RANK * s[0]:
        lowest = s[-1] if s.size == len(y) > 0 else 0.0
        raise UserError(
            f"first-order flow: expected features of rank {len(y)}, one for each example, got shape {phi.shape} and "
            f"singular values down to {lowest:.2g}; drop examples that repeat, or take a model with more parameters"
        )
    residual = vt @ (phi.T @ start - y)
    # θ_t^F − θ^F = U S⁻¹ e^{−S² t} Vᵀ r_0, which is u_j c_j in each mode
    away = residual / s  # c
    decay = s**2
    end = start - u @ away
    rates = np.append(0.0, decay)
    modes = np.vstack([end, (u * away).T])  # θ_t^F = Σ_j modes_j e^{−rates_j t}
    bent = np.stack([as_floats("what bend returns", bend(mode)) for mode in modes])
    if bent.shape[1:] != shape:
        raise UserError(
            f"first-order flow: expected bend to return shape {shape}, got {bent.shape[1:]}"
        )
    bent = bent.reshape(len(modes), *phi.T.shape)  # (m + 1, m, p)
    # Σ_α F_αθ_t^F r_t(α) = Σ_jk source_jk e^{−(rates_j + decay_k) t}
    source = np.einsum("jap,ka,k->jkp", bent, vt, residual)
    both = rates[:, None] + decay
    # outside of the span ΦΦᵀ is zero: the drive is integrated as it is
    outside = 0.0 - np.einsum("jk,jkp->p", _held(0.0, both, time), source)
    # P_⊥
    outside -= u @ (u.T @ outside)
    squares = np.einsum("jap,kp,ia->ijk", bent, modes, vt)  # Vᵀ of θ_t^F F_α θ_t^F
    pairs = rates[:, None] + rates
    # variation of constants along u_i, of decay rate s_i²; u_iᵀ Σ_α φ_α (·)_α = s_i (Vᵀ·)_i
    along = s * np.einsum("ijk,ijk->i", _held(decay[:, None, None], pairs, time), squares) / 2
    along += np.einsum("ijk,jkp,pi->i", _held(decay[:, None, None], both, time), source, u)
    linear = np.append(1.0, np.exp(-decay * time)) @ modes
    drift = as_floats("what bend returns", bend(linear - start)).astype(float)
    return FirstOrder(linear, -u @ along, outside, drift)


def _held(own: Any, driven: Any, time: float) -> np.ndarray:
    """Return ``∫_0^t e^{−own (t − s)} e^{−driven s} ds`` for rates ≥ 0, without cancellation where they meet."""
    own, driven = np.broadcast_arrays(own, driven)
    # the integral is symmetric in both rates
    slow = np.minimum(own, driven)
    gap = np.abs(own - driven)
    if np.isinf(time):
        with np.errstate(divide="ignore"):
            return np.where(slow > 0, 0.0, 1 / gap)
    # (e^{−slow t} − e^{−fast t})/(fast − slow) by expm1; t e^{−slow t} where the rates meet
    safe = np.where(gap * time > 0, gap, 1.0)
    return np.exp(-slow * time) * np.where(gap * time > 0, -np.expm1(-safe * time) / safe, time)


def _checked(phi: Any, y: Any, start: Any, time: float) -> tuple[np.ndarray, ...]:
    phi = as_floats("features", phi).astype(float)
    y = as_floats("targets", y).astype(float)
    start = as_floats("the start", start).astype(float)
    if phi.ndim not in (2, 3) or y.shape != phi.shape[1:] or start.shape != phi.shape[:1]:
        raise UserError(
            "first-order flow: expected features of shape (p, m), targets (m,) and a start (p,), or features (p, n, k) "
            f"and targets (n, k), got {phi.shape}, {y.shape} and {start.shape}; features are columns"
        )
    if not (np.isfinite(phi).all() and np.isfinite(y).all() and np.isfinite(start).all()):
        raise UserError("first-order flow: expected finite features, targets and start")
    if as_floats("the time", time).shape != () or not float(time) >= 0:
        raise UserError(f"first-order flow: expected a time of at least 0, got {given.shown(time)}")
    return phi, y, start
