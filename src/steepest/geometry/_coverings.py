"""Coverings of points by few balls, found greedily."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.typing import ArrayLike

from steepest.core.errors import UserError
from steepest.core.signatures import checked


class Covering(NamedTuple):
    """Centres in the order in which they were chosen.

    Attributes:
        centres: which points, shape ``(k,)``.
        radii: largest distance of a point from the first 1, …, k centres, shape ``(k,)``.
    """

    centres: Int[ndarray, " k"]
    radii: Float[ndarray, " k"]


@checked
def farthest_points(x: ArrayLike, k: int, first: int = 0) -> Covering:
    """Choose k centres among points, each the farthest from those before it.

    With R_j the largest distance from the first j centres, the first j + 1 are R_j apart, so that no j balls of a
    radius below R_j/2 cover the points, wherever their centres are: the covering is at most twice as wide as the best.

    Args:
        x: points, one a row, shape ``(n, d)``.
        k: how many centres, at most n.
        first: the first centre.

    Raises:
        UserError: for points that are not rows of finite numbers, or k or first that do not fit.

    Source: Gonzalez 1985.

    >>> farthest_points([[0.0], [1.0], [4.0], [10.0]], 3)
    Covering(centres=array([0, 3, 2]), radii=array([10.,  4.,  1.]))
    """
    points = np.asarray(x, float)
    if points.ndim != 2 or not points.size or not np.isfinite(points).all():
        raise UserError(
            f"farthest_points needs finite points, one a row, got an array of shape {points.shape}"
        )
    if not 1 <= k <= len(points) or not 0 <= first < len(points):
        raise UserError(
            f"farthest_points takes from 1 to {len(points)} centres and a first one among the points, got {k} centres "
            f"and first {first}"
        )
    centres = [first]
    squares = ((points - points[first]) ** 2).sum(1)
    radii = [squares.max()]
    while len(centres) < k:
        centres.append(int(squares.argmax()))
        # squared distance to the nearest centre
        np.minimum(squares, ((points - points[centres[-1]]) ** 2).sum(1), out=squares)
        radii.append(squares.max())
    return Covering(np.array(centres), np.sqrt(radii))


@checked
def ellipsoid_entropy(axes: ArrayLike, bits: ArrayLike) -> Float[ndarray, " bits"]:
    """Return a lower bound of the entropy numbers ε_n of an ellipsoid in a Hilbert space, by volumes of its sections.

    ``ε_n ≥ max_d 2^(−n/d) (a_1 ⋯ a_d)^(1/d)``: 2^n balls of radius ε must have the volume of the section of the d
    longest axes. For ``a_i = i^(−r)`` it is ``(r/(n ln 2))^r`` for large n.

    Args:
        axes: a_1 ≥ a_2 ≥ … > 0, as many as may matter.
        bits: n, shape ``(bits,)`` or a number.

    Raises:
        UserError: for axes that are not positive or do not fall, or a negative n.

    Source: Carl and Stephani 1990, section 1.3.

    >>> ellipsoid_entropy([1.0, 0.5], [0, 2]).round(3).tolist()
    [1.0, 0.354]
    """
    lengths = np.asarray(axes, float)
    numbers = np.asarray(bits, float)
    if (
        lengths.ndim != 1
        or not lengths.size
        or not (lengths > 0).all()
        or (np.diff(lengths) > 0).any()
    ):
        raise UserError("ellipsoid_entropy: axes must be positive and not grow, longest first")
    if (numbers < 0).any():
        raise UserError("ellipsoid_entropy: the number of bits must not be negative")
    dimension = np.arange(1, len(lengths) + 1)
    mean = np.cumsum(np.log(lengths)) / dimension  # log of (a_1 ⋯ a_d)^(1/d), one for each d
    return np.exp((mean - np.log(2) * numbers[..., None] / dimension).max(-1))
