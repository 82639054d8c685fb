"""The three levels of the Gauss–Newton matrix of a classifier, and what they explain of its Hessian."""

import jax.numpy as jnp
import numpy as np

from steepest.curvature import Estimated, row_by_row, top_eigenpairs, trace
from steepest.descent import cross_entropy
from steepest.errors import UserError
from steepest.measures import Parts, level_products, orthonormal, outlier_count, three_levels
from steepest.measuring._context import Context
from steepest.measuring._report import Quantity
from steepest.subject import Subject, few

EXAMPLES = 300  # at most: the C(C − 1) means and the traces take many passes over them
SOURCE = "Papyan 2020: outliers, mini-bulk and bulk"


def levels(context: Context) -> list[Quantity]:
    """Top eigenvalues and traces of the class, cross-class and within parts; outliers that the classes explain.

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
    jvp, vjp = (lambda v: np.asarray(subject.jvp(v), float)), (lambda u: np.asarray(subject.vjp(u), float))
    found = three_levels(vjp, outputs, labels)
    parts = level_products(found, jvp, vjp, outputs, labels)
    tolerance = 1e-6 if subject.dtype == np.float64 else 1e-3
    start = context.rng.standard_normal(subject.size)
    within = top_eigenpairs(row_by_row(parts.within), start, 1, tolerance=tolerance, limit=200)
    largest = lambda rows: float(np.linalg.norm(rows, 2) ** 2)
    eigenvalues = {
        "class": largest(found.classes),
        "cross-class": largest(found.cross),
        "within": float(within.values[0]),
    }
    shares = _traces(found.classes, found.cross, parts, subject.size, context.rng)
    return [*_parts(eigenvalues, float(within.residuals[0]), shares), _explained(context, subject, found.classes)]


def _check_loss(subject: Subject, outputs: np.ndarray, labels: np.ndarray) -> None:
    """Whether the risk is the cross-entropy of the outputs, by its value."""
    risk, mean = subject.risk(), float(cross_entropy(jnp.asarray(outputs), jnp.asarray(labels)).mean())
    if not abs(risk - mean) <= 1e4 * np.finfo(subject.dtype).eps * (1 + abs(mean)):
        raise UserError(
            f"levels are those of the mean cross-entropy: the loss of {subject.name} is {risk:.6g} and the "
            f"cross-entropy of its outputs {mean:.6g}; leave decay, label smoothing and other terms out of the loss"
        )


def _traces(
    classes: np.ndarray, cross: np.ndarray, parts: Parts, size: int, rng: np.random.Generator
) -> dict[str, tuple[float, tuple[float, float]]]:
    """Share of each level in the trace, with its interval over the probes of the parts that are not known exactly."""
    within, own = (trace(row_by_row(each), size, rng, probes=20, sketch=5) for each in (parts.within, parts.own))
    of = {"class": float((classes**2).sum()), "cross-class": float((cross**2).sum())}
    of |= {"within": within.value, "own": own.value}
    total = sum(of.values())
    error = float(np.hypot(within.standard_error, own.standard_error))
    low, high = Estimated(total, error, within.probes, 0).interval()
    known = {name: (of[name] / total, (of[name] / high, of[name] / low)) for name in ("class", "cross-class")}
    near = within.interval()
    return known | {"within": (within.value / total, (near[0] / total, near[1] / total))}


def _parts(
    eigenvalues: dict[str, float], residual: float, shares: dict[str, tuple[float, tuple[float, float]]]
) -> list[Quantity]:
    means = {
        "class": "the mean gradients of the classes",
        "cross-class": "the mean gradients of pairs, class and wrong label, around those of the classes",
        "within": "single examples around the means of their pair",
    }
    found = []
    for name, value in eigenvalues.items():
        near = (value - residual, value + residual) if name == "within" else None
        found.append(Quantity(f"top eigenvalue, {name} part", value, near, "residual" if near else "rounding",
                              theory=SOURCE, means=f"the largest curvature that comes from {means[name]}"))  # fmt: skip
    for name in eigenvalues:
        share, near = shares[name]
        found.append(Quantity(f"trace share, {name} part", share, near, "probes",
                              means=f"this share of the Gauss–Newton curvature comes from {means[name]}"))  # fmt: skip
    return found


def _explained(context: Context, subject: Subject, classes: np.ndarray) -> Quantity:
    """How many outliers of the Hessian lie in the span of the class means."""
    count = context.classes
    most = min(2 * count, subject.size - 1)
    start = context.rng.standard_normal(subject.size).astype(subject.dtype)
    tolerance = 1e-6 if subject.dtype == np.float64 else 1e-3
    top = top_eigenpairs(subject.products, start, most + 1, tolerance=tolerance)
    outliers = outlier_count(top.values, most)
    inside = ((top.vectors[:outliers] @ orthonormal(classes).T) ** 2).sum(1)
    explained = int((inside > 0.5).sum())
    return Quantity(
        "outliers explained by class means", explained, theory="C − 1 outliers, all of them", compared=float(count - 1),
        assumes=(("eigenvectors converged", bool(top.converged.all())),),
        means=f"{outliers} eigenvalues of the Hessian lie above the widest gap; {explained} of their directions are "
        "mostly combinations of the classes' mean gradients",
        parts={f"share inside, outlier {i + 1}": float(each) for i, each in enumerate(inside)},
    )  # fmt: skip
