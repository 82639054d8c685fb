"""What the figure of entropy-and-width shows."""

from collections.abc import Mapping

import numpy as np
import xarray

from steepest import kit
from steepest.claims.expressivity.entropy_and_width.experiment import boundary


def panels_of_codes(
    short: float, law: xarray.Dataset, seen: xarray.Dataset, rivals: Mapping[str, xarray.Dataset]
) -> tuple[kit.Panel, ...]:
    """Draw errors on the ellipse, coverings over bits, and stretches of unit vectors and of digits."""
    return (
        _errors(short, seen),
        kit.curves(
            "a_i = 2^(−i): n bits do less than n numbers",
            law.entropy,
            seen.radii,
            over="bits",
            x="n",
            y="error",
            rivals={"width δ_n": rivals["equivalent"].entropy},
            log="y",
        ),
        kit.curves(
            "The smallest stretch of unit vectors depends on k and m",
            law.low,
            seen.low,
            over="points",
            by="dimension",
            x="points k",
            y="smallest stretch",
            name="m = {}",
            rivals={"leading order": rivals["leading_order"].low},
            log="x",
        ),
        kit.curves(
            "Digits are shortened less than unit vectors",
            law.image_low,
            seen.image_low,
            over="image_dimension",
            x="m",
            y="smallest stretch",
            log="x",
        ),
    )


def _errors(short: float, seen: xarray.Dataset) -> kit.Panel:
    """Draw the error over the angle, of the best network of either loss."""
    angles = np.linspace(0, 360, seen.sizes["angle"], endpoint=False)
    of_squares = seen.errors.sel(power=2).isel(start=int(seen.typical.sel(power=2).argmin("start")))
    of_eighth = seen.errors.sel(power=8).isel(start=int(seen.largest.sel(power=8).argmin("start")))
    return kit.panel(
        "No code of one number beats a₂",
        "angle on the ellipse",
        "error",
        kit.observed_curve(angles, of_squares.values, "trained on error²"),
        kit.observed_curve(angles, of_eighth.values, "trained on error⁸", shade=1.0),
        kit.context_curve(angles, np.abs(boundary(short, len(angles))[:, 1]), "projection"),
        kit.predicted_curve(angles[[0, -1]], [short] * 2, "a₂"),
        ylim=(0, None),
    )
