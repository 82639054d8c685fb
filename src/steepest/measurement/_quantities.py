"""The quantities by their ids."""

from collections.abc import Callable, Sequence
from importlib import import_module

import numpy as np

from steepest.core.errors import UserError, nearest
from steepest.core.given import listed
from steepest.measurement._adapter_rank import measure_adapter_rank
from steepest.measurement._batch_noise import measure_batch_noise
from steepest.measurement._context import Context
from steepest.measurement._curvature import (
    measure_blocks,
    measure_density,
    measure_lowest_curvature,
    measure_sharpness,
    measure_spectrum,
)
from steepest.measurement._examples import margins_of, median_interval
from steepest.measurement._health import LEARNED, constant_guess
from steepest.measurement._kernel import measure_drift, measure_tangent_kernel
from steepest.measurement._last_layer import collapse_of, last_layer
from steepest.measurement._report import ALIASES, Reading
from steepest.measurement._tried import measure_descents
from steepest.measurement._updates import measure_updates


def measure_risk(context: Context) -> list[Reading]:
    """Measure the mean loss and the size of its gradient."""
    gradient = float(np.linalg.norm(context.subject.gradient()))
    risk = context.subject.risk()
    guess = constant_guess(context)
    interpretation = "the mean loss over these examples"
    if guess is not None and not risk < (1 - LEARNED) * guess:
        interpretation += ": no better than a constant guess, so that nothing has been learned"
    return [
        Reading(
            "risk",
            risk,
            theory="" if guess is None else f"{guess:.4g} for a constant guess",
            compared=guess,
            interpretation=interpretation,
        ),
        Reading(
            "gradient norm",
            gradient,
            interpretation="how steep the mean loss is; zero at a stationary point",
        ),
        *_running_risk(context),
        *_held_out_risk(context),
    ]


def _running_risk(context: Context) -> list[Reading]:
    """Measure the mean loss as the network is used after training, where its layers normalize by the batch."""
    if not context.subject.normalizes:
        return []
    return [
        Reading(
            "risk with running statistics",
            context.subject.alone().risk(),
            interpretation="the mean loss over the same examples in evaluation mode, as the network is used",
        )
    ]


def _held_out_risk(context: Context) -> list[Reading]:
    if context.held_out is None:
        return []
    return [
        Reading(
            "risk on held-out examples",
            context.held_out.risk(),
            interpretation="the mean loss over examples that were not trained on, as you say",
        )
    ]


def _error_rate(margins_each: np.ndarray, name: str, what: str) -> Reading:
    """Count the margins that are not positive; the interval is Clopper and Pearson's."""
    from scipy import stats  # half a second, which other quantities do not need

    n = len(margins_each)
    wrong = int((margins_each <= 0).sum())
    low, high = stats.binomtest(wrong, n).proportion_ci(method="exact")
    return Reading(
        name,
        wrong / n,
        (float(low), float(high)),
        "examples",
        interpretation=f"{wrong} of the {n} examples {what}",
    )


def _held_out_errors(context: Context) -> list[Reading]:
    if context.held_out is None:
        return []
    outputs, targets = context.held_out.outputs()
    return [
        _error_rate(
            margins_of(outputs, targets),
            "error rate on held-out examples",
            "held out are wrong; the interval is for new examples like these",
        )
    ]


def _normalized_margin(context: Context) -> list[Reading]:
    """Measure the median margin over the spectral complexity; nothing for a model that is no chain."""
    if context.subject.dense() is None:
        return []
    return with_jax("_complexity", "normalized_margin")(context)


def measure_margins(context: Context) -> list[Reading]:
    """Measure the error rate, and margins ``f_y − max_{j≠y} f_j`` of a classifier: first those without a scale.

    Margins in logits grow with the weights, so that those of two networks do not compare. Divided by the size of the
    logits, the root mean square of ``f − mean_j f_j`` over examples and classes, they do not change with the scale of
    the last layer; divided by the spectral complexity (chains of dense layers), with that of any.
    """
    (outputs, targets) = context.outputs
    n = len(context.outputs[0])
    if context.classes < 2:
        raise UserError("margins need at least two classes")
    margins_each = margins_of(outputs, targets)
    size = float(np.sqrt(np.square(outputs - outputs.mean(1, keepdims=True), dtype=float).mean()))
    normalized = margins_each / size if size else np.full(n, np.nan)
    middle, ends = median_interval(margins_each)
    scaled, scaled_ends = median_interval(normalized)
    return [
        _error_rate(
            margins_each,
            "error rate",
            "given are wrong; the interval is for new examples only if these were held out of the training",
        ),
        *_held_out_errors(context),
        *_normalized_margin(context),
        Reading(
            "median margin over the size of the logits",
            scaled,
            scaled_ends if size else None,
            "examples",
            interpretation="the same however the last layer is scaled",
        ),
        Reading(
            "smallest margin",
            float(margins_each.min()),
            interpretation="positive when each of these examples is classified correctly",
        ),
        Reading(
            "median margin",
            middle,
            ends,
            "examples",
            interpretation="of f_y − max f_j in logits, which grow with the weights: compare it along one training",
        ),
    ]


def measure_collapse(context: Context) -> list[Reading]:
    """Measure NC1 to NC4 of the features before the last layer."""
    outputs, targets = context.outputs
    _ = context.classes  # which says what a classifier is
    collapsed = collapse_of(last_layer(context.subject, outputs), targets)
    assumes = (("error rate 0", bool((outputs.argmax(1) == targets).all())),)
    theory = "0 in the terminal phase (Papyan, Han and Donoho 2020)"
    say = lambda name, value, interpretation: Reading(
        name,
        float(value),
        theory=theory,
        compared=0.0,
        assumes=assumes,
        interpretation=interpretation,
    )
    return [
        say(
            "NC1, variability within classes",
            collapsed.variability,
            "features of a class are the same point at 0",
        ),
        say("NC2, deviation of angles", collapsed.angle_error, "class means form a simplex at 0"),
        say(
            "NC3, classifier against class means",
            collapsed.duality,
            "rows of the last layer are the class means at 0",
        ),
        say(
            "NC4, disagreement with nearest mean",
            collapsed.mismatch,
            "share that the nearest class mean decides otherwise",
        ),
    ]


def with_jax(module: str, name: str) -> Callable[[Context], list[Reading]]:
    """Return a measure that computes with JAX, in float64; its module is imported when it is first asked for.

    Args:
        module: beside this one.
        name: of the measure in it.
    """

    def measured(context: Context) -> list[Reading]:
        import jax

        with jax.enable_x64(True):
            return getattr(import_module(f"steepest.measurement.{module}"), name)(context)

    return measured


QUANTITIES: dict[str, Callable[[Context], list[Reading]]] = {
    "risk": measure_risk,
    "sharpness": measure_sharpness,
    "batch-noise": measure_batch_noise,
    "updates": measure_updates,
    "spectrum": measure_spectrum,
    "lowest-curvature": measure_lowest_curvature,
    "density": measure_density,
    "blocks": measure_blocks,
    "margins": measure_margins,
    "input-margins": with_jax("_inputs", "measure_input_margins"),
    "norms": with_jax("_weights", "measure_norms"),
    "signal-propagation": with_jax("_signal_propagation", "measure_signal_propagation"),
    "alignment": with_jax("_weights", "measure_alignment"),
    "collapse": measure_collapse,
    "class-covariances": with_jax("_classes", "measure_class_covariances"),
    "class-decomposition": with_jax("_class_decomposition", "measure_class_decomposition"),
    "regions": with_jax("_regions", "measure_regions"),
    "ntk": measure_tangent_kernel,
    "drift": measure_drift,
    "adapter-rank": measure_adapter_rank,
    "descents": measure_descents,
}
"""Each quantity by its id: what users ask for, and what a report answers to."""

# What is measured without being asked for: what findings rest on, in some seconds on a small model.
DEFAULT = ("risk", "sharpness", "batch-noise", "margins", "norms", "signal-propagation")


def chosen(what: Sequence[str]) -> tuple[str, ...]:
    """Return checked ids of quantities, the present ones in place of former ones.

    Raises:
        UserError: an unknown id.

    >>> chosen(["risk", "signals"])
    ('risk', 'signal-propagation')
    """
    ids = tuple(ALIASES.get(name, name) for name in listed("what", what))
    for name in ids:
        if name not in QUANTITIES:
            raise UserError(f"there is no quantity {name!r}; {nearest(name, QUANTITIES)}")
    return ids
