"""What the figure of ntk-dynamics shows."""

from collections.abc import Mapping

import numpy as np
import xarray

from steepest import kit

DRAWN = 4
"""Networks of which the outputs are drawn."""


def panels_of_departures(
    law: xarray.Dataset, seen: xarray.Dataset, rivals: Mapping[str, xarray.Dataset]
) -> tuple[kit.Panel, ...]:
    """Draw how departures fall with width, and outputs at one test point at the largest step size."""
    of_own_kernel = seen.own.sel(points="test").mean(["seed", "multiple"])
    width = seen.width.values
    with_own_kernel = (
        kit.observed_curve(width, of_own_kernel.values, "own kernel", kind="points", shade=0.5),
        kit.predicted_curve(width, of_own_kernel.values[0] * law.own.values, "∝ 1/n", shade=0.5),
    )
    fall = kit.curves(
        "Test points: departures fall with width",
        law.departure_test.isel(step=-1),
        seen.departure_test.isel(step=-1),
        over="width",
        by="multiple",
        x="width n",
        y="departure from the recursion",
        name="limit kernel, η = {}/λ_max",
        more=with_own_kernel,
        log="xy",
    )
    return fall, _one_point(law, seen)


def _one_point(law: xarray.Dataset, seen: xarray.Dataset) -> kit.Panel:
    """Draw the outputs of some of the widest networks at one test point, and the recursion from one start.

    That of the first is the one to compare; the others are faint.
    """
    at = {"multiple": -1, "width": -1}
    point = int(np.argmax([str(name).startswith("test") for name in law.point.values]))
    steps = np.array([0, *law.step.values])
    start = seen.start.isel(width=-1)
    outputs = seen.outputs.isel(at)
    networks = [{"seed": i, "draw": 0} for i in range(min(DRAWN, seen.sizes["seed"]))]
    paths = np.array(
        [[start.isel(network)[point], *outputs.isel(network)[:, point]] for network in networks]
    )
    lines = [kit.observed_curve(steps, paths[0], "one network", shade=0.0)]
    if len(paths) > 1:
        lines.insert(0, kit.observed_curve(steps, paths[1:], "others"))
    first = start.isel(seed=0, draw=0).values
    recursion = law.outputs.isel(multiple=-1)[:, point].values @ np.append(first, 1.0)
    path = [first[point], *recursion]
    lines.append(kit.predicted_curve(steps, path, "limit kernel"))
    title = f"One test point at η = {float(law.multiple[-1]):g}/λ_max"
    return kit.panel(title, "step", "output", *lines)
