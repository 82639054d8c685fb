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
        noise: variance of the noise, one number or one for each training input; of shape ``(n, k)`` or ``(1, k)`` if
            outputs have noise of their own.
        solution: α = (K + noise)⁻¹ y, and how well it solves its equations.
        factor: of K + noise; None for a matrix that is not in memory, where each variance is solved for, and None where
            outputs have noise of their own.
        log_likelihood: log p(y) of each column of targets, shape ``(*k)``; None of a matrix that is not in memory.
        parts: where outputs have noise of their own, the posterior of each distinct noise.
        part: which of these each output belongs to, shape ``(k,)``; None otherwise.
    """

    gram: Any
    noise: Float[np.ndarray, "*nk"] | float
    solution: Solution
    factor: Factor | None
    log_likelihood: Float[np.ndarray, "*k"] | None
    parts: tuple["GaussianProcess", ...] = ()
    part: NDArray | None = None

    def mean(self, cross: Any) -> Float[np.ndarray, "m *k"]:
        """Return the posterior mean of f at new inputs; ``cross`` has shape ``(m, n)``."""
        return _across(cross, self.solution.coefficients)

    def covariance(
        self, cross: Float[np.ndarray, "m n"], test: Float[np.ndarray, "m m"]
    ) -> Float[np.ndarray, "m m *k"]:
        """Return the posterior covariance of f at new inputs, K** − K*ₓ (K + noise)⁻¹ Kₓ*; for new y add the noise.

        Args:
            cross: kernels between new and training inputs.
            test: kernels of the new inputs with each other.

        Returns:
            Shape ``(m, m)``, of each column; ``(m, m, k)`` where outputs have noise of their own.
        """
        if self.parts:
            return self._by_output([part.covariance(cross, test) for part in self.parts])
        left, right = self._reduce(cross)
        test = as_floats("kernels of the new inputs", test).astype(float)
        if test.shape != (left.shape[1],) * 2:
            raise UserError(
                f"the covariance needs the kernels of {left.shape[1]} new inputs, got shape {test.shape}"
            )
        covariance = test - left.T @ right
        return (covariance + covariance.T) / 2

    def variance(
        self, cross: Float[np.ndarray, "m n"], test: Float[np.ndarray, " m"]
    ) -> Float[np.ndarray, "m *k"]:
        """Return the posterior variance of f at new inputs, at least zero.

        Args:
            cross: kernels between new and training inputs.
            test: k(x, x) of each new input, the diagonal of their Gram matrix.

        Returns:
            Shape ``(m,)``, of each column; ``(m, k)`` where outputs have noise of their own.
        """
        if self.parts:
            return self._by_output([part.variance(cross, test) for part in self.parts])
        left, right = self._reduce(cross)
        test = as_floats("kernels of the new inputs", test).astype(float)
        if test.shape != left.shape[1:]:
            raise UserError(
                f"the variance needs k(x, x) of {left.shape[1]} new inputs, got shape {test.shape}"
            )
        return np.maximum(test - (left * right).sum(0), 0.0)

    def _by_output(self, values: list[NDArray]) -> NDArray:
        """Return what each part has, for each output, along a last axis."""
        return np.stack(values, -1)[..., self.part]

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
    noise: float | Float[np.ndarray, "*nk"],
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
        noise: variance of the noise, ≥ 0: one number; one for each training input, shape ``(n,)``; one for each output,
            ``(1, k)``; or one for each input and output, ``(n, k)``. Each distinct noise costs a factorization. Noise
            that differs among inputs needs a matrix in memory.
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
    noise = as_floats("the noise", noise).astype(float)
    if noise.ndim == 2:
        return _of_each_noise(gram, targets, noise, tolerance)
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


def _of_each_noise(gram: Any, targets: Any, noise: NDArray, tolerance: float) -> GaussianProcess:
    """Condition on the columns of each distinct noise at a time, and put the columns in their order."""
    gram, y, _ = as_system(gram, targets, 0.0)
    noise = _noise_of_outputs(noise, np.shape(targets))
    # a row of distinct is one noise, of a number or of n
    distinct, part = np.unique(noise.T, axis=0, return_inverse=True)
    part = part.reshape(-1)
    columns = [part == k for k in range(len(distinct))]
    levels = [level.item() if level.size == 1 else level for level in distinct]
    parts = tuple(
        gaussian_process(gram, y[:, indices], level, tolerance=tolerance)
        for indices, level in zip(columns, levels, strict=True)
    )
    coefficients = np.empty_like(y)
    likelihood = np.empty(y.shape[1])
    for indices, posterior in zip(columns, parts, strict=True):
        coefficients[:, indices] = posterior.solution.coefficients
        if posterior.log_likelihood is not None:
            likelihood[indices] = posterior.log_likelihood
    # the least accurate part says how good the whole is
    worst = max(parts, key=lambda posterior: posterior.solution.residual).solution
    solution = worst._replace(
        coefficients=coefficients,
        log_determinant=None,
        converged=all(posterior.solution.converged for posterior in parts),
    )
    likelihoods = likelihood if isinstance(gram, np.ndarray) else None
    return GaussianProcess(gram, noise, solution, None, likelihoods, parts, part)


def _noise_of_outputs(noise: NDArray, shape: tuple[int, ...]) -> NDArray:
    """Return variances of shape ``(n, k)`` or ``(1, k)``, finite and ≥ 0, for targets of this shape."""
    if len(shape) != 2 or noise.shape not in (shape, (1, shape[1])):
        wanted = f"(1, {shape[1]}) or {shape}" if len(shape) == 2 else "() or (n,)"
        raise UserError(
            f"the noise of targets of shape {shape} has shape {wanted}, got {noise.shape}; a row is the noise of one "
            "input, a column the noise of one output"
        )
    if not (np.isfinite(noise).all() and (noise >= 0).all()):
        raise UserError(f"the noise must be finite and ≥ 0, got {noise.min()}")
    return noise


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
