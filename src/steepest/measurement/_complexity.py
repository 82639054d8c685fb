"""Measures of complexity of a chain of dense layers: path norms, spectral complexity, margins that it normalizes."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from steepest.core.compiling import compile_quickly
from steepest.core.errors import UserError
from steepest.measurement._chain import activation_of, chain, slopes_of, steepest_slope
from steepest.measurement._context import Context
from steepest.measurement._examples import first_examples, margins_of, median
from steepest.measurement._report import Reading
from steepest.measurement.adapters import Dense
from steepest.programs import normalized_margins, path_norm, spectral_complexity


def measure_complexity(context: Context) -> list[Reading]:
    """Measure what needs the layers in order; nothing for a model that is no chain or whose inputs cannot be read.

    Source: Neyshabur, Tomioka and Srebro 2015 (paths); Bartlett, Foster and Telgarsky 2017 (spectral complexity).
    """
    try:
        layers = chain(context.subject)
    except UserError:
        return []
    return [] if layers is None else [*_paths(layers), *_spectral(context, layers)]


def normalized_margin(context: Context) -> list[Reading]:
    """Return the median margin over the spectral complexity alone; nothing for a model that is no chain."""
    return [q for q in context.once(measure_complexity) if q.name == "median normalized margin"]


def _paths(layers: Sequence[Dense]) -> list[Reading]:
    weights = [jnp.asarray(layer.matrix, float) for layer in layers]
    assumes = (
        ("activations are positively homogeneous", all(slopes_of(layer) for layer in layers)),
    )
    of_order = compile_quickly(lambda w: {order: path_norm(w, order) for order in (1, 2)})(weights)
    return [
        Reading(
            name,
            float(of_order[order]),
            assumes=assumes,
            theory="the same when neurons are rescaled",
            interpretation=f"over all paths from an input to an output, the ℓ{order} norm of products of weights; "
            "no biases",
        )
        for order, name in ((1, "ℓ1 path norm"), (2, "ℓ2 path norm"))
    ]


def _spectral(context: Context, layers: Sequence[Dense]) -> list[Reading]:
    """Measure a classifier's spectral complexity, from the checkpoint, or from zero without one."""
    try:
        if context.classes < 2:
            return []
        x, labels = first_examples(context)
    except UserError:
        return []
    start = _reference(context, layers)
    weights = [jnp.asarray(layer.matrix, float) for layer in layers]
    value = float(compile_quickly(spectral_complexity)(weights, start))
    of, chosen_before = ("zero", True) if context.since is None else ("the checkpoint", None)
    assumes = (
        ("no biases", all(layer.bias is None or not np.any(layer.bias) for layer in layers)),
        ("activations are 1-Lipschitz and vanish at 0", all(map(_contracts, layers))),
        ("the reference was chosen before the data were seen", chosen_before),
    )
    said = {"theory": "Bartlett, Foster and Telgarsky 2017", "assumes": assumes}
    interpretation = (
        f"product of spectral norms times how far the layers are from {of}, in (2,1) norms"
    )
    lines = [Reading("spectral complexity", value, interpretation=interpretation, **said)]
    if not value:  # at the reference itself
        return lines
    margins = jnp.asarray(margins_of(context.outputs[0], labels))
    normalized = np.asarray(
        normalized_margins(margins, value, jnp.asarray(x, float).reshape(len(x), -1))
    )
    interpretation = f"the bound on the error is of order 1/γ: below 1 it says nothing; layers are measured from {of}"
    return [
        *lines,
        median("median normalized margin", normalized, interpretation=interpretation, **said),
    ]


def _reference(context: Context, layers: Sequence[Dense]) -> list:
    """Return the matrices of the checkpoint, or zeros."""
    before = layers if context.since is None else context.subject.at(context.since).dense()
    factor = 0.0 if context.since is None else 1.0
    return [factor * jnp.asarray(layer.matrix, float) for layer in before or layers]


def _contracts(layer: Dense) -> bool:
    slope = steepest_slope(layer)
    return slope is not None and slope <= 1 and float(activation_of(layer)(np.zeros(1))[0]) == 0
