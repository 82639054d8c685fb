"""Layers that mix positions by fixed weights: neighbourhoods of graphs, smoothing."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from steepest.core.errors import UserError
from steepest.core.given import numbers
from steepest.core.signatures import checked
from steepest.nn.layers._layer import Layer, Part, Scheme, Signal, need_space, without_weights
from steepest.nn.layers._masks import Mask, behind_matrix
from steepest.nn.layers._nodes import Draft, Mix


@dataclass(frozen=True)
class Aggregate(Layer):
    """Weighted sums of positions; build it with :func:`aggregate`."""

    matrix: tuple[tuple[float, ...], ...]

    word = "aggregate"

    def build(self, signal: Signal, scheme: Scheme, *, last: bool) -> Part:
        """Build it."""
        need_space("aggregate", signal)
        outputs = len(self.matrix)
        positions = math.prod(signal.space)
        if len(self.matrix[0]) != positions:
            raise UserError(
                f"aggregate needs a matrix with one column for each of {positions} positions, "
                f"got {outputs} × {len(self.matrix[0])}"
            )
        space = signal.space if outputs == positions else (outputs,)

        def apply(x: Array, mask: Mask) -> Array:
            flat = x.reshape(len(x), positions, -1)
            mixed = jnp.asarray(np.array(self.matrix), x.dtype) @ flat
            return mixed.reshape(len(x), *space, -1)

        def extend(draft: Draft, source: int) -> int:
            # sums over positions of Gaussian channels are Gaussian, of others unknown: what a channel was, it stays
            return draft.add(Mix((source,), self.matrix), draft.kinds[source], space)

        exists = partial(behind_matrix, matrix=np.array(self.matrix), space=space, xp=jnp)
        return without_weights(apply, signal._replace(space=space), extend, exists)


@checked
def aggregate(matrix: Any) -> Aggregate:
    """Make weighted sums of positions, the same for all inputs: the neighbourhoods of a graph whose nodes they are.

    Args:
        matrix: shape ``(outputs, positions)``; entry (p, q) is the weight of position q in output p, positions in one
            line: an adjacency matrix, or one step of a random walk. A sparse matrix of SciPy is taken too; here it
            becomes dense, as all pairs of positions do in the limit.

    Raises:
        UserError: something else than a matrix of finite numbers.

    >>> ring = np.roll(np.eye(4), 1, 0) + np.roll(np.eye(4), -1, 0)
    >>> len(aggregate(ring / 2).matrix)
    4
    """
    entries = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    dense = np.asarray(numbers("matrix", entries), float)
    if dense.ndim != 2 or not dense.size or not np.isfinite(dense).all():
        raise UserError(
            f"aggregate needs a matrix of finite numbers, outputs by positions, got shape {dense.shape}"
        )
    return Aggregate(tuple(map(tuple, dense.tolist())))
