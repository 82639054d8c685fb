"""Quantities of the weights alone."""

from itertools import pairwise

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from steepest.margins import row_group_norm
from steepest.measuring._complexity import complexity
from steepest.measuring._context import Context
from steepest.measuring._report import Quantity


def matrices(context: Context) -> dict[str, NDArray]:
    """Every array of weights with two or more axes as a matrix: its first axis, and all others."""
    values = context.subject.values()
    return {
        each.name: values[each.place].reshape(each.shape[0], -1)
        for each in context.subject.weights
        if len(each.shape) >= 2
    }


def norms(context: Context) -> list[Quantity]:
    """Spectral norms, stable ranks and group norms of the layers, and the norm of all weights.

    Of a chain of dense layers also the path norms and, for a classifier, the margins that its spectral complexity
    normalizes; with a checkpoint the distance from it.
    """
    found = {name: np.linalg.svd(each, compute_uv=False) for name, each in matrices(context).items()}
    largest = {name: float(each[0]) for name, each in found.items()}
    ranks = {name: float((each @ each) / each[0] ** 2) if each[0] else np.nan for name, each in found.items()}
    size = float(np.linalg.norm(context.subject.values()))
    named = max(ranks, key=lambda name: ranks[name]) if ranks else ""
    return [
        Quantity("norm of the weights", size, means="Euclidean, over all weights"),
        Quantity(
            "product of spectral norms", float(np.prod(list(largest.values()))), parts=largest,
            assumes=(("layers are applied one after the other, as these matrices", None),),
            theory="bounds the Lipschitz constant when activations are 1-Lipschitz",
            means="how much the layers could stretch an input together; a convolution counts as its kernel's matrix"),
        Quantity(
            "largest stable rank", ranks.get(named, np.nan), parts=ranks, theory="1 when layers have rank one",
            compared=1.0, means=f"how many directions the layer {named} really uses"),
        *_group_norms(context),
        *_distance(context),
        *complexity(context),
    ]  # fmt: skip


def _group_norms(context: Context) -> list[Quantity]:
    found = {name: float(row_group_norm(jnp.asarray(each, float))) for name, each in matrices(context).items()}
    means = "of a matrix: the lengths of the neurons' incoming weights, summed over its neurons"
    return [Quantity("largest (2,1) norm", max(found.values()), means=means, parts=found)] if found else []


def _distance(context: Context) -> list[Quantity]:
    if context.since is None:
        return []
    moved = np.asarray(context.subject.values() - context.since, float)
    parts = {each.name: float(np.linalg.norm(moved[each.place])) for each in context.subject.weights}
    means = "Euclidean, over all weights: how far training has gone"
    return [Quantity("distance from the checkpoint", float(np.linalg.norm(moved)), means=means, parts=parts)]


def alignment(context: Context) -> list[Quantity]:
    """|⟨v_{l+1}, u_l⟩| of the leading singular vectors of layers that could follow one another."""
    layers, found = list(matrices(context).items()), {}
    for (below, lower), (above, upper) in pairwise(layers):
        if upper.shape[1] == lower.shape[0]:
            u, v = np.linalg.svd(lower)[0][:, 0], np.linalg.svd(upper, full_matrices=False)[2][0]
            found[f"{below} → {above}"] = float(abs(u @ v))
    if not found:
        return [Quantity("alignment of layers", np.nan, means="no two neighbouring layers fit together")]
    return [
        Quantity(
            "alignment of layers", min(found.values()), parts=found, compared=1.0,
            theory="1 for deep linear networks on separable data (Ji and Telgarsky 2019)",
            assumes=(("linear activations", None), ("neighbours in the list of weights follow one another", None)),
            means="the smallest cosine between what a layer writes most and what the next one reads most"),
    ]  # fmt: skip
