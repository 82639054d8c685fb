"""Axes of a claim's arrays: which of them count repetitions, and the coordinates of the others."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steepest.core.arrays import Quantities, Quantity

VARIES = 0.1
"""Relative difference along an axis beyond which an array is said to depend on it."""


def repetitions(claim: Any, predicted: Quantities, observed: Quantities) -> frozenset[str]:
    """Return the axes that count repetitions: those to which the claim gives no coordinates."""
    arrays = [predicted.quantity(name) for name in predicted]
    arrays += [observed.quantity(name) for name in observed]
    axes = {axis for array in arrays for axis in array.dims}
    return frozenset(axes - set(claim.axes()))


def coordinates_along(claim: Any, axis: str, size: int) -> Sequence[Any]:
    """Return the coordinates of an axis; the place of each point, from one on, where it counts repetitions."""
    return claim.axes().get(axis, range(1, size + 1))


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
