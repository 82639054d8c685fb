"""Quantities of the weights alone."""

from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.measurement._chain import chain, lipschitz_bound
from steepest.measurement._complexity import measure_complexity
from steepest.measurement._context import Context
from steepest.measurement._health import is_linear
from steepest.measurement._report import Reading
from steepest.programs import row_group_norm


def matrices(context: Context) -> dict[str, NDArray]:
    """Return every array of weights with two or more axes as a matrix: its first axis, and all others."""
    values = context.subject.values()
    return {
        weight.name: values[weight.place].reshape(weight.shape[0], -1)
        for weight in context.subject.weights
        if len(weight.shape) >= 2
    }


def measure_norms(context: Context) -> list[Reading]:
    """Measure spectral norms, stable ranks and group norms of the layers, and the norm of all weights.

    Of a chain of dense layers also the path norms and, for a classifier, the margins that its spectral complexity
    normalizes; with a checkpoint the distance from it.
    """
    spectra = {
        name: np.linalg.svd(matrix, compute_uv=False) for name, matrix in matrices(context).items()
    }
    largest = {name: float(spectrum[0]) for name, spectrum in spectra.items()}
    ranks = {
        name: float((spectrum @ spectrum) / spectrum[0] ** 2) if spectrum[0] else np.nan
        for name, spectrum in spectra.items()
    }
    size = float(np.linalg.norm(context.subject.values()))
    named = max(ranks, key=lambda name: ranks[name]) if ranks else ""
    return [
        Reading("norm of the weights", size, interpretation="Euclidean, over all weights"),
        _product(context, largest),
        Reading(
            "largest stable rank",
            ranks.get(named, np.nan),
            parts=ranks,
            **_of_linear_networks(is_linear(context)),
            interpretation=f"how many directions the layer {named} really uses",
        ),
        *_group_norms(context),
        *_distance(context),
        *context.once(measure_complexity),
    ]


def _product(context: Context, largest: dict[str, float]) -> Reading:
    """Multiply the spectral norms; say that they bound the Lipschitz constant of a chain of dense layers alone."""
    try:
        layers = chain(context.subject)
    except UserError:
        layers = None
    bound = None if layers is None else lipschitz_bound(layers)
    interpretation = (
        "no bound of the whole network, which is not recognized as a chain of dense layers with known slopes: "
        "convolutions, attention, normalization and skips stretch inputs otherwise"
    )
    if bound is not None:
        interpretation = "with the activations' slopes, how much the layers could stretch an input"
    return Reading(
        "product of spectral norms",
        float(np.prod(list(largest.values()))),
        parts=largest,
        theory="" if bound is None else f"the Lipschitz constant is at most {bound:.4g}",
        compared=bound,
        interpretation=interpretation,
    )


def _of_linear_networks(linear: bool | None) -> dict[str, Any]:
    """Return what theory says of layers: in deep linear networks trained long they become of rank one and aligned."""
    theory = "1 for deep linear networks on separable data, trained long (Ji and Telgarsky 2019)"
    if linear is None:
        theory += "; whether this one is linear is not known"
    elif not linear:
        theory += "; this one is not linear, and no number is known for it"
    return {
        "theory": theory,
        "compared": 1.0 if linear else None,
        "assumes": (("the network is linear in its inputs", linear),),
    }


def _group_norms(context: Context) -> list[Reading]:
    lengths = {
        name: float(row_group_norm(jnp.asarray(matrix, float)))
        for name, matrix in matrices(context).items()
    }
    interpretation = (
        "of a matrix: the lengths of the neurons' incoming weights, summed over its neurons"
    )
    return (
        [
            Reading(
                "largest (2,1) norm",
                max(lengths.values()),
                interpretation=interpretation,
                parts=lengths,
            )
        ]
        if lengths
        else []
    )


def _distance(context: Context) -> list[Reading]:
    if context.since is None:
        return []
    moved = np.asarray(context.subject.values() - context.since, float)
    parts = {
        weight.name: float(np.linalg.norm(moved[weight.place]))
        for weight in context.subject.weights
    }
    interpretation = "Euclidean, over all weights: how far training has gone"
    return [
        Reading(
            "distance from the checkpoint",
            float(np.linalg.norm(moved)),
            interpretation=interpretation,
            parts=parts,
        )
    ]


def measure_alignment(context: Context) -> list[Reading]:
    """Measure |⟨v_{l+1}, u_l⟩| of the leading singular vectors of layers that could follow one another."""
    layers = list(matrices(context).items())
    cosines = {}
    for (below, lower), (above, upper) in pairwise(layers):
        if upper.shape[1] == lower.shape[0]:
            u = np.linalg.svd(lower)[0][:, 0]
            v = np.linalg.svd(upper, full_matrices=False)[2][0]
            cosines[f"{below} → {above}"] = float(abs(u @ v))
    if not cosines:
        return [
            Reading(
                "alignment of layers",
                np.nan,
                interpretation="no two neighbouring layers fit together",
            )
        ]
    said = _of_linear_networks(is_linear(context))
    said["assumes"] += (("neighbours in the list of weights follow one another", None),)
    return [
        Reading(
            "alignment of layers",
            min(cosines.values()),
            parts=cosines,
            **said,
            interpretation="the smallest cosine between what a layer writes most and what the next one reads most",
        ),
    ]
