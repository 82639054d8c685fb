"""Attention: each position reads a sum of values over all positions, weighted by how alike keys and query are."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.activations import Activation, activation
from steepest.nn.layers._beside import Beside
from steepest.nn.layers._layer import Layer, Part, Scheme, Signal, need_space, same
from steepest.nn.layers._linear import Dense, Weights
from steepest.nn.layers._masks import Mask
from steepest.nn.layers._nodes import (
    Attend,
    AttendAtRandom,
    AttendEntrywise,
    AttendLinearly,
    Draft,
    Kind,
)
from steepest.nn.layers._window import times
from steepest.nn.networks._parameterization import _check_variances, _number_or_traced
from steepest.nn.types import Key, Params

SCALES = {"1/d": 1.0, "1/sqrt(d)": 0.5}
"""The power of the key's width d by which products of queries and keys are divided."""
LINEAR = activation("linear")


@dataclass(frozen=True)
class Attention(Weights):
    """Several heads of attention and a matrix behind them; build it with :func:`attention`."""

    width: int
    heads: int
    key: int
    scale: str = "1/d"
    tied: bool = True
    sharpness: float = 1.0
    c_w: float | None = None
    c_b: float | None = None
    weights: Activation | None = None
    through: Layer | None = None

    word = "attention"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it; parameters are those of ``dense``, by name: query, key (if not tied), value, output."""
        need_space("attention", signal)
        inner = Dense(self.heads * self.key, self.c_w, self.c_b)
        plain = scheme._replace(bias=False)
        parts: dict[str, Part] = {}
        seen = signal
        if self.through is not None:
            parts["through"] = self.through.build(signal, scheme, last=False)
            seen = parts["through"].output
            if seen.space != signal.space:
                raise UserError(
                    f"attention needs queries and keys at {times(signal.space)} positions, "
                    f"got {times(seen.space)} behind {self.through.name}"
                )
        parts["query"] = inner.build(seen, plain, last=False)
        if not self.tied:
            parts["key"] = inner.build(seen, plain, last=False)
        parts["value"] = inner.build(signal, scheme, last=False)
        behind = Signal(signal.space, inner.width, weighted=True)
        parts["output"] = Dense(self.width, self.c_w, self.c_b).build(behind, scheme, last=last)

        def init(key: Key) -> Params:
            keys = jax.random.split(key, len(parts))
            return {name: part.init(k) for (name, part), k in zip(parts.items(), keys, strict=True)}

        def apply(params: Params, x: Array, beside: Beside, key: Key | None) -> Array:
            behind = lambda name, z: parts[name].apply(params[name], z, beside, key)
            heads = lambda name, z: self._heads(behind(name, z))
            seen = x if self.through is None else behind("through", x)
            query = heads("query", seen)
            keys = query if self.tied else heads("key", seen)
            logits = jnp.einsum("nphk,nqhk->nhpq", query, keys)
            logits = self.sharpness / self.key ** SCALES[self.scale] * logits
            weights = self._weigh(logits, beside.mask)
            mixed = jnp.einsum("nhpq,nqhk->nphk", weights, heads("value", x))
            mixed = mixed.reshape(*x.shape[:-1], -1)
            return behind("output", mixed)

        def seen_by_keys(draft: Draft, source: int) -> int:
            if self.through is None:
                return source
            with draft.branches():
                return parts["through"].extend(draft, source)

        def extend(draft: Draft, source: int) -> int:
            if self.scale != "1/d":
                return extend_at_random(draft, source)
            values = parts["value"].extend(draft, source)
            # untied queries and keys are independent, so that their products over d vanish: all weights are equal
            c_w = scheme.c_w if self.c_w is None else self.c_w
            # tied: q·k/d tends to the queries' covariance, C_W K°
            sharpness = self.sharpness * c_w if self.tied else 0.0
            keys = seen_by_keys(draft, source)
            node = Attend((values, keys), sharpness)
            if self.weights is not None:
                node = AttendEntrywise((values, keys), sharpness, self.weights)
            mixed = draft.add(node, Kind.GAUSSIAN, signal.space)
            return parts["output"].extend(draft, mixed)

        def extend_at_random(draft: Draft, source: int) -> int:
            if self.tied:
                raise draft.refuse(
                    "tied attention with products over √d",
                    "products of a query with alike keys grow like √d, so that softmax takes the largest alone",
                    'take tied=False, or divide by d, scale="1/d"',
                )
            values = parts["value"].extend(draft, source)
            queries = parts["query"].extend(draft, seen_by_keys(draft, source))
            node = AttendAtRandom((values, queries), self.sharpness, self.weights)
            if self.weights is LINEAR:
                node = AttendLinearly((values, queries), self.sharpness)
            mixed = draft.add(node, Kind.GAUSSIAN, signal.space)
            return parts["output"].extend(draft, mixed)

        return Part(init, apply, parts["output"].output, extend, same)

    def _weigh(self, logits: Array, mask: Mask) -> Array:
        """Return the weights of keys, ``(batch, heads, queries, keys)``; keys that do not exist weigh nothing."""
        exists = None if mask is None else mask.reshape(len(logits), 1, 1, -1)
        if self.weights is not None:
            weights = self.weights(logits)
            return weights if exists is None else jnp.where(exists, weights, 0)
        logits = logits if exists is None else jnp.where(exists, logits, -jnp.inf)
        return jax.nn.softmax(logits)

    def _heads(self, z: Array) -> Array:
        """Split channels into heads and put positions in one line, ``(batch, positions, heads, key)``."""
        return z.reshape(len(z), math.prod(z.shape[1:-1]), self.heads, self.key)


@checked
def attention(
    width: int,
    *,
    heads: int,
    key: int,
    scale: str = "1/d",
    tied: bool = True,
    sharpness: float = 1.0,
    weights: str | Activation | Callable[[Any], Any] = "softmax",
    through: Layer | None = None,
    c_w: float | None = None,
    c_b: float | None = None,
) -> Attention:
    """Make attention with several heads, and one matrix that reads them all.

    In the limit of many heads with wide keys the weights of ``scale="1/d"`` are the same in all heads: those of tied
    queries and keys are the softmax of the input's own covariance, and those of untied ones are all equal, which is
    an average over positions. Divided by √d those of untied ones stay random, another draw in each head:
    ``gram_over_heads`` of ``steepest.kernels`` estimates the mean over heads. Where the weights are the products
    themselves, that mean has a closed form, and ``gram`` takes it.

    Keys that a mask leaves out weigh nothing, whatever the function of the weights is at zero.

    Args:
        width: channels of the output.
        heads: how many there are.
        key: d, channels of the queries, keys and values of a head.
        scale: by what products of queries and keys are divided, ``"1/d"`` or ``"1/sqrt(d)"``.
        tied: whether queries and keys have the same weights.
        sharpness: a factor on these products.
        weights: what weights are of the scaled products: ``"softmax"`` over all keys, or a function of each product by
            itself: ``"identity"``, an activation's name or a function of JAX.
        through: a layer behind which queries and keys read the signal, as ``positional_embedding()``; values read the
            signal itself.
        c_w: C_W of all its matrices instead of the network's.
        c_b: C_b of values and output instead of the network's; queries and keys have no biases.

    Raises:
        UserError: another scale, an unknown function, a variance that is negative, or numbers that are no whole numbers
            from one on.

    Source: Hron et al. 2020, sections 3 and 4.

    >>> attention(64, heads=8, key=16).tied
    True
    """
    for name, count in {"width": width, "heads": heads, "key": key}.items():
        if int(count) != count or count < 1:
            raise UserError(f"attention needs a whole number of {name} from one on, got {count}")
    _check_variances(c_w=c_w, c_b=c_b)
    if scale not in SCALES:
        raise UserError(f"scale of attention is one of {', '.join(SCALES)}, got {scale!r}")
    weigh = None
    if weights != "softmax":
        weigh = LINEAR if weights == "identity" else activation(weights)
    sharp = _number_or_traced(sharpness)
    return Attention(width, heads, key, scale, tied, sharp, c_w, c_b, weigh, through)
