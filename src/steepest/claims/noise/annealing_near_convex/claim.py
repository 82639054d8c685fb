"""Metropolis at T = δ gets within O(dδ) of a bowl's minimum, despite bumps of height δ on the bowl.

Gradient descent with short steps stays in the first ripple, the one in which it starts. The bowl f is ‖x‖²/2 in d
dimensions, and F is f with bumps. If |F − f| ≤ δ everywhere and f is convex, then under exp(−F/T) the mean of f − min f
is at most e^{2δ/T} dT, and at most half of this for f = ‖x‖²/2. The reason is that the densities differ by a factor
between e^{−2δ/T} and e^{2δ/T}, and Z(T)/T^d = ∫exp(−f(Ty)/T) dy falls with T, so T² d log Z/dT ≤ dT. For the bowl the
worst F is known: its mean is R dT/2 with an R far below the bound. At T = δ this mean is O(dδ), and walkers that read
only values of F get there. They leap over steep ripples, in which descent with steps below 1/L is caught (L is the
largest curvature of F).

Descent with noise at this temperature and steps of 1/2L gets there too, in 2L I₀(a/T)² steps for each factor of e, with
a the amplitude of a coordinate's ripple. This number is polynomial in L ≈ aω², with ω the ripple's frequency, and far
larger than the number that Metropolis takes.
"""

from typing import NamedTuple

import jax
import numpy as np
import xarray
from scipy.integrate import quad
from scipy.special import i0
from scipy.stats import norm

from steepest import kit
from steepest.claims.noise.annealing_near_convex.experiment import (
    DEPTH,
    NEEDLE,
    PROPOSAL,
    REACH,
    AnnealingPoint,
    Bumps,
    fall,
    far_starts,
    langevin_steps,
    ripples,
    valley,
    walk,
    worst_mean,
)
from steepest.nn.types import Values

NEAR = 3.0  # a mean height of so many times dT/2 counts as arrived
MANY = 4  # least d to which the limit of many dimensions is applied
GROUPS = 10  # of walkers, whose mean height arrives at one step
COLD = 1e-3  # of the temperature, from the first step on: a changed world
RUNGS = (1.0, 0.5, 0.25)  # of the first temperature
RIPPLE, QUENCH, HIDDEN, WORST = range(4)  # lanes; the last and those after it have the worst bumps
SMOOTH = 10.0  # least ω²T/2: ripples then change a mean by 1e-3 of itself at most
FALLS = 1000  # steps of descent
LEAP = 0.5  # a step of descent that fits f and not its ripples
FREQUENCIES = (12.0, 24.0, 48.0)  # times T^(−½), of ripples for descent with noise


class Setting(NamedTuple):
    """Starts of the walkers, and the functions that they walk on."""

    starts: Values  # (lanes, dimensions, walkers, widest), zero beyond each dimension
    bumps: list[Bumps]  # one a lane, its fields of shape (dimensions,)


@kit.claim
class AnnealingNearConvex(kit.Claim[Setting]):
    """f = ‖x‖²/2 with steep ripples, or with the worst bumps of their height."""

    delta: kit.Positive = kit.param(
        0.5,
        "δ, largest |F − f|",
        unit="height",
        scope=kit.between(0.3, 0.7, "at larger ones the starts are low where T is high"),
    )
    ratios: tuple[kit.Positive, ...] = kit.param(
        (0.25, 0.5, 1.0),
        "δ/T of the worst bumps; ripples have the last, then half and a quarter of its T",
        scope=kit.choices(
            (0.25, 0.5, 1.0),
            (0.3, 0.6, 1.0),
            why="colder walkers need not arrive in polynomial time",
        ),
    )
    dimensions: tuple[kit.Count, ...] = kit.param(
        (2, 4, 8, 16), "d", scope=kit.choices((2, 4, 8, 16), (2, 5, 12))
    )
    walkers: kit.Seeds = kit.param(360, "independent walkers in each dimension")
    hold: kit.Count = kit.param(
        1000, "steps at the first temperature; half as many at each of the others", unit="steps"
    )
    needle: kit.NonNegative = kit.param(
        0.0, "depth of a thin hole far from the bottom, in units of dT"
    )

    kind = "theorem"
    says = {
        "gets within O(dδ) of a bowl's minimum": ("worst", "ripple"),
        "Gradient descent with short steps stays in the first ripple": ("trapped", "valley"),
    }
    tiny = {"dimensions": (2, 4, 6), "walkers": 10, "hold": 300}
    full = {"dimensions": (2, 4, 8, 16, 32, 64), "walkers": 400, "hold": 4800}
    out_of_scope = {"needle": 50.0}  # of the depth that hidden walkers have
    point = AnnealingPoint

    @property
    def temperature(self) -> float:
        """Return the first temperature T of the ripples, the lowest of the worst bumps."""
        return self.delta / self.ratios[-1]

    @property
    def start_height(self) -> float:
        """Return the height of the starts in units of dT/2."""
        return REACH**2 / 3 / self.temperature

    @property
    def marks(self) -> np.ndarray:
        """Return the steps at which heights are recorded: all of them until the walkers have arrived."""
        dense = min(20 * max(self.dimensions), self.hold)
        return np.append(np.arange(0, dense), np.arange(dense, 2 * self.hold + 1, 10))

    def axes(self):
        return {
            "temperature": tuple(self.temperature * rung for rung in RUNGS),
            "ratio": self.ratios,
            "dimension": self.dimensions,
            "frequency": FREQUENCIES,
        }

    def setting(self, key):
        d = np.array(self.dimensions)
        rng = kit.numpy_generator(key)
        starts = np.zeros((WORST + len(self.ratios), len(d), self.walkers, d.max()))
        for lane in starts:
            for walkers, dimension in zip(lane, self.dimensions, strict=True):
                walkers[:, :dimension] = far_starts(rng, self.walkers, dimension)
        zero = np.zeros(len(d))
        needle = self.needle * d * self.temperature
        rippled = Bumps(d, *ripples(d, self.delta), zero, zero, needle)
        hidden = rippled._replace(needle=DEPTH * d)
        worst = []
        for ratio in self.ratios:
            means = [worst_mean(k, ratio) * k / 2 * self.delta / ratio for k in self.dimensions]
            worst.append(Bumps(d, zero, zero, zero + self.delta, np.array(means), zero))
        return Setting(starts, [rippled, rippled, hidden, *worst])

    def hypotheses(self, setting):
        yield kit.assume(
            "largest δ/T",
            max(self.ratios),
            "<=",
            1,
            "colder walkers need not arrive in polynomial time",
        )
        yield kit.assume(
            "largest |F − f|/T, at starts, at the bottom and at the needle",
            self.largest(setting) / self.temperature,
            "<=",
            self.ratios[-1] * (1 + 1e-9),
            "the theorem needs |F − f| ≤ δ everywhere",
        )
        yield kit.assume(
            "least height of the starts in units of dT/2",
            REACH**2 / 3 * min(self.ratios) / self.delta,
            ">=",
            2 * NEAR,
            "walkers must have a way to go: take smaller bumps, or a larger δ/T",
        )
        yield kit.assume(
            "least ω²T/2 of a ripple, at the lowest temperature",
            float((ripples(np.array(self.dimensions), self.delta)[1] ** 2).min())
            * (self.temperature * RUNGS[-1] / 2),
            ">=",
            SMOOTH,
            "only ripples of many periods over √T average out: take smaller bumps",
        )

    def largest(self, setting: Setting) -> float:
        """Return the largest |F − f| over the points where it could be large."""
        largest = 0.0
        for lane in (RIPPLE, *range(WORST, len(setting.bumps))):
            for i, d in enumerate(self.dimensions):
                bumps = Bumps(*(np.asarray(field)[i] for field in setting.bumps[lane]))
                places = setting.starts[lane, i, :, :d]
                places = np.concatenate([places, np.zeros((1, d)), np.full((1, d), NEEDLE)])
                f = 0.5 * (places**2).sum(1)
                # the same formula in NumPy
                rippling = bumps.ripple * np.cos(bumps.frequency * places).sum(1)
                jumping = bumps.jump * np.sign(bumps.threshold - f)
                hole = bumps.needle * (places == NEEDLE).all(1)
                largest = max(largest, float(np.abs(rippling + jumping - hole).max()))
        return largest

    def coordinates(self, setting: Setting) -> list[Values]:
        """Return the starts of descent in each dimension, ``(walkers, d)``: those of walkers in ripples."""
        return [setting.starts[RIPPLE, i, :, :d] for i, d in enumerate(self.dimensions)]

    def predict(self, setting):
        d = np.array(self.dimensions)
        starts = self.coordinates(setting)
        valleys = [valley(x, x.shape[1], self.delta)[0].ravel() for x in starts]
        rungs = self.temperature * np.array(RUNGS)
        return kit.law(
            ripple=("temperature dimension", np.outer(rungs, d) / 2),
            worst=("ratio dimension", [[worst_mean(k, r) for k in d] for r in self.ratios]),
            within=("ratio", np.exp(2 * np.array(self.ratios))),
            hidden=("dimension", self.temperature * d / 2),
            arrival=("dimension", d * _steps_over_dimension(self.start_height)),
            valley=("start", np.concatenate(valleys)),
            trapped=1.0,
            langevin=(
                "ratio frequency",
                # ripples slow the drift by ⟨e^u⟩⟨e^(−u)⟩ = I₀(a/T)² (Lifson and Jackson 1962);
                # a unit of time has 2L = 2(1 + aω²) steps
                [[2 * (1 + r * w**2) * i0(r) ** 2 for w in FREQUENCIES] for r in self.ratios],
            ),
        )

    def observe(self, setting, key):
        marks = self.marks
        heights = self.heights(setting, key)
        half = self.hold // 2
        burn = self.hold // 3
        whole = 2 * self.hold

        def between(lane: int, start: int, stop: int) -> Values:
            return heights[lane][:, :, (marks > start) & (marks <= stop)].mean(-1)

        # at each temperature the first third is left out
        rungs = ((0, self.hold), (self.hold, self.hold + half), (self.hold + half, whole))
        stages = [(start + (stop - start) // 3, stop) for start, stop in rungs]
        units = np.array(self.dimensions)[:, None, None] * self.temperature / 2
        warm = self.ratios[-1] / np.array(self.ratios)
        worst = [between(WORST + i, burn, whole) / units[..., 0] for i in range(len(warm))]
        return kit.seen(
            marks=("record", marks),
            course=("dimension record", heights[RIPPLE].mean(1)),
            ripple=("temperature dimension seed", [between(RIPPLE, *span) for span in stages]),
            quench=("temperature dimension seed", [between(QUENCH, *span) for span in stages]),
            worst=("ratio dimension seed", np.array(worst) / warm[:, None, None]),
            hidden=("dimension seed", between(HIDDEN, burn, whole)),
            arrival=("draw dimension", _arrivals(heights[RIPPLE] / units, marks)),
            warm_arrival=("draw dimension", _arrivals(heights[WORST] / units / warm[0], marks)),
            langevin=("draw ratio frequency", self.noisy_descents(key, self.walkers)),
            smooth=("draw ratio frequency", self.noisy_descents(key, 10, smooth=True)),
            **self.descents(setting),
        )

    def noisy_descents(self, key: kit.Key, walkers: int, *, smooth: bool = False) -> Values:
        """Return how many steps noisy descents take in ripples, or without them, ``(groups, ratios, frequencies)``."""
        rng = kit.numpy_generator(key)
        groups = min(GROUPS, self.walkers)
        steps = [
            [langevin_steps(rng, ratio, w, groups, walkers, smooth=smooth) for w in FREQUENCIES]
            for ratio in self.ratios
        ]
        return np.moveaxis(np.array(steps), -1, 0)

    def heights(self, setting: Setting, key: kit.Key) -> Values:
        """Return f along the walks, ``(lanes, dimensions, walkers, records)``."""
        half = self.hold // 2
        ladder = np.repeat(RUNGS, [self.hold, half, self.hold - half])
        even = np.ones(2 * self.hold)
        warm = [even * self.ratios[-1] / ratio for ratio in self.ratios]
        temperatures = self.temperature * np.stack([ladder, COLD * even, even, *warm])
        single = lambda tree: jax.tree.map(lambda a: np.asarray(a, np.float32), tree)
        bumps = jax.tree.map(lambda *fields: np.stack(fields), *setting.bumps)
        marks = self.marks

        def lanes(bumps: Bumps, starts: Values, temperatures: Values, key: kit.Key) -> Values:
            one = lambda bumps, start, T, key: walk(bumps, start, T, marks, key)[0]
            walkers = jax.vmap(one, (None, 0, None, 0))
            dimensions = jax.vmap(walkers, (0, 0, None, 0))
            shape = starts.shape[:3]
            return jax.vmap(dimensions)(bumps, starts, temperatures, jax.random.split(key, shape))

        args = (single(bumps), single(setting.starts), single(temperatures), key)
        return np.asarray(kit.compiled(lanes)(*args), float)

    def descents(self, setting: Setting) -> dict[str, object]:
        """Return where descent starts and ends, coordinate by coordinate, with the period of the ripple there."""
        starts = self.coordinates(setting)
        ends, slopes = zip(*(fall(x, x.shape[1], self.delta, FALLS) for x in starts), strict=True)
        leaps = [fall(x, x.shape[1], self.delta, FALLS, lr=LEAP)[0] for x in starts]
        flat = lambda parts: ("start", np.concatenate([part.ravel() for part in parts]))
        periods = [0 * x + 2 * np.pi / ripples(x.shape[1], self.delta)[1] for x in starts]
        left = [(x**2).sum(1) / 2 for x in ends]
        return {
            "starts": flat(starts),
            "ends": flat(ends),
            "leaps": flat(leaps),
            "period": flat(periods),
            "left": ("dimension seed", left),
            "slope": ("dimension", slopes),
        }

    def run_conditions(self, observed):
        late = observed["arrival"] + 4 * np.array(self.dimensions)
        yield kit.assume("largest slope where descent ends", observed["slope"].max(), "<", 1e-6)
        yield kit.assume(
            # from 3 · dT/2 a way of 4d steps leaves a hundredth
            f"the last group's steps to {NEAR:g} · dT/2 and 4d more, over the steps left out of means",
            float(np.nan_to_num(late, nan=np.inf).max()) / (self.hold // 3),
            "<=",
            1,
            "walkers must have arrived: raise --hold",
        )

    def derive(self, law, seen):
        """Return how far descent goes, and how far it ends off its valley's minimum, in periods of the ripple."""
        return {
            "moved": abs(seen.ends - seen.starts) / seen.period,
            "off": abs(seen.ends - law.valley) / seen.period,
        }

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
            "arrival",
            law.arrival.isel(dimension=many),
            seen.arrival.isel(dimension=many),
            (0.88, 1.18),  # small d take 7 % more than the limit d → ∞
            label=f"steps to {NEAR:g} · dT/2",
        )
        yield kit.follows(
            "hidden",
            law.hidden,
            seen.hidden,
            0.04,
            label="ripples and a needle that holds the minimum: walkers' f",
        )
        yield kit.follows(
            "langevin",
            law.langevin,
            seen.langevin,
            0.12,  # steps of 1/2L take up to 5 % less, the interval 6 %
            label="descent with noise in ripples: steps to a mean that is smaller by e",
        )

    def rivals(self, setting, law):
        yield from self.rivals_of_means(law)
        yield from self.rivals_of_descent(setting)
        yield from self.rivals_of_arrivals(law)
        yield from self.rivals_of_noise(law)

    def rivals_of_means(self, law):
        """Return wrong theories of what bumps cost walkers."""
        line = [worst_mean(1, ratio) for ratio in self.ratios]
        share = (law.ratio / law.ratio[-1]) ** 2
        yield kit.rival(
            "bumps of height T cost nothing", "bumps of height δ are small", within=1.0, worst=1.0
        )
        yield kit.rival(
            "the bound e^{2δ/T} dT/2 is attained",
            "it is what the proof gives",
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
            "walkers find the needle",
            "it holds the minimum of F, and nearly all of exp(−F/T) at T = ½",
            hidden=NEEDLE**2 * law.dimension / 2,
        )

    def rivals_of_descent(self, setting):
        """Return wrong theories of where descent ends."""
        starts = self.coordinates(setting)
        nearest = [valley(x, x.shape[1], self.delta)[1].ravel() for x in starts]
        yield kit.rival(
            "descent moves by half a period at most",
            "so it is in ripples without a tilt",
            trapped=0.5,
        )
        yield kit.rival(
            "descent ends at the nearest minimum",
            "it is the closest",
            valley=("start", np.concatenate(nearest)),
        )
        yield kit.rival("descent ends at the bottom of f", "F is f up to δ", valley=0.0)

    def rivals_of_arrivals(self, law):
        """Return wrong theories of the steps that walkers take."""
        near = (_drift(1 + 1e-4) - _drift(1.0)) / 1e-4
        linear = np.log((self.start_height - 1) / (NEAR - 1)) / -near
        growth = law.dimension / law.dimension[-1]
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

    def rivals_of_noise(self, law):
        """Return wrong theories of descent with noise."""
        steepness = 1 + law.ratio * law.frequency**2
        smooth = 2 * steepness
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
            "walkers at T/1000 from the start",
            "its steps are no longer than a ripple",
            ripple=seen.quench,
            hidden=seen.quench.isel(temperature=0),
        )
        yield kit.control(
            "descent in place of walkers", "it stays in its ripple", id="descent", ripple=seen.left
        )
        yield kit.control(
            "walkers in ripples for those on the worst bumps",
            "ripples cost nothing",
            worst=seen.hidden / (seen.dimension * self.temperature / 2),
        )
        yield kit.control(
            f"descent with steps of {LEAP:g}, which fit f alone",
            "they leap over ripples",
            id="long_steps",
            ends=seen.leaps,
        )
        yield kit.control(
            "arrivals of walkers at the highest temperature",
            "they start at fewer times dT/2",
            arrival=seen.warm_arrival,
        )
        yield kit.control(
            "descent with noise and steps as short on the smooth bowl",
            "nothing holds them",
            id="no_ripples",
            langevin=seen.smooth,
        )

    def figure(self, law, seen, rivals):
        wrong = ("quadratic", "cube_root")
        yield self.ripple_panel()
        yield self.course_panel(seen)
        yield kit.curves(
            f"How many steps to {NEAR:g} · dT/2",
            law.arrival,
            seen.arrival,
            over="dimension",
            x="dimension d",
            y="steps",
            rivals={name: rivals[name].arrival for name in wrong if name in rivals},
            log="xy",
        )
        yield kit.curves(
            "What the worst bumps cost",
            law.worst,
            seen.worst,
            over="dimension",
            by="ratio",
            x="dimension d",
            y="E f / (dT/2)",
            name="δ/T = {}",
            rivals={"the bound, attained": rivals["attained"].worst} if rivals else {},
            log="xy",
        )

    def ripple_panel(self) -> kit.Panel:
        """Return a piece of F, and a descent that it catches."""
        amplitude, frequency = ripples(2, self.delta)
        line = np.linspace(2.8, 3.6, 600)
        start = 3.3
        end = fall(np.array([start]), 2, self.delta, FALLS)[0][0]
        cut = lambda x: x**2 / 2 + amplitude * np.cos(frequency * x)
        return kit.panel(
            "A piece of F along one coordinate, d = 2",
            "x",
            "height",
            kit.context_curve(line, cut(line), "F"),
            kit.observed_curve(
                [start, end], [cut(start), cut(end)], "descent, start and end", kind="points"
            ),
            kit.predicted_curve(line, line**2 / 2, "f"),
        )

    def course_panel(self, seen: xarray.Dataset) -> kit.Panel:
        """Return the heights of walkers and of descent in the most dimensions."""
        d = self.dimensions[-1]
        marks = seen.marks.values
        near = marks <= 15 * d
        unit = d * self.temperature / 2
        left = seen.left[-1].mean().values / unit
        heights = np.geomspace(self.start_height, 1.02, 80)
        times = [_steps_over_dimension(self.start_height, height) for height in heights]
        return kit.panel(
            f"Walkers fall through, d = {d}",
            "steps / d",
            "f / (dT/2)",
            kit.observed_curve(marks[near] / d, seen.course[-1].values[near] / unit, "walkers"),
            kit.observed_curve([0, 15], [self.start_height, left], "descent", shade=1.0),
            kit.predicted_curve(times, heights, "limit d → ∞"),
            log="y",
        )


def _arrivals(heights: Values, marks: Values) -> Values:
    """Return the step at which the mean height of a group of walkers falls to ``NEAR``, ``(groups, dimensions)``.

    Args:
        heights: in units of dT/2, shape ``(dimensions, walkers, records)``.
        marks: steps of the records.
    """
    groups = min(GROUPS, heights.shape[1])
    size = heights.shape[1] // groups
    means = heights[:, : groups * size].reshape(len(heights), groups, size, -1).mean(2)
    steps = np.full((groups, len(heights)), np.nan)
    for i, group in np.ndindex(len(heights), groups):
        course = means[i, group]
        below = np.flatnonzero(course <= NEAR)
        if below.size and below[0] > 0:
            at = below[0]
            share = (course[at - 1] - NEAR) / (course[at - 1] - course[at])
            steps[group, i] = marks[at - 1] + share * (marks[at] - marks[at - 1])
    return steps


def _drift(v: float) -> float:
    """Return d dv/dt = −2 E[G min(1, e^G)], G ~ N(−ℓ²/2, ℓ²v), v = ‖x‖²/(dT): zero at v = 1."""
    mean = -(PROPOSAL**2) / 2
    width = PROPOSAL * np.sqrt(v)
    above = mean * norm.cdf(mean / width) + width * norm.pdf(mean / width)
    tilted = mean + width**2  # e^G moves the mean there
    log_mass = mean + width**2 / 2
    below = tilted * np.exp(log_mass + norm.logcdf(-tilted / width)) - width * np.exp(
        log_mass + norm.logpdf(tilted / width)
    )
    return float(-2 * (above + below))


def _steps_over_dimension(start: float, end: float = NEAR) -> float:
    """Return the limit of (steps from one height to another)/d, heights in units of dT/2."""
    return quad(lambda v: -1 / _drift(v), end, start)[0]
