"""The first examples with their outputs and targets, and the median of a number that each of them has."""

from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.measurement._context import Context
from steepest.measurement._report import Reading


def first_examples(context: Context, count: int | None = None) -> tuple[NDArray, NDArray]:
    """Return inputs ``(m, …)`` and targets ``(m, …)`` of the first examples, or of all.

    Raises:
        UserError: data that come in another order in every pass, so that inputs and targets do not belong together.
    """
    outputs, targets = context.outputs_alone
    x = context.subject.inputs()[:count]
    again = context.subject.evaluate(x)
    expected = outputs[: len(x)]
    tolerance = 1e4 * np.finfo(context.subject.dtype).eps * np.abs(expected).max(initial=0)
    if again.shape != expected.shape or not np.allclose(
        again, expected, rtol=0, atol=tolerance, equal_nan=True
    ):
        raise UserError(
            "the data come in another order in every pass; give a loader that does not shuffle, or arrays"
        )
    return x, targets[: len(x)]


def margins_of(outputs: NDArray, labels: NDArray) -> Float[ndarray, " m"]:
    """Return ``f_y − max_{j≠y} f_j`` in float64, for outputs ``(m, k)``."""
    rows = np.asarray(outputs, float)
    of_label = np.arange(rows.shape[1]) == labels[:, None]
    return rows[of_label] - np.where(of_label, -np.inf, rows).max(1)


def median(name: str, values: NDArray, **said: Any) -> Reading:
    """Report the median with the 95 % interval of its order statistics: the number of examples below it is binomial.

    Infinite numbers are larger than all others; a median that is infinite does not exist, and the interval ends there.
    """
    middle, ends = median_interval(values)
    if not np.isfinite(middle):
        return Reading(name, np.nan, **said)
    return Reading(
        name, middle, ends, "examples", parts={"smallest": float(np.min(values))}, **said
    )


def median_interval(values: NDArray) -> tuple[float, tuple[float, float]]:
    """Return the median and its 95 % interval by order statistics, of any law."""
    from scipy import stats  # half a second, which other quantities do not need

    ordered = np.sort(np.asarray(values, float))
    n = len(values)
    i, j = stats.binom.interval(0.95, n, 0.5)
    return float(np.median(ordered)), (
        float(ordered[max(int(i) - 1, 0)]),
        float(ordered[min(int(j), n - 1)]),
    )
