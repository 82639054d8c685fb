"""Limits of exact numbers as a size tends to zero, by the polynomial through all of them."""

from collections.abc import Sequence

import numpy as np

from steepest.claim import Values
from steepest.core.errors import UserError


def extrapolate(sizes: Values, values: Values, axis: int = 0) -> Values:
    """Return the value at size zero of the polynomial through values at all sizes.

    Args:
        sizes: different from each other, such as ε or 1/β, shape ``(n,)``.
        values: numbers at these, ``n`` of them along the axis.
        axis: of the sizes.

    >>> round(float(extrapolate([1.0, 2.0, 4.0], [8.0, 13.0, 29.0])), 9)  # 5 + 2h + h²
    5.0
    """
    sizes = np.asarray(sizes, float)
    weights = [
        np.prod(np.delete(sizes, i) / (np.delete(sizes, i) - h)) for i, h in enumerate(sizes)
    ]
    return np.tensordot(np.asarray(values, float), np.array(weights), (axis, 0))


def check_sizes(name: str, sizes: Sequence[float], least: int = 2) -> None:
    """Refuse sizes of which there are too few, or two are the same: nothing can be extrapolated from these."""
    if len(set(sizes)) < max(len(sizes), least):
        raise UserError(
            f"{name}: expected at least {least} different numbers, since a limit is extrapolated from them, got "
            f"{' '.join(f'{size:g}' for size in sizes)}"
        )


def check_groups(groups: int, **counts: int) -> None:
    """Refuse numbers of walkers that cannot be divided into groups of the same size."""
    for name, count in counts.items():
        if count % groups:
            field = name.replace("_", "-")
            raise UserError(
                f"{field}: expected a multiple of {groups}, the number of groups of walkers, got {count}"
            )
