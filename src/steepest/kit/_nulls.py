"""A claim's laws made wrong along each of their axes by the program itself: flat, reversed, steeper, shallower."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steepest.core.arrays import Prediction
from steepest.core.checks import Check
from steepest.core.laws import LawCheck, Null

VARIES = 0.1
"""Relative difference along an axis beyond which a law is said to depend on it."""


def mutants(claim: Any, predicted: Prediction, own: Sequence[Check]) -> Iterator[tuple[Null, Any]]:
    """Yield every null of every law along every axis that designs the experiment, with the prediction that it makes.

    Args:
        claim: with its axes, and with what it says its data cannot tell.
        predicted: its own prediction.
        own: its own checks, which say what law they judge along which axes.
    """
    axes = claim.axes()
    for name in predicted:
        quantity = predicted.quantity(name)
        for axis, dim in enumerate(quantity.dims):
            if dim not in axes or quantity.values.shape[axis] < 2:
                continue
            stated = any(_judges(check, name, dim) and check.id in claim.headline for check in own)
            for kind, values in wrong_along(quantity.values, axis, axes[dim]).items():
                accepted = claim.not_told.get(f"{name}.{dim}.{kind}", "")
                null = Null(name, dim, kind, (), stated, accepted)
                yield null, predicted.replace(**{name: (quantity.dims, values, quantity.unit)})


def wrong_along(values: NDArray, axis: int, coordinates: Sequence[Any]) -> Mapping[str, NDArray]:
    """Return wrong versions of a law along one axis, by kind; only those that differ from it.

    Args:
        values: the law.
        axis: its place among the axes of the law.
        coordinates: along the axis; tilted laws need positive numbers.

    >>> sorted(wrong_along(np.array([1.0, 2.0, 4.0]), 0, [10, 20, 40]))
    ['flat', 'reversed', 'shallower', 'steeper']
    >>> sorted(wrong_along(np.array([1.0, 1.0]), 0, ["relu", "tanh"]))
    []
    """
    numbers = np.asarray(values, float)
    wrong = {}
    if _varies(numbers, axis):
        wrong["flat"] = np.broadcast_to(numbers.mean(axis, keepdims=True), numbers.shape).copy()
        wrong["reversed"] = np.flip(numbers, axis).copy()
    tilt = _tilt(coordinates)
    if tilt is not None:
        shape = [1] * numbers.ndim
        shape[axis] = len(tilt)
        wrong["steeper"] = numbers * tilt.reshape(shape)
        wrong["shallower"] = numbers / tilt.reshape(shape)
    return {
        kind: other for kind, other in wrong.items() if not np.allclose(other, numbers, rtol=1e-3)
    }


def _judges(check: Check, law: str, axis: str) -> bool:
    """Whether a check judges a law along an axis."""
    return isinstance(check, LawCheck) and check.law == law and axis in check.axes


def _varies(values: NDArray, axis: int) -> bool:
    """Whether a law differs along an axis by more than a tenth of its size."""
    spread = values.max(axis) - values.min(axis)
    size = np.abs(values).max(axis)
    return bool((spread > VARIES * size).any())


def _tilt(coordinates: Sequence[Any]) -> NDArray | None:
    """Return x^½ around the geometric middle of the coordinates; None where they are no positive numbers."""
    x = np.asarray(coordinates)
    if x.dtype.kind not in "iuf" or not (x > 0).all():
        return None
    x = x.astype(float)
    return np.sqrt(x / np.exp(np.log(x).mean()))
