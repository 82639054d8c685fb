"""Positional embeddings: random vectors of the positions, alike for all inputs."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.core.given import call, numbers, traced
from steepest.core.signatures import checked
from steepest.nn.layers._beside import Beside
from steepest.nn.layers._layer import Layer, Part, Scheme, Signal, need_space, same
from steepest.nn.layers._linear import WATCH, Use
from steepest.nn.layers._nodes import Concatenate, Draft, Embed, Kind, Sum
from steepest.nn.networks._parameterization import _number_or_traced
from steepest.nn.types import Key, Params

NEGATIVE = (
    1e-10  # eigenvalues of a covariance below minus this share of the largest are no rounding
)


@dataclass(frozen=True)
class Embedding(Layer):
    """Embeddings of positions that are added to a signal; build it with :func:`positional_embedding`."""

    c: float
    decay: Callable[[Any], Any] | None

    word = "positional_embedding"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it; parameters are ``{"w": (channels, positions)}``."""
        need_space(self.word, signal)
        covariance = _covariance(signal.space, self.decay)
        # E = √c L e with R = L Lᵀ: a matrix e that reads the rows of L
        root = np.eye(len(covariance)) if self.decay is None else _root(covariance)
        channels = self._channels(signal)

        def init(key: Key) -> Params:
            return {"w": jax.random.normal(key, (channels, root.shape[1]))}

        def apply(params: Params, x: Array, beside: Beside, key: Key | None) -> Array:
            del beside, key
            rows = jnp.asarray(root, x.dtype).reshape(*signal.space, -1)
            rows = jnp.broadcast_to(rows, (len(x), *rows.shape))
            multiplier = self.c**0.5
            embedded = multiplier * (rows @ params["w"].T)
            watch = params.get(WATCH)
            if watch is not None:
                embedded = watch(Use(rows, multiplier, None, True, False), embedded)
            return self._joined(x, embedded)

        def extend(draft: Draft, source: int) -> int:
            if draft.kinds[source] is Kind.INPUT:
                why = "the input's channels stay few, so that their products with embeddings do not vanish"
                raise draft.refuse(self.word, why, "put dense() or conv() before it")
            rows = None if self.decay is None else tuple(map(tuple, covariance.tolist()))
            node = Embed((source,), self.c, rows)
            embedded = draft.add(node, Kind.GAUSSIAN, signal.space)
            return self._extended(draft, source, embedded)

        output = signal._replace(channels=self._behind(signal))
        return Part(init, apply, output, extend, same)

    def _channels(self, signal: Signal) -> int:
        """Count the channels of an embedding."""
        return signal.channels

    def _behind(self, signal: Signal) -> int:
        """Count the channels of both together."""
        return signal.channels

    def _joined(self, x: Array, embedded: Array) -> Array:
        """Join the signal with the embeddings."""
        return x + embedded

    def _extended(self, draft: Draft, source: int, embedded: int) -> int:
        """Add the node that joins both."""
        # a Gaussian signal stays Gaussian with Gaussian embeddings of one covariance in all channels
        return draft.add(
            Sum((source, embedded), (1.0, 1.0)), draft.kinds[source], draft.spaces[source]
        )


@dataclass(frozen=True)
class EmbeddingBeside(Embedding):
    """Embeddings of positions as channels beside a signal; build it with :func:`positional_embedding`."""

    share: float

    def _channels(self, signal: Signal) -> int:
        return max(1, round(signal.channels * self.share / (1 - self.share)))

    def _behind(self, signal: Signal) -> int:
        return signal.channels + self._channels(signal)

    def _joined(self, x: Array, embedded: Array) -> Array:
        return jnp.concatenate([x, embedded], axis=-1)

    def _extended(self, draft: Draft, source: int, embedded: int) -> int:
        gaussian = draft.kinds[source] in (Kind.GAUSSIAN, Kind.BRANCHES)
        kind = Kind.BRANCHES if gaussian else Kind.OTHER
        node = Concatenate((source, embedded), (1 - self.share, self.share))
        return draft.add(node, kind, draft.spaces[source])


@checked
def positional_embedding(
    c: float = 1.0,
    decay: Callable[[Any], Any] | None = None,
    joined: Literal["sum", "channels"] = "sum",
    *,
    share: float = 0.5,
) -> Embedding:
    """Make random Gaussian embeddings of positions that all inputs share, and join them with the signal.

    In the limit the covariance ``c R[p, q]`` is added to both kernels of every pair of inputs: embeddings are trained,
    with standard normal parameters, whatever the parameterization. So are the embeddings within the attention of
    ``stax``, where they reach the tangent kernel if the values read them too (``val_pos_emb=True``). There the decay
    is a function of the squared distance.

    Args:
        c: variance of an embedding.
        decay: R as a function of an array of distances |p − q|, Euclidean, in steps between neighbours; without it
            embeddings of different positions are independent.
        joined: ``"sum"`` adds embeddings to the signal, ``"channels"`` puts them beside it.
        share: of the embeddings in all channels, for ``joined="channels"``; a finite network has the nearest number of
            channels.

    Raises:
        UserError: another word, a variance that is negative or not finite, a share that is not between 0 and 1; a decay
            that is no covariance of these positions.

    >>> positional_embedding(0.5, lambda d: np.exp(-d / 2)).c
    0.5
    """
    if not traced(c) and not 0 <= c < math.inf:
        raise UserError(f"the variance c of embeddings must be finite and ≥ 0, got {c}")
    if joined == "sum":
        return Embedding(_number_or_traced(c), decay)
    if not 0 < share < 1:
        raise UserError(f"the share of embeddings in all channels is between 0 and 1, got {share}")
    return EmbeddingBeside(_number_or_traced(c), decay, share)


def _covariance(space: tuple[int, ...], decay: Callable[[Any], Any] | None) -> NDArray[np.float64]:
    """Return R, positions in one line.

    Raises:
        UserError: not a finite number for each distance, or a negative eigenvalue.
    """
    if decay is None:
        return np.eye(math.prod(space))
    at = np.stack(np.meshgrid(*map(np.arange, space), indexing="ij"), -1).reshape(-1, len(space))
    distances = np.sqrt(((at[:, None] - at[None]) ** 2).sum(-1))
    covariance = np.asarray(numbers("decay", call("decay", decay, distances)), float)
    if covariance.shape != distances.shape or not np.isfinite(covariance).all():
        raise UserError(
            f"decay needs a finite number for each distance, shape {distances.shape}, got {covariance.shape}; "
            "write it for arrays, as lambda d: np.exp(-d)"
        )
    values = np.linalg.eigvalsh(covariance)
    if values[0] < -NEGATIVE * values[-1]:
        raise UserError(
            f"decay is no covariance of these positions: its matrix has the eigenvalue {values[0]:.3g}; "
            "try np.exp(-d) or np.exp(-d**2)"
        )
    return covariance


def _root(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return L with ``R = L Lᵀ``."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0))
