"""Rows of different lengths as one array."""

from collections.abc import Sequence

import numpy as np


def padded(rows: Sequence[np.ndarray], fill: float = np.nan) -> np.ndarray:
    """Return rows of different lengths as one array, with ``fill`` behind the shorter ones.

    >>> padded([np.array([1.0, 2.0]), np.array([3.0])], fill=0.0).tolist()
    [[1.0, 2.0], [3.0, 0.0]]
    """
    table = np.full((len(rows), max(len(row) for row in rows)), fill)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return table
