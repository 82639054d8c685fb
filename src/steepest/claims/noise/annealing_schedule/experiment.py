"""Walks of Metropolis on a ring with two wells, cooled step by step: their exact law, and walkers."""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from steepest.nn.types import Values

Schedule = Callable[[float], np.ndarray]
"""Temperatures at a step, in any shape that the landscapes broadcast with."""
EDGE = 0.3  # part of a slope at either end in which no site's energy is drawn


def landscape(
    rng: np.random.Generator, slope: int, gap: float, other: float
) -> Float[np.ndarray, " sites"]:
    """Draw the energies of a ring: the wrong bottom at zero, a pass at one, the right bottom, the other pass.

    Args:
        rng: draws the energies of the sites on the four slopes.
        slope: steps from a bottom to a pass.
        gap: by which the right bottom is lower.
        other: energy of the other pass.
    """
    corners = [0.0, 1.0, -gap, other, 0.0]
    sites = []
    for start, end in itertools.pairwise(corners):
        between = np.sort(rng.uniform(EDGE, 1 - EDGE, slope - 1))
        sites += [start, *(start + (end - start) * between)]
    return np.array(sites)


def in_the_wrong_well(slope: int) -> Values:
    """Return whether each site of a landscape belongs to its wrong well, ``(4 slope,)``."""
    sites = np.arange(4 * slope)
    return (sites < slope) | (sites > 3 * slope)


def metropolis(energies: Values, temperature: Values) -> Values:
    """Return the matrix of chances: a step to either neighbour, taken with chance e^{−rise/T} where it goes up."""
    n = energies.shape[-1]
    sites = np.arange(n)
    beta = 1 / np.asarray(temperature)[..., None]
    # a proposal has chance ½ and is accepted with min(1, e^(−rise/T)), which balances e^(−E/T)
    # on every edge; (..., sites)
    up = 0.5 * np.exp(-np.maximum(np.roll(energies, -1, -1) - energies, 0) * beta)
    down = 0.5 * np.exp(-np.maximum(np.roll(energies, 1, -1) - energies, 0) * beta)
    matrix = np.zeros((*up.shape, n))
    matrix[..., sites, (sites + 1) % n] = up
    matrix[..., sites, sites - 1] = down
    return _with_rows_of_one(matrix)


def law(
    energies: Values, schedule: Schedule, first: int, marks: Values, block: float
) -> Float[np.ndarray, "*landscapes k sites"]:
    """Return the law of a cooled walk from the first site, at each step in ``marks``.

    Steps are multiplied one by one at first, then in blocks of one temperature by squaring: late chances to leave a
    well are far below rounding beside one, so that a diagonal is what is missing to one in its row.

    Args:
        energies: of the landscapes, ``(..., sites)``.
        schedule: temperatures at a step, of a shape to which ``energies`` without its last axis broadcasts.
        first: the step at which the walk starts.
        marks: steps.
        block: the most that k grows by in a block, relative.
    """
    shape = np.broadcast_shapes(energies.shape[:-1], schedule(first).shape)
    chance = np.zeros((*shape, 1, energies.shape[-1]))
    chance[..., 0] = 1.0
    step = float(first)
    at = []
    for mark in marks:
        while step < mark:
            doublings = int(np.log2(max(1.0, min(block * step, mark - step))))
            length = 2.0**doublings
            # T at the geometric mean of first and last step: the middle of the block in log k
            matrix = metropolis(energies, schedule(np.sqrt(step * (step + length - 1))))
            for _ in range(doublings):
                matrix = _with_rows_of_one(matrix @ matrix)
            chance = chance @ matrix
            step += length
        at.append(chance[..., 0, :])
    return np.stack(at, -2)


def walk(
    rng: np.random.Generator,
    energies: Values,
    cs: Values,
    first: int,
    marks: Sequence[int],
    walkers: int,
) -> Values:
    """Run walkers at temperatures c/log k, ``(groups, c, marks, walkers)``: where each is at each mark.

    Args:
        rng: draws proposals and what is taken.
        energies: of the landscape of each group, ``(groups, sites)``.
        cs: of the temperatures.
        first: the step at which they start, from the first site.
        marks: steps.
        walkers: of each group, at each c.
    """
    groups, sites = energies.shape
    flat = energies.ravel()
    offset = sites * np.arange(groups)[:, None, None]
    place = np.zeros((groups, len(cs), walkers), int)
    at = []
    for step in range(first, marks[-1]):
        beta = np.log(step) / cs[:, None]
        proposed = (place + np.where(rng.random(place.shape) < 0.5, 1, -1)) % sites
        rise = flat[offset + proposed] - flat[offset + place]
        # a step down has e^(−rise/T) ≥ 1 and is always taken
        place = np.where(rng.random(place.shape) < np.exp(-rise * beta), proposed, place)
        if step + 1 in marks:
            at.append(place)
    return np.stack(at, 2)


def _with_rows_of_one(matrix: Values) -> Values:
    """Return a matrix whose diagonal is what is missing to one in each row."""
    sites = np.arange(matrix.shape[-1])
    matrix[..., sites, sites] = 0.0
    # taken from the small chances beside it, which keep their relative precision in 1 − P_ii
    matrix[..., sites, sites] = 1.0 - matrix.sum(-1)
    return matrix
