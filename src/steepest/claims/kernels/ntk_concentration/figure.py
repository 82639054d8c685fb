"""What the figure of ntk-concentration shows."""

from typing import Any

import numpy as np
import xarray

from steepest import kit
from steepest.claims.kernels._bounded_neurons import SETS


def panels(claim: Any, law: xarray.Dataset, seen: xarray.Dataset) -> tuple[kit.Panel, ...]:
    """Draw distances over the width and over the number of inputs, and failure rates."""
    widths = np.array(claim.widths)
    sizes = np.array(claim.sizes)
    s = np.array(claim.deviations)
    wide = seen.by_width.mean("seed").values
    many = seen.by_size.mean("draw").values
    images = many[1, 0] * law.digits_size / law.digits_size[0]
    rates = [seen.many_failed.mean("trial").values, seen.one_failed.mean("trial_one").values]
    shown = [np.where(rate > 0, rate, np.nan) for rate in rates]
    return (
        kit.panel(
            "The distance falls like n^{-1/2}",
            "width n",
            "‖K − E K‖",
            kit.observed_curve(widths, wide[0], SETS[0], kind="points"),
            kit.predicted_curve(widths, law.of_width, "Gaussian matrix"),
            kit.observed_curve(widths, wide[1], SETS[1], shade=1.0),
            kit.context_curve(widths, law.largest[0], "Bernstein's bound"),
            log="xy",
        ),
        kit.panel(
            "On digits it grows like m",
            "inputs m",
            "‖K − E K‖",
            kit.observed_curve(sizes, many[0], SETS[0], kind="points"),
            kit.predicted_curve(sizes, law.of_size, "Gaussian matrix"),
            kit.observed_curve(sizes, many[1], SETS[1], kind="points", shade=1.0),
            kit.predicted_curve(sizes, images, "∝ √(m‖E K‖)", shade=1.0),
            kit.rival_curve(sizes, many[1, 0] * np.sqrt(sizes / sizes[0]), "√m"),
            log="xy",
        ),
        kit.panel(
            "Failure rates stay below the bound",
            "t / √U",
            "probability",
            kit.observed_curve(s, shown[0], f"m = {claim.inputs}"),
            kit.predicted_curve(s, law.chance[0]),
            kit.observed_curve(s, shown[1], "m = 1", shade=1.0),
            kit.predicted_curve(s, law.chance[1], shade=1.0),
            kit.rival_curve(s, np.exp(-(s**2)), "as printed"),
            log="y",
            ylim=(1e-5, 2),
        ),
    )
