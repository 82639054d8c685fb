"""(K + λ) c = y for a Gram matrix in memory or on disk, with the residual that was measured."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.linalg
from jaxtyping import Float
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.kernels._arguments import as_floats
from steepest.kernels._gram import blocks
from steepest.kernels.prediction._conjugate import Preconditioner, conjugate_gradients
from steepest.kernels.prediction._diagnosis import ROUNDING, asymmetry, diagnose

TOLERANCE = 1e-8  # of the residual
RANK = 300  # of the preconditioner
ITERATIONS = 5000  # of conjugate gradients at most
REDUCTION = {
    4: 1e-4,
    8: 1e-12,
}  # of the residual before it is measured again, by bytes of the matrix' floats


class Solution(NamedTuple):
    """The solution of (K + λ) c = y, and how good it is.

    Attributes:
        coefficients: c, float64, of the shape of y.
        residual: ‖(K + λ) c − y‖/‖y‖, measured in float64; the largest of several columns.
        iterations: of conjugate gradients, or steps of refinement.
        method: ``"cholesky"`` or ``"cg"``.
        log_determinant: log det(K + λ), by Cholesky only; to the precision of the matrix' dtype.
        converged: whether the residual is at most the tolerance.
    """

    coefficients: NDArray
    residual: float
    iterations: int
    method: str
    log_determinant: float | None
    converged: bool


@dataclass(frozen=True)
class Factor:
    """A Cholesky factor, K + λ = L Lᵀ.

    Attributes:
        lower: L.
    """

    lower: Float[np.ndarray, "n n"]

    def solve(self, right: NDArray) -> NDArray:
        """Return (K + λ)⁻¹ b."""
        return scipy.linalg.cho_solve((self.lower, True), right, check_finite=False)

    def whiten(self, right: NDArray) -> NDArray:
        """Return L⁻¹ b: the squares of its columns are bᵀ (K + λ)⁻¹ b."""
        return scipy.linalg.solve_triangular(self.lower, right, lower=True, check_finite=False)

    @property
    def log_determinant(self) -> float:
        """Return log det(K + λ)."""
        return float(2 * np.log(np.diagonal(self.lower), dtype=float).sum())


def solve(
    gram: Any,
    targets: Float[np.ndarray, "n *k"],
    regularization: float | Float[np.ndarray, " n"] = 0.0,
    *,
    method: Literal["auto", "cholesky", "cg"] = "auto",
    tolerance: float = TOLERANCE,
) -> Solution:
    """Solve (K + λ) c = y.

    By Cholesky, float32 matrices are factored in float32 and refined in float64; if that does not reach the tolerance
    they are factored in float64. Conjugate gradients multiply in the matrix' dtype, measure the residual in float64
    and go on until it is there. Where the precision does not allow the tolerance, ``converged`` is False and the
    residual tells.

    Args:
        gram: K, a symmetric array, or what has ``shape``, ``dtype`` and ``matvec``, such as ``tiled_gram(...).ntk``;
            with ``diagonal()`` and ``rows(indices)`` it is preconditioned.
        targets: y, one column or several.
        regularization: λ ≥ 0, added to the diagonal as it is (not times n): one number, or by Cholesky also one for
            each input.
        method: ``"auto"`` is Cholesky for arrays and conjugate gradients for everything else.
        tolerance: of the residual relative to ‖y‖.

    Raises:
        UserError: shapes; or K + λ is not symmetric and positive definite, with the reason (see ``diagnose``).

    >>> solution = solve(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([3.0, 0.0]), 1.0)
    >>> solution.coefficients.round(6).tolist(), solution.converged, round(solution.log_determinant, 6)
    ([1.125, -0.375], True, 2.079442)
    """
    gram, y, regularization = as_system(gram, targets, regularization)
    if method not in ("auto", "cholesky", "cg"):
        raise UserError(f"method is 'auto', 'cholesky' or 'cg', got {method!r}")
    array = isinstance(gram, np.ndarray)
    if method == "cholesky" and not array:
        raise UserError("Cholesky needs the matrix in memory; pass gram.toarray(), or method='cg'")
    run: Callable[..., Solution] = _conjugate if method == "cg" or not array else _cholesky
    if run is _conjugate and np.ndim(regularization):
        raise UserError(
            "conjugate gradients need one regularization for all inputs; for one each take an array in memory, as "
            "gram.toarray(), and Cholesky"
        )
    solution = run(gram, y, regularization, tolerance)
    return solution._replace(coefficients=solution.coefficients.reshape(np.shape(targets)))


def as_system(
    gram: Any, targets: NDArray, regularization: Any
) -> tuple[Any, Float[np.ndarray, "n k"], Any]:
    """Return K, in floats if it is an array, y with columns, and λ, a number or one for each input; all checked.

    Raises:
        UserError: shapes, NaN, complex numbers, asymmetry, a negative λ.
    """
    if not hasattr(gram, "matvec"):
        gram = as_floats("a Gram matrix", gram)
    if (
        len(gram.shape) != 2
        or not gram.shape[0]
        or gram.shape[0] != gram.shape[1]
        or not getattr(gram, "symmetric", True)
    ):
        raise UserError(
            f"a Gram matrix of one set of inputs is square and symmetric, got shape {tuple(gram.shape)}"
        )
    y = as_floats("targets", targets).astype(float)
    if y.ndim not in (1, 2) or len(y) != gram.shape[0]:
        raise UserError(
            f"targets need one row for each of the {gram.shape[0]} inputs, got shape {y.shape}"
        )
    if not np.isfinite(y).all():
        raise UserError("targets must be finite; drop the rows that are not")
    regularization = _checked_regularization(regularization, len(y))
    if isinstance(gram, np.ndarray) and not (
        all(np.isfinite(gram[i]).all() for i in blocks(len(gram), 512))
    ):
        raise UserError(str(diagnose(gram)))
    if isinstance(gram, np.ndarray) and asymmetry(gram):
        raise UserError(str(diagnose(gram)))
    return gram, y.reshape(len(y), -1), regularization


def _checked_regularization(regularization: Any, n: int) -> Any:
    values = as_floats("the regularization", regularization).astype(float)
    if values.shape not in ((), (n,)):
        raise UserError(
            f"the regularization, or noise, is one number ≥ 0 or one for each of the {n} inputs, got shape "
            f"{values.shape}; for one of each output give gaussian_process a noise of shape (1, k), and solve for a "
            "column of targets at a time"
        )
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise UserError(f"the regularization must be a finite number ≥ 0, got {values.min()}")
    return values if values.ndim else float(values)


def decompose(
    gram: Float[np.ndarray, "n n"],
    y: Float[np.ndarray, "n k"],
    regularization: Any,
    tolerance: float,
) -> tuple[Factor, Solution]:
    """Factor K + λ in float64 and solve by it, for what ``as_system`` returned.

    Raises:
        UserError: K + λ is not positive definite beyond rounding, with the reason.
    """
    try:
        factor = _factor(gram, regularization, float)
    except np.linalg.LinAlgError:
        raise UserError(_why(gram, regularization)) from None
    solution = _refined(factor, gram, y, regularization, tolerance)
    pivot = float(np.min(np.diagonal(factor.lower)) ** 2)  # at least the smallest eigenvalue
    if not solution.converged and pivot < ROUNDING * np.finfo(float).eps * np.max(
        np.diagonal(gram)
    ):
        raise UserError(_why(gram, regularization, pivot))
    return factor, solution


def _factor(gram: NDArray, regularization: Any, dtype: Any) -> Factor:
    shifted = np.array(
        gram, dtype, order="C"
    ).T  # symmetric: the transpose is in the order that LAPACK wants
    shifted[np.diag_indices_from(shifted)] += regularization
    return Factor(scipy.linalg.cholesky(shifted, lower=True, overwrite_a=True, check_finite=False))


def _why(gram: Any, regularization: Any, quotient: float | None = None) -> str:
    least = float(np.min(regularization))
    diagnosis = diagnose(gram, None if quotient is None else quotient - least)
    return f"{diagnosis} (got {least:g})" if least else str(diagnosis)


def _cholesky(gram: NDArray, y: NDArray, regularization: Any, tolerance: float) -> Solution:
    if gram.dtype == np.float32:
        try:
            solution = _refined(
                _factor(gram, regularization, np.float32), gram, y, regularization, tolerance
            )
            if solution.converged:
                return solution
        except np.linalg.LinAlgError:
            pass
    return decompose(gram, y, regularization, tolerance)[1]


def _refined(
    factor: Factor, gram: NDArray, y: NDArray, regularization: Any, tolerance: float
) -> Solution:
    """Refine iteratively: corrections by the factor, residuals in float64, as long as they halve."""
    times = _product(gram, regularization)
    c = factor.solve(y).astype(float)
    left = y - times(c)
    error = _relative(left, y)
    steps = 0
    halved = True
    while error > 0 and halved:
        better = c + factor.solve(left)
        remainder = y - times(better)
        new = _relative(remainder, y)
        # each step multiplies the residual by about ε κ(K + λ); where that is not below ½ it ends
        halved = new < error / 2
        if new < error:
            c = better
            left = remainder
            error = new
            steps = steps + 1
    return Solution(c, error, steps, "cholesky", factor.log_determinant, error <= tolerance)


def _preconditioner(gram: Any, regularization: float) -> Callable:
    """Return an approximate inverse of K + λ; the identity where single rows cannot be read."""
    if not (isinstance(gram, np.ndarray) or (hasattr(gram, "rows") and hasattr(gram, "diagonal"))):
        return lambda v: v
    try:
        return Preconditioner.of(gram, RANK, regularization)
    except ValueError:  # NaN on disk
        raise UserError(str(diagnose(gram))) from None


def _conjugate(gram: Any, y: NDArray, regularization: float, tolerance: float) -> Solution:
    """Repeat conjugate gradients on what is left, until the measured residual is small or stays."""
    precondition = _preconditioner(gram, regularization)
    dtype = np.dtype(gram.dtype)
    exact = _product(gram, regularization)
    goal = tolerance * np.linalg.norm(y, axis=0)
    c = np.zeros_like(y)
    left = y
    done = 0
    error = 1.0
    while error > tolerance and done < ITERATIONS:
        # the residual of the recurrence drifts from the true one by rounding, so that it restarts
        nearer = np.maximum(0.9 * goal, REDUCTION[dtype.itemsize] * np.linalg.norm(left, axis=0))
        times = _product(gram, regularization, dtype)
        descent = conjugate_gradients(times, precondition, left, nearer, ITERATIONS - done)
        done += descent.iterations
        better = c + descent.solution
        remainder = y - exact(better)
        new = _relative(remainder, y)
        halved = new < error / 2 and descent.curvature is None
        if new < error:
            c = better
            left = remainder
            error = new
        if halved or error <= tolerance:
            continue
        if dtype == np.float32 and np.isfinite(new):
            dtype = np.dtype(np.float64)  # float32 products have given what they can
        elif not np.isfinite(new):
            reason = (
                diagnose(gram)
                if hasattr(gram, "tiles")
                else "products with the Gram matrix are not finite"
            )
            raise UserError(f"{reason}; look for NaN in the inputs")
        elif descent.curvature is not None:
            raise UserError(_why(gram, regularization, descent.curvature))
        else:
            break
    return Solution(c, error, done, "cg", None, error <= tolerance)


def _product(gram: Any, regularization: Any, dtype: Any = float) -> Callable[[NDArray], NDArray]:
    """Return v ↦ (K + λ) v, multiplied in a dtype; a float32 array is widened a few rows at a time."""

    def array(v: NDArray) -> NDArray:
        if gram.dtype == v.dtype:
            return gram @ v
        return np.concatenate([gram[i].astype(v.dtype) @ v for i in blocks(len(gram), 512)])

    plain = array if isinstance(gram, np.ndarray) else gram.matvec
    shift = np.reshape(regularization, (-1, 1)) if np.ndim(regularization) else regularization
    return lambda v: plain(v.astype(dtype, copy=False)).astype(float, copy=False) + shift * v


def _relative(left: NDArray, y: NDArray) -> float:
    """Return the largest ‖r‖/‖y‖ of the columns; a column of zeros is solved by zeros."""
    sizes = np.linalg.norm(y, axis=0)
    return float(np.max(np.linalg.norm(left, axis=0) / np.where(sizes > 0, sizes, 1), initial=0.0))
