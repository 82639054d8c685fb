"""Dichotomies by layers of threshold units, all of them, and units that separate points in groups."""

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from steepest.claims.expressivity._halfspaces import halfspace_patterns
from steepest.nn.types import Values

SLAB = 1e-9
"""Half of the distance between the two threshold units around a group, in standard deviations of the points."""


def threshold_functions(inputs: int) -> Values:
    """Return all functions of h ≤ 3 bits that a threshold unit computes, shape ``(functions, 2^h)``.

    Whole weights of at most h, and thresholds half-way between whole numbers, reach all of them.
    """
    codes = np.array(list(itertools.product((0, 1), repeat=inputs)))
    weights = np.array(list(itertools.product(range(-inputs, inputs + 1), repeat=inputs)))
    thresholds = np.arange(-(inputs**2) - 0.5, inputs**2 + 1)
    on = (weights @ codes.T)[:, None] > thresholds[:, None]
    return np.unique(on.reshape(-1, 2**inputs), axis=0).astype(int)


def threshold_dichotomies(patterns: Values, units: int) -> int:
    """Count the dichotomies of points by networks of h ≤ 3 threshold units in a layer and a threshold on them.

    All of them: a unit makes one of the dichotomies by halfspaces, or its complement, and the last one any threshold
    function of what the h units say. A dichotomy is a whole number here, a bit for each point.

    Args:
        patterns: all dichotomies of the m points by halfspaces, each once or more, shape ``(patterns, m)``.
        units: h.
    """
    m = patterns.shape[1]
    # a dichotomy as a binary number, in which the last point has the highest bit
    halves = np.unique(patterns @ 2 ** np.arange(m))
    halves = halves[halves < 2 ** (m - 1)]  # the last unit takes complements too
    layers = np.array(list(itertools.combinations(halves, units)))
    everything = 2**m - 1
    # the points at which the units say this code, for all 2^h codes
    at_code = [
        np.bitwise_and.reduce(np.where(code, layers, everything ^ layers), axis=1)
        for code in itertools.product((0, 1), repeat=units)
    ]
    made = np.zeros(2**m, bool)
    made[np.stack(at_code, 1) @ threshold_functions(units).T] = True
    return int(made.sum())


def moment_curve(places: Values, dimension: int) -> Values:
    """Return points of the moment curve, shape ``(m, d)``, in Chebyshev's coordinates T_1(t), …, T_d(t)."""
    return chebvander(places, dimension)[:, 1:]


def dichotomies_of_layers(
    points: Sequence[Sequence[Values]], sets: Sequence[tuple[int, int, int]]
) -> Values:
    """Count the dichotomies by layers of threshold units, shape ``(sets, draws)``.

    Args:
        points: draws of points, ``(most, d)``, for d = 1, 2, ….
        sets: d, how many units there are, and how many points.
    """
    largest = [max(n for d, _, n in sets if d == i + 1) for i in range(len(points))]
    patterns = [
        [halfspace_patterns(draw[:n]) for draw in draws]
        for draws, n in zip(points, largest, strict=True)
    ]
    return np.array(
        [[threshold_dichotomies(of[:, :n], h) for of in patterns[d - 1]] for d, h, n in sets], float
    )


def group_units(points: Values, sizes: Sequence[int]) -> Values:
    """Return how many threshold units separate the first half of n points from the others in groups.

    Args:
        points: of all draws, shape ``(draws, most, d)``.
        sizes: n of each set, the first of the points.

    Returns:
        shape ``(sizes, draws)``.
    """
    return np.array(
        [[units_around(draw[: n // 2], draw[n // 2 : n]) for draw in points] for n in sizes]
    )


def units_around(points: Values, others: Values) -> float:
    """Return how many threshold units separate points from others, two of them close around a group of the points.

    The points are divided into as few groups as get all labels right, by trying; it is infinite if none do.
    """
    everything = np.concatenate([points, others])
    labels = np.arange(len(everything)) < len(points)
    for number in range(1, len(points) + 1):
        planes = np.stack([_nearest_plane(group) for group in np.array_split(points, number)])
        values = everything @ planes[:, :-1].T + planes[:, -1]
        # of each pair one unit is on beside the slab, and both are on in it
        units = np.concatenate([values > -SLAB, values < SLAB], axis=1)
        if np.array_equal(units.sum(1) > number, labels):
            return 2.0 * number
    return np.inf


def _nearest_plane(points: Values) -> Values:
    """Return a normal of length one and the offset of the hyperplane nearest to points, shape ``(d + 1,)``."""
    centre = points.mean(0)
    normal = np.linalg.svd(points - centre)[2][-1]
    return np.append(normal, -normal @ centre)
