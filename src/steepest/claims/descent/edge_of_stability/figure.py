"""What the figure of the edge of stability shows."""

from collections.abc import Sequence

import xarray

from steepest import kit


def panels_of_descents(
    step_sizes: Sequence[float], law: xarray.Dataset, seen: xarray.Dataset, *more: kit.Curve
) -> tuple[kit.Panel, ...]:
    """Draw the descents of the first network, with more curves beside their sharpness."""
    rises = []
    falls = []
    scaled = []
    step = seen.step.values
    ends = step[[0, -1]]
    for i, lr in enumerate(step_sizes):
        shade = i / 2
        name = f"η = {lr:.3g}"
        edge = float(law.sharpness[i])
        sharpness = seen.sharpness.values[0, i]
        rises += [
            kit.observed_curve(lr * step, sharpness, name, shade=shade),
            kit.predicted_curve(lr * ends, (edge, edge), shade=shade),
        ]
        falls.append(kit.observed_curve(lr * step, seen.risk.values[0, i], name, shade=shade))
        scaled.append(kit.observed_curve(step, sharpness * lr / 2, name, shade=shade))
    return (
        kit.panel(
            "The sharpness rises to 2/η (dashed) and stays",
            "time η × step",
            "sharpness",
            *rises,
            *more,
        ),
        kit.panel(
            "In units of 2/η",
            "step",
            "sharpness × η/2",
            *scaled,
            kit.predicted_curve(ends, (1, 1), "2/η"),
            kit.rival_curve(ends, (0.5, 0.5), "1/η"),
        ),
        kit.panel("The risk keeps falling", "time η × step", "risk", *falls, log="y"),
    )
