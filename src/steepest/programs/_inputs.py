"""Checks of the data of every program."""

from typing import Any

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError
from steepest.core.given import numbers


def check_inputs(
    what: str, x: Any, y: Any
) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, " n"]]:
    """Return inputs ``(n, d)`` and targets ``(n,)`` in float64, if they are finite and belong together.

    Raises:
        UserError: one sentence that names what was expected and what came.

    >>> check_inputs("demo", [[1.0, 2.0]], [3.0])[0].shape
    (1, 2)
    """
    x = np.asarray(numbers(f"{what}: inputs", x), dtype=float)
    y = np.asarray(numbers(f"{what}: targets", y), dtype=float)
    if x.ndim != 2 or x.size == 0:
        raise UserError(
            f"{what}: expected inputs of shape (n, d), not empty, got shape {x.shape}; one example a row"
        )
    if y.shape != x.shape[:1]:
        raise UserError(
            f"{what}: expected {x.shape[0]} targets of shape ({x.shape[0]},), got shape {y.shape}"
        )
    for name, array in (("inputs", x), ("targets", y)):
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            raise UserError(
                f"{what}: expected finite {name}, got {len(bad)} entries that are not, the first at "
                f"{tuple(bad[0].tolist())}; drop or impute these examples"
            )
    return x, y


def check_positive(what: str, name: str, values: Any, count: int) -> Float[np.ndarray, " d"]:
    """Return numbers of shape ``(count,)`` in float64, if they are finite and positive.

    Raises:
        UserError: one sentence that names what was expected and what came.

    >>> check_positive("demo", "weights", [1, 2], 2).tolist()
    [1.0, 2.0]
    """
    values = np.asarray(numbers(f"{what}: {name}", values), dtype=float)
    if values.shape != (count,) or not np.isfinite(values).all() or (values <= 0).any():
        raise UserError(
            f"{what}: expected {name} of shape ({count},), finite and positive, got shape {values.shape} "
            f"with least entry {values.min() if values.size else 'none'}"
        )
    return values
