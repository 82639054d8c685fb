"""Axes of a claim's arrays: which of them count repetitions, and the coordinates of the others."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steepest.core.arrays import Quantities, Quantity
from steepest.engine.forms import InLaws

REPETITIONS = ("seed", "start", "draw", "sample", "samples", "trial", "repetition", "repeat")
"""What claims in the older form call an axis that repeats; the newer form gives such axes no coordinates."""
UNLESS_PREDICTED = ("network", "net", "walker", "chain", "group")
"""Names of axes that repeat too, where theory does not predict one number for each."""
FEW = 6
"""So many repetitions fall into one order by chance once in 360 times."""
VARIES = 0.1
"""Relative difference along an axis beyond which an array is said to depend on it."""


@dataclass(frozen=True)
class Coordinates:
    """Where the points of an axis are.

    Attributes:
        values: one for each point.
        source: ``"claim"`` where the claim says it, else the field they are guessed from, or ``"place"`` for 1, 2, 3 …
    """

    values: Sequence[Any]
    source: str


def repetitions(claim: Any, predicted: Quantities, observed: Quantities) -> frozenset[str]:
    """Return the axes that count repetitions: those without coordinates, or so called in the older form."""
    laws = [predicted.quantity(name) for name in predicted]
    theory = {axis for law in laws for axis in law.dims}
    axes = theory | {axis for name in observed for axis in observed.quantity(name).dims}
    if isinstance(claim, InLaws):
        return frozenset(axes - set(claim.axes()))
    designs = {axis for axis in theory if any(_is_even(law, axis) for law in laws)}
    return frozenset(axis for axis in axes - designs if _is_called_so(axis, axis in theory))


def _is_even(law: Quantity, axis: str) -> bool:
    """Whether a law rises or falls all along an axis, as it does not by chance: then the axis designs something."""
    if axis not in law.dims or law.values.shape[law.dims.index(axis)] < FEW:
        return False
    steps = np.diff(averaged_to(law, (axis,)))
    return bool((steps > 0).all() or (steps < 0).all())


def _is_called_so(axis: str, predicted: bool) -> bool:
    """Whether the last word of an axis' name is that of a repetition."""
    word = re.sub(r"_\d+$", "", axis).rpartition("_")[2]
    return word in REPETITIONS or (word in UNLESS_PREDICTED and not predicted)


def coordinates_along(claim: Any, axis: str, size: int) -> Coordinates:
    """Return the coordinates of an axis; of the older form they are guessed from the claim's fields.

    The guess is the field of the axis' own name, one or many, else the only tuple of as many numbers as the axis has
    points, else the place of each point.
    """
    if isinstance(claim, InLaws) and axis in claim.axes():
        return Coordinates(claim.axes()[axis], "claim")
    lists = {
        name: values
        for name, values in vars(claim).items()
        if isinstance(values, tuple) and len(values) == size and _numbers(values)
    }
    named = [name for name in lists if _same_word(name, axis)]
    chosen = named or (list(lists) if len(lists) == 1 else [])
    if chosen:
        return Coordinates(lists[chosen[0]], chosen[0])
    return Coordinates(range(1, size + 1), "place")


def mean_of(quantity: Quantity, repeated: Collection[str]) -> NDArray:
    """Return an array's mean over repetitions, whose axes stay, with one entry each."""
    values = np.asarray(quantity.values, float)
    places = tuple(place for place, axis in enumerate(quantity.dims) if axis in repeated)
    return values.mean(places, keepdims=True) if places else values


def varies(quantity: Quantity, axis: str, repeated: Collection[str]) -> bool:
    """Whether the mean of an array over its repetitions differs along an axis by more than a tenth of its size."""
    mean = mean_of(quantity, [name for name in repeated if name != axis])
    place = quantity.dims.index(axis)
    spread = mean.max(place) - mean.min(place)
    return bool((spread > VARIES * np.abs(mean).max(place)).any())


def averaged_to(quantity: Quantity, axes: Sequence[str]) -> NDArray:
    """Return an array averaged over all axes but some, which come in the order given; it must have them."""
    spare = tuple(place for place, name in enumerate(quantity.dims) if name not in axes)
    left = [name for name in quantity.dims if name in axes]
    mean = np.asarray(quantity.values, float).mean(spare)
    return mean.transpose([left.index(name) for name in axes])


def _numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _same_word(field: str, axis: str) -> bool:
    """Whether a field is called like an axis, but for the plural."""
    endings = ("", "s", "es")
    return field in [axis + ending for ending in endings] or field == re.sub("y$", "ies", axis)
