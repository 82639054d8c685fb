"""Entries of a symmetric matrix that are observed, the others being hidden: the data of matrix completion."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.types import Key, Values


class Masked(NamedTuple):
    """Observed entries of a symmetric matrix, in the order in which they were drawn.

    Attributes:
        rows: row of each, at most its column, shape ``(observed,)``.
        cols: column of each.
        values: the entries.
        size: n, of the matrix.
    """

    rows: Int[np.ndarray, " observed"]
    cols: Int[np.ndarray, " observed"]
    values: Float[np.ndarray, " observed"]
    size: int

    @property
    def place(self) -> Float[np.ndarray, "n n"]:
        """Return when each entry was observed, 0, 1, …, and its mirror image; infinite where hidden, ``(n, n)``."""
        place = np.full((self.size, self.size), np.inf)
        order = np.arange(self.rows.size)
        place[self.rows, self.cols] = order
        place[self.cols, self.rows] = order
        return place

    @property
    def mask(self) -> Float[np.ndarray, "n n"]:
        """Return 1 where an entry or its mirror image is observed, else 0, shape ``(n, n)``."""
        return np.isfinite(self.place).astype(float)

    @property
    def degrees(self) -> Int[np.ndarray, " n"]:
        """Return how many entries of each row are observed, by symmetry those of each column, shape ``(n,)``."""
        return self.mask.sum(1).astype(int)


@checked
def masked(key: Key, matrix: Float[Values, "n n"], observed: int) -> Masked:
    """Draw entries on and above the diagonal of a symmetric matrix, uniformly without replacement.

    More entries with the same key are the same ones and some more, so that sets of observations are nested.

    Args:
        key: random key of the order.
        matrix: symmetric, ``(n, n)``.
        observed: how many, from 1 to n(n + 1)/2.

    Raises:
        UserError: a matrix that is not symmetric, or more entries than it has.

    >>> few = masked(jax.random.key(0), np.eye(4), 3)
    >>> more = masked(jax.random.key(0), np.eye(4), 10)
    >>> bool((few.rows == more.rows[:3]).all()), more.mask.sum().item(), more.degrees.tolist()
    (True, 16.0, [4, 4, 4, 4])
    """
    matrix = np.asarray(matrix, float)
    if matrix.ndim != 2 or not np.array_equal(matrix, matrix.T):
        raise UserError(
            f"masked: expected a symmetric matrix, got one of shape {matrix.shape} that differs from its transpose; "
            "try (M + M.T) / 2"
        )
    rows, cols = np.triu_indices(len(matrix))
    if not 1 <= observed <= rows.size:
        raise UserError(
            f"masked: expected from 1 to {rows.size} observed entries, n(n + 1)/2, got {observed}"
        )
    order = np.asarray(jax.random.permutation(key, jnp.arange(rows.size)))[:observed]
    rows = rows[order]
    cols = cols[order]
    return Masked(rows, cols, matrix[rows, cols], len(matrix))
