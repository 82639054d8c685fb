"""Networks of steps that are drawn from Barron's law, and least squares on ridges that are chosen or fixed."""

from typing import NamedTuple

import numpy as np

from steepest.nn.networks import Barron
from steepest.nn.types import Values


class Fits(NamedTuple):
    """Mean squared errors on fresh points of least squares on 1 to all ridges, by group."""

    greedy: Values  # ridges chosen one after another, (seeds, counts)
    fixed: Values  # the first of the same list, (seeds, counts)


class Drawn(NamedTuple):
    """What one group of networks of one width is worth.

    Attributes:
        error: mean squared error on points of the ball.
        steps: that were drawn.
        proposals: that this took.
    """

    error: float
    steps: int
    proposals: int


def draw(
    f: Barron, target: Barron, rng: np.random.Generator, count: int, width: int, x: Values
) -> Drawn:
    """Draw networks of steps from the law of a function, and compare them with a target.

    Args:
        f: the function whose law is drawn from.
        target: the function that is to be met, ``f`` but for a control.
        rng: of the draws.
        count: networks.
        width: N, steps of each.
        x: points for each network, ``(count, points, d)``.
    """
    networks, proposals = f.sample(rng, count, width)
    error = ((networks.apply(x) - target.target(x)) ** 2).mean()
    return Drawn(float(error), count * width, proposals)


def choose(columns: Values, target: Values, count: int) -> Values:
    """Return the columns that orthogonal greedy choice takes, in order, shape ``(count,)``.

    Args:
        columns: of the dictionary at the points, shape ``(points, columns)``.
        target: shape ``(points,)``.
        count: how many.
    """
    left = columns.copy()
    residual = target.copy()
    chosen = []
    for _ in range(count):
        # Gram and Schmidt: left are the parts of columns at right angles to those chosen
        squares = (left**2).sum(0)
        alive = squares > 1e-9 * len(columns)
        # a column takes ⟨r, left⟩²/‖left‖² of ‖r‖² unless it is in their span
        gains = np.where(alive, (residual @ left) ** 2 / np.where(alive, squares, 1), -1.0)
        gains[chosen] = -2.0
        best = int(gains.argmax())
        chosen.append(best)
        if alive[best]:
            way = left[:, best] / np.sqrt(squares[best])
            residual = residual - way * (way @ residual)
            left = left - np.outer(way, way @ left)
    return np.array(chosen)


def counted(most: int) -> np.ndarray:
    """Return the numbers of ridges at which fits are made: 1 to the most, in equal ratios."""
    return np.unique(np.round(np.geomspace(1, most, 7)).astype(int))


def errors_of(train: Values, fresh: Values, targets: Values, others: Values) -> Values:
    """Return mean squared errors on fresh points of least squares on the first 1 to all columns."""
    errors = []
    for count in counted(train.shape[1]):
        weights = np.linalg.lstsq(train[:, :count], targets, rcond=1e-9)[0]
        errors.append(((fresh[:, :count] @ weights - others) ** 2).mean())
    return np.array(errors)
