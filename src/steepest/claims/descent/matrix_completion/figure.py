"""What the figure of matrix-completion shows."""

from collections.abc import Mapping

import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent.matrix_completion.theory import expected_entries


def panels_of_completion(
    law: xarray.Dataset, seen: xarray.Dataset, rivals: Mapping[str, xarray.Dataset]
) -> tuple[kit.Panel, ...]:
    """Draw the share completed beside that of connected graphs, and the number of entries that is needed."""
    size = seen["size"].values
    sizes = np.geomspace(size.min(), size.max(), 50)
    wrong = [
        kit.rival_curve(size, (rivals[id].needed / size).values, label)
        for id, label in (("unknowns", "1"), ("no_constant", "½ log n"), ("per_row", "a constant"))
        if rivals
    ]
    worlds = (
        ("from large starts", seen.completes_from_large),
        ("one row last", seen.completes_row_last),
    )
    largest = seen.isel(size=-1)
    others = [
        kit.context_curve(
            seen.density.values, array.isel(size=-1).mean("draw").values, label, kind="line"
        )
        for label, array in worlds
    ]
    return (
        kit.curves(
            "Matrices are completed as their graphs become connected",
            law.connected,
            seen.completes,
            over="density",
            by="size",
            x="known entries / n",
            y="share completed",
            name="n = {}",
        ),
        kit.panel(
            f"Not from large starts, nor without one row (n = {int(largest['size'])})",
            "known entries / n",
            "share completed",
            kit.observed_curve(
                seen.density.values,
                largest.completes.mean("draw").values,
                "small start, random entries",
                kind="points",
            ),
            *others,
        ),
        kit.panel(
            "As many as n rows need to be connected",
            "n",
            "known entries needed / n",
            kit.observed_curve(
                size, (seen.needed.mean("draw") / size).values, "descent", kind="points"
            ),
            kit.predicted_curve(sizes, expected_entries(sizes) / sizes, "½(log n + γ)"),
            *wrong,
            log="x",
        ),
    )
