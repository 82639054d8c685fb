"""Functions of few pieces on a line: the best fit, and the zigzag that a deep network makes of few neurons."""

from typing import Any

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.geometry._layers import Layer, relu_layers

MOST = 4096  # points, whose pairs take 0.4 GB


@checked
def best_pieces(y: Float[Any, " m"], pieces: int) -> Float[np.ndarray, " pieces"]:
    """Find the least mean squared error of fits by 1, 2, …, p straight pieces to values on equal steps.

    Pieces are affine on runs of neighbouring points and need not join, so that no continuous function with that many
    pieces, and no ReLU network with one breakpoint less than pieces, comes closer on these points. A dynamic program
    over ends of runs finds the optimum; it takes p m² operations.

    Args:
        y: values, shape ``(m,)``.
        pieces: p.

    Returns:
        the error for each number of pieces, shape ``(p,)``, with an absolute error of about 1e-15 max|y|² m.

    Raises:
        UserError: no values or too many, one that is not finite, or no piece.

    >>> tent = [0.0, 1.0, 2.0, 1.0, 0.0]
    >>> best_pieces(tent, 3).round(12).tolist()  # a constant leaves the variance
    [0.56, 0.0, 0.0]
    """
    values = np.asarray(y, float)
    if values.ndim != 1 or not 0 < len(values) <= MOST or not np.isfinite(values).all():
        raise UserError(
            f"best_pieces: expected 1 to {MOST} finite values of shape (m,), got shape {values.shape}"
        )
    if pieces < 1:
        raise UserError(f"best_pieces: expected at least one piece, got {pieces}")
    m = len(values)
    # a constant changes no residual, and its squares would cancel
    costs = _run_costs(values - values.mean())
    least = costs[0].copy()  # of the first j + 1 points by one piece
    errors = [least[-1]]
    for _ in range(1, min(pieces, m)):
        # the last run starts after any end of the others
        least = np.minimum(least, (np.append(0.0, least[:-1])[:, None] + costs).min(0))
        errors.append(least[-1])
    return np.maximum(np.array(errors + [0.0] * (pieces - len(errors))), 0.0) / m


@checked
def zigzag(depth: int, width: int = 2) -> list[Layer]:
    """Build the ReLU network that goes to and fro between 0 and 1 in w^L straight pieces on [0, 1], from wL neurons.

    Each hidden layer applies ``g(x) = w σ(x) − 2w σ(x − 1/w) + 2w σ(x − 2/w) − …``, w pieces between 0 and 1, and
    pieces multiply. With two neurons a layer ``g(x) = 2σ(x) − 4σ(x − ½)`` is the tent, and everything that the network
    computes at multiples of 2^(−k) is exact.

    Args:
        depth: L, number of hidden layers.
        width: w, neurons in each.

    Raises:
        UserError: if there is no layer, or fewer than two neurons in each.

    Source: Telgarsky 2016; ORF 543, lecture 12/5, Theorem A.

    >>> from steepest.geometry import preactivations
    >>> preactivations(zigzag(2), np.array([[0.0], [0.25], [0.5], [0.75], [1.0]]))[-1].ravel().tolist()
    [0.0, 1.0, 0.0, 1.0, 0.0]
    """
    if depth < 1 or width < 2:
        raise UserError(
            f"a zigzag needs at least one layer and two neurons in it, got {depth} layers of {width}"
        )
    # slope changes by ±2w at each kink, w at the first
    slopes = 2.0 * width * (-1.0) ** np.arange(width)
    slopes[0] = width
    shifts = -np.arange(width) / width
    ones = np.ones((width, 1))
    weights = [ones, *[ones * slopes] * (depth - 1), slopes[None]]
    biases = [shifts] * depth + [np.zeros(1)]
    return relu_layers(weights, biases)


def _run_costs(y: np.ndarray) -> np.ndarray:
    """Return the squared residuals of straight fits to points i to j, shape ``(m, m)``; infinite below the diagonal."""
    m = len(y)
    x = np.arange(m) - (m - 1) / 2  # centred, so that S_xx does not cancel
    sums = [np.append(0.0, np.cumsum(values)) for values in (x, x * x, y, x * y, y * y)]
    # sums over i to j as differences of running sums
    over = lambda total: total[None, 1:] - total[:-1, None]
    along, along2, up, both, up2 = map(over, sums)
    number = np.arange(m)[None, :] - np.arange(m)[:, None] + 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = along2 - along**2 / number
        common = both - along * up / number
        left = up2 - up**2 / number
        # S_yy − S_xy²/S_xx; two points leave none
        residual = np.where(number >= 3, left - common**2 / spread, 0.0)
    return np.where(number >= 1, np.maximum(residual, 0.0), np.inf)
