"""Residuals of the optimality conditions of the nonlinear maximum-margin problem at a network's weights."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from steepest.core.errors import UserError
from steepest.core.given import call, numbers
from steepest.core.signatures import checked
from steepest.nn.types import Params

# A gradient whose product with the residual is below this improves nothing; the residual is at most one.
_TOLERANCE = 1e-9


class Kinks(NamedTuple):
    """The places where gradients of the margins jump at a network's weights, k of them.

    Attributes:
        example: whose margin it is, shape ``(k,)``.
        jump: what the gradient of this margin gains on the other side, shape ``(k, p)``.
    """

    example: Int[np.ndarray, " k"]
    jump: Float[np.ndarray, "k p"]


class KktResiduals(NamedTuple):
    """Residuals of ``min ½‖θ‖²`` subject to ``u_i(θ) ≥ 1`` at weights scaled so that the least margin is one.

    Attributes:
        stationarity: ``‖θ - Σ λ_i ∇u_i‖ / ‖θ‖``; 0 at a KKT point.
        complementarity: ``L Σ λ_i (u_i - 1) / ‖θ‖²``, the part of θ that rests on examples off the margin; 0 at a KKT
            point.
        multipliers: ``λ_i ≥ 0``, shape ``(n,)``; at a KKT point ``L Σ λ_i = ‖θ‖²``, by Euler's identity.
        margin: the normalized margin ``min_i u_i(θ/‖θ‖)``; residuals are NaN if it is not positive.
    """

    stationarity: float
    complementarity: float
    multipliers: Float[np.ndarray, " n"]
    margin: float

    @property
    def largest(self) -> float:
        """Return the larger of the two residuals."""
        return max(self.stationarity, self.complementarity)


@checked
def kkt_residuals(
    margins: Callable[[Any], Float[Array, " n"]], params: Params, degree: float
) -> KktResiduals:
    """Measure the residuals of the optimality conditions of ``min ½‖θ‖²`` subject to ``u_i(θ) ≥ 1``.

    The multipliers are those that make both residuals together least, by non-negative least squares; no loss enters, so
    that weights from any training can be judged. The margins must be positively homogeneous, ``u(cθ) = c^L u(θ)``.

    Args:
        margins: ``u``, from parameters to the margins of n examples, such as ``y * apply(params, x)``.
        params: θ, a pytree of arrays with p numbers.
        degree: L, the degree of homogeneity: the number of layers of a bias-free ReLU network.

    Raises:
        UserError: if the margins are not homogeneous of that degree at these parameters, or a number is not finite.

    Source: Lyu and Li 2020, §4.2 (approximate KKT points); Gunasekar, Lee, Soudry and Srebro 2018.

    >>> import jax.numpy as jnp
    >>> x = jnp.array([[1.0, 1.0], [-1.0, 1.0], [5.0, 2.0]])
    >>> residuals = kkt_residuals(lambda w: x @ w, jnp.array([0.0, 3.0]), degree=1)
    >>> round(residuals.stationarity, 9), round(residuals.complementarity, 9), residuals.multipliers.round(6).tolist()
    (0.0, 0.0, [0.5, 0.5, 0.0])
    """
    with jax.enable_x64(True):
        params = jax.tree.map(lambda leaf: np.asarray(leaf, dtype=float), params)
        flat, restore = ravel_pytree(params)
        u = numbers("what margins returns", call("margins", margins, restore(flat)))
        slopes = jax.jacrev(lambda theta: margins(restore(theta)))(flat)
    return kkt_from_gradients(flat, u, slopes, degree)


@checked
def kkt_from_gradients(
    params: Float[Any, " p"],
    margins: Float[Any, " n"],
    slopes: Float[Any, "n p"],
    degree: float,
    kinks: Kinks | None = None,
) -> KktResiduals:
    """Do the same from numbers, for many networks whose margins and gradients come from one compiled batch.

    With kinks the conditions are Clarke's: the gradient of example i is ``∇u_i + Σ_k c_k d_k`` with any ``c_k`` from 0
    to 1 for each of its kinks, so that kink k has a multiplier ``λ_i c_k`` between 0 and ``λ_i`` of its own. For a
    two-layer ReLU network these gradients are Clarke's subdifferential, as each kink moves another neuron's weights.

    Args:
        params: θ as a vector, shape ``(p,)``.
        margins: ``u_i(θ)``, shape ``(n,)``.
        slopes: ``∇u_i(θ)``, shape ``(n, p)``, at kinks that of one side.
        degree: L.
        kinks: where gradients jump; none without it.

    Raises:
        UserError: as ``kkt_residuals``.

    Source: Lyu and Li 2020, §4.2 and appendix A (Clarke's subdifferential).

    >>> kkt_from_gradients([0.0, 3.0], [3.0, 3.0], [[1.0, 1.0], [-1.0, 1.0]], 1).multipliers.round(6).tolist()
    [0.5, 0.5]

    ``u = θ₁ + |θ₂|`` at (1, 0), where the gradient is (1, c) with any c from −1 to 1:

    >>> kinks = Kinks(np.array([0]), np.array([[0.0, 2.0]]))
    >>> one_side, clarke = (kkt_from_gradients([1.0, 0.0], [1.0], [[1.0, -1.0]], 1, k) for k in (None, kinks))
    >>> round(one_side.stationarity, 6), round(clarke.stationarity, 6)
    (0.707107, 0.0)
    """
    flat, u, slopes = (np.asarray(array, dtype=float) for array in (params, margins, slopes))
    _check(u, slopes, flat, degree)
    size = np.linalg.norm(flat)
    margin = float(u.min() / size**degree) if size > 0 else 0.0
    if not margin > 0:
        return KktResiduals(np.nan, np.nan, np.full(len(u), np.nan), margin)
    # At the scale c = u_min^{-1/L} the margins are u/u_min, the gradients c^{L-1} ∇u and ‖θ‖ is c‖θ‖.
    c = u.min() ** (-1 / degree)
    scaled = c ** (degree - 1) * slopes.T / (c * size)  # columns ∇u_i/‖θ‖
    excess = degree * (u / u.min() - 1) / (c * size) ** 2
    # the weighted sum of excesses as one more residual, which is to be 0
    columns = np.vstack([scaled, excess])
    target = np.append(flat / size, 0.0)
    if kinks is None:
        kinks = Kinks(np.zeros(0, int), np.zeros((0, len(flat))))
    jumps = c ** (degree - 1) * np.asarray(kinks.jump).T / (c * size)
    # kinks do not change the margins, hence not the excess
    turns = np.vstack([jumps, np.zeros(jumps.shape[1])])
    multipliers, residual = _least_squares(columns, turns, np.asarray(kinks.example), target)
    stationarity = float(np.linalg.norm(residual[:-1]))
    return KktResiduals(stationarity, float(excess @ multipliers), multipliers, margin)


def _least_squares(
    columns: Float[np.ndarray, "q n"],
    turns: Float[np.ndarray, "q k"],
    example: Int[np.ndarray, " k"],
    target: Float[np.ndarray, " q"],
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " q"]]:
    """Minimize ``‖target − Σ λ_i a_i − Σ m_k d_k‖`` over ``λ ≥ 0`` and ``0 ≤ m_k ≤ λ_i`` of the kink's example.

    The cone of these sums has an extreme ray for each example and each set of its kinks, ``a_i + Σ_{k in set} d_k``.
    Rays are generated as they are needed: the best of an example takes the kinks whose turn has a positive product
    with the residual, and when none has one itself, the residual is the least (Moreau).

    Returns:
        ``λ``, shape ``(n,)``, and the residual, shape ``(q,)``.
    """
    from scipy.optimize import nnls

    count = columns.shape[1]
    owner = np.arange(count)
    rays = columns
    least = np.inf
    while True:
        weights, _ = nnls(rays, target)
        residual = target - rays @ weights
        gain = turns.T @ residual
        # ⟨a_i, residual⟩ with every kink that adds to it
        best = columns.T @ residual + np.bincount(example, np.maximum(gain, 0), count)
        improving = np.flatnonzero(best > _TOLERANCE)
        used = weights > 0
        size = np.linalg.norm(residual)
        # a ray that the solver takes for rounding leaves the residual as it is
        if len(example) == 0 or len(improving) == 0 or not size < least:
            return np.bincount(owner[used], weights[used], count), residual
        least = size
        taken = (example[:, None] == improving) & (gain > 0)[:, None]
        rays = np.hstack([rays[:, used], columns[:, improving] + turns @ taken])
        owner = np.concatenate([owner[used], improving])


def _check(u: np.ndarray, slopes: np.ndarray, flat: np.ndarray, degree: float) -> None:
    """Raise a UserError for numbers that are not finite and for another degree (Euler: ⟨θ, ∇u⟩ = L u)."""
    if u.ndim != 1 or not (
        np.isfinite(u).all() and np.isfinite(slopes).all() and np.isfinite(flat).all()
    ):
        raise UserError(
            f"KKT residuals: expected finite margins of shape (n,), got shape {u.shape} or NaN"
        )
    euler = slopes @ flat  # Euler's identity: L u
    scale = np.abs(u).max() + 1e-300
    if np.abs(euler - degree * u).max() > 1e-6 * degree * scale:
        fitted = float(euler @ u / (u @ u)) if u.any() else np.nan
        raise UserError(
            f"KKT residuals: expected margins of degree {degree:g}, got ⟨θ, ∇u⟩ = {fitted:.4g} u; "
            "drop the biases, or pass the number of layers"
        )
