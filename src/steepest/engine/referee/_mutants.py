"""Wrong arrays: laws made wrong along an axis or in size, and worlds in which no law holds."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steepest.kit import wrong_along

SIZES: Mapping[str, float] = {"x 0.9": 0.9, "x 1.1": 1.1}
"""Factors by which every predicted array is made too small and too large."""


def wrong_law(
    values: NDArray, kind: str, place: int = 0, coordinates: Sequence[Any] = ()
) -> NDArray:
    """Return a predicted array made wrong in size, or along one of its axes.

    Args:
        values: the array.
        kind: one of :data:`SIZES`, or of :func:`steepest.kit.wrong_along`.
        place: the axis, counted from 0.
        coordinates: along that axis.

    Raises:
        KeyError: a kind that does not change this array.

    >>> wrong_law(np.array([1.0, 3.0]), "reversed", 0, [10, 20])
    array([3., 1.])
    """
    if kind in SIZES:
        return np.asarray(values, float) * SIZES[kind]
    return wrong_along(values, place, coordinates)[kind]


def noise(
    values: NDArray, rng: np.random.Generator, scale: float, least: float, *, signed: bool
) -> NDArray:
    """Return independent numbers in the place of an observed array, entry by entry.

    Coins for truth values, whole numbers between the ends, else normal numbers. What is the same everywhere tells no
    size of its noise: whole numbers that are all equal come with the next one, and zeros are replaced by noise of size
    one, where ``least`` is zero too.

    Args:
        values: what was observed.
        rng: draws them.
        scale: their size, in units of what was observed; of numbers that are not whole.
        least: what is smaller than this is replaced by noise of this size.
        signed: whether the numbers may be negative.
    """
    if values.dtype.kind == "b":
        return rng.random(values.shape) < 0.5
    numbers = np.asarray(values, float)
    finite = numbers[np.isfinite(numbers)]
    if not finite.size:
        return numbers
    if values.dtype.kind in "iu":
        highest = values.max() + int(values.min() == values.max())
        return rng.integers(values.min(), highest + 1, values.shape)
    size = max(float(np.sqrt(np.mean(finite**2))), least) or 1.0
    sample = scale * size * rng.standard_normal(values.shape)
    return sample if signed else np.abs(sample)


def reordered(values: NDArray, kind: str, place: int, rng: np.random.Generator) -> NDArray:
    """Return an observed array ``"shuffled"``, ``"reversed"`` or ``"constant"`` (its mean) along an axis.

    >>> reordered(np.array([1.0, 3.0]), "constant", 0, np.random.default_rng(0))
    array([2., 2.])
    """
    if kind == "reversed":
        return np.flip(values, place)
    if kind == "shuffled":
        return np.take(values, _derangement(values.shape[place], rng), place)
    numbers = np.asarray(values, float)
    return np.broadcast_to(numbers.mean(place, keepdims=True), values.shape).copy()


def _derangement(size: int, rng: np.random.Generator) -> NDArray:
    """An order in which something has moved, where there are two things."""
    order = rng.permutation(size)
    return np.roll(order, 1) if (order == np.arange(size)).all() else order
