"""Class decomposition of a classifier's Gauss–Newton matrix, and what it explains of the Hessian."""

import jax.numpy as jnp
import numpy as np

from steepest.core.errors import UserError
from steepest.linalg import ProbeEstimate, row_by_row, top_eigenpairs, trace
from steepest.measurement._context import Context
from steepest.measurement._report import Reading
from steepest.measurement.adapters import Subject, few
from steepest.measurement.quantities import (
    Parts,
    level_products,
    orthonormal,
    outlier_count,
    three_levels,
)
from steepest.nn.losses import cross_entropy

EXAMPLES = 300  # at most: the C(C − 1) means and the traces take many passes over them
SOURCE = "Papyan 2020: outliers, mini-bulk and bulk"


def measure_class_decomposition(context: Context) -> list[Reading]:
    """Measure the class, cross-class and within parts: top eigenvalues, traces, and the outliers that classes explain.

    Raises:
        UserError: no classifier, or a loss that is not the mean cross-entropy of its outputs.
    """
    classes = context.classes
    if classes < 2:
        raise UserError("levels of the Hessian need at least two classes")
    subject = few(context.subject, EXAMPLES)
    outputs, labels = subject.outputs()
    outputs = outputs.astype(float)
    _check_loss(subject, outputs, labels)
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
        *_parts(eigenvalues, float(within.residuals[0]), shares),
        _explained(context, subject, factors.classes),
    ]


def _check_loss(subject: Subject, outputs: np.ndarray, labels: np.ndarray) -> None:
    """Check by its value that the risk is the cross-entropy of the outputs."""
    risk = subject.risk()
    mean = float(cross_entropy(jnp.asarray(outputs), jnp.asarray(labels)).mean())
    if not abs(risk - mean) <= 1e4 * np.finfo(subject.dtype).eps * (1 + abs(mean)):
        raise UserError(
            f"levels are those of the mean cross-entropy: the loss of {subject.name} is {risk:.6g} and the "
            f"cross-entropy of its outputs {mean:.6g}; leave decay, label smoothing and other terms out of the loss"
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
    residual: float,
    shares: dict[str, tuple[float, tuple[float, float]]],
) -> list[Reading]:
    origins = {
        "class": "the mean gradients of the classes",
        "cross-class": "the mean gradients of pairs, class and wrong label, around those of the classes",
        "within": "single examples around the means of their pair",
    }
    lines = []
    for name, value in eigenvalues.items():
        near = (value - residual, value + residual) if name == "within" else None
        lines.append(
            Reading(
                f"top eigenvalue, {name} part",
                value,
                near,
                "residual" if near else "rounding",
                theory=SOURCE,
                interpretation=f"the largest curvature that comes from {origins[name]}",
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


def _explained(context: Context, subject: Subject, classes: np.ndarray) -> Reading:
    """Count the outliers of the Hessian that lie in the span of the class means."""
    count = context.classes
    most = min(2 * count, subject.size - 1)
    start = context.rng.standard_normal(subject.size).astype(subject.dtype)
    tolerance = 1e-6 if subject.dtype == np.float64 else 1e-3
    top = top_eigenpairs(subject.products, start, most + 1, tolerance=tolerance)
    outliers = outlier_count(top.values, most)
    inside = ((top.vectors[:outliers] @ orthonormal(classes).T) ** 2).sum(1)
    explained = int((inside > 0.5).sum())
    return Reading(
        "outliers explained by class means",
        explained,
        theory="C − 1 outliers, all of them",
        compared=float(count - 1),
        assumes=(("eigenvectors converged", bool(top.converged.all())),),
        interpretation=f"{outliers} eigenvalues of the Hessian lie above the widest gap; {explained} of their "
        "directions are mostly combinations of the classes' mean gradients",
        parts={f"share inside, outlier {i + 1}": float(share) for i, share in enumerate(inside)},
    )
