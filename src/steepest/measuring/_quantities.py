"""The quantities, by the name under which users ask for them."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from scipy import stats

from steepest.errors import UserError
from steepest.measures import collapse
from steepest.measuring._classes import class_covariances
from steepest.measuring._context import Context
from steepest.measuring._curvature import blocks, density, sharpness, spectrum
from steepest.measuring._examples import margins_of, median_interval
from steepest.measuring._inputs import input_margins
from steepest.measuring._kernel import drift, tangent_kernel
from steepest.measuring._levels import levels
from steepest.measuring._regions import regions
from steepest.measuring._report import Quantity
from steepest.measuring._signals import signals
from steepest.measuring._weights import alignment, norms


def risk(context: Context) -> list[Quantity]:
    """Mean loss and the size of its gradient."""
    gradient = float(np.linalg.norm(context.subject.gradient()))
    return [
        Quantity("risk", context.subject.risk(), means="the mean loss over these examples"),
        Quantity("gradient norm", gradient, means="how steep the mean loss is; zero at a stationary point"),
    ]


def margins(context: Context) -> list[Quantity]:
    """Margins ``f_y − max_{j≠y} f_j`` of a classifier."""
    (outputs, targets), n = context.outputs, len(context.outputs[0])
    if context.classes < 2:
        raise UserError("margins need at least two classes")
    each = margins_of(outputs, targets)
    wrong = int((each <= 0).sum())
    low, high = stats.binomtest(wrong, n).proportion_ci(method="exact")
    middle, ends = median_interval(each)
    return [
        Quantity("error rate", wrong / n, (float(low), float(high)), "examples", means=f"{wrong} of {n} are wrong"),
        Quantity("smallest margin", float(each.min()), means="positive when every example is classified correctly"),
        Quantity("median margin", middle, ends, "examples", means="of f_y − max f_j, in logits"),
    ]


def neural_collapse(context: Context) -> list[Quantity]:
    """NC1 to NC4 of the features before the last layer."""
    subject, (_, targets) = context.subject, context.outputs
    classes, names = context.classes, subject.classifier
    if names is None:
        raise UserError(f"neural collapse needs the last layer, and that of {subject.name} is not known")
    matrix, bias = subject.weight(names[0]), None if names[1] is None else jnp.asarray(subject.weight(names[1]))
    features = subject.features()
    if not np.array_equal(features, subject.features()):
        raise UserError("the data come in another order in every pass; give a loader that does not shuffle, or arrays")
    if features.ndim != 2 or matrix.shape != (classes, features.shape[1]):
        raise UserError(f"{names[0]} of shape {matrix.shape} does not read features of shape {features.shape}")
    found = collapse(jnp.asarray(features), jnp.asarray(targets), jnp.asarray(matrix), bias)
    assumes = (("error rate 0", bool((context.outputs[0].argmax(1) == targets).all())),)
    theory = "0 in the terminal phase (Papyan, Han and Donoho 2020)"
    say = lambda name, value, means: Quantity(
        name, float(value), theory=theory, compared=0.0, assumes=assumes, means=means
    )
    return [
        say("NC1, variability within classes", found.variability, "features of a class are the same point at 0"),
        say("NC2, deviation of angles", found.angle_error, "class means form a simplex at 0"),
        say("NC3, classifier against class means", found.duality, "rows of the last layer are the class means at 0"),
        say(
            "NC4, disagreement with nearest mean", found.mismatch, "share that the nearest class mean decides otherwise"
        ),
    ]


QUANTITIES: dict[str, Callable[[Context], list[Quantity]]] = {
    "risk": risk,
    "sharpness": sharpness,
    "spectrum": spectrum,
    "density": density,
    "blocks": blocks,
    "margins": margins,
    "input-margins": input_margins,
    "norms": norms,
    "signals": signals,
    "alignment": alignment,
    "collapse": neural_collapse,
    "class-covariances": class_covariances,
    "levels": levels,
    "regions": regions,
    "ntk": tangent_kernel,
    "drift": drift,
}

# What is measured without being asked for: it takes less than a minute on a small model.
DEFAULT = ("risk", "sharpness", "spectrum", "margins", "norms", "signals", "alignment", "collapse", "ntk")
