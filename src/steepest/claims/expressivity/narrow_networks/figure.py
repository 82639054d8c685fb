"""What the figure of narrow-networks shows."""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.expressivity.narrow_networks.experiment import DEEP

POLYGONS = (3, 4, 6, 8, 16, 32)  # directions of the running maximum


def panels_of_networks(
    width: int, law: xarray.Dataset, seen: xarray.Dataset
) -> tuple[kit.Panel, ...]:
    """Draw how narrow networks of this width and others train, and the errors of two constructions."""
    folds = law.fold.values

    def sorted_points(name: str, label: str, shade: float = 0.0) -> kit.Curve:
        values = np.sort(seen[name].values)
        rank = (np.arange(len(values)) + 0.5) / len(values)
        return kit.observed_curve(rank, values, label, kind="points", shade=shade)

    return (
        kit.panel(
            f"Trained on ‖x‖, {DEEP} hidden layers",
            "networks, sorted",
            "error in the supremum",
            sorted_points("error", f"width {width}"),
            sorted_points("wide_error", "width 4", 1.0),
            kit.predicted_curve((0, 1), (0.5, 0.5), "½"),
            ylim=(0, 1.2),
        ),
        kit.panel(
            "Trained on the disc: chains give up",
            "networks, sorted",
            "share right",
            sorted_points("disc_right", f"width {width}"),
            sorted_points("residual_right", "residual, one neuron", 1.0),
        ),
        kit.panel(
            "Two constructions for ‖x‖",
            "hidden layers or blocks",
            "error in the supremum",
            kit.observed_curve(POLYGONS, seen.width_three, "width three", kind="points"),
            kit.observed_curve(folds, seen.folding, "folding", kind="points", shade=1.0),
            kit.predicted_curve(POLYGONS, law.width_three, "1 − cos π/K, 1 − cos π/2^m"),
            kit.predicted_curve(folds, law.folding),
            kit.rival_curve(folds, 2.0 ** (1 - folds), "each fold halves"),
            log="y",
        ),
    )
