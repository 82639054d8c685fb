"""What trainings with a fixed kernel are given, checked: kernels, times, steps."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.kernels._arguments import as_floats, as_number

Vector = NDArray[np.float64]


def as_kernel(ntk: Any) -> tuple[Vector, int | None, float]:
    """Return Θ as a symmetric matrix in float64, k where it couples outputs, and the precision of its entries.

    Raises:
        UserError: not finite, square and symmetric.
    """
    ntk = as_floats("a kernel", ntk)
    precision = float(np.finfo(ntk.dtype).eps)
    ntk = ntk.astype(float)
    coupled = None
    if ntk.ndim == 4 and ntk.shape[:2] == ntk.shape[2:]:
        coupled = ntk.shape[1]
        ntk = ntk.reshape(ntk.shape[0] * coupled, -1) if ntk.size else ntk
    if ntk.ndim != 2 or ntk.shape[0] != ntk.shape[1] or not ntk.size or not np.isfinite(ntk).all():
        raise UserError(
            f"dynamics need a finite square kernel matrix over the training points, or (n, k, n, k) of k outputs, got "
            f"{shown(ntk)}"
        )
    if not np.allclose(ntk, ntk.T, rtol=1e-5, atol=1e-6 * np.abs(ntk).max()):
        raise UserError(
            "dynamics need a symmetric kernel matrix over the training points; pass the cross kernel to test()"
        )
    return ntk, coupled, precision


def as_cross(cross: Any, n: int, coupled: int | None) -> Vector:
    """Return Θ between other points and n training points as a matrix in float64.

    Raises:
        UserError: of another shape, or not finite.
    """
    cross = as_floats("the cross kernel", cross).astype(float)
    if coupled:
        if cross.shape[1:] != (coupled, n, coupled):
            raise UserError(
                f"the cross kernel of coupled outputs has shape (m, {coupled}, {n}, {coupled}), got {shown(cross)}"
            )
        cross = cross.reshape(-1, n * coupled)
    if cross.ndim != 2 or cross.shape[1] != n * (coupled or 1) or not np.isfinite(cross).all():
        raise UserError(
            f"the cross kernel has a row for each other point and a column for each of the {n} training points, got "
            f"{shown(cross)}; transpose it if it is the other way round"
        )
    return cross


def as_times(times: Any) -> Vector:
    """Return times of a flow, each at least zero and none NaN, shape ``(T,)``."""
    times = np.atleast_1d(as_floats("times", times).astype(float))
    if times.ndim != 1 or not times.size:
        raise UserError(f"the flow needs a list of times, got shape {times.shape}")
    if not (times >= 0).all():
        raise UserError(
            f"the flow needs times of at least zero, got {times.min()}; it starts at time 0"
        )
    return times


def as_counts(steps: Any) -> NDArray:
    """Return whole numbers of steps, each at least zero, shape ``(T,)``."""
    counts = np.atleast_1d(as_floats("steps", steps).astype(float))
    whole = np.isfinite(counts).all() and (counts >= 0).all() and (counts == np.round(counts)).all()
    if counts.ndim != 1 or not counts.size or not whole:
        raise UserError(f"descent needs whole numbers of steps, at least zero, got {steps}")
    return counts.astype(int)


def as_step_size(lr: Any) -> float:
    """Return η > 0."""
    return as_number("the step size lr", lr, 0, above=True)


def as_momentum(momentum: Any) -> float:
    """Return β in [0, 1)."""
    momentum = as_number("momentum", momentum)
    if not 0 <= momentum < 1:
        raise UserError(
            f"momentum must be at least 0 and below 1, got {momentum}; 0 is plain descent"
        )
    return momentum


def shown(values: Vector) -> str:
    """Return the shape of an array in words, and whether it is finite."""
    return f"shape {values.shape}" + (
        "" if np.isfinite(values).all() else " with entries that are not finite"
    )
