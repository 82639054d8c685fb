"""Samples of a determinantal process by its definition alone: chains of single points, and all subsets of a few."""

import itertools
from typing import NamedTuple

import numpy as np

from steepest.linalg import sequential
from steepest.nn.types import Values

BURN = 10  # sweeps before the first sample
GAP = 1  # sweeps between two samples of a chain


class Plan(NamedTuple):
    """How many samples are drawn."""

    seeds: int
    chains: int  # for each seed
    samples: int  # of each chain


@sequential
def sampled(likelihood: Values, plan: Plan, rng: np.random.Generator) -> Values:
    """Return subsets whose probability is the determinant of their part of a matrix, ``(seeds, draws, n)``.

    Gibbs sampling: each point in turn is put in or left out with the odds det L_with : det L_without. The odds of all
    points are the diagonal of the matrix pivoted at the subset, which is updated with each change.
    """
    n = len(likelihood)
    pivoted = np.repeat(likelihood[None], plan.seeds * plan.chains, axis=0)
    subsets = np.zeros((len(pivoted), n), bool)
    taken = []
    for sweep in range(BURN + GAP * plan.samples):
        for point in rng.permutation(n):
            # on the diagonal: det L of the flipped subset over det L of the present one
            odds = pivoted[:, point, point]
            # chance odds/(1 + odds)
            changes = np.flatnonzero(rng.random(len(odds)) * (1 + odds) < odds)
            pivoted[changes] = pivot(pivoted[changes], point)
            subsets[changes, point] ^= True
        if sweep >= BURN and (sweep - BURN) % GAP == 0:
            taken.append(subsets.reshape(plan.seeds, plan.chains, n).copy())
    return np.stack(taken, axis=2).reshape(plan.seeds, -1, n)


def pivot(matrices: Values, point: int) -> Values:
    """Return matrices pivoted at a point: x_i and y_i of y = Ax change places."""
    diagonal = matrices[:, point, point, None].copy()
    row = matrices[:, point] / diagonal
    column = matrices[:, :, point].copy()
    # Schur complement A_jk − A_ji A_ik/A_ii
    turned = matrices - column[:, :, None] * row[:, None]
    turned[:, point] = -row
    turned[:, :, point] = column / diagonal
    turned[:, point, point] = 1 / diagonal[:, 0]
    return turned


@sequential
def interpolated(kernel: Values, targets: Values, subsets: Values) -> Values:
    """Return at all points the interpolant of least norm through each subset's targets, ``(draws, n)``."""
    inside = subsets[:, :, None] & subsets[:, None]
    # the identity in place of points that are left out
    systems = np.where(inside, kernel, np.eye(len(kernel)))
    weights = np.linalg.solve(systems, (subsets * targets)[..., None])[..., 0]
    return (weights * subsets) @ kernel  # f = Σ_{j∈S} α_j K(·, x_j)


class Moments(NamedTuple):
    """What samples of points on a circle came to, each by seed."""

    size: Values  # mean number of points
    spread: Values  # its variance
    repulsion: Values  # chance of two points over that of independent ones, by their distance, (seeds, n/2)
    output: Values  # mean of the interpolants, (seeds, n)


def moments(kernel: Values, targets: Values, subsets: Values) -> Moments:
    """Return the moments of subsets ``(seeds, draws, n)`` of equally spaced points, by seed."""
    n = subsets.shape[-1]
    sizes = subsets.sum(-1)
    density = subsets.mean((1, 2))
    together = [
        (subsets & np.roll(subsets, gap, axis=-1)).mean((1, 2)) for gap in range(1, n // 2 + 1)
    ]
    outputs = [interpolated(kernel, targets, draws).mean(0) for draws in subsets]
    return Moments(
        sizes.mean(1),
        sizes.var(1, ddof=1),
        np.array(together).T / density[:, None] ** 2,
        np.array(outputs),
    )


class Sums(NamedTuple):
    """Exact means over all subsets."""

    pairs: Values  # chance of each pair, and of each point on the diagonal, (n, n)
    output: Values  # mean of the interpolants, (n,)


def over_all_subsets(kernel: Values, targets: Values, ridge: float, power: float = 1.0) -> Sums:
    """Return means over all subsets, of probability det(K_S/ridge) to a power."""
    n = len(kernel)
    subsets = np.array(list(itertools.product((False, True), repeat=n)))
    inside = subsets[:, :, None] & subsets[:, None]
    weights = np.linalg.det(np.where(inside, kernel / ridge, np.eye(n))) ** power  # det K_S/λ^|S|
    weights /= weights.sum()
    return Sums(
        np.einsum("s,sij->ij", weights, inside), weights @ interpolated(kernel, targets, subsets)
    )
