"""Two linear convolutions, one of k taps, reach the largest margin in a norm that k decides.

As k grows, this norm goes from the ℓ2 norm to the ℓ1 norm of the spectrum. The norm of β is the least √(Σ|β̂|²/p) over
the nonnegative trigonometric polynomials p of degree k − 1 and mean one. This norm is convex, so a further channel
gains nothing, and there is one largest margin for each k. Wavelets have no part in the norm.
"""

import jax
import numpy as np

from steepest import kit
from steepest.claims.implicit_bias.short_filters import theory
from steepest.claims.implicit_bias.short_filters.experiment import (
    FIRST,
    Setting,
    draw_starts,
    follow_all,
)
from steepest.nn import data
from steepest.programs import separable

WIDTHS = (1, 2)


@kit.claim
class ShortFilters(kit.Claim[Setting]):
    """One and two channels of two linear convolutions on synthetic separable sets, as they are sampled."""

    n: kit.Count = kit.param(
        8, "examples", scope=kit.between(7, 10, "with fewer, a single frequency may do")
    )
    dimension: kit.Count = kit.param(
        8,
        "dimension of inputs, d",
        scope=kit.between(8, 10, "more take time, and long filters settle late"),
    )
    margin: kit.Positive = kit.param(
        0.2,
        "ℓ2 margin of the sets by construction",
        scope=kit.between(0.1, 0.3, "of wide ones a single frequency may do"),
    )
    flipped: kit.Fraction = kit.param(0.0, "part of the labels that is flipped")
    taps: tuple[kit.Count, ...] = kit.param(
        (1, 2, 4),
        "k of the short filter; d is added",
        scope=kit.choices((1, 2, 4), (1, 3, 5), (1, 2, 3, 5), why="increasing, from one"),
    )
    scale: kit.Positive = kit.param(
        0.5,
        "length of the short filter at the start",
        scope=kit.between(0.3, 1.0, "smaller ones take time"),
    )
    horizon: kit.Positive = kit.param(
        3e4, "fall of the log of the risk", scope=kit.between(3e4, 1e5, "sooner the rest is large")
    )
    sets: kit.Seeds = kit.param(12, "separable sets, and starts")

    kind = "limit"
    says = {
        "reach the largest margin in a norm": ("margin", "every_set"),
        "goes from the ℓ2 norm to the ℓ1 norm of the spectrum": "margin",
    }
    tiny = {"n": 3, "dimension": 4, "taps": (1, 2), "horizon": 30.0, "sets": 6}
    full = {"horizon": 1e5, "sets": 60}
    out_of_scope = {"n": 40, "flipped": 0.3}

    @property
    def every_taps(self) -> tuple[int, ...]:
        """Numbers of taps, up to all."""
        return (*self.taps, self.dimension)

    def axes(self):
        return {"taps": self.every_taps, "channels": WIDTHS}

    def check_fields(self) -> None:
        if self.taps[0] != 1 or any(np.diff(self.every_taps) <= 0):
            raise kit.UserError(
                f"taps must increase from 1 to less than dimension = {self.dimension}, got {self.taps}; try (1, 2)"
            )

    def setting(self, key):
        for_data, for_others = jax.random.split(key)

        def draw(key: kit.Key) -> tuple[jax.Array, jax.Array]:
            drawn_set = data.separable(key, self.n, self.dimension, self.margin)
            return drawn_set.x, drawn_set.y

        draw_all = kit.compiled(lambda key: jax.vmap(draw)(jax.random.split(key, self.sets)))
        x, y = map(np.asarray, draw_all(for_data))
        rng = kit.numpy_generator(for_others)
        labels = np.where(rng.random(y.shape) < self.flipped, -y, y)
        size = (self.sets, self.dimension)
        return Setting(x, labels, draw_starts(rng, size, WIDTHS, self.every_taps, self.scale))

    def hypotheses(self, setting):
        separated = sum(separable(x, y) for x, y in zip(setting.x, setting.y, strict=True))
        yield kit.assume(
            "sets that are separable", separated, "==", self.sets, "choose --flipped 0"
        )

    def predict(self, setting):
        margins = [
            [theory.largest_margin(x, y, k) for k in self.every_taps]
            for x, y in zip(setting.x, setting.y, strict=True)
        ]
        return kit.law(margin=("seed taps", margins))

    def observe(self, setting, key):
        ends = follow_all(setting, self.every_taps, self.horizon)
        return kit.seen(
            margin=("seed channels taps", ends.margin[0, ..., -1]),
            along=("seed channels taps reading", ends.margin[0]),
            arrived=("seed channels taps", ends.arrived[0]),
            power_tail=("seed channels taps", ends.margin[1, ..., -1]),
        )

    def run_conditions(self, observed):
        arrived = float(observed["arrived"].mean())
        yield kit.assume("flows that arrived", arrived, "==", 1, "lower --horizon")

    def judge(self, law, seen):
        yield kit.follows(
            "margin",
            law.margin,
            seen.margin,
            0.03,  # the rest of this fall is up to 0.01 in the mean, the interval 0.01
            over="channels taps",
            label="margin over Σ‖u‖‖w‖, mean over sets",
        )
        yield kit.follows(
            "every_set",
            law.margin,
            seen.margin,
            0.1,  # the slowest set of drafts lacked 0.04
            over="channels taps",
            each=True,
            label="margin over Σ‖u‖‖w‖, every set",
        )

    def rivals(self, setting, law):
        following = np.minimum(np.arange(len(law.taps)) + 1, len(law.taps) - 1)
        rivals = [
            kit.rival(
                "the ℓ2 margin with any filter",
                "a short filter can only smooth",
                margin=law.margin.isel(taps=0, drop=True).broadcast_like(law.margin),
            ),
            kit.rival(
                "ℓ1 of the spectrum with any filter",
                "it is so for filters of full length",
                id="spectrum",
                margin=law.margin.isel(taps=-1, drop=True).broadcast_like(law.margin),
            ),
            kit.rival(
                "the norm of the next number of taps",
                "one might count waves, not taps",
                margin=("seed taps", law.margin.values[:, following]),
            ),
        ]
        if self.dimension & (self.dimension - 1):
            return rivals  # there are Haar wavelets of a power of two only
        haar = law.margin.copy(deep=True)
        haar[:, 1] = [
            theory.haar_margin(x, y, self.taps[1])
            for x, y in zip(setting.x, setting.y, strict=True)
        ]
        wavelets = kit.rival(
            f"ℓ1 of Haar's wavelets with {self.taps[1]} taps",
            "the talk expects sparse wavelets",
            id="haar",
            margin=haar,
        )
        return [wavelets, *rivals]

    def controls(self, seen):
        one_tap = seen.margin.isel(taps=0, drop=True).broadcast_like(seen.margin)
        yield kit.control(
            "the network with one tap, for all",
            "its weight is flat",
            margin=one_tap.transpose(*seen.margin.dims),
        )
        yield kit.control(
            "the loss 1/(1 + u)",
            "its multipliers stay on examples off the margin",
            margin=seen.power_tail,
        )

    def figure(self, law, seen, rivals):
        falls = np.geomspace(FIRST, self.horizon, seen.sizes["reading"])
        missing = (1 - seen.along.isel(channels=0) / law.margin).mean("seed")
        gain = law.margin / law.margin.isel(taps=0)
        taps = np.array(self.every_taps)
        measured = (seen.margin / law.margin.isel(taps=0)).mean("seed")
        yield kit.panel(
            "More taps have a wider margin, and a second channel gains nothing",
            "taps k",
            "largest margin over that in ℓ2",
            kit.predicted_curve(taps, gain.mean("seed").values, "norm of k taps"),
            *(
                kit.observed_curve(
                    taps, measured.sel(channels=width).values, name, kind="points", shade=shade
                )
                for width, name, shade in zip(
                    WIDTHS, ("one channel", "two"), (0.0, 0.6), strict=True
                )
            ),
            log="x",
        )
        yield kit.panel(
            "Networks approach the largest margin at every k",
            "fall of log R",
            "part that is missing, mean over sets",
            *(
                kit.observed_curve(
                    falls, missing.sel(taps=k).values, f"k = {k}", shade=i / len(taps)
                )
                for i, k in enumerate(self.every_taps)
                if k > 1
            ),
            log="xy",
        )
