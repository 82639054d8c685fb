"""The rank from which an adapter's first step grows like its rank, of the linear layers of a model."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.measurement._context import Context
from steepest.measurement._report import Reading
from steepest.measurement._sample import sample
from steepest.measurement.adapters import Subject

UNDER_ADAM = "adapter rank r* under Adam"
UNDER_DESCENT = "adapter rank r* under plain descent"
EXAMPLES = 512  # at most
MARKS = (("lora_A", "lora_B"), ("lora_a", "lora_b"), ("lora_down", "lora_up"))
"""What the two matrices of an adapter are usually called."""


class Place(NamedTuple):
    """Where an adapter stands, or could.

    Attributes:
        name: of the layer beside which it stands.
        reads: the layer that reads the same inputs.
        writes: the layer whose outputs are added to the same sum.
        rank: of the adapter; None where there is none.
    """

    name: str
    reads: str
    writes: str
    rank: int | None


class Factors(NamedTuple):
    """What keeps an adapter's first step the same at every rank, well below r* and well above it."""

    below: str
    above: str


BY_ADAM = Factors("α/√r", "α/r")
BY_DESCENT = Factors("α/r^¼", "α/√r")


class Ranks(NamedTuple):
    """r* of a layer: below it the change of its outputs by an adapter's first step grows like √r, above it like r."""

    descent: float
    adam: float


def ranks(x: NDArray, y: NDArray) -> Ranks:
    """Return r* of a layer from what it reads and from the loss's derivatives in what it writes.

    An adapter adds γBAx, with A random and B = 0. With Γ = XᵀX/n the mean square change of the outputs is
    ∝ r(r + 1) ‖YΓ‖² + r tr Γ tr YΓYᵀ by descent, ∝ r tr Γ + r(r − 1)(2/π) mean_i ‖(YΓ)_i‖²/(YΓYᵀ)_ii by Adam's sign,
    the mean over outputs with an error (the claim lora-rank). r* is the ratio of the two terms' constants.

    Args:
        x: what the layer reads, shape ``(m, n)``.
        y: derivatives of each example's loss in what it writes, shape ``(m, outputs)``.
    """
    x = np.asarray(x, float)
    gradient = np.asarray(y, float).T @ x  # (outputs, n)
    lengths = (gradient**2).sum(1)  # n (YΓYᵀ)_ii
    square = ((gradient @ x.T) ** 2).sum(1)  # n² ‖(YΓ)_i‖²
    live = lengths > 0
    if not live.any():
        return Ranks(np.nan, np.nan)
    total = (x**2).sum()  # n tr Γ
    by_sign = 2 / np.pi * (square[live] / lengths[live]).mean()
    return Ranks(float(total * lengths.sum() / square.sum()), float(total / by_sign))


def measure_adapter_rank(context: Context) -> list[Reading]:
    """Measure r* of the adapters of a model, or of all its linear layers where it has none.

    Raises:
        UserError: a model whose linear layers cannot be seen, or that has none.
    """
    subject = sample(context, EXAMPLES).subject
    read = subject.reads()
    errors = subject.errors()
    ranks_of = {}
    for place in adapters(subject) or _linear_layers(subject, read, errors):
        x = read[place.reads]
        y = errors[place.writes]
        of_layer = ranks(x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1]))
        if np.isfinite(of_layer).all():
            ranks_of[place] = of_layer
    if not ranks_of:
        raise UserError("an adapter stands beside a linear layer, and none is seen that learns")
    by_adam = {place: of_layer.adam for place, of_layer in ranks_of.items()}
    by_descent = {place: of_layer.descent for place, of_layer in ranks_of.items()}
    return [
        _reading(UNDER_ADAM, by_adam, BY_ADAM),
        _reading(UNDER_DESCENT, by_descent, BY_DESCENT),
    ]


def adapters(subject: Subject) -> list[Place]:
    """Find adapters by the usual names of their two matrices, and their ranks."""
    shapes = {weight.name.rpartition(".")[0]: weight.shape for weight in subject.weights}
    places = []
    for first, second in MARKS:
        for name, shape in shapes.items():
            second_matrix = name.replace(first, second)
            if first in name and second_matrix in shapes and len(shape) == 2:
                base = name.partition(f".{first}")[0]
                places.append(Place(base, name, second_matrix, shape[0]))
    return places


def _linear_layers(
    subject: Subject, read: dict[str, NDArray], errors: dict[str, NDArray]
) -> list[Place]:
    """Find layers with a matrix of the sizes of what they read and write."""
    matrices = {
        weight.name.rpartition(".")[0]: set(weight.shape)
        for weight in subject.weights
        if len(weight.shape) == 2
    }
    return [
        Place(name, name, name, None)
        for name in read
        if matrices.get(name) == {read[name].shape[-1], errors[name].shape[-1]}
    ]


def _reading(name: str, ranks_of: dict[Place, float], factors: Factors) -> Reading:
    """Return the largest r* with those of all layers, and which factor keeps the first step the same."""
    largest = max(ranks_of, key=lambda place: ranks_of[place])
    return Reading(
        name,
        ranks_of[largest],
        assumes=(("the first steps of an adapter whose second matrix starts at zero", None),),
        interpretation=f"largest in {largest.name}: with rank r a first step of the same size at every r needs a "
        f"factor of {factors.below} well below r*, and of {factors.above} well above it",
        parts={place.name: rank for place, rank in ranks_of.items()},
    )
