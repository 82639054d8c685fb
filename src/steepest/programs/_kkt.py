"""Residuals of the optimality conditions of the nonlinear maximum-margin problem at a network's weights."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from steepest.core.errors import UserError


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


def kkt_residuals(
    margins: Callable[[Any], Float[Array, " n"]], params: Any, degree: float
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
        u = margins(restore(flat))
        slopes = jax.jacrev(lambda theta: margins(restore(theta)))(flat)
    return kkt_from_gradients(flat, u, slopes, degree)


def kkt_from_gradients(
    params: Float[Any, " p"], margins: Float[Any, " n"], slopes: Float[Any, "n p"], degree: float
) -> KktResiduals:
    """Do the same from numbers, for many networks whose margins and gradients come from one compiled batch.

    Args:
        params: θ as a vector, shape ``(p,)``.
        margins: ``u_i(θ)``, shape ``(n,)``.
        slopes: ``∇u_i(θ)``, shape ``(n, p)``.
        degree: L.

    Raises:
        UserError: as ``kkt_residuals``.

    >>> kkt_from_gradients([0.0, 3.0], [3.0, 3.0], [[1.0, 1.0], [-1.0, 1.0]], 1).multipliers.round(6).tolist()
    [0.5, 0.5]
    """
    from scipy.optimize import nnls

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
    multipliers, _ = nnls(np.vstack([scaled, excess]), np.append(flat / size, 0.0))
    stationarity = float(np.linalg.norm(flat / size - scaled @ multipliers))
    return KktResiduals(stationarity, float(excess @ multipliers), multipliers, margin)


def _check(u: np.ndarray, slopes: np.ndarray, flat: np.ndarray, degree: float) -> None:
    """Raise a UserError for numbers that are not finite and for another degree (Euler: ⟨θ, ∇u⟩ = L u)."""
    if u.ndim != 1 or not (
        np.isfinite(u).all() and np.isfinite(slopes).all() and np.isfinite(flat).all()
    ):
        raise UserError(
            f"KKT residuals: expected finite margins of shape (n,), got shape {u.shape} or NaN"
        )
    euler = slopes @ flat
    scale = np.abs(u).max() + 1e-300
    if np.abs(euler - degree * u).max() > 1e-6 * degree * scale:
        fitted = float(euler @ u / (u @ u)) if u.any() else np.nan
        raise UserError(
            f"KKT residuals: expected margins of degree {degree:g}, got ⟨θ, ∇u⟩ = {fitted:.4g} u; "
            "drop the biases, or pass the number of layers"
        )
