"""Dropout: units that are left out at random in training."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array

from steepest.core.errors import UserError
from steepest.core.given import traced
from steepest.core.signatures import checked
from steepest.nn.layers._beside import Beside
from steepest.nn.layers._layer import Layer, Part, Scheme, Signal, same
from steepest.nn.layers._nodes import Draft, Drop, Kind
from steepest.nn.networks._parameterization import _number_or_traced
from steepest.nn.types import Key, Params


@dataclass(frozen=True)
class Dropout(Layer):
    """Leaves out units at random; build it with :func:`dropout`."""

    rate: float

    word = "dropout"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it."""
        keep = 1 - self.rate

        def apply(params: Params, x: Array, beside: Beside, key: Key | None) -> Array:
            if key is None:
                return x
            kept = jax.random.bernoulli(key, keep, x.shape)
            return jnp.where(kept, x / keep, 0)

        def extend(draft: Draft, source: int) -> int:
            if draft.kinds[source] is Kind.INPUT:
                why = "the input's channels stay few, so that kernels depend on which are left out"
                raise draft.refuse(self.word, why, "put dense() or conv() before it")
            # a Gaussian channel of which some units are zero is Gaussian no more
            return draft.add(Drop((source,), keep), Kind.OTHER, draft.spaces[source])

        return Part(lambda key: {}, apply, signal, extend, same)


@checked
def dropout(rate: float) -> Dropout:
    """Make dropout: in training each unit is zero with this probability, and others are divided by the rest of it.

    ``apply(params, x, key=key)`` draws the units of each row of x, and without a key nothing is left out. The limit is
    of the network in training. There an input with itself has larger kernels at equal positions, by 1/(1 − rate).
    Different rows of x are different inputs, also where they are equal, and so are the two arguments of a
    ``kernel_function``. ``sampled_gram`` and ``empirical_ntk`` take no key, so their networks leave nothing out.

    Args:
        rate: the probability with which a unit is left out. It is one minus the ``rate`` of ``stax.Dropout``.

    Raises:
        UserError: no number from zero on and below one.

    >>> dropout(0.1).rate
    0.1
    """
    if not traced(rate) and not 0 <= rate < 1:
        raise UserError(f"dropout needs a rate from 0 on and below 1, got {rate}")
    return Dropout(_number_or_traced(rate))
