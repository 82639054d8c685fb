"""Second moments that Adam and rules like it divide by."""

import numpy as np
from numpy.typing import NDArray

from steepest.measurement.adapters import Subject

RELIABLE = 1e-4  # of the typical √v̂: the moments of an array below it are rounding, or those of another loss


def reliable(scale: NDArray, subject: Subject) -> tuple[NDArray, tuple[str, ...]]:
    """Leave out arrays of weights that had next to no gradient in training: an infinite scale, and their names.

    Biases before batch normalization have no gradient in training mode but one in evaluation mode, where curvature is
    measured: their moments are not those of the loss that is measured, and would give a curvature without bound.
    """
    sizes = {
        weight.name: float(np.sqrt(np.mean(np.square(scale[weight.place], dtype=float))))
        for weight in subject.weights
    }
    moving = scale[np.isfinite(scale)]
    typical = float(np.sqrt(np.mean(np.square(moving, dtype=float))))
    left_out = tuple(name for name, size in sizes.items() if size < RELIABLE * typical)
    kept = scale.copy()
    for weight in subject.weights:
        if weight.name in left_out:
            kept[weight.place] = np.inf
    return kept, left_out
