"""What the figure of linear-convolution shows."""

import numpy as np
import xarray

from steepest import kit

SHADES = (0.0, 0.6)
"""Of depths."""


def panels_of_depths(law: xarray.Dataset, seen: xarray.Dataset) -> tuple[kit.Panel, ...]:
    """Draw the margin of two layers as it grows, a spectrum of each depth, and KKT residuals of both losses."""
    ratio = np.quantile(seen.margin_ratio, (0.0, 0.5, 1.0), axis=0)
    fall = seen.fall.isel(depth=0).values
    share = (np.arange(seen.sizes["draw"]) + 0.5) / seen.sizes["draw"]
    return (
        kit.panel(
            "Two layers reach the largest margin in ℓ1 of the spectrum",
            "fall of log R",
            "margin over the largest",
            kit.predicted_curve(fall, np.ones(len(fall)), "largest margin"),
            kit.observed_curve(fall, ratio[1], "median set"),
            kit.observed_curve(fall, ratio[0], "least and largest", shade=0.6),
            kit.observed_curve(fall, ratio[2], "", shade=0.6),
            log="x",
            ylim=(0, 1.1),
        ),
        _spectra(seen),
        kit.panel(
            "The conditions are met, but not on a loss with a power's tail",
            "sets in order of their residual, as a share",
            "KKT residual; of the power's tail, weight off the margin",
            *(
                kit.observed_curve(share, np.sort(row), f"{depth} layers", shade=shade)
                for depth, row, shade in zip(
                    law.depth.values, seen.residual.values, SHADES, strict=True
                )
            ),
            *(
                kit.context_curve(share, np.sort(row), name, kind="line")
                for row, name in zip(seen.off_margin_tail.values, ("power's tail", ""), strict=True)
            ),
            log="y",
        ),
    )


def _spectra(seen: xarray.Dataset) -> kit.Panel:
    """Draw moduli of the spectrum at the end, in order of size, over the largest: means over sets."""
    size = abs(seen.spectrum)
    pairs = size.isel(frequency=slice(size.sizes["frequency"] // 2 + 1))
    ordered = -np.sort(-(pairs / pairs.max("frequency")), axis=pairs.dims.index("frequency"))
    ranks = np.arange(1, ordered.shape[-1] + 1)
    rows = zip(seen.depth.values, ordered.mean(1), SHADES, strict=True)
    return kit.panel(
        "Spectra are sparse, and sparser with three layers",
        "frequencies, the largest first",
        "|β̂| over the largest, mean over sets",
        *(kit.observed_curve(ranks, row, f"{depth} layers", shade=s) for depth, row, s in rows),
    )
