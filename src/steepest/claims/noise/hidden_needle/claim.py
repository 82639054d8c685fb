"""Metropolis does not find a needle that holds a bowl's minimum and nearly all of its Gibbs law.

The bowl f = ‖x‖²/2 in d dimensions has ripples of height δ, and a needle, a thin hole, far from its bottom. At T = δ
the mean of f under exp(−F/T) is nearly its height at the needle. Walkers that read only values of F have the mean dT/2
of the bowl without a needle. So values may not suffice to sample a density that is log-concave but for a small set.
"""

import numpy as np

from steepest import kit
from steepest.claims.noise import _rippled_bowl as bowl
from steepest.claims.noise._rippled_bowl import HIDDEN, NEEDLE, QUENCH, Walks

DEPTH = 25.0  # times d, of the needle: there F is −7d, up to δ


@kit.claim
class HiddenNeedle(kit.Claim[Walks]):
    """f = ‖x‖²/2 with steep ripples and a needle."""

    delta: kit.Positive = kit.param(0.5, "δ of ripples, and T", unit="height", scope=bowl.DELTA)
    dimensions: tuple[kit.Count, ...] = kit.param((2, 4, 8, 16), "d", scope=bowl.DIMENSIONS)
    walkers: kit.Seeds = kit.param(360, "independent walkers in each dimension")
    hold: kit.Count = kit.param(1000, "half of the steps, the first third left out", unit="steps")

    kind = "theorem"
    says = {"does not find a needle": "hidden"}
    tiny = {"dimensions": (2, 4, 6), "walkers": 10, "hold": 300}
    full = {"dimensions": (2, 4, 8, 16, 32, 64), "walkers": 400, "hold": 4800}
    out_of_scope = {"delta": 4.0}

    def axes(self):
        return {"dimension": self.dimensions}

    def setting(self, key):
        bumps = {
            QUENCH: bowl.rippled(self.dimensions, self.delta, 0.0),
            HIDDEN: bowl.rippled(self.dimensions, self.delta, DEPTH),
        }
        return Walks(bowl.starts(key, HIDDEN + 1, self.dimensions, self.walkers), bumps)

    def hypotheses(self, setting):
        yield bowl.start_far(self.delta)

    def predict(self, setting):
        return kit.law(hidden=("dimension", self.delta * np.array(self.dimensions) / 2))

    def observe(self, setting, key):
        marks = bowl.marks(self.dimensions, self.hold)
        even = self.delta * np.ones(2 * self.hold)
        heights = bowl.heights(setting, {QUENCH: bowl.COLD * even, HIDDEN: even}, marks, key)
        burn = self.hold // 3
        quench = heights[QUENCH][:, :, (marks > burn) & (marks <= self.hold)].mean(-1)
        units = np.array(self.dimensions)[:, None, None] * self.delta / 2
        return kit.seen(
            hidden=("dimension seed", heights[HIDDEN][:, :, marks > burn].mean(-1)),
            quench=("dimension seed", quench),
            arrival=("draw dimension", bowl.arrivals(heights[HIDDEN] / units, marks)),
        )

    def run_conditions(self, observed):
        yield bowl.have_arrived(observed["arrival"], self.dimensions, self.hold)

    def judge(self, law, seen):
        yield kit.follows("hidden", law.hidden, seen.hidden, 0.04, label="walkers' f with a needle")

    def rivals(self, setting, law):
        yield kit.rival(
            "walkers find the needle",
            "it holds the minimum of F, and nearly all of exp(−F/T) at T = ½",
            hidden=NEEDLE**2 * law.dimension / 2,
        )

    def controls(self, seen):
        yield kit.control(
            "walkers at T/1000 from the start",
            "its steps are no longer than a ripple",
            hidden=seen.quench,
        )
