"""What the figure of selection-width shows."""

from collections.abc import Mapping

import numpy as np
import xarray

from steepest import kit
from steepest.claims.features.selection_width.theory import share_living_on_pairs


def panels_of_shares(
    law: xarray.Dataset, seen: xarray.Dataset, rivals: Mapping[str, xarray.Dataset], examples: int
) -> tuple[kit.Panel, ...]:
    """Draw the share of starts that learn over the width, and the share of neurons that live over μ."""
    many = kit.curves("", law.many_rate, seen.many_success, over="width").curves
    line = np.linspace(0, 1, 50)
    wrong = {"all live": rivals["all_live"].many_rate} if rivals else {}
    return (
        kit.curves(
            f"Both classes are learned as often as both signs live (top: {examples} examples)",
            law.rate,
            seen.success,
            over="width",
            by="mu",
            x="width h [neurons]",
            y="share of starts",
            name="pair, μ = {}",
            rivals=wrong,
            more=many,
            ylim=(0, 1.03),
        ),
        kit.panel(
            "On pairs more neurons live the larger μ",
            "μ = −cos(x₊, x₋)",
            "share of neurons that live",
            kit.observed_curve(
                seen.mu.values,
                seen.pair_lives.mean(["draw", "neuron"]).values,
                "trained",
                kind="points",
            ),
            kit.predicted_curve(line, share_living_on_pairs(line), "½ + arcsin(μ)/2π"),
            kit.rival_curve(line, np.full_like(line, 0.5), "½"),
            ylim=(0.4, 1.03),
        ),
    )
