"""Potentials of mirror descent: a strictly convex function, its two mirror maps and its Bregman divergence."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Scalar

from steepest.core.errors import UserError
from steepest.core.signatures import checked

Domain = Literal["all", "positive", "simplex"]

# How far ∇ψ*(∇ψ(w)) may be from w, relative to the largest entry, in units of √ε of the floating type.
_ROUND_TRIP = 100.0


@dataclass(frozen=True)
class Potential:
    """A strictly convex function ψ of a vector of weights with its mirror maps.

    Attributes:
        name: how messages call it.
        value: ``ψ(w)``, a scalar.
        mirror: ``∇ψ(w)``, from weights to dual weights, shape ``(d,)``.
        unmirror: ``∇ψ*(z)``, its inverse on the domain, shape ``(d,)``.
        domain: ``"all"``, ``"positive"`` (every weight > 0) or ``"simplex"`` (positive with sum one; dual weights then
            count up to a common constant).
    """

    name: str
    value: Callable[[Array], Scalar]
    mirror: Callable[[Array], Array]
    unmirror: Callable[[Array], Array]
    domain: Domain = "all"

    def divergence(self, w: Float[Array, " d"], v: Float[Array, " d"]) -> Scalar:
        """Return the Bregman divergence ``D(w, v) = ψ(w) - ψ(v) - ⟨∇ψ(v), w - v⟩``: ≥ 0, and 0 only at ``w = v``.

        >>> float(entropy().divergence(jnp.array([2.0]), jnp.array([1.0]))).__round__(6)  # 2 log 2 − 1
        0.386294
        """
        return self.value(w) - self.value(v) - jnp.dot(self.mirror(v), w - v)

    def center(self, dimension: int) -> Float[Array, " d"]:
        """Return the minimum of ψ: mirror descent from here ends at the interpolant that minimizes ψ itself.

        >>> simplex_entropy().center(4).tolist()
        [0.25, 0.25, 0.25, 0.25]
        """
        return self.unmirror(jnp.zeros(dimension))

    def check(self, w: Any) -> Float[Array, " d"]:
        """Return the weights as a vector, if they lie in the domain and the two mirror maps undo each other.

        Inside ``jit`` or ``vmap`` the values cannot be seen and only the shape is checked.

        Raises:
            UserError: for weights outside the domain, or a potential that is not strictly convex there.

        >>> entropy().check([1.0, -2.0])
        Traceback (most recent call last):
        steepest.core.errors.UserError: entropy: expected positive weights, got a least weight of -2; start at ...
        """
        w = jnp.asarray(w, dtype=float)
        if w.ndim != 1 or w.size == 0:
            raise UserError(
                f"{self.name}: expected weights of shape (d,), got shape {w.shape}; flatten them"
            )
        if isinstance(w, Tracer):
            return w
        if self.domain != "all" and not float(w.min()) > 0:
            raise UserError(
                f"{self.name}: expected positive weights, got a least weight of {float(w.min()):g}; "
                "start at positive ones"
            )
        tolerance = _ROUND_TRIP * float(jnp.finfo(w.dtype).eps) ** 0.5
        if self.domain == "simplex" and not abs(float(w.sum()) - 1) <= tolerance:
            raise UserError(
                f"{self.name}: expected weights with sum 1, got the sum {float(w.sum()):g}; normalize them"
            )
        error = np.abs(np.asarray(self.unmirror(self.mirror(w)) - w)).max()
        if not error <= tolerance * max(float(jnp.abs(w).max()), float(jnp.finfo(w.dtype).tiny)):
            raise UserError(
                f"{self.name}: expected a strictly convex potential, whose ∇ψ* undoes ∇ψ, got weights that return "
                f"{error:.1e} away; try squared_norm(p) with p > 1"
            )
        return w


@checked
@cache  # programs are compiled once for each potential
def squared_norm(p: float = 2.0) -> Potential:
    """Return ``ψ(w) = ½ ‖w‖_p²`` with ``1 < p < ∞``; its conjugate is ``½ ‖z‖_q²``, ``1/p + 1/q = 1``.

    For p = 2 mirror descent is gradient descent. For p < 2 it is (p − 1)-strongly convex in the p-norm.

    Raises:
        UserError: for p ≤ 1 or p = ∞, where ψ is not strictly convex.

    >>> squared_norm(3.0).mirror(jnp.array([2.0, 0.0])).tolist()
    [2.0, 0.0]
    """
    q = _conjugate("squared norm", p)
    value = lambda w: 0.5 * _norm(w, p) ** 2
    return Potential(
        f"squared {p:g}-norm", value, lambda w: _dual_map(w, p), lambda z: _dual_map(z, q)
    )


@checked
@cache
def power(p: float) -> Potential:
    """Sum of powers, ``ψ(w) = Σ |w_i|^p / p`` with ``1 < p < ∞``; its conjugate is ``Σ |z_i|^q / q``.

    Raises:
        UserError: for p ≤ 1 or p = ∞, where ψ is not strictly convex.

    >>> power(3.0).mirror(jnp.array([2.0, -1.0])).tolist()
    [4.0, -1.0]
    """
    q = _conjugate("power", p)
    value = lambda w: jnp.sum(jnp.abs(w) ** p) / p
    return Potential(f"power {p:g}", value, lambda w: _power(w, p - 1), lambda z: _power(z, q - 1))


@cache
def entropy() -> Potential:
    """Return the entropy of positive weights, ``ψ(w) = Σ w_i log w_i - w_i``: ``∇ψ = log w``, ``∇ψ* = exp z``.

    Mirror descent is then exponentiated gradient, ``w_i ← w_i exp(-η ∂_i R)``; D is the generalized Kullback–Leibler
    divergence.

    >>> entropy().unmirror(jnp.array([0.0])).tolist()
    [1.0]
    """
    value = lambda w: jnp.sum(jax.scipy.special.xlogy(w, w) - w)
    return Potential("entropy", value, jnp.log, jnp.exp, "positive")


@cache
def simplex_entropy() -> Potential:
    """Return the entropy on the simplex, ``ψ(w) = Σ w_i log w_i``, ``Σ w_i = 1``: ``∇ψ* = softmax``.

    Mirror descent is exponentiated gradient with normalization (multiplicative weights).

    >>> simplex_entropy().unmirror(jnp.zeros(2)).tolist()
    [0.5, 0.5]
    """
    value = lambda w: jnp.sum(jax.scipy.special.xlogy(w, w))
    return Potential("simplex entropy", value, jnp.log, jax.nn.softmax, "simplex")


@checked
def hyperbolic_entropy(scale: ArrayLike) -> Potential:
    """Return ``ψ(w) = Σ s_i q(w_i/s_i)``, ``q(z) = 2 - √(4 + z²) + z asinh(z/2)``: ``∇ψ = asinh(w/2s)``.

    Between ℓ2 (large s) and ℓ1 (small s); ``∇ψ*(z) = 2 s sinh z``. Gradient flow of a diagonal network of depth two is
    the mirror flow of this potential with ``s = α²θ_0²``.

    Args:
        scale: ``s > 0``, a number or one for each weight.

    Raises:
        UserError: for a scale that is not positive.

    Source: Ghai, Hazan and Singer 2020; Woodworth et al. 2020.

    >>> hyperbolic_entropy(0.5).unmirror(jnp.arcsinh(jnp.array([3.0]))).round(6).tolist()
    [3.0]
    """
    if not isinstance(scale, Tracer) and not (np.asarray(scale) > 0).all():
        raise UserError(
            f"hypentropy: expected a positive scale, got {np.min(np.asarray(scale)):g}; try 1"
        )

    def value(w: Array) -> Scalar:
        z = w / scale
        # 2 - √(4 + z²), without its cancellation at small z and without overflow at large z.
        root = -z * (z / (2 + jnp.hypot(2.0, z)))
        return jnp.sum(scale * (root + z * jnp.arcsinh(z / 2)))

    return Potential(
        "hypentropy",
        value,
        lambda w: jnp.arcsinh(w / (2 * scale)),
        lambda z: 2 * scale * jnp.sinh(z),  # pyright: ignore
    )


def _conjugate(what: str, p: float) -> float:
    if not 1 < p < float("inf"):
        raise UserError(
            f"{what}: expected 1 < p < ∞, where the potential is strictly convex, got {p:g}; try 2"
        )
    return p / (p - 1)


def _power(w: Array, exponent: float) -> Array:
    """Return ``sign(w) |w|^exponent``, with derivative 0 at 0 where the true one may be infinite."""
    size = jnp.where(w == 0, 1.0, jnp.abs(w))
    return jnp.where(w == 0, 0.0, jnp.sign(w) * size**exponent)


def _norm(w: Array, p: float) -> Scalar:
    # in units of the largest entry no power overflows; the inner where keeps derivatives finite at
    # w = 0
    largest = jnp.abs(w).max()
    unit = jnp.where(largest > 0, largest, 1.0)
    inside = jnp.sum(jnp.abs(w / unit) ** p)
    return jnp.where(largest > 0, unit * jnp.where(largest > 0, inside, 1.0) ** (1 / p), 0.0)


def _dual_map(w: Array, p: float) -> Array:
    """Return the gradient of ``½ ‖w‖_p²``: ``‖w‖_p^{2-p} sign(w) |w|^{p-1}``."""
    size = _norm(w, p)
    unit = jnp.where(size > 0, size, 1.0)
    return unit * _power(w / unit, p - 1)  # ‖w‖^{2-p} |w|^{p-1} = ‖w‖ (|w|/‖w‖)^{p-1}
