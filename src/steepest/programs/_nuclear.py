"""Least nuclear norm under linear measurements, the convex stand-in for the least rank, and margins in it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.programs._bregman import bregman_interpolation
from steepest.programs._inputs import check_inputs
from steepest.programs._potentials import entropy
from steepest.programs._solving import solve_tightly

# A least-squares residual above this fraction of the targets means that no matrix fits.
_INTERPOLABLE = 1e-9
# A matrix that fits counts as semidefinite if its least eigenvalue, over the targets' norm, is above minus this.
_SEMIDEFINITE = 1e-7
# Singular values of the measurements below this fraction of the largest are dependent measurements.
_RANK = 1e-11
# Singular values of Σ ν_i A_i this near to 1 belong to the face that the dual exposes.
_FACE = 1e-5
# Entries off the diagonal, in the common eigenvectors, above this fraction of the largest do not commute.
_COMMUTE = 1e-9
# A margin below this fraction of the largest measurement is not told apart from zero.
_SEPARABLE = 1e-9
# Measurements within this part of the least are on the margin, and singular values below it are zeros of the solver.
_ACTIVE = 1e-5
_ENTROPY = entropy()  # one object, for which programs compile once


@dataclass(frozen=True)
class NuclearInterpolation:
    """The matrix that minimizes ``‖W‖_*`` subject to ``⟨A_i, W⟩ = y_i``, with its certificate.

    Attributes:
        matrix: the minimizer, shape ``(d1, d2)``; the least-squares fit if nothing fits.
        dual: the Lagrange multipliers ``ν``, shape ``(m,)``, of spectral norm ``‖Σ ν_i A_i‖ ≤ 1`` (among semidefinite
            matrices ``λ_max(Σ ν_i A_i) ≤ 1``), so that ``⟨ν, y⟩`` is a lower bound of the minimum.
        value: ``‖W‖_*``.
        gap: value minus ``⟨ν, y⟩``; the minimum lies within this below the value.
        residual: ``‖A(W) - y‖ / ‖y‖``.
        uniqueness: if positive, the minimizer is unique. It is the sine of the angle between the matrices that the
            dual admits as minimizers, ``P S Qᵀ`` on the singular vectors of ``Σ ν_i A_i`` to the singular value 1, and
            the matrices that no measurement sees.
        interpolable: whether a matrix fits (a semidefinite one, if that was asked for).
        reason: why nothing fits, if so.
    """

    matrix: Float[np.ndarray, "d1 d2"]
    dual: Float[np.ndarray, " m"]
    value: float
    gap: float
    residual: float
    uniqueness: float
    interpolable: bool
    reason: str = ""


@dataclass(frozen=True)
class NuclearMargin:
    """The largest margin in the nuclear norm, ``max_{‖W‖_* ≤ 1} min_i ⟨A_i, W⟩``, with its certificate.

    Attributes:
        margin: of the matrix found; 0 if no matrix has a positive one.
        matrix: ``W`` of nuclear norm one, shape ``(d1, d2)``; zeros if there is none.
        dual: multipliers ``q ≥ 0`` with sum 1, shape ``(m,)``: ``‖Σ q_i A_i‖`` in the spectral norm is an upper bound.
        gap: ``‖Σ q_i A_i‖ - margin ≥ 0``.
        uniqueness: if positive, q is the only choice. With W = P S Qᵀ the sum Σ q_i A_i acts on the range of W, and
            on its row space, as ``margin · PQᵀ``. This is the least singular value of that condition, over the
            largest, as a linear map of the multipliers of measurements on the margin.
        separable: whether some matrix has a positive margin.
    """

    margin: float
    matrix: Float[np.ndarray, "d1 d2"]
    dual: Float[np.ndarray, " m"]
    gap: float
    uniqueness: float
    separable: bool


@checked
def nuclear_norm_interpolation(
    measurements: Float[Any, "m d1 d2"], y: Float[Any, " m"], semidefinite: bool = False
) -> NuclearInterpolation:
    """Find the matrix of least nuclear norm (sum of singular values) that fits: ``⟨A_i, W⟩ = y_i``.

    A semidefinite program, by Clarabel. Its dual is ``max ⟨ν, y⟩`` subject to ``‖Σ ν_i A_i‖ ≤ 1`` in the spectral norm.

    Args:
        measurements: the ``A_i``, shape ``(m, d1, d2)``.
        y: targets, shape ``(m,)``.
        semidefinite: whether W must be symmetric and positive semidefinite; its nuclear norm is then its trace, and
            of the A_i only the symmetric part counts.

    Raises:
        UserError: if shapes do not match, an entry is not finite, or semidefinite matrices are asked for that are not
            square. Measurements that nothing fits are an outcome: ``interpolable = False`` with a reason.

    Source: Fazel 2002; Recht, Fazel and Parrilo 2010. As a limit of descent on factors: Gunasekar et al. 2017.

    >>> completed = nuclear_norm_interpolation([[[3.0, 0.0], [0.0, 1.0]]], [3.0])  # the cheapest way is along σ₁
    >>> abs(completed.matrix).round(6).tolist(), round(completed.value, 6)
    ([[1.0, 0.0], [0.0, 0.0]], 1.0)
    """
    a, y = _checked(measurements, y, semidefinite)
    m, d1, d2 = a.shape
    flat = a.reshape(m, d1 * d2)
    unit = float(np.linalg.norm(y)) or 1.0
    left, sizes, right = np.linalg.svd(flat, full_matrices=False)
    kept = sizes > _RANK * max(sizes.max(), np.finfo(float).tiny)
    left = left[:, kept]
    sizes = sizes[kept]
    right = right[kept]
    # the same equations with orthonormal rows: ⟨right_k, vec W⟩ = targets_k
    targets = (y / unit) @ left / sizes  # flat = left sizes right: right vec W = leftᵀ y/sizes
    residual = float(np.linalg.norm(flat @ (targets @ right) - y / unit))
    if residual > _INTERPOLABLE:
        fit = unit * (targets @ right).reshape(d1, d2)
        reason = f"no matrix fits: least squares leaves a relative residual of {residual:.1e}"
        return NuclearInterpolation(
            fit, np.zeros(m), _nuclear(fit), np.inf, residual, 0.0, False, reason
        )
    solution = _solve(right, targets, (d1, d2), semidefinite)
    if solution is None and (below := _least_excess(right, targets, d1)) > _SEMIDEFINITE:
        fit = unit * (targets @ right).reshape(d1, d2)
        reason = f"no semidefinite matrix fits: the largest least eigenvalue, over the targets' norm, is {-below:.1e}"
        return NuclearInterpolation(
            fit, np.zeros(m), _nuclear(fit), np.inf, residual, 0.0, False, reason
        )
    matrix, multipliers = solution or _solved(right, targets, (d1, d2), semidefinite)
    nu = left @ (multipliers / sizes)  # flatᵀ ν = rightᵀ multipliers
    nu = nu * (1 if nu @ y >= 0 else -1)
    # into the dual ball: its value is a proof
    nu = nu / max(1.0, _size(np.tensordot(nu, a, 1), semidefinite))
    matrix = unit * matrix
    value = _nuclear(matrix)
    residual = float(np.linalg.norm(flat @ matrix.ravel() - y) / unit)  # relative, as unit = ‖y‖
    apart = _uniqueness(np.tensordot(nu, a, 1), right, semidefinite)
    return NuclearInterpolation(matrix, nu, value, value - float(nu @ y), residual, apart, True)


@checked
def nuclear_norm_margin(measurements: Float[Any, "m d1 d2"]) -> NuclearMargin:
    """Find the matrix of nuclear norm one with the largest margin ``min_i ⟨A_i, W⟩``.

    The dual is ``min ‖Σ q_i A_i‖`` over the simplex, in the spectral norm. Labels are part of the measurements: output
    j on the input x with the label y has ``A = y e_j xᵀ``, class c against class j ``A = (e_c - e_j) xᵀ``.

    Args:
        measurements: the ``A_i``, shape ``(m, d1, d2)``.

    Raises:
        UserError: if the shape is another, or an entry is not finite. Measurements that no matrix separates are an
            outcome: ``separable = False``.

    Source: Gunasekar, Lee, Soudry and Srebro 2018 (linear networks with several outputs).

    >>> best = nuclear_norm_margin([[[3.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
    >>> round(best.margin, 6), best.matrix.round(4).tolist(), best.dual.round(4).tolist()
    (0.75, [[0.25, 0.0], [0.0, 0.75]], [0.25, 0.75])
    """
    import cvxpy as cp

    a = _checked(measurements, np.ones(len(measurements)), False)[0]
    m, d1, d2 = a.shape
    unit = float(np.abs(a).max()) or 1.0
    flat = a.reshape(m, -1) / unit
    w = cp.Variable((d1, d2))
    least = cp.Variable()
    above = flat @ cp.vec(w, order="C") >= least
    solve_tightly(cp.Problem(cp.Maximize(least), [above, cp.normNuc(w) <= 1]))
    matrix = np.asarray(w.value)
    margin = float((flat @ matrix.ravel()).min())
    q = np.maximum(np.asarray(above.dual_value), 0.0)
    q = q / q.sum()
    if margin > _SEPARABLE:
        # again in the units of its own margin, where the solver's tolerance is a relative one
        fits = flat @ cp.vec(w, order="C") >= margin
        solve_tightly(cp.Problem(cp.Minimize(cp.normNuc(w)), [fits]))
        matrix = np.asarray(w.value) / _nuclear(np.asarray(w.value))
        margin = float((flat @ matrix.ravel()).min())
        q = np.maximum(np.asarray(fits.dual_value), 0.0)
        q = q / q.sum()
    bound = _size((q @ flat).reshape(d1, d2), False)  # weak duality: an upper bound of every margin
    if margin <= _SEPARABLE:
        return NuclearMargin(0.0, np.zeros((d1, d2)), q, unit * bound, 0.0, False)
    active = flat @ matrix.ravel() <= margin * (1 + _ACTIVE)
    unique = _dual_uniqueness(matrix, flat[active].reshape(-1, d1, d2))
    return NuclearMargin(unit * margin, matrix, q, unit * (bound - margin), unique, True)


@checked
def nuclear_norm_completion(
    values: Float[Any, "d1 d2"], given: Bool[Any, "d1 d2"], semidefinite: bool = False
) -> NuclearInterpolation:
    """Complete a matrix: find the one of least nuclear norm with the given entries.

    Args:
        values: the entries, shape ``(d1, d2)``; those not given may be anything, NaN too.
        given: which entries are given, booleans of shape ``(d1, d2)``.
        semidefinite: whether W must be symmetric and positive semidefinite; a pair of mirrored entries then counts by
            its mean.

    Returns:
        As :func:`nuclear_norm_interpolation`, one measurement for each entry seen, row by row.

    Raises:
        UserError: if shapes do not match, no entry is seen, or a seen entry is not finite.

    Source: Candès and Recht 2009; Gunasekar's lecture at MIT, 2019.

    >>> nan = float("nan")
    >>> completed = nuclear_norm_completion([[2.0, 2.0], [2.0, nan]], [[True, True], [True, False]])
    >>> completed.matrix.round(4).tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """
    values = np.asarray(values, dtype=float)
    given = np.asarray(given)
    if values.ndim != 2 or given.shape != values.shape or given.dtype != bool:
        raise UserError(
            "matrix completion: expected values and booleans of one shape (d1, d2), got shapes "
            f"{values.shape} and {given.shape} of {given.dtype}; given says which entries are given"
        )
    if not given.any():
        raise UserError(
            "matrix completion: expected at least one entry to be seen, got none; every matrix would do"
        )
    entries = np.argwhere(given)
    measurements = np.zeros((len(entries), *values.shape))
    measurements[np.arange(len(entries)), entries[:, 0], entries[:, 1]] = 1.0
    return nuclear_norm_interpolation(measurements, values[given], semidefinite)


@checked
def common_eigenvectors(measurements: Float[Any, "m d d"]) -> Float[np.ndarray, "d d"]:
    """Return orthonormal columns that diagonalize symmetric matrices which commute.

    Args:
        measurements: the ``A_i``, shape ``(m, d, d)``.

    Raises:
        UserError: if they are not symmetric or do not commute.

    >>> abs(common_eigenvectors([[[0.0, 1.0], [1.0, 0.0]], [[3.0, 1.0], [1.0, 3.0]]])).round(4).tolist()
    [[0.7071, 0.7071], [0.7071, 0.7071]]
    """
    a = np.asarray(measurements, dtype=float)
    if a.ndim != 3 or a.shape[1:] != a.shape[1:][::-1] or not np.isfinite(a).all():
        raise UserError(
            f"common eigenvectors: expected finite matrices of shape (m, d, d), got shape {a.shape}"
        )
    # A combination with generic coefficients keeps apart whatever one of the matrices keeps apart.
    basis = np.linalg.eigh(
        # symmetric parts
        np.tensordot(np.cos(1 + np.arange(len(a))), (a + a.transpose(0, 2, 1)) / 2, 1)
    )[1]
    # entries off the diagonal of each A_i in the basis
    left = np.abs((basis.T @ a @ basis) * (1 - np.eye(a.shape[1]))).max(initial=0.0)
    if not left <= _COMMUTE * np.abs(a).max(initial=0.0):
        raise UserError(
            f"common eigenvectors: expected symmetric matrices that commute, got entries up to {left:.1e} off the "
            "diagonal; only such measurements have a limit in closed form"
        )
    return basis


@checked
def commuting_limit(
    measurements: Float[Any, "m d d"], y: Float[Any, " m"], scale: float
) -> Float[np.ndarray, "d d"]:
    """Find where gradient flow of ``Σ (⟨A_i, UUᵀ⟩ - y_i)²`` from ``U = αI`` ends, for symmetric A_i that commute.

    From ``dU/dt = -2 Σ r_i A_i U`` the limit is ``W = α² exp(Σ ν_i A_i)``: in the common eigenvectors its eigenvalues
    are those nearest to α² in relative entropy among those that fit. As ``α → 0`` its nuclear norm tends to the least;
    eigenvalues where the dual matrix of that program is ``z < 1`` fall like ``α^{2(1-z)}``.

    Args:
        measurements: the ``A_i``, shape ``(m, d, d)``.
        y: targets, shape ``(m,)``, of some positive definite matrix.
        scale: ``α > 0``.

    Raises:
        UserError: if the measurements do not commute, no positive definite matrix fits, or α is not positive or so
            small that the dual is not solved.

    Source: Gunasekar et al. 2017, section 3 and theorem 1.

    >>> commuting_limit([[[1.0, 0.0], [0.0, 0.0]]], [4.0], scale=0.1).round(6).tolist()
    [[4.0, 0.0], [0.0, 0.01]]
    """
    a, y = _checked(measurements, y, True)
    basis = common_eigenvectors(a)
    if not (np.isfinite(scale) and scale > 0):
        raise UserError(
            f"limit of the flow: expected a positive scale of the start, got {scale}; try 1e-3"
        )
    # eigenvalues of each A_i in the common basis, (m, d)
    x = np.diagonal(basis.T @ a @ basis, axis1=1, axis2=2)
    with np.errstate(over="ignore"):  # a step that the line search tries may be too long
        # nearest to α² in relative entropy: α² exp(Σ ν_i x_i)
        limit = bregman_interpolation(x, y, _ENTROPY, np.full(x.shape[1], float(scale) ** 2))
    if not limit.interpolable:
        raise UserError(
            f"limit of the flow: expected targets of a positive definite matrix, but {limit.reason}"
        )
    if not limit.converged:
        raise UserError(
            f"limit of the flow: expected the dual to be solved, got a relative residual of {limit.residual:.1e} at "
            f"scale {scale:g}; choose a larger one"
        )
    return (basis * limit.beta) @ basis.T


def _checked(measurements: Any, y: Any, semidefinite: bool) -> tuple[np.ndarray, np.ndarray]:
    a = np.asarray(measurements, dtype=float)
    if a.ndim != 3 or a.size == 0:
        raise UserError(
            f"nuclear norm: expected measurements of shape (m, d1, d2), not empty, got shape {a.shape}; one matrix each"
        )
    if semidefinite and a.shape[1] != a.shape[2]:
        raise UserError(
            f"nuclear norm: expected square measurements for semidefinite matrices, got shape {a.shape}; "
            "leave semidefinite out for rectangular ones"
        )
    y = check_inputs("nuclear norm", a.reshape(len(a), -1), y)[1]
    return (a + a.transpose(0, 2, 1)) / 2 if semidefinite else a, y


def _solve(
    rows: np.ndarray, targets: np.ndarray, shape: tuple[int, int], semidefinite: bool
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return what :func:`_solved` does; None if a semidefinite matrix was asked for and what came is none."""
    try:
        matrix, multipliers = _solved(rows, targets, shape, semidefinite)
    except UserError:
        if semidefinite:
            return None
        raise
    # A minimizer that fits and is semidefinite is the proof that there is one: no second program is needed.
    if semidefinite and not np.linalg.eigvalsh(matrix)[0] >= -_SEMIDEFINITE:
        return None
    return matrix, multipliers


def _solved(
    rows: np.ndarray, targets: np.ndarray, shape: tuple[int, int], semidefinite: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the minimizer and the multipliers of ``⟨rows_k, vec W⟩ = targets_k``, orthonormal rows."""
    import cvxpy as cp

    w = cp.Variable(shape, PSD=True) if semidefinite else cp.Variable(shape)
    fit = rows @ cp.vec(w, order="C") == targets
    solve_tightly(cp.Problem(cp.Minimize(cp.trace(w) if semidefinite else cp.normNuc(w)), [fit]))
    matrix = np.asarray(w.value)
    # Projected onto what fits: the interior-point method leaves a residual that the gap would count.
    missing = (targets - rows @ matrix.ravel()) @ rows
    return matrix + missing.reshape(shape), np.asarray(fit.dual_value)


def _least_excess(rows: np.ndarray, targets: np.ndarray, d: int) -> float:
    """Return the least t ≥ -1 for which some W that fits has ``W + t I ⪰ 0``: positive if none is semidefinite."""
    import cvxpy as cp

    w = cp.Variable((d, d), symmetric=True)
    t = cp.Variable()
    limits = [rows @ cp.vec(w, order="C") == targets, w + t * np.eye(d) >> 0, t >= -1]
    solve_tightly(cp.Problem(cp.Minimize(t), limits))
    return float(np.asarray(t.value))


def _nuclear(matrix: np.ndarray) -> float:
    return float(np.linalg.svd(matrix, compute_uv=False).sum())


def _dual_uniqueness(matrix: np.ndarray, active: np.ndarray) -> float:
    """Return how well the multipliers of active measurements are told by their sum on range and row space."""
    left, sizes, right = np.linalg.svd(matrix)
    place = int((sizes > _ACTIVE * sizes[0]).sum())
    parts = left.T @ active @ right.T  # in singular bases of W
    parts[:, place:, place:] = 0.0  # off range and row space, where nothing is asked
    # more unknowns than entries outside that block
    if len(active) > place * (sum(matrix.shape) - place):
        return 0.0
    values = np.linalg.svd(parts.reshape(len(active), -1), compute_uv=False)
    return float(values[-1] / values[0])


def _size(matrix: np.ndarray, semidefinite: bool) -> float:
    return float(np.linalg.eigvalsh(matrix)[-1] if semidefinite else np.linalg.norm(matrix, 2))


def _uniqueness(matrix: np.ndarray, rows: np.ndarray, semidefinite: bool) -> float:
    """Return the least singular value of the orthonormal measurements on the symmetric S of ``P S Qᵀ``."""
    if semidefinite:
        sizes, left = np.linalg.eigh(matrix)
        right = left
    else:
        left, sizes, right = np.linalg.svd(matrix, full_matrices=False)
        right = right.T
    p = left[:, sizes >= 1 - _FACE]
    q = right[:, sizes >= 1 - _FACE]
    k = p.shape[1]
    if k == 0:  # only W = 0 is left
        return 1.0
    upper = [(i, j) for i in range(k) for j in range(i, k)]
    # Orthonormal symmetric matrices: E_ii and (E_ij + E_ji)/√2.
    basis = [
        (np.outer(p[:, i], q[:, j]) + np.outer(p[:, j], q[:, i])) / (2 if i == j else 2**0.5)
        for i, j in upper
    ]
    if len(basis) > len(rows):  # a map to fewer dimensions has a kernel
        return 0.0
    return float(np.linalg.svd(rows @ np.array([b.ravel() for b in basis]).T, compute_uv=False)[-1])
