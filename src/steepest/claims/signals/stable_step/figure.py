"""What the figure of stable-step shows."""

from collections.abc import Mapping

import numpy as np
import xarray

from steepest import kit


def panels_of_steps(
    law: xarray.Dataset, seen: xarray.Dataset, rivals: Mapping[str, xarray.Dataset]
) -> tuple[kit.Panel, ...]:
    """Draw the largest stable step of every network over width and over depth, with what the limit kernel says."""
    width = seen.width.values
    layers = seen.layers.values
    wide = []
    for i, name in enumerate(seen.law.values):
        steps = seen.step.sel(law=name).values
        label = "" if i else "2/λ_max of the limit"
        wide += [
            kit.observed_curve(width, steps, str(name), kind="points", shade=i / 2),
            kit.predicted_curve(width, law[str(name)].values, label),
        ]
    if "inverse_root" in rivals:
        wide.append(kit.rival_curve(width, rivals["inverse_root"].standard.values, "1/√n"))
    deep = []
    for i, sigma in enumerate(seen.activation.values):
        steps = seen.deep_step.sel(activation=sigma).values
        shade = i / max(1, seen.sizes["activation"] - 1)
        deep += [
            kit.observed_curve(layers, steps, str(sigma), kind="points", shade=shade),
            kit.predicted_curve(
                layers,
                np.asarray(law.deep.sel(activation=sigma)),
                "" if i else "2/λ_max of the limit",
            ),
        ]
    return (
        kit.panel("The largest stable step against width", "width n", "step size", *wide, log="xy"),
        kit.panel("and against depth", "L + 1", "step size", *deep, log="xy"),
    )
