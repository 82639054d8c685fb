"""What the figure of early-alignment shows."""

from collections.abc import Sequence

import numpy as np
import xarray

from steepest import kit
from steepest.claims.implicit_bias._small_starts import by_class
from steepest.claims.implicit_bias.early_alignment.experiment import polar
from steepest.nn.types import Values


def panels_of_alignment(
    scales: Sequence[float],
    log_times: Values,
    window: float,
    law: xarray.Dataset,
    seen: xarray.Dataset,
) -> tuple[kit.Panel, ...]:
    """Draw how neurons turn and grow in the window, and when losses fall.

    Args:
        scales: of the starts.
        log_times: log(1 + t) of the readings.
        window: time at which that of the first network ends.
        law: what was predicted.
        seen: what was measured.
    """
    few = log_times <= 6
    time = np.expm1(log_times[few])
    target = by_class(law.target[:1], seen.positive.values[:1])
    cosines = polar(seen.weights.values[0, few], target)[1].T
    norms = np.linalg.norm(seen.weights[0].values, axis=-1).T[:, few]
    risks = [
        kit.observed_curve(log_times, np.exp(path), f"ε = {scale:g}", shade=i / len(scales))
        for i, (scale, path) in enumerate(zip(scales, seen.log_risk[0].values, strict=True))
    ]
    end = float(seen.log_risk[0, 0, -1]) + log_times[-1] + np.log(log_times[-1])
    later = log_times > 4
    law_of_risk = np.exp(end - log_times[later]) / log_times[later]
    at_end = lambda low: kit.predicted_curve((window, window), (low, 1), "end of the window")
    return (
        kit.panel(
            "Neurons turn to the sum of their class",
            "time",
            "cosine",
            kit.observed_curve(time, cosines, "neurons"),
            at_end(-1),
        ),
        kit.panel(
            "Meanwhile norms stay small",
            "time",
            "‖w‖",
            kit.observed_curve(time, norms, "neurons"),
            at_end(norms.min()),
            log="y",
        ),
        kit.panel(
            "The smaller the start, the later the fall",
            "log(1 + t)",
            "risk",
            *risks,
            kit.predicted_curve(log_times[later], law_of_risk, "1/(t log t)"),
            log="y",
            ylim=(1e-9, 3),
        ),
    )
