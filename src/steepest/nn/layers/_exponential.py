"""The exponential of normalized signals: a layer whose covariance is the Gaussian kernel of directions."""

import math
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array

from steepest.core.errors import UserError
from steepest.core.given import traced
from steepest.core.signatures import checked
from steepest.nn.layers._layer import Layer, Part, Scheme, Signal, without_weights
from steepest.nn.layers._masks import Mask
from steepest.nn.layers._nodes import Draft, ExpNormalize, Kind
from steepest.nn.networks._parameterization import _number_or_traced


@dataclass(frozen=True)
class ExpNormalized(Layer):
    """The exponential of normalized signals; build it with :func:`exp_normalized`."""

    gamma: float
    shift: float

    word = "exp_normalized"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it."""

        def apply(x: Array, mask: Mask) -> Array:
            del mask  # where no position exists the deviation is zero, and so is the output
            size = jnp.sqrt((x**2).mean(-1, keepdims=True))
            direction = jnp.where(size > 0, x / jnp.where(size > 0, size, 1.0), 0.0)
            # E e^{√γ (u + v)} = e^{γ (1 + ρ)}, so that the factor is e^{γ (s − 1)/2} for each of them
            factor = jnp.exp(self.gamma * (self.shift - 1) / 2)
            return factor * size * jnp.exp(jnp.sqrt(self.gamma) * direction)

        def extend(draft: Draft, source: int) -> int:
            if draft.kinds[source] is not Kind.GAUSSIAN:
                raise draft.refuse(
                    self.word,
                    f"it reads {draft.kinds[source].value}",
                    "put dense() or conv() before it",
                )
            node = ExpNormalize((source,), self.gamma, self.shift)
            return draft.add(node, Kind.OTHER, draft.spaces[source])

        return without_weights(apply, signal, extend)


@checked
def exp_normalized(gamma: float = 1.0, shift: float = -1.0) -> ExpNormalized:
    """Make a layer whose covariance is ``√(K[p, p] K'[q, q]) exp(γ (ρ + s))``, with the correlation ρ of both signals.

    With s = −1 that is the Gaussian kernel ``exp(−γ d²/2)`` of both signals divided by their deviations, where d² is
    the mean of their squared differences over the channels. The finite layer divides the channels of a position by
    their root mean square r, and gives ``r exp(√γ z/r + γ (s − 1)/2)``.

    Args:
        gamma: γ, larger than zero.
        shift: s.

    Raises:
        UserError: γ that is not larger than zero, or numbers that are not finite.

    Source: Shankar et al. 2020, *Neural kernels without tangents*, section 3, for the covariance.

    >>> exp_normalized(0.5).gamma
    0.5
    """
    gamma = _number_or_traced(gamma)
    shift = _number_or_traced(shift)
    if not (traced(gamma) or traced(shift)) and not (0 < gamma < math.inf and math.isfinite(shift)):
        raise UserError(
            f"exp_normalized needs a finite gamma above zero and a finite shift, got gamma={gamma}, shift={shift}"
        )
    return ExpNormalized(gamma, shift)
