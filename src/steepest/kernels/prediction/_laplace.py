"""Classification by a Gaussian process: Laplace's approximation of the posterior, for labels ±1 and for classes."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.special
from jaxtyping import Float
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.kernels._arguments import as_count, as_floats, as_number
from steepest.kernels.prediction._class_probabilities import (
    ClassProbabilities,
    logistic_probabilities,
    softmax_probabilities,
)
from steepest.kernels.prediction._diagnosis import diagnose
from steepest.kernels.prediction._solve import as_system

TOLERANCE = 1e-8  # of the gradient at the mode, relative to the gradient of the likelihood
STEPS = 200  # of Newton's method
ROUNDING = 1e-12  # of the objective
HALVINGS = 30  # of a step that would lower the objective


class Mode(NamedTuple):
    """The latent values of the largest posterior density, and how they were found.

    Attributes:
        latent: f, shape ``(n,)`` for labels ±1, ``(n, C)`` of C classes.
        coefficients: α with f = K α, of the same shape.
        residual: norm of the gradient of the log posterior density in f, ‖∇ log p(y|f) − α‖.
        iterations: Newton steps.
        converged: whether the residual is at most 1e-8 times ‖α‖.
    """

    latent: NDArray
    coefficients: NDArray
    residual: float
    iterations: int
    converged: bool


@dataclass(frozen=True)
class Laplace:
    """A Gaussian process of latent values f ~ N(0, K) after labels were seen, approximated at its mode.

    The posterior is replaced by the Gaussian with its mode and its curvature there. All that follows belongs to this
    Gaussian: it has no bound for its distance from the posterior.

    Attributes:
        mode: of the posterior.
        log_marginal_likelihood: log of Laplace's approximation of p(y).
        classes: C; None for labels ±1.
        curvature: W, minus the second derivatives of log p(y|f), shape ``(n,)`` for labels ±1; for classes the
            probabilities π, shape ``(n, C)``, of which W is diag(π) − ππᵀ in each example.
        factor: for labels ±1 the Cholesky factor of I + W^½ K W^½, shape ``(n, n)``; for classes one for each, shape
            ``(C, n, n)``, with W_c = diag(π_c).
        joint: for classes the Cholesky factor of Σ_c (K + W_c⁻¹)⁻¹; None for labels ±1.
    """

    mode: Mode
    log_marginal_likelihood: float
    classes: int | None
    curvature: NDArray
    factor: NDArray
    joint: Float[np.ndarray, "n n"] | None

    def latent(
        self, cross: Float[np.ndarray, "m n"], test: Float[np.ndarray, " m"]
    ) -> tuple[NDArray, NDArray]:
        """Return mean and covariance of the latent values at new inputs.

        Args:
            cross: kernels between new and training inputs.
            test: k(x, x) of each new input, the diagonal of their Gram matrix.

        Returns:
            Mean and variance, each of shape ``(m,)``, for labels ±1; the mean ``(m, C)`` and the covariance among
            classes ``(m, C, C)`` of C classes.

        Raises:
            UserError: of other shapes, or not finite.
        """
        cross, test = _as_new(cross, test, len(self.mode.latent))
        mean = cross @ self.mode.coefficients
        if self.joint is None:
            root = np.sqrt(self.curvature)
            # k** − vᵀv with v = L⁻¹ W^½ k*
            white = _whiten(self.factor, root[:, None] * cross.T)
            return mean, np.maximum(test - (white**2).sum(0), 0.0)
        # E_c k* with E_c = (K + W_c⁻¹)⁻¹, (C, n, m)
        bent = np.stack(
            [
                _bend(lower, w, cross.T)
                for lower, w in zip(self.factor, self.curvature.T, strict=True)
            ]
        )
        remaining = test - np.einsum("mn,cnm->cm", cross, bent)
        white = np.stack([_whiten(self.joint, block) for block in bent])
        covariance = np.einsum("cnm,dnm->mcd", white, white, optimize=True)
        return mean, covariance + remaining.T[:, :, None] * np.eye(mean.shape[1])

    def predict(
        self, cross: Float[np.ndarray, "m n"], test: Float[np.ndarray, " m"], level: float = 0.95
    ) -> ClassProbabilities:
        """Return probabilities at new inputs, of the label +1 or of each class, with intervals.

        The interval holds the probability σ(f(x)), or softmax, with this level under the approximate law of f. It tells
        how little the data say about f, and not how far the approximation is from the posterior.

        Args:
            cross: kernels between new and training inputs, shape ``(m, n)``.
            test: k(x, x) of each new input, shape ``(m,)``.
            level: of the central interval, between 0 and 1.

        Raises:
            UserError: as ``latent``; or another level.
        """
        level = as_number("level", level, 0, above=True)
        if level >= 1:
            raise UserError(f"level must be below 1, got {level}; try 0.95")
        mean, spread = self.latent(cross, test)
        if self.classes is None:
            return logistic_probabilities(mean, spread, level)
        return softmax_probabilities(mean, spread, level)


def laplace(gram: Float[np.ndarray, "n n"], labels: Any, *, classes: int | None = None) -> Laplace:
    """Classify with a Gaussian process, by Laplace's approximation at the mode of the posterior.

    Labels ±1 have p(y|f) = σ(y f) of one latent function with kernel K. C classes have softmax of C latent functions,
    independent with kernel K each. Of two classes the two are the same model, if K of the labels is twice K of the
    classes.

    Args:
        gram: K of the training inputs, in memory; only products and factors of I + W^½ K W^½ are taken, so K may be
            singular.
        labels: −1 and 1, shape ``(n,)``; or classes, as whole numbers ``(n,)`` from 0 to C − 1 or one-hot rows
            ``(n, C)``.
        classes: C. To be given if labels are 0 and 1, which may mean either, or if some class has no example.

    Raises:
        UserError: a Gram matrix as in ``solve``, or labels that are none of these.

    Source: Rasmussen and Williams 2006, algorithms 3.1 to 3.4; the sum over logarithms in 3.3 has the sign of its
    errata.

    >>> found = laplace(np.eye(2), np.array([1, -1]))
    >>> found.mode.latent.round(4).tolist(), round(found.log_marginal_likelihood, 4)
    ([0.4011, -0.4011], -1.4013)
    >>> found.predict(np.array([[1.0, 0.0]]), np.ones(1)).mean.round(4).tolist()
    [0.5847]
    """
    if not isinstance(gram, np.ndarray) and hasattr(gram, "matvec"):
        raise UserError("laplace needs the Gram matrix in memory; pass gram.toarray()")
    kernel = as_floats("a Gram matrix", gram).astype(float)
    as_system(kernel, np.zeros(kernel.shape[:1]), 0.0)
    y = as_labels(labels, len(kernel), classes)
    return _of_signs(kernel, y) if y.ndim == 1 else _of_classes(kernel, y)


def as_labels(labels: Any, n: int, classes: int | None = None) -> NDArray:
    """Return labels ±1, shape ``(n,)``, or one-hot rows, shape ``(n, C)``.

    Raises:
        UserError: labels that are neither, or may be either.
    """
    y = as_floats("labels", labels).astype(float)
    if y.ndim not in (1, 2) or len(y) != n:
        raise UserError(
            f"labels: expected one for each of the {n} inputs, or one-hot rows, got shape {y.shape}"
        )
    if classes is not None:
        classes = as_count("classes", classes, 2)
    if y.ndim == 2:
        if y.shape[1] < 2 or not (np.isin(y, (0, 1)).all() and (y.sum(1) == 1).all()):
            raise UserError(
                f"labels: expected one-hot rows, each with a single 1 among at least two zeros and ones, got shape "
                f"{y.shape}; numbers of classes have shape (n,)"
            )
        if classes not in (None, y.shape[1]):
            raise UserError(
                f"labels: expected rows of {classes} classes, got {y.shape[1]} columns; leave classes away"
            )
        return y
    values = np.unique(y)
    if classes is None and np.isin(values, (-1, 1)).all():
        return y
    return np.eye(_counted(values, classes))[y.astype(int)]


def _counted(values: NDArray, classes: int | None) -> int:
    """Return C of class numbers with these distinct values."""
    listed = ", ".join(f"{value:g}" for value in values[:4]) + (", ..." if len(values) > 4 else "")
    if not (np.isfinite(values).all() and (values >= 0).all() and (values % 1 == 0).all()):
        raise UserError(
            f"labels: expected −1 and 1, or whole class numbers from 0 on, got {listed}; for other targets take "
            "gaussian_process"
        )
    if classes is None and values.max() <= 1:
        raise UserError(
            f"labels: {listed} may be signs or classes; for one latent function pass 2 * y − 1, for two pass classes=2"
        )
    count = int(values.max()) + 1 if classes is None else classes
    if values.max() >= count:
        raise UserError(
            f"labels: expected class numbers from 0 to {count - 1}, got {listed}; give as many classes as there are"
        )
    if classes is None and len(values) < count:
        missing = int(np.setdiff1d(np.arange(count), values)[0])
        raise UserError(
            f"labels: no example has the class {missing}, got {listed}; number the classes from 0 on, or pass "
            f"classes={count} if that is meant"
        )
    return count


def _of_signs(kernel: NDArray, y: NDArray) -> Laplace:
    """Algorithm 3.1: Newton's method in α with f = K α."""

    def likelihood(f: NDArray) -> float:
        return float(-np.logaddexp(0, -y * f).sum())

    def slope(f: NDArray) -> NDArray:
        return y * scipy.special.expit(-y * f)

    def newton(f: NDArray) -> NDArray:
        w, lower = _of_curvature(kernel, f)
        right = w * f + slope(f)
        return right - _bend(lower, w, kernel @ right)

    mode = _climb(kernel, np.zeros_like(y), likelihood, slope, newton)
    w, lower = _of_curvature(kernel, mode.latent)
    evidence = likelihood(mode.latent) - (mode.coefficients * mode.latent).sum() / 2
    evidence -= np.log(np.diagonal(lower)).sum()
    return Laplace(mode, float(evidence), None, w, lower, None)


def _of_curvature(kernel: NDArray, f: NDArray) -> tuple[NDArray, NDArray]:
    """Return W of labels ±1 and the Cholesky factor of I + W^½ K W^½."""
    w = scipy.special.expit(f) * scipy.special.expit(-f)
    return w, _scaled(kernel, w)


def _scaled(kernel: NDArray, w: NDArray) -> NDArray:
    """Return the Cholesky factor of I + W^½ K W^½, whose eigenvalues are at least one."""
    root = np.sqrt(w)
    return _cholesky(np.eye(len(w)) + root[:, None] * kernel * root, kernel)


def _cholesky(matrix: NDArray, kernel: NDArray) -> NDArray:
    try:
        return scipy.linalg.cholesky(matrix, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        raise UserError(f"laplace: {diagnose(kernel)}") from None


def _of_classes(kernel: NDArray, y: NDArray) -> Laplace:
    """Algorithm 3.3: Newton's method with the block of each class and one system for their sum."""

    def likelihood(f: NDArray) -> float:
        return float((y * f).sum() - np.asarray(scipy.special.logsumexp(f, axis=1)).sum())

    def slope(f: NDArray) -> NDArray:
        return y - scipy.special.softmax(f, axis=1)

    def newton(f: NDArray) -> NDArray:
        share = scipy.special.softmax(f, axis=1)
        lowers, joint = _of_shares(kernel, share)
        # W f + ∇ log p(y|f), W = diag(π) − ππᵀ in each example
        right = share * f - share * (share * f).sum(1, keepdims=True) + slope(f)
        bend = lambda v: np.stack(list(map(_bend, lowers, share.T, v.T)), 1)
        # E K b of each class, (n, C)
        inner = bend(kernel @ right)
        summed = scipy.linalg.cho_solve((joint, True), inner.sum(1), check_finite=False)
        return right - inner + bend(np.broadcast_to(summed[:, None], share.shape))

    mode = _climb(kernel, np.zeros_like(y), likelihood, slope, newton)
    share = scipy.special.softmax(mode.latent, axis=1)
    lowers, joint = _of_shares(kernel, share)
    evidence = likelihood(mode.latent) - (mode.coefficients * mode.latent).sum() / 2
    # |I + K W| is the product of |I + W_c^½ K W_c^½| over classes, and |Σ_c E_c|
    evidence -= np.log(np.diagonal(lowers, axis1=1, axis2=2)).sum()
    evidence -= np.log(np.diagonal(joint)).sum()
    return Laplace(mode, float(evidence), y.shape[1], share, lowers, joint)


def _of_shares(kernel: NDArray, share: NDArray) -> tuple[NDArray, NDArray]:
    """Return the Cholesky factors of I + W_c^½ K W_c^½, and of the sum of all (K + W_c⁻¹)⁻¹."""
    lowers = np.stack([_scaled(kernel, w) for w in share.T])
    (invert,) = scipy.linalg.get_lapack_funcs(("potri",), (lowers,))
    joint = np.zeros_like(kernel)
    for lower, w in zip(lowers, share.T, strict=True):
        # one triangle of (I + W_c^½ K W_c^½)⁻¹
        inverse, _ = invert(lower, lower=True)
        root = np.sqrt(w)
        joint += root[:, None] * inverse * root
    return lowers, _cholesky(joint, kernel)


def _bend(lower: NDArray, w: NDArray, v: NDArray) -> NDArray:
    """Return (K + W⁻¹)⁻¹ v by the factor of I + W^½ K W^½; errors of a solve are small where K is large."""
    root = np.sqrt(w).reshape(-1, *[1] * (v.ndim - 1))
    return root * scipy.linalg.cho_solve((lower, True), root * v, check_finite=False)


def _climb(kernel: NDArray, alpha: NDArray, likelihood: Any, slope: Any, newton: Any) -> Mode:
    """Maximize log p(y|Kα) − ½ αᵀKα, which is concave in f, by Newton steps that are halved where they fall.

    Ends where a step neither halves the gradient nor raises the objective: what is left is rounding.
    """

    def objective(alpha: NDArray, f: NDArray) -> float:
        return likelihood(f) - float((alpha * f).sum()) / 2

    f = kernel @ alpha
    value = objective(alpha, f)
    error = float(np.linalg.norm(slope(f) - alpha))
    steps = 0
    improves = True
    while improves and steps < STEPS:
        step = newton(f) - alpha
        for halvings in range(HALVINGS):
            new = alpha + step / 2**halvings
            ahead = kernel @ new
            reached = objective(new, ahead)
            if reached >= value - ROUNDING * abs(value):
                break
        left = float(np.linalg.norm(slope(ahead) - new))
        risen = reached > value + ROUNDING * abs(value)
        halved = left < error / 2
        if risen or left < error:
            alpha = new
            f = ahead
            value = reached
            error = left
        improves = risen or halved
        steps += improves
    return Mode(f, alpha, error, steps, error <= TOLERANCE * float(np.linalg.norm(alpha)))


def _whiten(lower: NDArray, right: NDArray) -> NDArray:
    """Return L⁻¹ b."""
    return scipy.linalg.solve_triangular(lower, right, lower=True, check_finite=False)


def _as_new(cross: Any, test: Any, n: int) -> tuple[NDArray, NDArray]:
    """Return kernels of m new inputs, ``(m, n)`` and ``(m,)``."""
    cross = as_floats("kernels between new and training inputs", cross).astype(float)
    test = as_floats("kernels of the new inputs", test).astype(float)
    if cross.ndim != 2 or cross.shape[1] != n or test.shape != cross.shape[:1]:
        raise UserError(
            f"laplace: expected kernels between new and the {n} training inputs of shape (m, {n}), and k(x, x) of the "
            f"new inputs of shape (m,), got {cross.shape} and {test.shape}"
        )
    if not (np.isfinite(cross).all() and np.isfinite(test).all()):
        raise UserError("laplace: kernels of the new inputs must be finite; look for NaN in them")
    return cross, test
