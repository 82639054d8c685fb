"""Correlations in wide random networks approach their fixed point as exp(−l/ξ) with depth l.

These are the correlations between two inputs at layer l. The depth scale is ξ = −1/log χ, where χ is the slope of the
correlation map at its attracting fixed point: χ⊥ at correlation one in the ordered phase, the slope at c* < 1 in the
chaotic phase. Beyond a few ξ the output has forgotten which input it saw.
"""

import itertools
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.claims.signals.depth_scale.experiment import (
    DepthScalePoint,
    fitted_scale,
    rests_and_forgets,
    shares_left,
)
from steepest.kernels import DepthScales

ORDERED = 0.03
"""Relative error of ξ in order: the fit's second order leaves 0.5 %, and noise hardly any."""
CHAOTIC = 0.1
"""Relative error of ξ in chaos: second order and width leave up to 3 % near the critical line, noise 5 %."""
REMAINING = 0.1
"""Relative error of what remains after some layers: an error of ξ counts l/ξ times."""


class Setting(NamedTuple):
    """Fixed points at every (C_W, C_b), and inputs whose variance is at the fixed point, each ``(3, 2)``."""

    scales: list[DepthScales]
    inputs: list[jax.Array]


@kit.claim
class DepthScale(kit.Claim[Setting]):
    """Correlations in wide random networks, at ordered and chaotic points of the phase diagram."""

    activation: str = kit.param(
        "tanh", "activation", unit="name", scope=kit.choices("tanh", "erf", "sin")
    )
    c_w: tuple[kit.Positive, ...] = kit.param(
        (0.8, 1.5, 2.5, 4.0),
        "C_W of each point",
        scope=kit.choices(
            (0.8, 1.5, 2.5, 4.0),
            (0.5, 1.2, 2.3, 5.0),
            (0.7, 1.0, 2.8, 5.0),
            why="the two of a phase must differ in ξ",
        ),
    )
    c_b: tuple[kit.NonNegative, ...] = kit.param(
        (0.05, 0.3, 0.05, 0.05),
        "C_b of each point",
        scope=kit.choices((0.05, 0.3, 0.05, 0.05), (0.1, 0.2, 0.1, 0.1), (0.2, 0.4, 0.05, 0.2)),
    )
    width: kit.Count = kit.param(
        2000,
        "width n of every layer",
        unit="neurons",
        scope=kit.between(1500, 3000, "narrow layers shift c* and ξ"),
    )
    layers: kit.Count = kit.param(16, "layers after the first", unit="layers")
    compared: tuple[kit.Count, ...] = kit.param(
        (1, 2, 4, 6),
        "layers after which what remains is compared",
        unit="layers",
        scope=kit.choices((1, 2, 4, 6), (1, 3, 5)),
    )
    networks: kit.Seeds = kit.param(600, "random networks at each point")
    separation: kit.Fraction = kit.param(
        0.1,
        "distance of the starting correlations from c* < 1, a tenth of it from c* = 1",
        scope=kit.between(0.07, 0.1, "the second order of the map beyond, noise below"),
    )
    floor: kit.Fraction = kit.param(
        0.15,
        "share of the starting difference down to which it is fitted",
        scope=kit.between(0.15, 0.3, "noise below, too few layers beyond"),
    )

    kind = "limit"
    says = {
        "as exp(−l/ξ) with depth l": "remaining",
        "χ⊥ at correlation one in the ordered phase": "ordered",
        "the slope at c* < 1 in the chaotic phase": "chaotic",
    }
    tiny = {"width": 600, "layers": 12, "networks": 40}
    full = {"networks": 3000, "layers": 24}
    out_of_scope = {"c_w": (1.8, 2.5), "c_b": (0.05, 0.05)}
    point = DepthScalePoint

    def points(self) -> list[DepthScalePoint]:
        """Return the experiment at every (C_W, C_b)."""
        return [
            DepthScalePoint.of(replace(self, c_w=(c_w,), c_b=(c_b,)))
            for c_w, c_b in zip(self.c_w, self.c_b, strict=True)
        ]

    def axes(self):
        names = [f"C_W {w:g}, C_b {b:g}" for w, b in zip(self.c_w, self.c_b, strict=True)]
        in_order = [point.scales.correlation == 1 for point in self.points()]
        return {
            "point": tuple(names),
            "ordered_point": tuple(itertools.compress(names, in_order)),
            "chaotic_point": tuple(itertools.compress(names, np.logical_not(in_order))),
            "layer": self.compared,
        }

    def check_fields(self) -> None:
        kit.same_lengths(self, "c_w", "c_b")

    def setting(self, key):
        points = self.points()
        return Setting([point.scales for point in points], [point.setting(key) for point in points])

    def hypotheses(self, setting):
        axes = self.axes()
        both = "name points of both phases"
        yield from rests_and_forgets(setting.scales, self.layers, self.width)
        yield kit.assume("points in order", len(axes["ordered_point"]), ">=", 1, both)
        yield kit.assume("points in chaos", len(axes["chaotic_point"]), ">=", 1, both)

    def predict(self, setting):
        return kit.law(
            **self.law_of(np.array([scales.xi_correlation for scales in setting.scales]))
        )

    def law_of(self, scale: np.ndarray) -> dict[str, Any]:
        """Return the law at depth scales ξ of all points: ξ by phase, and exp(−l/ξ), what is left after l layers."""
        axes = self.axes()
        by_name = dict(zip(axes["point"], scale, strict=True))
        left = np.exp(-np.multiply.outer(1 / scale, np.array(self.compared)))
        return {
            "scale_in_order": ("ordered_point", [by_name[name] for name in axes["ordered_point"]]),
            "scale_in_chaos": ("chaotic_point", [by_name[name] for name in axes["chaotic_point"]]),
            "remaining": ("point layer", left),
        }

    def observe(self, setting, key):
        point = self.points()[0]

        def correlations(task: tuple) -> jax.Array:
            c_w, c_b, inputs, seed = task
            return point.traced({"c_w": c_w, "c_b": c_b}).correlations(inputs, seed)

        # single precision, which traced numbers of double precision would leave
        values = (np.array(numbers, np.float32) for numbers in (self.c_w, self.c_b))
        tasks = (*values, np.stack(setting.inputs), jnp.stack(kit.keys(key, len(self.c_w))))
        measured = kit.compiled(lambda tasks: jax.lax.map(correlations, tasks))(tasks)
        return kit.seen(correlation=("point group depth pair", measured))

    def derive(self, law, seen):
        """Return the difference of the two correlations, its depth scale, and what remains of it."""
        difference = seen.correlation.isel(pair=0) - seen.correlation.isel(pair=1)
        scales = [fitted_scale(groups, self.floor) for groups in difference.values]
        remaining = [shares_left(groups, self.compared) for groups in difference.values]
        scale = xarray.DataArray(scales, {"point": law.point}, ["point", "seed"])
        return {
            "difference": difference,
            "remaining": xarray.DataArray(
                remaining, law.remaining.coords, ["point", "seed", "layer"]
            ),
            "scale_in_order": scale.sel(point=law.ordered_point.values).rename(
                point="ordered_point"
            ),
            "scale_in_chaos": scale.sel(point=law.chaotic_point.values).rename(
                point="chaotic_point"
            ),
        }

    def judge(self, law, seen):
        yield kit.follows(
            "ordered", law.scale_in_order, seen.scale_in_order, ORDERED, label="ξ in order"
        )
        yield kit.follows(
            "chaotic", law.scale_in_chaos, seen.scale_in_chaos, CHAOTIC, label="ξ in chaos"
        )
        yield kit.follows(
            "remaining",
            law.remaining,
            seen.remaining,
            REMAINING,
            label="share of a difference that is left after l layers",
        )

    def rivals(self, setting, law):
        scales = setting.scales
        xi = np.array([scale.xi_correlation for scale in scales])
        in_units = np.multiply.outer(1 / xi, np.array(self.compared))
        yield kit.rival(
            "ξ from χ∥",
            "the variance approaches K* with it",
            id="chi_parallel",
            **self.law_of(np.array([scale.xi_parallel for scale in scales])),
        )
        yield kit.rival(
            "ξ from χ⊥ at correlation one",
            "that is the fixed point in the ordered phase",
            id="chi_at_one",
            **self.law_of(np.array([scale.xi_perpendicular for scale in scales])),
        )
        yield kit.rival(
            "twice ξ",
            "distances of unit vectors, √(2(1 − c)), forget half as fast",
            **self.law_of(2 * xi),
        )
        yield kit.rival(
            "a difference falls like 1/(1 + l/ξ)",
            "so it is on the critical line",
            remaining=("point layer", 1 / (1 + in_units)),
        )

    def controls(self, seen):
        others = seen.correlation.roll(point=1).values
        yield kit.control(
            "networks of another point in the place of each",
            "C_W and C_b decide how fast networks forget",
            correlation=("point group depth pair", others),
        )

    def figure(self, law, seen, rivals):
        depths = np.arange(self.layers + 1)
        falls: list[kit.Curve] = []
        for i, name in enumerate(law.point.values):
            shade = i / max(1, len(self.c_w) - 1)
            mean = seen.difference[i].mean("group").values
            falls.append(kit.observed_curve(depths, mean / mean[0], str(name), shade=shade))
        for i, left in enumerate(law.remaining.values):
            shade = i / max(1, len(self.c_w) - 1)
            falls.append(kit.predicted_curve(law.layer.values, left, shade=shade))
        predicted = np.append(law.scale_in_order, law.scale_in_chaos)
        measured = np.append(seen.scale_in_order.mean("seed"), seen.scale_in_chaos.mean("seed"))
        ends = [predicted.min(), predicted.max()]
        yield kit.panel(
            "Two correlations approach each other",
            "layer",
            "difference / at the start",
            *falls,
            log="y",
            ylim=(0.03, 1.2),
        )
        yield kit.panel(
            "The depth scale",
            "predicted ξ [layers]",
            "measured ξ [layers]",
            kit.observed_curve(predicted, measured, kind="points"),
            kit.predicted_curve(ends, ends, "−1/log χ"),
            log="xy",
        )
