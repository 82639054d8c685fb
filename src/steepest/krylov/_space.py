"""The Krylov space of a symmetric operator, which grows by one product at a time.

It holds an orthonormal basis Q, one vector a row, and the small matrix ``T = Q A Qᵀ``, so that ``A Qᵀ = Qᵀ T + r eᵀ``
with the remainder r of the last vector. Every new vector is orthogonalized against all others. The space ends where the
length of r, the link, is rounding beside the size of T: it is invariant, and what would follow has no weight.
"""

import numpy as np
from jaxtyping import Float
from numpy.typing import DTypeLike

from steepest.core.errors import UserError
from steepest.core.given import call, shown
from steepest.krylov._operators import Operator

ROUNDING = 100
"""Links below so many units of rounding, relative to the size of T, end a space."""


class KrylovSpace:
    """A Krylov space that grows by one vector at a time, in NumPy.

    Attributes:
        basis: orthonormal rows, of which the first ``count`` are used, shape ``(room, p)``.
        images: their products with the operator; of shape ``(0, p)`` if they are not kept.
        small: T in its upper left corner, shape ``(room, room)``.
        count: dimension of the space.
        remainder: r, from which the next direction is made, shape ``(p,)``; at first the start.
        link: its length.
        ended: whether the space is invariant.
        discarded: Ritz values that restarts have cut off.
        log_links: logarithm of the product of all links since the start.
    """

    def __init__(
        self, start: Float[np.ndarray, " p"], room: int, dtype: DTypeLike, *, images: bool
    ):
        self.basis = np.zeros((room, len(start)), dtype)
        self.images = np.zeros((room if images else 0, len(start)), dtype)
        self.small = np.zeros((room, room), dtype)
        self.count = 0
        self.remainder = start
        self.link = np.inf
        self.ended = False
        self.discarded = np.zeros(0)
        self.log_links = 0.0
        self._size = 0.0  # of T

    def direction(self) -> Float[np.ndarray, " p"]:
        """Return the next vector of the basis; zero once the space has ended."""
        vector = self.basis[self.count]
        if not self.ended:
            vector[:] = orthogonal(self.remainder, self.basis[: self.count])
        return vector

    def grow(self, image: Float[np.ndarray, " p"]) -> None:
        """Take in the product of the operator with ``direction()``."""
        k = self.count
        image = np.asarray(image, self.basis.dtype)
        if len(self.images):
            self.images[k] = image
        # against all rows: after a restart T is more than tridiagonal
        row = self.basis[: k + 1] @ image
        self.small[k, : k + 1] = row
        self.small[: k + 1, k] = row
        self.count = k + 1
        self.remainder = image - row @ self.basis[: k + 1]  # r, orthogonal to the basis
        self.link = np.linalg.norm(self.remainder)
        self.log_links += float(np.log(max(self.link, np.finfo(float).tiny)))
        # |T| in the last row, off and on the diagonal
        self._size = max(self._size, float(abs(row[k]) + self.link))
        self.ended = self.ended or bool(
            self.link <= ROUNDING * np.finfo(self.basis.dtype).eps * self._size
        )

    def redirect(self, start: Float[np.ndarray, " p"]) -> None:
        """Go on in a new direction after the end."""
        self.remainder = start
        self.ended = False

    def cut(self, values: Float[np.ndarray, " m"], turn: Float[np.ndarray, "m m"], k: int) -> None:
        """Keep k Ritz vectors, columns of ``turn``, and their values: a thick restart (Wu and Simon 2000)."""
        self.basis[:k] = turn[:, :k].T @ self.basis
        self.images[:k] = turn[:, :k].T @ self.images
        # T on Ritz vectors is diagonal
        self.small[:] = np.diag(np.where(np.arange(len(self.small)) < k, values, 0))
        self.discarded = np.r_[self.discarded, values[k:]]
        self.count = k

    def log_growth(
        self, values: Float[np.ndarray, " m"], places: Float[np.ndarray, " t"]
    ) -> Float[np.ndarray, " t"]:
        """Return ``log |P|`` at some places, where the next vector of the basis is ``P(A) b`` with the start b.

        Its roots are the Ritz values: a restart goes on from the polynomial of those that it discards.

        Args:
            values: all Ritz values of now.
            places: none of them a root.
        """
        roots = np.r_[values, self.discarded].astype(float)
        # P(λ) = ∏(λ − root)/∏ links
        return np.log(np.abs(places[:, None] - roots)).sum(1) - self.log_links


def multiply(operator: Operator, vectors: Float[np.ndarray, "*k p"], lacks: str) -> np.ndarray:
    """Multiply, and raise a UserError where a product is not finite.

    Args:
        operator: the matrix.
        vectors: one or several.
        lacks: what a matrix with such products does not have.
    """
    images = product(operator, vectors)
    if not np.isfinite(images).all():
        raise UserError(
            f"a product of the matrix with a vector is not finite, so that it has no {lacks}"
        )
    return images


def product(operator: Operator, vectors: Float[np.ndarray, "*k p"]) -> np.ndarray:
    """Multiply, and raise a UserError where the products are no vectors of the same shape."""
    images = np.asarray(call("operator", operator, vectors))
    if images.shape != vectors.shape or images.dtype.kind not in "fiubV":
        raise UserError(
            f"operator must return real numbers of shape {vectors.shape}, got {shown(images)}; try lambda v: v @ A"
        )
    return images


def orthogonal(
    new: Float[np.ndarray, " p"], basis: Float[np.ndarray, "k p"]
) -> Float[np.ndarray, " p"]:
    """Return the unit vector along what a basis lacks of a new vector."""
    for _ in range(2):  # twice is enough (Giraud, Langou and Rozložník 2005)
        new = new - (basis @ new) @ basis
    return new / np.linalg.norm(new)
