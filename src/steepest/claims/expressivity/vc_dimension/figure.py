"""What the figure of vc-dimension shows."""

from collections.abc import Sequence

import numpy as np
import xarray

from steepest import kit
from steepest.claims.expressivity.vc_dimension.experiment import counting_bound
from steepest.geometry import bit_reader


def panels_of_dichotomies(
    sets: Sequence[tuple[int, int]], rows: int, law: xarray.Dataset, seen: xarray.Dataset
) -> tuple[kit.Panel, ...]:
    """Draw dichotomies by sines and halfspaces, points that networks shatter, and labels that training fits.

    Args:
        sets: dimension and number of points of each set that halfspaces divide.
        rows: of the table for each bit that a network reads.
        law: what was predicted.
        seen: what was measured.
    """
    m = law.m.values
    weights = seen.weights_used.values
    bounds = [counting_bound(bit_reader(np.ones((rows * n, n), int))) for n in law.bits.values]
    return (
        kit.curves(
            "Equally spaced points are not shattered",
            law.spaced,
            seen.spaced,
            over="m",
            y="dichotomies by sin ωx",
            more=(kit.rival_curve(m, 2.0**m, "2^m"),),
            log="y",
            ylim=(1, 4 * float(seen.spaced.max())),
        ),
        _halfspaces(sets, law, seen),
        kit.panel(
            "Networks that look labels up",
            "weights p",
            "points that are shattered",
            kit.observed_curve(weights, seen.points, "by construction", kind="points"),
            kit.predicted_curve(weights, law.surplus * weights, "mn"),
            kit.rival_curve(weights, weights, "p"),
            kit.predicted_curve(weights, bounds, "upper bound", shade=0.6),
            log="xy",
        ),
        kit.curves(
            "Training fits p/2 random labels, and not 2p",
            law.fitted,
            seen.fitted,
            over="weights",
            by="fill",
            y="share of labellings that are fitted",
            log="x",
        ),
    )


def _halfspaces(
    sets: Sequence[tuple[int, int]], law: xarray.Dataset, seen: xarray.Dataset
) -> kit.Panel:
    """Draw dichotomies of digits by halfspaces over the number of points, a curve for each dimension."""
    cases = np.array(sets)
    dimensions = np.unique(cases[:, 0])
    halfspaces = []
    for place, d in enumerate(dimensions):
        mine = cases[:, 0] == d
        shade = place / len(dimensions)
        halfspaces += [
            kit.observed_curve(
                cases[mine, 1], seen.halfspaces.values[mine].T, kind="points", shade=shade
            ),
            kit.predicted_curve(
                cases[mine, 1], law.halfspaces.values[mine], f"d = {d}", shade=shade
            ),
        ]
    return kit.panel("Halfspaces on digits", "m", "dichotomies of m digits", *halfspaces, log="y")
