"""Steep ripples on a bowl hold gradient descent with short steps, and noise at T frees it slowly.

The bowl f is ‖x‖²/2 in d dimensions, and F is f with ripples of height δ. Descent with steps below 1/L, where L is the
largest curvature of F, stays in the first ripple, the one in which it starts. Descent with noise at the temperature T
and steps of 1/2L gets to the bottom, in 2L I₀(a/T)² steps for each factor of e, with a the amplitude of a coordinate's
ripple. This number is polynomial in L ≈ aω², with ω the ripple's frequency, and far larger than the number of steps
that Metropolis takes.
"""

import numpy as np
from scipy.special import i0

from steepest import kit
from steepest.claims.noise import _rippled_bowl as bowl
from steepest.claims.noise._rippled_bowl import fall, ripples
from steepest.claims.noise.ripples_hold_descent.experiment import langevin_steps, valley
from steepest.nn.types import Values

FALLS = 1000  # steps of descent
LEAP = 0.5  # a step of descent that fits f and not its ripples
FREQUENCIES = (12.0, 24.0, 48.0)  # times T^(−½), of ripples for descent with noise


@kit.claim
class RipplesHoldDescent(kit.Claim[list[Values]]):
    """f = ‖x‖²/2 with steep ripples."""

    delta: kit.Positive = kit.param(0.5, "δ of ripples", unit="height", scope=bowl.DELTA)
    ratios: tuple[kit.Positive, ...] = kit.param((0.25, 0.5, 1.0), "a/T", scope=bowl.RATIOS)
    dimensions: tuple[kit.Count, ...] = kit.param((2, 4, 8, 16), "d", scope=bowl.DIMENSIONS)
    walkers: kit.Seeds = kit.param(360, "starts in each dimension")

    kind = "theorem"
    says = {
        "hold gradient descent with short steps": ("trapped", "valley"),
        "in 2L I₀(a/T)² steps for each factor of e": "langevin",
    }
    tiny = {"dimensions": (2, 4, 6), "walkers": 10}
    full = {"dimensions": (2, 4, 8, 16, 32, 64), "walkers": 400}
    out_of_scope = {"ratios": (0.25, 0.5, 1.5)}

    def axes(self):
        return {"ratio": self.ratios, "frequency": FREQUENCIES}

    def setting(self, key):
        """Draw the starts of descent in each dimension, ``(walkers, d)``."""
        starts = bowl.starts(key, 1, self.dimensions, self.walkers)[0]
        return [x[:, :d] for x, d in zip(starts, self.dimensions, strict=True)]

    def hypotheses(self, setting):
        yield kit.assume("largest a/T", max(self.ratios), "<=", 1, "lower --ratios")

    def predict(self, setting):
        return kit.law(
            valley=("start", self.minima(setting)[0]),
            trapped=1.0,
            langevin=(
                "ratio frequency",
                # ripples slow the drift by ⟨e^u⟩⟨e^(−u)⟩ = I₀(a/T)² (Lifson and Jackson 1962);
                # a unit of time has 2L = 2(1 + aω²) steps
                [[2 * (1 + r * w**2) * i0(r) ** 2 for w in FREQUENCIES] for r in self.ratios],
            ),
        )

    def minima(self, setting: list[Values]) -> list[Values]:
        """Return the minimum of each start's valley, and the minimum that is nearest to the start."""
        both = [valley(x, x.shape[1], self.delta) for x in setting]
        return [np.concatenate([x.ravel() for x in minima]) for minima in zip(*both, strict=True)]

    def observe(self, setting: list[Values], key):
        ends, slopes = zip(*(fall(x, x.shape[1], self.delta, FALLS) for x in setting), strict=True)
        leaps = [fall(x, x.shape[1], self.delta, FALLS, lr=LEAP)[0] for x in setting]
        periods = [0 * x + 2 * np.pi / ripples(x.shape[1], self.delta)[1] for x in setting]
        flat = lambda parts: ("start", np.concatenate([part.ravel() for part in parts]))
        return kit.seen(
            starts=flat(setting),
            ends=flat(ends),
            leaps=flat(leaps),
            period=flat(periods),
            slope=("dimension", slopes),
            langevin=("draw ratio frequency", self.noisy_descents(key, self.walkers)),
            smooth=("draw ratio frequency", self.noisy_descents(key, 10, smooth=True)),
        )

    def noisy_descents(self, key: kit.Key, walkers: int, *, smooth: bool = False) -> Values:
        """Return how many steps noisy descents take in ripples, or without them, ``(groups, ratios, frequencies)``."""
        rng = kit.numpy_generator(key)
        groups = min(bowl.GROUPS, self.walkers)
        steps = [
            [langevin_steps(rng, ratio, w, groups, walkers, smooth=smooth) for w in FREQUENCIES]
            for ratio in self.ratios
        ]
        return np.moveaxis(np.array(steps), -1, 0)

    def run_conditions(self, observed):
        yield kit.assume("largest slope where descent ends", observed["slope"].max(), "<", 1e-6)

    def derive(self, law, seen):
        """Return how far descent goes, and how far it ends off its valley's minimum, in periods of the ripple."""
        return {
            "moved": abs(seen.ends - seen.starts) / seen.period,
            "off": abs(seen.ends - law.valley) / seen.period,
        }

    def judge(self, law, seen):
        yield kit.at_most(
            "trapped",
            law.trapped,
            seen.moved,
            each=True,
            # the geometry of ripples: a way of one period would cross a maximum
            label="descent with steps of 1/2L: farthest way of a coordinate, in periods of the ripple",
        )
        yield kit.agrees(
            "valley",
            seen.off,
            1e-5,  # slopes of 1e-6 over curvatures of 18 and more, over the period
            label="descent: distance of its end to its valley's minimum, in periods",
        )
        yield kit.follows(
            "langevin",
            law.langevin,
            seen.langevin,
            0.12,  # steps of 1/2L take up to 5 % less, the interval 6 %
            label="descent with noise in ripples: steps to a mean that is smaller by e",
        )

    def rivals(self, setting, law):
        smooth = 2 * (1 + law.ratio * law.frequency**2)
        half = "descent moves by half a period at most"
        yield kit.rival(half, "so it is in ripples without a tilt", trapped=0.5)
        yield kit.rival(
            "descent ends at the nearest minimum",
            "it is the closest",
            valley=("start", self.minima(setting)[1]),
        )
        yield kit.rival("descent ends at the bottom of f", "F is f up to δ", valley=0.0)
        yield kit.rival(
            "noise carries descent through ripples as if there were none",
            "they cost Metropolis nothing",
            id="ripples_average_out",
            langevin=smooth,
        )
        yield kit.rival(
            "a factor of I₀ in place of I₀²",
            "the share of time at the top of a ripple",
            langevin=law.langevin / i0(law.ratio),
        )
        yield kit.rival(
            "e^{2a/T} in place of I₀²",
            "the law of Arrhenius, for a barrier of 2a",
            langevin=smooth * np.exp(2 * law.ratio),
        )
        yield kit.rival(
            "steps ∝ ω in place of ω²",
            "steps of one over the steepest slope",
            langevin=law.langevin * law.frequency[1] / law.frequency,
        )

    def controls(self, seen):
        yield kit.control(
            f"descent with steps of {LEAP:g}, which fit only f",
            "they leap over ripples",
            id="long_steps",
            ends=seen.leaps,
        )
        yield kit.control(
            "descent with noise and steps as short on the smooth bowl",
            "nothing holds them",
            id="no_ripples",
            langevin=seen.smooth,
        )

    def figure(self, law, seen, rivals):
        amplitude, frequency = ripples(2, self.delta)
        line = np.linspace(2.8, 3.6, 600)
        start = 3.3
        end = fall(np.array([start]), 2, self.delta, FALLS)[0][0]
        cut = lambda x: x**2 / 2 + amplitude * np.cos(frequency * x)
        ends = ([start, end], [cut(start), cut(end)])
        yield kit.panel(
            "A piece of F along one coordinate, d = 2",
            "x",
            "height",
            kit.context_curve(line, cut(line), "F"),
            kit.observed_curve(*ends, "descent, start and end", kind="points"),
            kit.predicted_curve(line, line**2 / 2, "f"),
        )
