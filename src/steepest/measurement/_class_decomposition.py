"""Class decomposition of a classifier's Gauss–Newton matrix, and what it explains of the Hessian."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.krylov import Eigenpairs, ProbeEstimate, row_by_row, top_eigenpairs, trace
from steepest.measurement._context import Context
from steepest.measurement._cross_entropy import check_cross_entropy
from steepest.measurement._curvature import largest_between
from steepest.measurement._report import Reading
from steepest.measurement._sample import Sample, sample
from steepest.measurement.quantities import (
    Parts,
    level_products,
    outlier_count,
    softmax,
    three_levels,
)

EXAMPLES = 300  # at most: the C(C − 1) means and the traces take many passes over them
CERTAIN = 0.9  # while probabilities are even, other parts of the Gauss–Newton matrix hold most of its eigenvalues
SOURCE = "Papyan 2020: outliers, mini-bulk and bulk"


def measure_class_decomposition(context: Context) -> list[Reading]:
    """Measure the class, cross-class and within parts: top eigenvalues, traces, and the outliers that classes explain.

    Raises:
        UserError: no classifier, or a loss that is not the mean cross-entropy of its outputs.
    """
    classes = context.classes
    if classes < 2:
        raise UserError("levels of the Hessian need at least two classes")
    drawn = sample(context, EXAMPLES)
    subject = drawn.subject
    outputs, labels = subject.outputs()
    outputs = outputs.astype(float)
    _check_classes(context, labels, drawn.how)
    check_cross_entropy(subject, outputs, labels)
    # factors and their sums in double precision, products with the model in its own
    jvp = lambda v: np.asarray(subject.jvp(v), float)
    vjp = lambda u: np.asarray(subject.vjp(u), float)
    factors = three_levels(vjp, outputs, labels)
    parts = level_products(factors, jvp, vjp, outputs, labels)
    tolerance = 1e-6 if subject.dtype == np.float64 else 1e-3
    start = context.rng.standard_normal(subject.size)
    within = top_eigenpairs(row_by_row(parts.within), start, 1, tolerance=tolerance, limit=200)
    largest = lambda rows: float(np.linalg.norm(rows, 2) ** 2)
    eigenvalues = {
        "class": largest(factors.classes),
        "cross-class": largest(factors.cross),
        "within": float(within.values[0]),
    }
    shares = _traces(factors.classes, factors.cross, parts, subject.size, context.rng)
    return [
        *_parts(eigenvalues, within, shares),
        *_explained(context, drawn, lambda groups: class_rows(vjp, outputs, labels, groups)),
    ]


def _check_classes(context: Context, labels: np.ndarray, how: str) -> None:
    """Check that the sample has every class that the data have."""
    missing = sorted(set(context.outputs[1].tolist()) - set(labels.tolist()))
    if missing:
        raise UserError(
            f"the class decomposition needs examples of every class, and {how} have none of "
            f"{missing[:5]}; give data with fewer classes, or in one order"
        )


def _traces(
    classes: np.ndarray, cross: np.ndarray, parts: Parts, size: int, rng: np.random.Generator
) -> dict[str, tuple[float, tuple[float, float]]]:
    """Return each part's share in the trace, with its interval over the probes of the parts not known exactly."""
    within, own = (
        trace(row_by_row(part), size, rng, probes=20, sketch=5)
        for part in (parts.within, parts.own)
    )
    of = {"class": float((classes**2).sum()), "cross-class": float((cross**2).sum())}
    of |= {"within": within.value, "own": own.value}
    total = sum(of.values())
    error = float(np.hypot(within.standard_error, own.standard_error))
    low, high = ProbeEstimate(total, error, within.probes, 0).interval()
    shares = {
        name: (of[name] / total, (of[name] / high, of[name] / low))
        for name in ("class", "cross-class")
    }
    near = within.interval()
    return shares | {"within": (within.value / total, (near[0] / total, near[1] / total))}


def _parts(
    eigenvalues: dict[str, float],
    within: Eigenpairs,
    shares: dict[str, tuple[float, tuple[float, float]]],
) -> list[Reading]:
    origins = {
        "class": "the mean gradients of the classes",
        "cross-class": "the mean gradients of pairs, class and wrong label, around those of the classes",
        "within": "single examples around the means of their pair",
    }
    lines = []
    for name, value in eigenvalues.items():
        by_lanczos = name == "within"
        lines.append(
            Reading(
                f"top eigenvalue, {name} part",
                value,
                largest_between(within) if by_lanczos else None,
                "residual" if by_lanczos else "rounding",
                theory=SOURCE,
                interpretation=f"the largest curvature that comes from {origins[name]}",
                missed=within.missed if by_lanczos else None,
            )
        )
    for name in eigenvalues:
        share, near = shares[name]
        lines.append(
            Reading(
                f"trace share, {name} part",
                share,
                near,
                "probes",
                interpretation=f"this share of the Gauss–Newton curvature comes from {origins[name]}",
            )
        )
    return lines


def class_rows(
    vjp: Callable[[NDArray], NDArray], outputs: NDArray, labels: NDArray, groups: NDArray
) -> NDArray:
    """Return the factor ``(C, p)`` of the class part with examples grouped at will; one product a group.

    The mean over wrong labels c' of ``g_ic' = J_iᵀ(p_i − e_c')``, weighted by ``p_ic'``, is
    ``J_iᵀ p_iy (e_y − p_i)/(1 − p_iy)``. With ``groups = labels`` these are the rows of ``three_levels``.
    """
    p = softmax(outputs)
    classes = p.shape[1]
    one_hot = np.eye(classes)[labels]
    own = (p * one_hot).sum(1, keepdims=True)
    cotangent = own * (one_hot - p) / len(p)
    members = np.eye(classes)[groups]
    weight = members.T @ (1 - own) / len(p)
    sums = np.stack([vjp(member[:, None] * cotangent) for member in members.T])
    return sums / np.sqrt(np.where(weight > 0, weight, 1.0))


def _explained(
    context: Context, drawn: Sample, rows: Callable[[NDArray], NDArray]
) -> list[Reading]:
    """Count the largest eigenvalues of the Hessian that come from class means, and from means of random groups.

    An eigenvector v counts if the class part has more than C/(4(C − 1)) of its eigenvalue, ``vᵀ G_class v / λ``, as do
    all before it: half of the share that a feature common to all classes leaves to the class part. The control groups
    the same examples by shuffled labels. The mean gradient is in the span of the means of every grouping.

    Source: claims hessian-outliers and three-level-hessian, which have the threshold.
    """
    subject = drawn.subject
    outputs, labels = subject.outputs()
    certain = float(softmax(outputs.astype(float))[np.arange(len(labels)), labels].mean())
    count = context.classes
    most = min(2 * count, subject.size - 1)
    start = context.rng.standard_normal(subject.size).astype(subject.dtype)
    tolerance = 1e-6 if subject.dtype == np.float64 else 1e-3
    top = top_eigenpairs(subject.products, start, most + 1, tolerance=tolerance)
    groups = np.random.default_rng(context.seed).permutation(labels)
    shares = {
        name: _shares(rows(grouping), top)
        for name, grouping in (("classes", labels), ("shuffled", groups))
    }
    threshold = count / (4 * (count - 1))
    counted = int(np.cumprod(shares["classes"] > threshold).sum())
    by_chance = int((shares["shuffled"][:counted] > threshold).sum())
    outliers = outlier_count(top.values, most)
    present = len(np.unique(labels))
    assumes = (
        ("eigenvectors converged", bool(top.converged.all())),
        ("every class has examples", present == count),
        (f"mean probability of the true class above {CERTAIN:g}", certain > CERTAIN),
    )
    parts = lambda name: {
        f"share of eigenvalue {i + 1}": float(share) for i, share in enumerate(shares[name])
    }
    return [
        Reading(
            "outliers explained by class means",
            counted,
            theory="C − 1, and one more where the mean gradient does not vanish",
            compared=float(count - 1),
            assumes=assumes,
            interpretation=f"{counted} of the Hessian's largest eigenvalues come from class means, by more than the "
            f"share {threshold:.2g}; {by_chance} of them from means of random groups too. {outliers} eigenvalues lie "
            f"above the widest gap. On {drawn.how}",
            parts=parts("classes"),
        ),
        Reading(
            "outliers explained by shuffled classes",
            by_chance,
            theory="control: 0, or 1 for the mean gradient, which every grouping has",
            interpretation="so many of those come from means of random groups too, and say nothing about classes",
            parts=parts("shuffled"),
        ),
    ]


def _shares(rows: NDArray, top: Eigenpairs) -> NDArray:
    """Return ``vᵀ G v / λ`` of each eigenvector, with ``G = rowsᵀ rows``; 0 where λ is not positive."""
    forms = ((rows @ top.vectors.T) ** 2).sum(0)
    return np.where(top.values > 0, forms / np.where(top.values > 0, top.values, 1.0), 0.0)
