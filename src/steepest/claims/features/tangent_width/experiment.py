"""The fewest gates whose tangent features separate labels of the cube, or of its faces alone, by linear programs."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import block_diag

from steepest import kit
from steepest.nn.data import hypercube


class Setting(NamedTuple):
    """The gates of all draws, those of each dimension ``(seeds, most, d)``."""

    gates: list[kit.Values]


def separating_width(gates: NDArray, labels: NDArray) -> float:
    """Return the fewest first gates whose tangent features separate the cube's labels; infinite if all do not.

    Args:
        gates: w, shape ``(most, d)``.
        labels: ±1 of the points of ``nn.data.hypercube``.
    """
    signs = hypercube(gates.shape[1])
    active = signs @ gates.T >= 0
    # y x 1[⟨w_j, x⟩ ≥ 0], the tangent features with the labels' signs, (2^d, gates, d)
    features = (labels[:, None] * signs)[:, None] * active[:, :, None]
    separates = lambda width: _feasible(features[:, :width].reshape(len(signs), -1))
    return _fewest(separates, len(gates))


def width_for_each_face(gates: NDArray, labels: NDArray) -> float:
    """Return the fewest first gates whose tangent features separate the labels of each face alone.

    A face has four points, which differ in their first two bits. Each face has its own combination: of its tangent
    kernel, whose columns span what the features can do there, and whose entries are whole numbers. One of full rank
    separates any labels.
    """
    faces, order = _faces(gates.shape[1])
    of_faces = labels[order].reshape(-1, 4)
    active = (faces @ gates.T >= 0).astype(float)
    products = faces @ np.swapaxes(faces, 1, 2)

    def separates(width: int) -> bool:
        by_gates = active[:, :, :width]
        # ⟨x, x'⟩ times the number of gates open at both, (faces, 4, 4)
        kernels = products * (by_gates @ np.swapaxes(by_gates, 1, 2))
        # whole entries have a whole determinant: below a half it is zero
        singular = np.abs(np.linalg.det(kernels)) < 0.5
        if not singular.any():
            return True
        rows = of_faces[singular][:, :, None] * kernels[singular]
        return _feasible(block_diag(rows, format="csr"))

    return _fewest(separates, len(gates))


def share_switched(gates: NDArray) -> float:
    """Return the share of gates and faces where a gate is active at some of the four points, and not at all."""
    faces, _ = _faces(gates.shape[1])
    active = faces @ gates.T >= 0
    return float((active.any(1) & ~active.all(1)).mean())


def _faces(d: int) -> tuple[NDArray, NDArray]:
    """Return the points of each face, ``(faces, 4, d)``, and the order in which the cube has them."""
    signs = hypercube(d)
    order = np.lexsort(signs.T)  # by the last bits first, so that the first two bits run fastest
    return signs[order].reshape(-1, 4, d), order


def _feasible(rows: Any) -> bool:
    """Return whether some combination of the columns is at least one in every row."""
    program = linprog(
        np.zeros(rows.shape[1]), -rows, -np.ones(rows.shape[0]), bounds=(None, None), method="highs"
    )
    return program.status == 0


def _fewest(separates: Callable[[int], bool], most: int) -> float:
    """Return the smallest width that separates, by bisection, as more gates separate whatever fewer do."""
    low = 0
    high = 1
    while not separates(high):
        if high == most:
            return np.inf
        low = high
        high = min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        if separates(middle):
            high = middle
        else:
            low = middle
    return float(high)
