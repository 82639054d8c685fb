"""What the figure of parity-margins shows."""

import numpy as np
import xarray

from steepest import kit
from steepest.programs import parity_margins


def panels_of_margins(law: xarray.Dataset, seen: xarray.Dataset) -> tuple[kit.Panel, ...]:
    """Draw the margins over d for each parity, and what a bound on every gate costs."""
    return (
        *(_margins_of(seen.sel(bits=k), int(k)) for k in seen.bits.values),
        kit.panel(
            "What a bound on every gate costs",
            "d, bits of the input",
            "margin with |u| ≤ 1 / with E|u|² ≤ 1",
            *(
                kit.observed_curve(
                    seen.dimension.values,
                    (seen.bounded / seen.tangent).sel(bits=k).mean("draw").values,
                    f"{k} bits",
                )
                for k in seen.bits.values
            ),
            kit.predicted_curve(
                seen.dimension.values[[0, -1]], [float(law.gates)] * 2, "limit of 2 bits, √π/2"
            ),
            ylim=(0.5, 1.05),
        ),
    )


def _margins_of(seen: xarray.Dataset, k: int) -> kit.Panel:
    wide = np.unique(np.geomspace(k, seen["large"].max(), 40).astype(int))
    of_k = [parity_margins(int(d), k) for d in wide]
    frozen = [*seen.tangent.mean("draw").values, *seen.sampled.mean("draw").values]
    return kit.panel(
        f"Parities of {k} bits",
        "d, bits of the input",
        "margin",
        kit.observed_curve(
            seen.dimension.values, seen.first.values, "all neurons, program", kind="points"
        ),
        kit.predicted_curve(wide, [margin.first for margin in of_k], "all neurons, ∝ d^(−½)"),
        kit.observed_curve(
            [*seen.dimension.values, *seen["large"].values],
            frozen,
            "frozen features, drawn gates or sampled inputs",
            kind="points",
            shade=0.6,
        ),
        kit.predicted_curve(
            wide, [margin.tangent for margin in of_k], "frozen features, √λ", shade=0.6
        ),
        kit.rival_curve(wide, 1 / (k * np.sqrt(wide)), "1/(k√d)"),
        log="xy",
    )
