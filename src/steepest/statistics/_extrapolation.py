"""Richardson's extrapolation to step zero, with the error that it shows itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steepest.core.errors import UserError
from steepest.core.signatures import checked


@dataclass(frozen=True)
class Extrapolation:
    """A limit and how far it is to be trusted.

    Attributes:
        value: the extrapolant from all steps, a number or ``(...)``.
        error: how far the last step has moved the extrapolant, not negative, of the same shape.
        ratio: this last move over the move before, not negative, of the same shape: well below 1 where the extrapolants
            converge. Near 1 an order is wrong, and ``error`` is too small: what is left is about
            error · ratio/(1 − ratio). Above 1 rounding or noise has taken over. NaN for two steps.
    """

    value: Any
    error: Any
    ratio: Any


@checked
def extrapolate(values: ArrayLike, steps: ArrayLike, orders: Sequence[float]) -> Extrapolation:
    r"""Extrapolate values at falling steps to step zero.

    The k-th extrapolant is the v that solves

    .. math:: v(h_i) = v + \sum_{j\le m} c_j h_i^{p_j},\qquad i = k-m, \dots, k,

    for the m first orders p, with m = k as long as there are orders: the first extrapolant is ``values[0]``, each one
    more takes in the next finer step. The error is the difference of the last two; since it is nearly that of the
    extrapolant before the last, it overestimates where the ratio is below 1/2.

    Args:
        values: at the steps, shape ``(steps, ...)``.
        steps: h_0 > h_1 > … > 0, such as grid spacings, 1/N or 1/β, shape ``(steps,)``, at least two.
        orders: powers 0 < p_1 < p_2 < … of the error; of more than ``steps − 1`` the first ones are used. With
            fewer, the finest steps are extrapolated, and the coarser ones serve the error.

    Raises:
        UserError: steps that do not fall towards zero, orders that do not rise, shapes that do not fit.

    Source: Richardson and Gaunt, The deferred approach to the limit (1927).

    >>> h = np.array([0.4, 0.2, 0.1])
    >>> limit = extrapolate(np.sin(h) / h, h, orders=(2, 4))
    >>> abs(limit.value - 1) < limit.error, f"{limit.error:.0e}", f"{limit.ratio:.0e}"
    (True, '5e-05', '2e-03')
    """
    values = np.asarray(values, float)
    steps = np.asarray(steps, float)
    _check(values, steps, orders)
    rows = values.reshape(len(steps), -1)
    # the k-th takes the k + 1 coarsest steps
    extrapolants = [_weights(steps[: k + 1], orders) @ rows[: k + 1] for k in range(len(steps))]
    moves = np.abs(np.diff(extrapolants, axis=0))
    shape = values.shape[1:]
    return Extrapolation(
        _shaped(extrapolants[-1], shape), _shaped(moves[-1], shape), _shaped(_ratio(moves), shape)
    )


def _weights(steps: np.ndarray, orders: Sequence[float]) -> np.ndarray:
    """Return the weights of values at all these steps in the extrapolant from the finest of them, ``(steps,)``."""
    used = min(len(orders), len(steps) - 1)
    # in units of the finest, so that no power underflows
    finest = steps[len(steps) - used - 1 :] / steps[-1]
    powers = finest ** np.array([0.0, *orders[:used]])[:, None]  # (1 + used, steps)
    # weights that keep the constant and take out each power; rows are scaled, since powers differ in size
    scale = powers.max(axis=1)
    limit = np.eye(used + 1)[0]
    # Σ_i w_i = 1 and Σ_i w_i h_i^{p_j} = 0
    weights = np.linalg.solve(powers / scale[:, None], limit)
    return np.concatenate([np.zeros(len(steps) - used - 1), weights])


def _ratio(moves: np.ndarray) -> np.ndarray:
    """Return the last over the second but last move, zero where nothing moves any more."""
    if len(moves) < 2:
        return np.full(moves[-1].shape, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(moves[-1] == 0, 0.0, moves[-1] / moves[-2])


def _shaped(row: np.ndarray, shape: tuple[int, ...]) -> Any:
    return row.reshape(shape) if shape else float(row[0])


def _check(values: np.ndarray, steps: np.ndarray, orders: Sequence[float]) -> None:
    """Refuse what cannot be extrapolated."""
    if steps.ndim != 1 or steps.size < 2 or values.ndim == 0 or len(values) != steps.size:
        raise UserError(
            "an extrapolation needs at least two steps, and values at each of them along the first axis; "
            f"got shapes {values.shape} of values and {steps.shape} of steps"
        )
    if not (np.all(np.diff(steps) < 0) and steps[-1] > 0):
        raise UserError(
            f"steps of an extrapolation fall towards zero, got {' '.join(f'{h:g}' for h in steps)}; sort them"
        )
    if len(orders) == 0 or not np.all(np.diff([0.0, *orders]) > 0):
        raise UserError(
            f"orders of an extrapolation are positive and rise, such as (1, 2), got {tuple(orders)}"
        )
