"""Measures of complexity of a chain of dense layers: path norms, spectral complexity, margins that it normalizes."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from steepest.errors import UserError
from steepest.margins import normalized_margins, path_norm, spectral_complexity
from steepest.measuring._chain import activation_of, chain, slopes_of, steepest_slope
from steepest.measuring._context import Context
from steepest.measuring._examples import first_examples, margins_of, median
from steepest.measuring._report import Quantity
from steepest.subject import Dense


def complexity(context: Context) -> list[Quantity]:
    """What needs the layers in their order; nothing for a model that is no chain, or whose inputs cannot be read.

    Source: Neyshabur, Tomioka and Srebro 2015 (paths); Bartlett, Foster and Telgarsky 2017 (spectral complexity).
    """
    try:
        layers = chain(context.subject)
    except UserError:
        return []
    return [] if layers is None else [*_paths(layers), *_spectral(context, layers)]


def _paths(layers: Sequence[Dense]) -> list[Quantity]:
    weights = [jnp.asarray(each.matrix, float) for each in layers]
    assumes = (("activations are positively homogeneous", all(slopes_of(each) for each in layers)),)
    return [
        Quantity(
            name, float(path_norm(weights, order)), assumes=assumes, theory="the same when neurons are rescaled",
            means=f"over all paths from an input to an output, the ℓ{order} norm of products of weights; no biases")
        for order, name in ((1, "ℓ1 path norm"), (2, "ℓ2 path norm"))
    ]  # fmt: skip


def _spectral(context: Context, layers: Sequence[Dense]) -> list[Quantity]:
    """Of a classifier, measured from the checkpoint, or from zero without one."""
    try:
        if context.classes < 2:
            return []
        x, labels = first_examples(context)
    except UserError:
        return []
    start, weights = _reference(context, layers), [jnp.asarray(each.matrix, float) for each in layers]
    value = float(spectral_complexity(weights, start))
    of, known = ("zero", True) if context.since is None else ("the checkpoint", None)
    assumes = (
        ("no biases", all(each.bias is None or not np.any(each.bias) for each in layers)),
        ("activations are 1-Lipschitz and vanish at 0", all(map(_contracts, layers))),
        ("the reference was chosen before the data were seen", known),
    )
    said = {"theory": "Bartlett, Foster and Telgarsky 2017", "assumes": assumes}
    means = f"product of spectral norms times how far the layers are from {of}, in (2,1) norms"
    found = [Quantity("spectral complexity", value, means=means, **said)]
    if not value:  # at the reference itself
        return found
    margins = jnp.asarray(margins_of(context.outputs[0], labels))
    each = np.asarray(normalized_margins(margins, value, jnp.asarray(x, float).reshape(len(x), -1)))
    means = f"the bound on the error is of order 1/γ: below 1 it says nothing; layers are measured from {of}"
    return [*found, median("median normalized margin", each, means=means, **said)]


def _reference(context: Context, layers: Sequence[Dense]) -> list:
    """Matrices of the checkpoint, or zeros."""
    before = layers if context.since is None else context.subject.at(context.since).dense()
    factor = 0.0 if context.since is None else 1.0
    return [factor * jnp.asarray(each.matrix, float) for each in before or layers]


def _contracts(layer: Dense) -> bool:
    slope = steepest_slope(layer)
    return slope is not None and slope <= 1 and float(activation_of(layer)(np.zeros(1))[0]) == 0
