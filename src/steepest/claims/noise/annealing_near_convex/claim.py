"""Metropolis at T = δ gets within O(dδ) of a bowl's minimum, despite bumps of height δ on the bowl.

The bowl f is ‖x‖²/2 in d dimensions, and F is f with bumps. If |F − f| ≤ δ everywhere and f is convex, then under
exp(−F/T) the mean of f − min f is at most e^{2δ/T} dT, and at most half of this for f = ‖x‖²/2. The reason is that the
densities differ by a factor between e^{−2δ/T} and e^{2δ/T}, and Z(T)/T^d = ∫exp(−f(Ty)/T) dy falls with T, so
T² d log Z/dT ≤ dT. For the bowl the worst F is known: its mean is R dT/2 with an R far below the bound. At T = δ this
mean is O(dδ). Walkers that read only values of F get there in a number of steps proportional to d, as they leap over
steep ripples.
"""

import numpy as np

from steepest import kit
from steepest.claims.noise import _rippled_bowl as bowl
from steepest.claims.noise._rippled_bowl import NEAR, QUENCH, RIPPLE, WORST, Bumps, Walks
from steepest.claims.noise.annealing_near_convex import theory
from steepest.claims.noise.annealing_near_convex.point import AnnealingPoint

MANY = 4  # least d to which the limit of many dimensions is applied
RUNGS = (1.0, 0.5, 0.25)  # of the first temperature
SMOOTH = 10.0  # least ω²T/2: ripples then change a mean by 1e-3 of itself at most
FALLS = 1000  # steps of descent, a changed world


@kit.claim
class AnnealingNearConvex(kit.Claim[Walks]):
    """f = ‖x‖²/2 with steep ripples, or with the worst bumps of their height."""

    delta: kit.Positive = kit.param(0.5, "δ, largest |F − f|", unit="height", scope=bowl.DELTA)
    ratios: tuple[kit.Positive, ...] = kit.param(
        (0.25, 0.5, 1.0),
        "δ/T of the worst bumps; ripples have the last, then half and a quarter of its T",
        scope=bowl.RATIOS,
    )
    dimensions: tuple[kit.Count, ...] = kit.param((2, 4, 8, 16), "d", scope=bowl.DIMENSIONS)
    walkers: kit.Seeds = kit.param(360, "independent walkers in each dimension")
    hold: kit.Count = kit.param(
        1000, "steps at the first temperature; half as many at each of the others", unit="steps"
    )
    needle: kit.NonNegative = kit.param(0.0, "depth of a thin hole far away, in units of dT")

    kind = "theorem"
    says = {
        "gets within O(dδ) of a bowl's minimum": ("worst", "ripple"),
        "in a number of steps proportional to d": "arrival",
    }
    tiny = {"dimensions": (2, 4, 6), "walkers": 10, "hold": 300}
    full = {"dimensions": (2, 4, 8, 16, 32, 64), "walkers": 400, "hold": 4800}
    out_of_scope = {"needle": 50.0}
    point = AnnealingPoint

    @property
    def temperature(self) -> float:
        """Return the first temperature T of the ripples, the lowest of the worst bumps."""
        return self.delta / self.ratios[-1]

    @property
    def start_height(self) -> float:
        """Return the height of the starts in units of dT/2."""
        return bowl.REACH**2 / 3 / self.temperature

    def axes(self):
        return {
            "temperature": tuple(self.temperature * rung for rung in RUNGS),
            "ratio": self.ratios,
            "dimension": self.dimensions,
        }

    def setting(self, key):
        d = np.array(self.dimensions)
        zero = 0.0 * d
        lanes = WORST + len(self.ratios)
        rippled = bowl.rippled(self.dimensions, self.delta, self.needle * self.temperature)
        bumps = {RIPPLE: rippled, QUENCH: rippled}
        for i, ratio in enumerate(self.ratios):
            means = [
                theory.worst_mean(k, ratio) * k / 2 * self.delta / ratio for k in self.dimensions
            ]
            bumps[WORST + i] = Bumps(d, zero, zero, zero + self.delta, np.array(means), zero)
        return Walks(bowl.starts(key, lanes, self.dimensions, self.walkers), bumps)

    def hypotheses(self, setting):
        bumps = setting.bumps.values()
        largest = max((b.dimension * b.ripple + b.jump + b.needle).max() for b in bumps)
        near = "the theorem needs |F − f| ≤ δ everywhere"
        limit = self.ratios[-1] * (1 + 1e-9)
        slowest = float((setting.bumps[RIPPLE].frequency ** 2).min())
        yield kit.assume("largest δ/T", max(self.ratios), "<=", 1, bowl.RATIOS.why)
        yield kit.assume("largest |F − f|/T", largest / self.temperature, "<=", limit, near)
        yield bowl.start_far(self.delta / min(self.ratios))
        yield kit.assume(
            "least ω²T/2 of a ripple, at the lowest temperature",
            slowest * (self.temperature * RUNGS[-1] / 2),
            ">=",
            SMOOTH,
            "only ripples of many periods over √T average out: take smaller bumps",
        )

    def predict(self, setting):
        d = np.array(self.dimensions)
        return kit.law(
            ripple=("temperature dimension", np.outer(self.temperature * np.array(RUNGS), d) / 2),
            worst=("ratio dimension", [[theory.worst_mean(k, r) for k in d] for r in self.ratios]),
            within=("ratio", np.exp(2 * np.array(self.ratios))),
            arrival=("dimension", d * theory.steps_over_dimension(self.start_height)),
        )

    def observe(self, setting, key):
        marks = bowl.marks(self.dimensions, self.hold)
        half = self.hold // 2
        whole = 2 * self.hold
        ladder = np.repeat(RUNGS, [self.hold, half, self.hold - half])
        even = np.ones(whole)
        warm = self.ratios[-1] / np.array(self.ratios)
        schedules = {RIPPLE: ladder, QUENCH: bowl.COLD * even}
        schedules |= {WORST + i: even * scale for i, scale in enumerate(warm)}
        temperatures = {lane: self.temperature * schedule for lane, schedule in schedules.items()}
        heights = bowl.heights(setting, temperatures, marks, key)

        def between(lane: int, start: int, stop: int) -> kit.Values:
            return heights[lane][:, :, (marks > start) & (marks <= stop)].mean(-1)

        # at each temperature the first third is left out
        rungs = ((0, self.hold), (self.hold, self.hold + half), (self.hold + half, whole))
        stages = [(start + (stop - start) // 3, stop) for start, stop in rungs]
        units = np.array(self.dimensions)[:, None, None] * self.temperature / 2
        burn = self.hold // 3
        worst = [between(WORST + i, burn, whole) / units[..., 0] for i in range(len(warm))]
        starts = [setting.starts[RIPPLE, i, :, :d] for i, d in enumerate(self.dimensions)]
        ends = [bowl.fall(x, x.shape[1], self.delta, FALLS)[0] for x in starts]
        return kit.seen(
            ripple=("temperature dimension seed", [between(RIPPLE, *span) for span in stages]),
            quench=("temperature dimension seed", [between(QUENCH, *span) for span in stages]),
            worst=("ratio dimension seed", np.array(worst) / warm[:, None, None]),
            arrival=("draw dimension", bowl.arrivals(heights[RIPPLE] / units, marks)),
            warm_arrival=("draw dimension", bowl.arrivals(heights[WORST] / units / warm[0], marks)),
            left=("dimension seed", [(x**2).sum(1) / 2 for x in ends]),
        )

    def run_conditions(self, observed):
        yield bowl.have_arrived(observed["arrival"], self.dimensions, self.hold)

    def judge(self, law, seen):
        many = np.flatnonzero(np.array(self.dimensions) >= MANY)
        # intervals at all points at once are 1 to 5 % for means and 3 to 9 % for arrivals
        yield kit.follows("ripple", law.ripple, seen.ripple, 0.08, label="ripples: E f")
        yield kit.follows("worst", law.worst, seen.worst, 0.05, label="worst bumps: E f/(dT/2)")
        yield kit.at_most(
            "within",
            law.within,
            seen.worst,
            over="ratio dimension",
            label="worst bumps: E f/(dT/2) against the bound for every F",
        )
        yield kit.follows(
            "arrival",
            law.arrival.isel(dimension=many),
            seen.arrival.isel(dimension=many),
            (0.88, 1.18),  # small d take 7 % more than the limit d → ∞
            label=f"steps to {NEAR:g} · dT/2",
        )

    def rivals(self, setting, law):
        line = [theory.worst_mean(1, ratio) for ratio in self.ratios]
        share = (law.ratio / law.ratio[-1]) ** 2
        near = (theory.drift(1 + 1e-4) - theory.drift(1.0)) / 1e-4
        linear = np.log((self.start_height - 1) / (NEAR - 1)) / -near
        growth = law.dimension / law.dimension[-1]
        yield kit.rival(
            "bumps of height T cost nothing", "bumps of height δ are small", within=1.0, worst=1.0
        )
        yield kit.rival(
            "the bound e^{2δ/T} dT/2 is attained",
            "the proof gives this bound",
            id="attained",
            ripple=law.ripple * np.exp(2 * self.delta / law.temperature),
            worst=law.within,
        )
        yield kit.rival(
            "the worst bumps of the line in every dimension",
            "the bound has one factor for all d",
            worst=("ratio", line),
        )
        yield kit.rival(
            "R − 1 ∝ (δ/T)²",
            "bumps of either sign cancel to first order",
            worst=1 + (law.worst.isel(ratio=-1) - 1) * share,
        )
        yield kit.rival(
            "the relaxation near equilibrium, all the way",
            "so walkers relax near equilibrium",
            arrival=linear * law.dimension,
        )
        yield kit.rival(
            "d² steps",
            "random walks need the square of the distance",
            id="quadratic",
            arrival=law.arrival * growth,
        )
        yield kit.rival(
            "d^⅓ steps",
            "so it is with gradients, by Langevin proposals",
            id="cube_root",
            arrival=law.arrival * growth ** (-2 / 3),
        )

    def controls(self, seen):
        yield kit.control(
            "walkers at T/1000 from the start",
            "its steps are no longer than a ripple",
            ripple=seen.quench,
        )
        yield kit.control(
            "descent in place of walkers", "it stays in its ripple", id="descent", ripple=seen.left
        )
        yield kit.control(
            "walkers in ripples for walkers on the worst bumps",
            "ripples cost nothing",
            worst=seen.ripple.isel(temperature=0) / (seen.dimension * self.temperature / 2),
        )
        yield kit.control(
            "arrivals of walkers at the highest temperature",
            "they start at fewer times dT/2",
            arrival=seen.warm_arrival,
        )
