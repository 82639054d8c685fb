"""Symmetric operators known by their products with vectors, and the eigenpairs found of them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from steepest.core.signatures import checked

Operator = Callable[[Any], Any]
"""A symmetric matrix as the map from a vector ``(p,)`` to its product ``(p,)``.

Algorithms on arrays of NumPy also pass several vectors at once, the rows of ``(k, p)``; :func:`row_by_row` makes such
an operator of one that takes single vectors. Compiled algorithms pass single vectors of JAX.
"""


class Eigenpairs(NamedTuple):
    """Approximate eigenpairs that carry their own errors, the most extreme one first; arrays of NumPy or of JAX.

    A single pair has no leading axis; ``value``, ``vector`` and ``residual`` name its fields.

    Attributes:
        values: eigenvalues θ, shape ``(k,)``; NaN where an invariant subspace holds fewer.
        vectors: unit eigenvectors, one a row, shape ``(k, p)``.
        residuals: ‖A v − θ v‖, measured, shape ``(k,)``: some eigenvalue of A lies this close to θ, which need not be
            the most extreme one.
        converged: whether the residual is below the tolerance times the largest |θ|, or as small as rounding allows.
        products: products with vectors that it took.
        bound: no eigenvalue lies beyond: none is larger, smaller or larger in magnitude; None where that was not asked.
        missed: the probability, over random starts, that one does, is at most this; None without a bound.
    """

    values: Float[Any, "*k"]
    vectors: Float[Any, "*k p"]
    residuals: Float[Any, "*k"]
    converged: Bool[Any, "*k"]
    products: int
    bound: float | None = None
    missed: float | None = None

    @property
    def value(self) -> Float[Any, ""]:
        """Return the eigenvalue of a single pair."""
        return self.values

    @property
    def vector(self) -> Float[Any, " p"]:
        """Return the unit eigenvector of a single pair."""
        return self.vectors

    @property
    def residual(self) -> Float[Any, ""]:
        """Return the residual of a single pair."""
        return self.residuals


@checked
def row_by_row(product: Callable[[Any], Any]) -> Operator:
    """Turn a product with one vector into a product with one or several, in NumPy.

    >>> row_by_row(lambda v: 2 * v)(np.eye(2)).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """

    def several(vectors: Float[np.ndarray, "*k p"]) -> Float[np.ndarray, "*k p"]:
        rows = [np.asarray(product(row)) for row in np.atleast_2d(vectors)]
        return np.stack(rows).reshape(np.shape(vectors))

    return several
