"""Parts of a second moment that class means explain: of features, and of backpropagated errors (Papyan 2020).

Every class weighs the same in the features' moments (``Avg_c Avg_{i∈c}``), as in ``collapse``. The errors are
*extended*: ``δ_{i,c'}`` is what example i would send back if its label were c', with weight ``w_{i,c'} = p_{i,c'}/n``,
so that ``Δ = Σ_{i,c'} w_{i,c'} δ_{i,c'} δ_{i,c'}ᵀ`` splits like the Gauss–Newton matrix of ``three_levels``.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from steepest.core.errors import UserError
from steepest.krylov import top_eigenpairs
from steepest.measurement.quantities._class_decomposition import gather, pairs
from steepest.measurement.quantities._collapse import class_means

DENSE = 400  # rows or columns up to which a Gram matrix is decomposed whole


class FeatureParts(NamedTuple):
    """``H = between + within``, each of shape ``(q, q)``.

    Attributes:
        between: ``Avg_c h_c h_cᵀ``, of the class means.
        within: ``Avg_c Avg_{i∈c} (h_i − h_c)(h_i − h_c)ᵀ``.
    """

    between: Float[Array, "q q"]
    within: Float[Array, "q q"]


class ErrorParts(NamedTuple):
    """``Δ = classes + cross + within + own``, each of shape ``(q, q)``.

    Attributes:
        classes: ``Σ_c w_c δ_c δ_cᵀ``.
        cross: ``Σ_{c≠c'} w_cc' (δ_cc' − δ_c)(δ_cc' − δ_c)ᵀ``.
        within: ``Σ_{i, c'≠y_i} w_ic' (δ_ic' − δ_{y_i c'})(δ_ic' − δ_{y_i c'})ᵀ``.
        own: ``Σ_i w_{i,y_i} δ_{i,y_i} δ_{i,y_i}ᵀ``.
    """

    classes: Float[Array, "q q"]
    cross: Float[Array, "q q"]
    within: Float[Array, "q q"]
    own: Float[Array, "q q"]


def feature_parts(
    features: Float[Array, "n q"],
    labels: Integer[Array, " n"],
    classes: int,
    *,
    centred: bool = True,
) -> FeatureParts:
    """Split the second moment of features into that of the class means and that around them.

    Args:
        features: shape ``(n, q)``.
        labels: class numbers 0 … C−1, shape ``(n,)``; every class must occur.
        classes: C.
        centred: whether the mean of the class means is subtracted first. Without it the largest eigenvalue is mostly
            that mean, which tells nothing about classes.

    Raises:
        UserError: shapes that do not belong together.

    >>> parts = feature_parts(jnp.array([[1.0], [3.0], [-2.0]]), jnp.array([0, 0, 1]), 2)
    >>> parts.between.item(), parts.within.item()
    (4.0, 0.5)
    """
    if features.ndim != 2 or labels.shape != features.shape[:1]:
        raise UserError(
            f"expected features (n, q) and labels (n,), got shapes {features.shape} and {labels.shape}"
        )
    means = class_means(features, labels, classes)
    centre = means.mean(0) * centred
    members = labels[:, None] == jnp.arange(classes)
    weights = 1 / (classes * members.sum(0))[labels]
    deviations = features - means[labels]
    return FeatureParts(
        (means - centre).T @ (means - centre) / classes,
        deviations.T @ (weights[:, None] * deviations),
    )


def error_parts(
    errors: Float[Array, "n C q"], weights: Float[Array, "n C"], labels: Integer[Array, " n"]
) -> ErrorParts:
    """Split the weighted second moment of extended backpropagated errors.

    Args:
        errors: ``δ_{i,c'}``, shape ``(n, C, q)``.
        weights: ``w_{i,c'}``, shape ``(n, C)``; ``p_{i,c'}/n`` for the cross-entropy.
        labels: class numbers, shape ``(n,)``.

    Raises:
        UserError: shapes that do not belong together.
    """
    if errors.ndim != 3 or weights.shape != errors.shape[:2] or labels.shape != errors.shape[:1]:
        raise UserError(
            "expected errors (n, C, q), weights (n, C) and labels (n,), got shapes "
            f"{errors.shape}, {weights.shape} and {labels.shape}"
        )
    of_class = (labels[:, None] == jnp.arange(errors.shape[1])).astype(errors.dtype)
    total = of_class.T @ weights  # w_cc'
    sums = jnp.tensordot(of_class, weights[..., None] * errors, (0, 0))
    means = sums / jnp.where(total == 0, 1.0, total)[..., None]
    levels = gather(means[pairs(errors.shape[1])], total)
    moment = lambda weight, rows: jnp.tensordot(weight[..., None] * rows, rows, ((0, 1), (0, 1)))
    within = moment((1 - of_class) * weights, errors - means[labels])
    square = lambda rows: rows.T @ rows
    return ErrorParts(
        square(levels.classes), square(levels.cross), within, moment(of_class * weights, errors)
    )


class Rows(NamedTuple):
    """Rows X whose second moment ``XᵀX`` is a matrix, the first of them those of one or several of its parts.

    Attributes:
        all: X, shape ``(N, q)``.
        first: how many rows belong to the parts that explain.
    """

    all: Float[np.ndarray, "N q"]
    first: int


def feature_rows(
    features: Float[np.ndarray, "n q"], labels: Integer[np.ndarray, " n"], classes: int
) -> Rows:
    """Return the rows of ``feature_parts``, centred class means first: nothing of shape ``(q, q)`` is formed.

    Args:
        features: shape ``(n, q)``.
        labels: class numbers 0 … C−1, shape ``(n,)``; every class must occur.
        classes: C.
    """
    of_class = np.eye(classes)[labels]
    sizes = of_class.sum(0)
    means = (of_class.T @ features) / sizes[:, None]
    within = (features - means[labels]) / np.sqrt(classes * sizes)[labels][:, None]
    return Rows(np.concatenate([(means - means.mean(0)) / np.sqrt(classes), within]), classes)


def error_rows(
    errors: Float[np.ndarray, "n C q"],
    weights: Float[np.ndarray, "n C"],
    labels: Integer[np.ndarray, " n"],
) -> Rows:
    """Return the rows of ``error_parts``, those of the class and the cross-class part first.

    Args:
        errors: ``δ_{i,c'}``, shape ``(n, C, q)``.
        weights: ``w_{i,c'}``, shape ``(n, C)``.
        labels: class numbers, or any other groups, shape ``(n,)``.
    """
    classes = errors.shape[1]
    of_class = np.eye(classes)[labels]
    total = of_class.T @ weights  # w_cc'
    sums = np.tensordot(of_class, weights[..., None] * errors, (0, 0))
    means = sums / np.where(total == 0, 1.0, total)[..., None]
    levels = gather(means[pairs(classes)], total)
    # the own terms are around nothing, the others around the mean of their pair
    around = errors - (1 - of_class)[..., None] * means[labels]
    scaled = np.sqrt(weights)[..., None] * around
    first = (levels.classes, levels.cross)
    rows = np.concatenate([*first, scaled.reshape(-1, errors.shape[-1])])
    return Rows(rows, sum(map(len, first)))


def explained_of_rows(rows: Rows, top: int) -> float:
    """Return ``explained`` for a matrix that is given by rows, without forming it where it is large.

    Small ones by the smaller Gram matrix: with ``X Xᵀ u = λ u`` the eigenvector of ``XᵀX`` is ``Xᵀu/√λ``, and the first
    rows carry ``λ Σ u_r²`` of λ. Others by Lanczos, with residuals below 10⁻⁶ of the largest eigenvalue.

    Args:
        rows: as from :func:`feature_rows`, shape ``(N, q)``.
        top: how many eigenvalues; all where there are no more.

    >>> rows = np.diag([3.0**0.5, 1.0, 2.0])
    >>> round(explained_of_rows(Rows(rows, 2), 2), 4)  # λ = 4, of the last row, and 3
    0.4286
    """
    x = rows.all
    count, size = x.shape
    top = min(top, count, size)
    if min(count, size) > DENSE:
        start = np.random.default_rng(0).standard_normal(size)
        pairs = top_eigenpairs(lambda v: (v @ x.T) @ x, start, top, tolerance=1e-6)
        return float(((pairs.vectors @ x[: rows.first].T) ** 2).sum()) / float(pairs.values.sum())
    inner = size <= count
    gram = x.T @ x if inner else x @ x.T
    values, vectors = np.linalg.eigh(gram)
    values = values[-top:]
    vectors = vectors[:, -top:]
    if inner:
        carried = float(((x[: rows.first] @ vectors) ** 2).sum())
    else:
        carried = float((values * (vectors[: rows.first] ** 2).sum(0)).sum())
    return carried / float(values.sum())


def explained(
    parts: Sequence[Float[np.ndarray, "*batch q q"]],
    by: Sequence[Float[np.ndarray, "*batch q q"]],
    top: int,
) -> Float[np.ndarray, "*batch"]:
    """Return the share of the largest eigenvalues of a matrix that some of its parts carry, from 0 to 1.

    ``Σ_{k ≤ top} v_kᵀ B v_k / Σ_{k ≤ top} λ_k`` with the eigenpairs of the sum of all parts and B the sum of some.

    Args:
        parts: all parts.
        by: those that explain.
        top: how many eigenvalues.

    >>> parts = np.diag([3.0, 1.0, 0.0]), np.diag([1.0, 1.0, 5.0])
    >>> explained(parts, parts[:1], 2).round(4).item()  # 3 of 4 + 5
    0.3333
    """
    values, vectors = np.linalg.eigh(np.sum(np.asarray(parts), 0))
    chosen = vectors[..., -top:]
    return (chosen * (np.sum(np.asarray(by), 0) @ chosen)).sum((-2, -1)) / values[..., -top:].sum(
        -1
    )
