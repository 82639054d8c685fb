"""Contrastive loss of a representation, its parts, and the mean classifier's loss on pairs of classes."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest.core.errors import UserError

LOG_TWO = 0.6931471805599453
"""A bit."""
SPREAD_CONSTANT = 1 / (3**0.5 * LOG_TWO)
"""How much a unit of spread can add to the loss within classes: 1/(√3 log 2)."""


class Pairs(NamedTuple):
    """Weights of ordered pairs of classes.

    Attributes:
        same: of a class with itself, ρ_c²/τ, shape ``(C,)``.
        different: ρ_cρ_c'/(1 − τ), zero on the diagonal, shape ``(C, C)``.
        collision: τ = Σρ_c², the probability that two classes drawn independently are one.
    """

    same: Any
    different: Any
    collision: Any


def pair_weights(shares: Any) -> Pairs:
    """Return the weights of pairs of classes that shares ρ_c of the classes give.

    Args:
        shares: ρ, with sum one, shape ``(C,)``; of JAX or of NumPy, as are the weights.

    >>> pairs = pair_weights(jnp.array([0.5, 0.5]))
    >>> float(pairs.collision), float(pairs.same.sum()), float(pairs.different.sum())
    (0.5, 1.0, 1.0)
    """
    squares = shares**2
    collision = squares.sum()
    others = shares[:, None] * shares * (1 - np.eye(len(shares)))
    return Pairs(squares / collision, others / others.sum(), collision)


class Contrastive(NamedTuple):
    """Losses of a representation, in bits; a representation that is zero has one bit everywhere.

    Attributes:
        un: the contrastive loss L_un, negatives from all classes.
        same: its part with the negative from the class of the positive, L^=; at least one.
        different: its part with a negative from another class, L^≠; ``un`` is τ ``same`` + (1 − τ) ``different``.
        supervised: loss of the mean classifier on the average pair of classes, L_sup.
        collision: τ = Σρ_c², the probability that the negative is of the positive's class.
        spread: E √(f(x)ᵀΣ_c f(x)), x of class c and c as often as twice the same; ``same`` is at most one plus
            ``SPREAD_CONSTANT`` times it.
    """

    un: Float[Array, ""]
    same: Float[Array, ""]
    different: Float[Array, ""]
    supervised: Float[Array, ""]
    collision: Float[Array, ""]
    spread: Float[Array, ""]


def contrastive(
    features: Float[Array, "C n k"],
    shares: Float[Array, " C"] | None = None,
    test_shares: Float[Array, " C"] | None = None,
) -> Contrastive:
    r"""Return the contrastive loss of a representation, all expectations being sums over n examples of each class.

    .. math::
        L_{un} = E\,ℓ\big(f(x)^T(f(x^+) - f(x^-))\big), \quad
        L_{sup} = E_{c ≠ c'}\,ℓ\big(f(x)^T(μ_c - μ_{c'})\big), \quad ℓ(v) = \log_2(1 + e^{-v})

    x and x⁺ are independent draws of one class and may coincide, x⁻ is of a class drawn independently, μ are class
    means.
    For every f, by Jensen's inequality, L_sup ≤ L^≠ and L^= ≥ 1, so that L_sup ≤ (L_un − τ)/(1 − τ).

    Args:
        features: f of the examples, by class.
        shares: ρ, positive with sum one; all alike where it is left out.
        test_shares: of the classes in the supervised pairs, if they are others.

    Raises:
        UserError: features that are not ``(C, n, k)`` with two classes or more, or shares of another number.

    Source: Arora, Khandeparkar, Khodak, Plevrakis and Saunshi 2019.

    >>> apart = jnp.array([[[3.0]], [[-3.0]]])  # two classes without spread
    >>> losses = contrastive(apart)
    >>> bool(losses.supervised == losses.different), float(losses.same), float(losses.spread)
    (True, 1.0, 0.0)
    >>> bool(jnp.isclose(losses.un, (1 + losses.different) / 2))
    True
    """
    if features.ndim != 3 or len(features) < 2:
        raise UserError(
            f"contrastive: expected features by class, (C, n, k) with C ≥ 2, got shape {tuple(features.shape)}"
        )
    classes = len(features)
    rho = jnp.full(classes, 1 / classes) if shares is None else jnp.asarray(shares)
    test = rho if test_shares is None else jnp.asarray(test_shares)
    if rho.shape != (classes,) or test.shape != (classes,):
        raise UserError(
            f"contrastive: expected one share a class, {classes}, got {rho.shape} and {test.shape}"
        )

    def of_class(own: Array) -> tuple[Array, Array, Array]:
        """Return the losses of one class against all as negatives, by pair, and the class's spread."""
        positive = own @ own.T  # (x, x⁺)
        negative = jnp.einsum("ik,djk->idj", own, features)  # (x, c', x⁻)
        pairs = _bits(positive[:, :, None, None] - negative[:, None]).mean((0, 1, 3))
        means = _bits(positive.mean(1)[:, None] - negative.mean(2)).mean(0)
        return pairs, means, positive.std(1).mean()

    pairs, means, spreads = jax.lax.map(of_class, features)
    weights = pair_weights(rho)
    collision = weights.collision
    same = (weights.same * pairs.diagonal()).sum()
    different = (weights.different * pairs).sum()
    return Contrastive(
        un=(jnp.outer(rho, rho) * pairs).sum() / rho.sum() ** 2,
        same=same,
        different=different,
        supervised=(pair_weights(test).different * means).sum(),
        collision=collision,
        spread=(weights.same * spreads).sum(),
    )


def _bits(v: Array) -> Array:
    return jax.nn.softplus(-v) / LOG_TWO
