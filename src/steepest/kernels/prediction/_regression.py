"""Regression with a kernel: ridge, and the posterior of a Gaussian process.

Gram matrices come from ``gram`` or ``tiled_gram``: ``gram(limit, x)`` for the training inputs, ``gram(limit, new, x)``
between new inputs (rows) and training inputs (columns).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.kernels._arguments import as_floats
from steepest.kernels.prediction._solve import (
    TOLERANCE,
    Factor,
    Solution,
    as_system,
    decompose,
    solve,
)


@dataclass(frozen=True)
class Ridge:
    """A fitted kernel ridge regression, f(x) = Σ_i k(x, x_i) c_i.

    Attributes:
        solution: the coefficients c and how well they solve their equations.
    """

    solution: Solution

    def predict(self, cross: Any) -> Float[np.ndarray, "m *k"]:
        """Return values at new inputs.

        Args:
            cross: kernels between new and training inputs, shape ``(m, n)``; an array or what has ``matvec``.
        """
        return _across(cross, self.solution.coefficients)


def kernel_ridge(
    gram: Any,
    targets: Float[np.ndarray, "n *k"],
    regularization: float,
    *,
    tolerance: float = TOLERANCE,
) -> Ridge:
    """Find the function of least Σ_i (f(x_i) − y_i)² + λ ‖f‖², with the norm of the kernel's space.

    λ is not divided by n: for the mean over examples ½ mean(f − y)² + ½ μ ‖f‖² take λ = n μ. With λ = 0 it
    interpolates, as gradient flow from zero does in the end when the kernel is the NTK.

    Args:
        gram: K of the training inputs; see ``solve``.
        targets: y, one column or several.
        regularization: λ ≥ 0.
        tolerance: of the residual relative to ‖y‖.

    Raises:
        UserError: as ``solve``.

    >>> fitted = kernel_ridge(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([3.0, 0.0]), 1.0)
    >>> fitted.predict(np.array([[2.0, 1.0], [0.0, 0.0]])).round(6).tolist()
    [1.875, 0.0]
    """
    return Ridge(solve(gram, targets, regularization, tolerance=tolerance))


@dataclass(frozen=True)
class GaussianProcess:
    """The posterior of f ~ N(0, k) after y = f(x) + noise.

    Attributes:
        gram: K of the training inputs.
        noise: variance of the noise, one number or one for each training input.
        solution: α = (K + noise)⁻¹ y, and how well it solves its equations.
        factor: of K + noise; None for a matrix that is not in memory, where each variance is solved for.
        log_likelihood: log p(y) of each column of targets, shape ``(*k)``; None without a factor.
    """

    gram: Any
    noise: float | Float[np.ndarray, " n"]
    solution: Solution
    factor: Factor | None
    log_likelihood: Float[np.ndarray, "*k"] | None

    def mean(self, cross: Any) -> Float[np.ndarray, "m *k"]:
        """Return the posterior mean of f at new inputs; ``cross`` has shape ``(m, n)``."""
        return _across(cross, self.solution.coefficients)

    def covariance(
        self, cross: Float[np.ndarray, "m n"], test: Float[np.ndarray, "m m"]
    ) -> Float[np.ndarray, "m m"]:
        """Return the posterior covariance of f at new inputs, K** − K*ₓ (K + noise)⁻¹ Kₓ*; for new y add the noise.

        Args:
            cross: kernels between new and training inputs.
            test: kernels of the new inputs with each other.
        """
        left, right = self._reduce(cross)
        test = np.asarray(test, float)
        if test.shape != (left.shape[1],) * 2:
            raise UserError(
                f"the covariance needs the kernels of {left.shape[1]} new inputs, got shape {test.shape}"
            )
        covariance = test - left.T @ right
        return (covariance + covariance.T) / 2

    def variance(
        self, cross: Float[np.ndarray, "m n"], test: Float[np.ndarray, " m"]
    ) -> Float[np.ndarray, " m"]:
        """Return the posterior variance of f at new inputs, at least zero.

        Args:
            cross: kernels between new and training inputs.
            test: k(x, x) of each new input, the diagonal of their Gram matrix.
        """
        left, right = self._reduce(cross)
        test = np.asarray(test, float)
        if test.shape != left.shape[1:]:
            raise UserError(
                f"the variance needs k(x, x) of {left.shape[1]} new inputs, got shape {test.shape}"
            )
        return np.maximum(test - (left * right).sum(0), 0.0)

    def _reduce(self, cross: NDArray) -> tuple[NDArray, NDArray]:
        """Return A and B of shape ``(n, m)`` with AᵀB = K*ₓ (K + noise)⁻¹ Kₓ*."""
        across = _checked(cross, self.gram.shape[0]).T.astype(float)
        if self.factor is None:
            return across, solve(self.gram, across, self.noise).coefficients
        white = self.factor.whiten(across)
        return white, white


def gaussian_process(
    gram: Any,
    targets: Float[np.ndarray, "n *k"],
    noise: float | Float[np.ndarray, " n"],
    *,
    tolerance: float = TOLERANCE,
) -> GaussianProcess:
    """Condition a Gaussian process with mean zero and this kernel on y = f(x) + N(0, noise).

    With the NNGP kernel it is that of the infinitely wide network with random weights, of which only the last layer
    is trained. Arrays are factored in float64; what has only ``matvec`` is solved by conjugate gradients, without
    the likelihood. Columns of targets are independent draws with one kernel.

    Args:
        gram: K of the training inputs.
        targets: y, one column or several.
        noise: variance of the noise, ≥ 0; of a matrix in memory also one for each training input, shape ``(n,)``. Where
            columns of targets have different noise take one column at a time.
        tolerance: of the residual relative to ‖y‖.

    Raises:
        UserError: as ``solve``.

    Source: Rasmussen and Williams 2006, algorithm 2.1.

    >>> posterior = gaussian_process(np.eye(2), np.array([1.0, 2.0]), 1.0)
    >>> new = np.array([[0.0, 1.0]])
    >>> posterior.mean(new).round(6).tolist(), posterior.variance(new, np.ones(1)).round(6).tolist()
    ([1.0], [0.5])
    >>> round(float(posterior.log_likelihood), 6)
    -3.781024
    """
    gram, y, noise = as_system(gram, targets, noise)
    if not isinstance(gram, np.ndarray):
        return GaussianProcess(
            gram, noise, solve(gram, targets, noise, tolerance=tolerance), None, None
        )
    factor, solution = decompose(gram, y, noise, tolerance)
    fit = (y * solution.coefficients).sum(0)
    # log N(y; 0, K + noise) = −½ yᵀα − ½ log det(K + noise) − (n/2) log 2π
    likelihood = -(fit + factor.log_determinant + len(y) * np.log(2 * np.pi)) / 2
    shape = np.shape(targets)
    solution = solution._replace(coefficients=solution.coefficients.reshape(shape))
    return GaussianProcess(gram, noise, solution, factor, likelihood.reshape(shape[1:]))


def _across(cross: Any, coefficients: NDArray) -> NDArray:
    """Return K*ₓ c."""
    if hasattr(cross, "matvec"):
        return cross.matvec(coefficients)
    return _checked(cross, len(coefficients)) @ coefficients


def _checked(cross: Any, n: int) -> NDArray:
    cross = as_floats("kernels between new and training inputs", cross)
    if cross.ndim != 2 or cross.shape[1] != n:
        raise UserError(
            f"kernels between new inputs and the {n} training inputs have shape (m, {n}), got {cross.shape}"
        )
    return cross
