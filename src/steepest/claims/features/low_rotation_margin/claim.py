"""If ReLU neurons keep their first directions, gradient flow tends to the largest margin these allow.

Neurons v_j relu⟨w_j, x⟩ whose w_j keep their directions u_j train only the products c_j = v_j ‖w_j‖. Started off
balance these take either sign, and the flow tends to the largest ℓ1 margin over ±relu⟨u_j, ·⟩. Started balanced, v_j =
±‖w_j‖, the products keep their signs, and the flow tends to the largest margin with these signs. On XOR this margin is
far from γ₁, the margin over all directions. Half of γ₁ needs at least one direction of half the best edge. The
probability P(d) of such a direction falls exponentially with d, so at least 1/P(d) directions are needed on average.
"""

from typing import Annotated

import numpy as np
import xarray

from steepest import kit
from steepest.claims.features.low_rotation_margin.experiment import (
    READINGS,
    follow,
    read,
    width_needed,
)
from steepest.claims.features.low_rotation_margin.setting import Setting, signed_features, units
from steepest.claims.features.low_rotation_margin.theory import (
    edges,
    euclidean_margin,
    largest_margin,
)
from steepest.programs import parity_margins

DRAWS = 40_000
"""Directions that give P(d)."""
LEFT = 0.05
"""Relative error of every margin: at e¹⁴ a flow has 0.7 to 1.3 % left on average, and 2.4 % where most."""


@kit.claim
class LowRotationMargin(kit.Claim[Setting]):
    """XOR on the whole cube: flows of several widths, and the widths that are needed for half of γ₁."""

    dimension: Annotated[int, kit.Within(2, 7)] = kit.param(
        4, "d of the flows", unit="bits", scope=kit.choices(3, 4)
    )
    widths: tuple[kit.Count, ...] = kit.param(
        (64, 128),
        "neurons h of the flows",
        unit="neurons",
        scope=kit.choices((64, 128), (48, 144), why="fewer neurons may not fit"),
    )
    start: kit.Positive = kit.param(
        0.01, "scale of the products |v_j| ‖w_j‖", scope=kit.between(0.001, 0.1)
    )
    horizon: Annotated[float, kit.Within(2, 18)] = kit.param(
        14.0,
        "log Σ|v_j| ‖w_j‖ at the end of the flows",
        scope=kit.between(13.5, 14.5, "rounding hides examples beyond, and more is left below"),
    )
    dimensions: tuple[Annotated[int, kit.Within(3, 8)], ...] = kit.param(
        (3, 4, 5, 6),
        "d at which widths are sought",
        unit="bits",
        scope=kit.choices((3, 4, 5, 6), (3, 5)),
    )
    widest: Annotated[int, kit.Within(16, 8192)] = kit.param(
        2048, "largest of these widths", unit="neurons"
    )
    seeds: kit.Seeds = kit.param(10, "sets of directions")

    kind = "limit"
    says = {
        "gradient flow tends to the largest margin these allow": "balanced",
        "these take either sign, and the flow tends to the largest ℓ1 margin": "either",
    }
    tiny = {"seeds": 3, "widths": (32, 96), "dimensions": (3, 4), "widest": 512, "horizon": 12.0}
    full = {"seeds": 40, "dimensions": (3, 4, 5, 6, 7), "widest": 4096}
    out_of_scope = {"widths": (3, 4)}

    @property
    def grid(self) -> np.ndarray:
        """Return the widths at which margins are computed, by factors of √2."""
        count = int(2 * np.log2(self.widest / 4)) + 1
        return np.unique(np.round(4 * 2 ** (np.arange(count) / 2)).astype(int))

    def axes(self):
        return {"width": self.widths, "dimension": self.dimensions}

    def setting(self, key):
        rng = kit.numpy_generator(key)
        draw = lambda width: np.stack(
            [units(rng, width, self.dimension) for _ in range(self.seeds)]
        )
        directions = [draw(width) for width in self.widths]
        features = [np.stack([signed_features(u) for u in sets]) for sets in directions]
        signs = [rng.choice([-1.0, 1.0], (self.seeds, width)) for width in self.widths]
        best = [parity_margins(d, 2).first for d in (self.dimension, *self.dimensions)]
        return Setting(directions, features, signs, np.array(best))

    def hypotheses(self, setting):
        least = self.margins(setting, balanced=True).min()
        # what the flow still gains once the data are fitted, where log Σ|c_j| is about zero
        growth = self.horizon - max(0.0, np.log(self.start))
        yield kit.assume(
            "least margin of the first directions", least, ">", 1e-6, "choose larger --widths"
        )
        yield kit.assume(
            "log of growth after the fit", growth, ">=", 12, "raise --horizon, or lower --start"
        )

    def margins(self, setting: Setting, balanced: bool) -> np.ndarray:
        """Return the largest margins of all first directions, with their first signs or any, ``(seeds, widths)``."""
        margins = [
            [largest_margin(f, s if balanced else None) for f, s in zip(*sets, strict=True)]
            for sets in zip(setting.features, setting.signs, strict=True)
        ]
        return np.array(margins).T

    def predict(self, setting):
        return kit.law(
            either=("seed width", self.margins(setting, balanced=False)),
            balanced=("seed width", self.margins(setting, balanced=True)),
            needed=("dimension", 1 / self.chance(0.5, setting)),
        )

    def chance(self, share: float, setting: Setting) -> np.ndarray:
        """Return how often a direction has at least this share of the best edge, ``(dimensions,)``."""
        rng = np.random.default_rng(0)
        bests = zip(self.dimensions, setting.best[1:], strict=True)
        relative = [edges(units(rng, DRAWS, d)) / best for d, best in bests]
        return np.array([(edge >= share).mean() for edge in relative])

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        bests = list(zip(self.dimensions, setting.best[1:], strict=True))
        needed = [
            [width_needed(units(rng, self.grid[-1], d), best / 2, self.grid) for d, best in bests]
            for _ in range(self.seeds)
        ]
        return kit.seen(
            either=("seed width axis reading", self.flows(setting, balanced=False)),
            balanced=("seed width axis reading", self.flows(setting, balanced=True)),
            needed=("seed dimension", needed),
        )

    def flows(self, setting: Setting, balanced: bool) -> np.ndarray:
        """Return log Σ|c_j| and the margin along the flows, ``(seeds, widths, 2, readings)``."""
        paths = [
            [
                read(follow(f, s if balanced else None, self.start, self.horizon))
                for f, s in zip(*sets, strict=True)
            ]
            for sets in zip(setting.features, setting.signs, strict=True)
        ]
        return np.array(paths).swapaxes(0, 1)

    def run_conditions(self, observed):
        ends = [observed[name][:, :, 0, -1].min() for name in ("either", "balanced")]
        missed = np.isinf(observed["needed"]).mean()
        yield kit.assume(
            "least log Σ|c_j| at the end", min(ends), ">=", self.horizon, "lower --horizon"
        )
        yield kit.assume("share of widths above the widest", missed, "==", 0, "raise --widest")

    def derive(self, law, seen):
        """Return the margins at the ends of the flows."""
        return {
            "either_end": seen.either.isel(axis=1, reading=-1),
            "balanced_end": seen.balanced.isel(axis=1, reading=-1),
        }

    def judge(self, law, seen):
        yield kit.follows(
            "either",
            law.either,
            seen.either_end,
            LEFT,
            over="width",
            each=True,
            label="margin of the flow off balance",
        )
        yield kit.follows(
            "balanced",
            law.balanced,
            seen.balanced_end,
            LEFT,
            over="width",
            each=True,
            label="margin of the balanced flow",
        )
        yield kit.at_least(
            "needed", law.needed, seen.needed, label="width for half of γ₁, at least 1/P(d)"
        )

    def rivals(self, setting, law):
        lazy = [[euclidean_margin(f) for f in sets] for sets in setting.features]
        yield kit.rival(
            "the balanced flow reaches the margin of either sign",
            "the balanced start is called a matter of convenience",
            id="same_limit",
            balanced=law.either,
        )
        yield kit.rival(
            "the flow off balance keeps its signs",
            "output weights start with these signs",
            id="signs_kept",
            either=law.balanced,
        )
        yield kit.rival(
            "the limit is the separator of least ℓ2 norm",
            "were the features' weights trained by themselves",
            either=("seed width", np.array(lazy).T),
        )
        yield kit.rival(
            "the first directions have the margin γ₁",
            "the space of all neurons, as for widths without end",
            either=xarray.full_like(law.either, setting.best[0]),
        )
        yield kit.rival(
            "a direction of nine tenths of the best edge is needed",
            "it fits all points nearly as well as the four best",
            id="one_good_neuron",
            needed=("dimension", 1 / np.maximum(self.chance(0.9, setting), 1 / DRAWS)),
        )

    def controls(self, seen):
        early = {
            name: (
                seen[name].dims,
                np.repeat(seen[name].values[..., :-1][..., [READINGS // 3]], READINGS, -1),
            )
            for name in ("either", "balanced")
        }
        yield kit.control("flows after a third of their readings", "the approach is slow", **early)

    def figure(self, law, seen, rivals):
        widest = {"width": -1}
        flows = [
            self.flow_panel(title, seen[name].isel(widest), law[name].isel(widest), other)
            for name, title, other in (
                (
                    "either",
                    "Off balance: the margin over either sign",
                    rivals["signs_kept"].either.isel(widest),
                ),
                (
                    "balanced",
                    "Balanced: the margin with the first signs",
                    rivals["same_limit"].balanced.isel(widest),
                ),
            )
        ]
        needed = kit.curves(
            "Half of γ₁ takes many first directions",
            law.needed,
            seen.needed,
            over="dimension",
            x="d, bits of the input",
            y="neurons",
            log="y",
        )
        yield from flows
        yield needed

    def flow_panel(
        self, title: str, path: xarray.DataArray, limit: xarray.DataArray, other: xarray.DataArray
    ) -> kit.Panel:
        """Draw the margins along flows of one width over the program's margin."""
        line = np.array([0.0, self.horizon])
        grid = np.linspace(0, self.horizon, READINGS)
        ratios = path.values[:, 1] / limit.values[:, None]
        curves = [np.interp(grid, *pair) for pair in zip(path.values[:, 0], ratios, strict=True)]
        level = float((other / limit).mean())
        return kit.panel(
            title,
            "log Σ|v_j| ‖w_j‖",
            "margin / the program's margin",
            kit.observed_curve(grid, np.array(curves), "flow"),
            kit.predicted_curve(line, [1, 1], "program"),
            kit.rival_curve(line, [level, level], "the other program, on average"),
            ylim=(0, 1.6),
        )
