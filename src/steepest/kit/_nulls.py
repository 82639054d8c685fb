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


def mutants(claim: Any, predicted: Prediction) -> Iterator[tuple[Null, Prediction]]:
    """Yield every null of every law along every axis that designs the experiment, with the prediction that it makes.

    Args:
        claim: with its axes, and with what it says its data cannot tell.
        predicted: its own prediction.
    """
    axes = claim.axes()
    for name in predicted:
        quantity = predicted.quantity(name)
        for axis, dim in enumerate(quantity.dims):
            if dim not in axes or quantity.values.shape[axis] < 2:
                continue
            for kind, values in wrong_along(quantity.values, axis, axes[dim]).items():
                accepted = claim.not_told.get(f"{name}.{dim}.{kind}", "")
                null = Null(name, dim, kind, (), accepted=accepted)
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


def moved(check: Check, with_wrong_law: Check | None) -> bool:
    """Return whether a check came to other numbers with a wrong law, or to none, as its judge did not yield it."""
    if with_wrong_law is None:
        return True
    numbers = _numbers(check)
    others = _numbers(with_wrong_law)
    if numbers.shape != others.shape:
        return True
    return not np.allclose(numbers, others, rtol=1e-9, atol=0, equal_nan=True)


def _numbers(check: Check) -> NDArray:
    """Return all that a check says in numbers; those of every point where it was judged along axes."""
    of_worst = (
        check.predicted,
        check.measured,
        check.interval.low,
        check.interval.high,
        check.margin.low,
        check.margin.high,
    )
    points = check.points if isinstance(check, LawCheck) else ()
    at = [(p.predicted, p.measured, p.low, p.high, p.least, p.most) for p in points]
    return np.array([of_worst, *at], float)


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
