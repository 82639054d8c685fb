"""Conjugate gradients for Gram matrices, several right-hand sides at a time, with a low-rank preconditioner."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from jaxtyping import Float
from numpy.typing import NDArray

Columns = Float[np.ndarray, "n k"]
ROUNDS = 5  # passes over the matrix in which the preconditioner's rows are drawn


class Descent(NamedTuple):
    """The end of a run of conjugate gradients.

    Attributes:
        solution: shape ``(n, k)``.
        iterations: products with the matrix.
        curvature: vᵀAv/vᵀv of the direction that stopped them because it is not positive; None otherwise.
    """

    solution: Columns
    iterations: int
    curvature: float | None


def conjugate_gradients(
    times: Callable[[Columns], Columns],
    precondition: Callable[[Columns], Columns],
    right: Columns,
    goal: Float[np.ndarray, " k"],
    most: int,
) -> Descent:
    """Solve A z = b column by column, all columns in one product, until ‖b − A z‖ by recurrence is at the goal.

    Args:
        times: the product with A, symmetric and positive definite.
        precondition: the product with an approximate inverse, likewise.
        right: b.
        goal: norms of the residuals to reach.
        most: iterations.

    Source: Hestenes and Stiefel 1952.
    """
    solution = np.zeros_like(right)
    residual = right.copy()
    step = towards = precondition(residual)
    product = (residual * towards).sum(0)
    for done in range(most):
        active = np.linalg.norm(residual, axis=0) > goal
        if not active.any():
            return Descent(solution, done, None)
        image = times(step)
        curvature = (step * image).sum(0)
        if (curvature[active] <= 0).any():
            k = int(np.argmax(active & (curvature <= 0)))
            return Descent(solution, done + 1, float(curvature[k] / (step[:, k] ** 2).sum()))
        # α = rᵀz/pᵀAp, the minimum along the direction; columns at their goal stay
        length = np.where(active, product, 0) / np.where(active, curvature, 1)
        solution = solution + length * step
        residual = residual - length * image
        towards = precondition(residual)
        new = (residual * towards).sum(0)
        # β = r'ᵀz'/rᵀz makes the new direction A-conjugate to all before it
        step = towards + np.where(active, new, 0) / np.where(active, product, 1) * step
        product = new
    return Descent(solution, most, None)


@dataclass(frozen=True)
class Preconditioner:
    """Approximate inverse of K + λ: exact on r directions, a multiple of the identity on the rest.

    Attributes:
        directions: U, orthonormal, shape ``(n, r)``.
        factors: (s_r + λ)/(s + λ) for the eigenvalues s of the low-rank part.
    """

    directions: Float[np.ndarray, "n r"]
    factors: Float[np.ndarray, " r"]

    @classmethod
    def of(cls, gram: Any, rank: int, regularization: float) -> "Preconditioner":
        """Build it from a randomly pivoted partial Cholesky factor F of the matrix, K ≈ Fᵀ F.

        Source: Frangella, Tropp and Udell 2023 (how a low-rank part preconditions); ``partial_cholesky``.
        """
        factor = partial_cholesky(gram, rank)
        left, basis = np.linalg.qr(factor.T)  # F = basisᵀ leftᵀ
        # FᵀF = (left u) s² (left u)ᵀ: eigenvalues are squares of singular values
        u, s, _ = np.linalg.svd(basis, full_matrices=False)
        kept = s > np.sqrt(np.finfo(float).eps) * s.max(initial=0.0)
        values = s[kept] ** 2 + regularization
        return cls(left @ u[:, kept], values.min(initial=np.inf) / values)

    def __call__(self, v: Columns) -> Columns:
        """Apply the approximate inverse to v, in units of its weight on the complement."""
        # U diag(f) Uᵀ + (I − UUᵀ), without forming the complement
        return v - self.directions @ ((1 - self.factors)[:, None] * (self.directions.T @ v))


def partial_cholesky(gram: Any, rank: int) -> Float[np.ndarray, "r n"]:
    """Return F with K ≈ Fᵀ F and at most ``rank`` rows, pivots drawn in blocks in proportion to what is left of K_ii.

    Reads rows in a few blocks, which is what tiles on disk need. The pivots are drawn from a fixed seed; they decide
    how fast conjugate gradients are, not what they find.

    Args:
        gram: an array, or what has ``shape``, ``diagonal()`` and ``rows(indices)``.
        rank: most rows of F.

    Raises:
        ValueError: a row that is not finite.

    Source: Chen, Epperly, Tropp and Webber 2023, the blocked algorithm.
    """
    size = gram.shape[0]
    rng = np.random.default_rng(0)
    rank = min(rank, size)
    factor = np.zeros((rank, size))
    # diagonal of the Schur complement K − FᵀF; it starts as the diagonal of K
    left = np.array(gram.diagonal(), float)
    if not np.isfinite(left).all():
        raise ValueError("the diagonal of the matrix is not finite")
    small = rank * np.finfo(gram.dtype).eps * left.max()
    filled = 0
    for _ in range(ROUNDS):
        left[left < small] = 0.0
        if filled == rank or not left.any():
            break
        wanted = min(-(-rank // ROUNDS), rank - filled, np.count_nonzero(left))
        drawn = np.sort(rng.choice(size, wanted, replace=False, p=left / left.sum()))
        rows = np.asarray(gram[drawn] if isinstance(gram, np.ndarray) else gram.rows(drawn), float)
        if not np.isfinite(rows).all():
            raise ValueError("a row of the matrix is not finite")
        # these rows of K − FᵀF, (drawn, n)
        rows = rows - factor[:filled, drawn].T @ factor[:filled]
        lower, order, count = _pivoted(rows[:, drawn], small)
        # the complement's block is L Lᵀ, so that L⁻¹ times its rows are rows of F
        new = scipy.linalg.solve_triangular(lower[:count, :count], rows[order[:count]], lower=True)
        factor[filled : filled + count] = new
        filled += count
        left = left - (new**2).sum(0)
        left[drawn] = 0.0
    return factor[:filled]


def _pivoted(square: NDArray, small: float) -> tuple[NDArray, NDArray, int]:
    """Return LAPACK's pivoted Cholesky factor, the order of the pivots and how many exceed ``small``."""
    (factor,) = scipy.linalg.get_lapack_funcs(("pstrf",), (square,))
    lower, order, count, _ = factor(square, tol=small, lower=1)
    return lower, order - 1, int(count)
