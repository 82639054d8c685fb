"""What the figure of prelu-kkt shows."""

import numpy as np
import xarray

from steepest import kit

FLOOR = 1e-16  # of residuals on a logarithmic axis


def panel_of_residuals(law: xarray.Dataset, seen: xarray.Dataset) -> kit.Panel:
    """Draw the residuals of exact networks, and of neurons that weigh a centre twice, over the power."""
    exact = seen.residual.max("clusters")
    points = [
        kit.observed_curve(
            exact.power,
            np.maximum(exact.sel(network=name), FLOOR),
            label,
            kind="points",
            shade=shade,
        )
        for name, label, shade in (
            ("centres", "centres", 0.0),
            ("averages", "averages", 0.3),
            ("overlapping", "overlapping", 0.6),
        )
    ]
    unequal = seen.unequal.isel(clusters=-1)
    expected = law.unequal.isel(clusters=-1)
    k = int(unequal.clusters)
    return kit.panel(
        "Weights 2 : 1 : 1 … are KKT at p = 2 only",
        "power p",
        "largest KKT residual",
        *points,
        kit.observed_curve(
            unequal.power,
            np.maximum(unequal, FLOOR),
            f"2 : 1 : 1 …, k = {k}",
            kind="points",
            shade=0.9,
        ),
        kit.predicted_curve(expected.power, np.maximum(expected, FLOOR), shade=0.9),
        log="y",
    )


def panel_of_ends(
    law: xarray.Dataset, seen: xarray.Dataset, rivals: dict[str, xarray.DataArray]
) -> kit.Panel:
    """Draw the margins where descents end over the power, for the largest problem."""
    last = {"trained_clusters": -1}
    k = int(law.trained_clusters[-1])
    return kit.curves(
        f"Descent ends at the larger margin, k = {k}",
        law.end.isel(last),
        seen.end.isel(last),
        over="trained_power",
        x="power p",
        y="margin / margin of the centres",
        rivals={label: wrong.isel(last) for label, wrong in rivals.items()},
        log="y",
    )
