"""What the figure of vc-dimension shows."""

from collections.abc import Sequence

import numpy as np
import xarray

from steepest import kit
from steepest.claims.expressivity.vc_dimension.experiment import counting_bound
from steepest.geometry import bit_reader

TRAINED = (0.25, 0.5, 0.75, 1.0, 1.25)
"""Points for each weight in sets on which a network is trained."""


def panels_of_dichotomies(
    sets: Sequence[tuple[int, int]],
    rows: int,
    width: int,
    law: xarray.Dataset,
    seen: xarray.Dataset,
) -> tuple[kit.Panel, ...]:
    """Draw dichotomies by sines and halfspaces, points that networks shatter, and labels that training fits.

    Args:
        sets: dimension and number of points of each set that halfspaces divide.
        rows: of the table for each bit that a network reads.
        width: of the network that is trained.
        law: what was predicted.
        seen: what was measured.
    """
    m = law.m.values
    cases = np.array(sets)
    dimensions = law.dimension.values
    weights = seen.weights.values
    bounds = [counting_bound(bit_reader(np.ones((rows * n, n), int))) for n in law.bits.values]
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
        kit.panel("Halfspaces on digits", "m", "dichotomies of m digits", *halfspaces, log="y"),
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
        kit.panel(
            f"Training fits random labels: {width} neurons on the plane",
            "points m / weights p",
            "share of labellings that are fitted",
            kit.observed_curve(TRAINED, seen.fitted.mean("labelling"), "best of four starts"),
            ylim=(-0.05, 1.05),
        ),
    )
