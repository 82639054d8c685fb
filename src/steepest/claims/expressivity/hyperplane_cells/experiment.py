"""Cells of an arrangement counted one by one, and of its neighbours that are not in general position."""

from typing import NamedTuple

import numpy as np

from steepest.geometry import bounded_cells, cells
from steepest.nn.types import Values

TOGETHER = 3  # parallel hyperplanes in each direction, where some are


class Tally(NamedTuple):
    """What was counted on one arrangement.

    Attributes:
        cells: all cells.
        bounded: those that are bounded.
        pieces: different gradients of the network whose neurons switch at the hyperplanes.
        without_one: the same, with one output weight zero.
        central: cells where all hyperplanes go through the origin.
        parallel: cells where hyperplanes have the same normal in threes.
    """

    cells: int
    bounded: int
    pieces: int
    without_one: int
    central: int
    parallel: int


def count_cells(normals: Values, offsets: Values, outputs: Values) -> Tally:
    """Count the cells of one arrangement, and of its neighbours that are not in general position."""
    arrangement = cells(normals, offsets)
    fewer = np.where(np.arange(len(outputs)) == 0, 0.0, outputs)
    alike = np.arange(len(normals)) // TOGETHER
    return Tally(
        count_distinct(arrangement.signs),
        int(bounded_cells(normals, arrangement.signs).sum()),
        count_gradients(arrangement.signs, outputs[:, None] * normals),
        count_gradients(arrangement.signs, fewer[:, None] * normals),
        count_distinct(cells(normals, 0 * offsets).signs),
        count_distinct(cells(normals[alike], offsets).signs),
    )


def finite(normals: Values, offsets: Values) -> bool:
    """Say whether descent has not diverged: the lengths of all rows are finite."""
    rows = np.column_stack([normals, offsets])
    return bool(np.isfinite(np.linalg.norm(rows, axis=1)).all())


def count_distinct(signs: Values) -> int:
    """Count the different rows of signs, ``(cells, n)``."""
    return len(np.unique(signs, axis=0))


def count_gradients(signs: Values, slopes: Values) -> int:
    """Count the different sums of slopes over active neurons, ``(cells, n)`` and ``(n, d)``, to nine digits."""
    gradients = signs @ slopes / max(np.abs(slopes).max(), 1e-300)
    # adding zero makes −0.0 and 0.0 alike
    return len(np.unique(gradients.round(9) + 0.0, axis=0))
