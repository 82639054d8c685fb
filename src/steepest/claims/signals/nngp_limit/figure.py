"""What the figure of nngp-limit shows."""

from collections.abc import Mapping

import numpy as np
import xarray

from steepest import kit


def panels_of_limit(
    law: xarray.Dataset, seen: xarray.Dataset, rivals: Mapping[str, xarray.Dataset]
) -> tuple[kit.Panel, ...]:
    """Draw how kurtosis and joint law near those of the limit, and the kurtosis where weights are signs."""
    slow = rivals.get("slow_decay")
    of_slow = lambda name: {} if slow is None else {"∝ n^(−1/2)": slow[name].isel(activation=0)}
    signs = {}
    if "gaussian_kurtosis" in rivals:
        signs["Gaussian weights"] = rivals["gaussian_kurtosis"].sign_kurtosis
    # what sampling makes negative is drawn at the foot
    departure = np.maximum(seen.departure.mean("seed"), 1e-4)
    return (
        kit.curves(
            "Outputs become Gaussian",
            law["kurtosis"],
            seen["kurtosis"],
            over="width",
            by="activation",
            x="width n",
            y="excess kurtosis",
            rivals=of_slow("kurtosis"),
            log="xy",
        ),
        kit.curves(
            "and jointly so at three inputs",
            law.departure,
            departure,
            over="width",
            by="activation",
            x="width n",
            y="departure of E cos(u·z)",
            rivals=of_slow("departure"),
            log="xy",
        ),
        kit.curves(
            "ReLU: weights that are signs have lighter tails",
            law.sign_kurtosis,
            seen.sign_kurtosis,
            over="sign_width",
            x="width n",
            y="excess kurtosis",
            rivals=signs,
            log="xy",
        ),
    )
