"""What the figure of depth-quasi-norm shows."""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.implicit_bias.depth_quasi_norm.theory import missing_margin

SHADES = (0.0, 0.5, 1.0)
"""Of depths."""


def panels_of_depths(
    alphas: np.ndarray, law: xarray.Dataset, seen: xarray.Dataset
) -> tuple[kit.Panel, ...]:
    """Draw distances from ℓ1 over α, margins that are still missing, and KKT residuals of both losses."""
    missing = missing_margin(law, seen.weights, seen.least).mean("draw")
    return (
        _to_l1(alphas, law, seen),
        kit.panel(
            "Exponential loss: to a local minimum of ℓ_{2/L}",
            "fall of log R",
            "missing part of the margin, mean over sets",
            *_by_depth(law, seen.fall.values, missing.values, "line"),
            log="xy",
        ),
        _residuals(law, seen),
    )


def _to_l1(alphas: np.ndarray, law: xarray.Dataset, seen: xarray.Dataset) -> kit.Panel:
    length = lambda values: (values**2).sum("unknown") ** 0.5
    expected = (length(law.beta - law.l1) / length(law.l1)).transpose("depth", "seed", "scale")
    programs = zip(alphas, expected.mean("seed").values, ("program", "", ""), strict=True)
    return kit.panel(
        "Squared loss: from all sides to ℓ1",
        "α",
        "distance from ℓ1, mean over problems",
        *(kit.predicted_curve(*program) for program in programs),
        *_by_depth(law, alphas, seen.to_l1.mean("seed").values, "points"),
        log="xy",
    )


def _residuals(law: xarray.Dataset, seen: xarray.Dataset) -> kit.Panel:
    residual = np.sort(seen.residual.values, axis=1)
    off_margin = np.sort(seen.off_margin_tail.values, axis=1)
    share = (np.arange(residual.shape[1]) + 0.5) / residual.shape[1]
    tails = zip(off_margin, ("power's tail", "", ""), strict=True)
    return kit.panel(
        "With a power's tail weight stays off the margin",
        "share of sets",
        "KKT residual; of the power's tail, weight off the margin",
        *_by_depth(law, np.tile(share, (len(residual), 1)), residual, "line"),
        *(kit.context_curve(share, tail, name, kind="line") for tail, name in tails),
        log="y",
    )


def _by_depth(law: xarray.Dataset, x: kit.Values, y: kit.Values, kind: str) -> list[kit.Curve]:
    """Return one measured curve for each depth."""
    return [
        kit.observed_curve(one_x, one_y, f"L = {depth}", kind=kind, shade=shade)
        for depth, one_x, one_y, shade in zip(law.depth.values, x, y, SHADES, strict=True)
    ]
