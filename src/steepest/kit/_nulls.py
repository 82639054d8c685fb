"""A claim's laws made wrong by the program itself.

Along each of their axes: flat, halved, steeper, shallower, and reversed where the axis has an order; along an axis of
names exchanged. As a whole: larger and smaller.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steepest.core.arrays import Prediction, Quantity
from steepest.core.checks import Check
from steepest.core.laws import LawCheck, Null

VARIES = 0.1
"""Relative difference along an axis beyond which a law is said to depend on it."""
LARGER = 1.5
"""Factor of a law that is too large, and that by which another is too small."""
ERRORS = (0.3, 0.2, 0.1)
"""Relative errors of a law's size, from large to small: with ``LARGER - 1`` the steps of a judge's resolution."""


def mutants(claim: Any, predicted: Prediction) -> Iterator[tuple[Null, Prediction]]:
    """Yield every null of every law, as a whole and along each axis, with the prediction that it makes.

    Args:
        claim: with its axes, and with what it says its data cannot tell.
        predicted: its own prediction.
    """
    axes = claim.axes()
    for name in predicted:
        quantity = predicted.quantity(name)
        wrong: dict[tuple[str, str], NDArray] = {}
        if np.any(quantity.values):
            wrong["", "larger"] = quantity.values * LARGER
            wrong["", "smaller"] = quantity.values / LARGER
        for axis, dim in enumerate(quantity.dims):
            if dim in axes and quantity.values.shape[axis] >= 2:
                for kind, values in wrong_along(quantity.values, axis, axes[dim]).items():
                    wrong[dim, kind] = values
        for (dim, kind), values in wrong.items():
            accepted = claim.not_told.get(".".join(filter(None, (name, dim, kind))), "")
            null = Null(name, dim, kind, (), accepted=accepted)
            yield null, _with(predicted, name, Quantity(values, quantity.dims, quantity.unit))


def resized(predicted: Prediction, name: str, error: float) -> Iterator[Prediction]:
    """Yield a prediction with one law too large by a relative error, and with it too small."""
    quantity = predicted.quantity(name)
    for values in (quantity.values * (1 + error), quantity.values / (1 + error)):
        yield _with(predicted, name, Quantity(values, quantity.dims, quantity.unit))


def wrong_along(values: NDArray, axis: int, coordinates: Sequence[Any]) -> Mapping[str, NDArray]:
    """Return wrong versions of a law along one axis, by kind; only those that differ from it.

    Args:
        values: the law.
        axis: its place among the axes of the law.
        coordinates: along the axis; tilted laws need positive numbers. Names have no order that could be reversed:
            each gets what belongs to the one before it, so that all of them change.

    >>> sorted(wrong_along(np.array([1.0, 2.0, 4.0]), 0, [10, 20, 40]))
    ['flat', 'halved', 'reversed', 'shallower', 'steeper']
    >>> sorted(wrong_along(np.array([1.0, 1.0]), 0, ["relu", "tanh"]))
    []
    >>> wrong_along(np.array([1.0, 2.0, 4.0]), 0, ["relu", "tanh", "gelu"])["exchanged"]
    array([4., 1., 2.])
    """
    numbers = np.asarray(values, float)
    wrong = {}
    if _varies(numbers, axis):
        wrong["flat"] = np.broadcast_to(numbers.mean(axis, keepdims=True), numbers.shape).copy()
        wrong["halved"] = _halved(numbers, axis)
        if np.asarray(coordinates).dtype.kind in "iuf":
            wrong["reversed"] = np.flip(numbers, axis).copy()
        else:
            wrong["exchanged"] = np.roll(numbers, 1, axis)
    tilt = _tilt(coordinates)
    if tilt is not None:
        shape = [1] * numbers.ndim
        shape[axis] = len(tilt)
        wrong["steeper"] = numbers * tilt.reshape(shape)
        wrong["shallower"] = numbers / tilt.reshape(shape)
    return {
        kind: other for kind, other in wrong.items() if not np.allclose(other, numbers, rtol=1e-3)
    }


def _with(predicted: Prediction, name: str, wrong: Quantity) -> Prediction:
    own = {other: predicted.quantity(other) for other in predicted}
    return Prediction(**{**own, name: wrong})


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


def _halved(values: NDArray, axis: int) -> NDArray:
    """Return a law that depends half as much on an axis: its square root about the middle, or half the difference.

    Of a law that is zero somewhere or changes its sign there is no root.
    """
    if np.all(values > 0) or np.all(values < 0):
        logs = np.log(np.abs(values))
        # √(value · geometric mean)
        return np.sign(values) * np.exp((logs + logs.mean(axis, keepdims=True)) / 2)
    return (values + values.mean(axis, keepdims=True)) / 2  # about the arithmetic mean


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
    return np.sqrt(x / np.exp(np.log(x).mean()))  # over the geometric mean: a law keeps its size
