"""What the figure of depth-quasi-norm shows."""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.implicit_bias.depth_quasi_norm.theory import missing_margin


def panels_of_depths(
    alphas: np.ndarray, law: xarray.Dataset, seen: xarray.Dataset
) -> tuple[kit.Panel, ...]:
    """Draw distances from ℓ1 over α, margins that are still missing, and KKT residuals of both losses."""
    depths = [int(depth) for depth in law.depth]
    shades = np.linspace(0, 1, len(depths))
    missing = missing_margin(law, seen.weights, seen.least).mean("draw")
    programs = law.beta - law.l1
    length = lambda values: (values**2).sum("unknown") ** 0.5
    expected = (length(programs) / length(law.l1)).mean("seed")
    names = [f"L = {depth}" for depth in depths]
    places = list(zip(range(len(depths)), names, shades, strict=True))
    sorted_residual = np.sort(seen.residual.values, axis=1)
    ranks = (np.arange(sorted_residual.shape[1]) + 0.5) / sorted_residual.shape[1]
    return (
        kit.panel(
            "Squared loss: from all sides to ℓ1",
            "α",
            "distance from ℓ1, mean over problems",
            *(
                kit.predicted_curve(alphas[i], expected.values[i], "program" * (i == 0))
                for i, _, _ in places
            ),
            *(
                kit.observed_curve(
                    alphas[i],
                    seen.to_l1.isel(depth=i).mean("seed").values,
                    name,
                    kind="points",
                    shade=shade,
                )
                for i, name, shade in places
            ),
            log="xy",
        ),
        kit.panel(
            "Exponential loss: to a local minimum of ℓ_{2/L}",
            "fall of log R",
            "missing part of the margin, mean over sets",
            *(
                kit.observed_curve(
                    seen.fall.values[i],
                    missing.values[i],
                    name,
                    shade=shade,
                )
                for i, name, shade in places
            ),
            log="xy",
        ),
        kit.panel(
            "A power's tail ends elsewhere: weight stays off the margin",
            "share of sets",
            "KKT residual, sorted; weight off the margin",
            *(
                kit.observed_curve(ranks, sorted_residual[i], name, shade=shade)
                for i, name, shade in places
            ),
            *(
                kit.context_curve(
                    ranks,
                    np.sort(seen.off_margin_tail.values[i]),
                    "power's tail" * (i == 0),
                    kind="line",
                )
                for i, _, _ in places
            ),
            log="y",
        ),
    )
