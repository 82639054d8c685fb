"""Annealing at T = c/log k finds the deeper of two wells iff c is at least the depth of the other.

Here k counts steps, and the depth of the other well is called D. A walk starts at the bottom of the other well. At step
k it leaves that well with chance k^(−D/c)/4: at the temperature T = c/log k this is e^(−D/T)/4. The sum of these
chances is infinite exactly if c ≥ D. For c > D the walk in the end keeps up with Gibbs's law at its temperature. Its
chance to be in the wrong well falls like k^(−Δ/c), where Δ is the height difference of the two bottoms, so the best c
is just above D. At c = D the chance falls like k^(−1/4) where Δ > D/4, as a try at a pass without a barrier would
succeed with chance ¼. For c < D some of the walks stay for ever. The depth D + Δ of the deeper well does not matter:
with c below D + Δ a walk leaves the deeper well only finitely often.
"""

from collections.abc import Callable

import numpy as np
import xarray
from numpy.typing import NDArray

from steepest import kit
from steepest.claims.noise.annealing_schedule import experiment, theory
from steepest.nn.types import Values

BLOCK = 0.03  # the most that k grows by at one temperature
HELD = 1e4  # the step whose temperature is kept, in a world that is not cooled
NEAR = 0.15  # relative distance of c to D within which no horizon shows what becomes of a walk
WITHIN = 0.05  # of the chain of two states: wells forget their insides at once in it


@kit.claim
class AnnealingSchedule(kit.Claim[NDArray]):
    """Rings of twelve sites with two wells: exact laws of cooled walks up to step 10¹², and walkers."""

    cs: tuple[kit.Positive, ...] = kit.param(
        (0.5, 0.8, 1.0, 1.25, 1.5, 2.0),
        "c of the temperatures c/log k",
        unit="D",
        scope=kit.choices(
            (0.5, 0.8, 1.0, 1.25, 1.5, 2.0),
            (0.6, 0.8, 1.0, 1.3, 1.6, 2.5),
            (0.4, 0.7, 1.0, 1.2, 1.75),
            why="near D no horizon shows what becomes of a walk",
        ),
    )
    gap: kit.NonNegative = kit.param(
        0.5,
        "Δ, by which the right bottom is lower",
        unit="D",
        scope=kit.between(0.4, 0.7, "below, two powers of k mix at c = D"),
    )
    other_pass: kit.Positive = kit.param(
        1.5,
        "energy of the other pass over the wrong bottom",
        unit="D",
        scope=kit.between(1.3, 2.0, "two passes of one height have twice as many tries"),
    )
    slope: kit.Count = kit.param(
        3,
        "steps from a bottom to a pass",
        unit="sites",
        scope=kit.choices(2, 3, why="longer slopes have sites near the pass, which are seen late"),
    )
    first: kit.Count = kit.param(
        100,
        "the step at which a walk starts",
        unit="steps",
        scope=kit.between(80, 150, "earlier a well forgets slowly"),
    )
    decades: kit.Count = kit.param(12, "decades of steps", scope=kit.between(11, 13))
    early: tuple[kit.Count, ...] = kit.param(
        (700, 1500), "steps at which walkers are counted", unit="steps"
    )
    walkers: kit.Count = kit.param(400, "walkers in each group, at each c")
    groups: kit.Seeds = kit.param(16, "groups of walkers")
    seeds: kit.Seeds = kit.param(4, "landscapes")

    kind = "theorem"
    says = {
        "Annealing at T = c/log k": "wrong",
        "finds the deeper of two wells iff c is at least the depth of the other": (
            "wrong",
            "exponent",
        ),
    }
    tiny = {"decades": 6, "walkers": 10, "groups": 3, "seeds": 3, "early": (150, 200)}
    full = {"decades": 13, "walkers": 1000, "groups": 40, "seeds": 10}
    out_of_scope = {"gap": 0.0}

    @property
    def marks(self) -> Values:
        """Return the steps at which laws are looked at."""
        return 10.0 ** np.arange(3, self.decades + 1)

    def axes(self):
        return {"c": self.cs, "k": tuple(self.marks.tolist()), "early": self.early}

    def check_fields(self) -> None:
        if self.decades < 5:
            raise kit.UserError(f"decades must be 5 or more, got {self.decades}; try 12")
        if list(self.early) != sorted(set(self.early)) or self.early[0] <= self.first:
            raise kit.UserError(
                f"early must be increasing steps after the first, {self.first}, got {self.early}"
            )

    def setting(self, key):
        rng = kit.numpy_generator(key)
        return np.stack(
            [
                experiment.landscape(rng, self.slope, self.gap, self.other_pass)
                for _ in range(self.seeds)
            ]
        )

    def hypotheses(self, setting):
        landscapes = [theory.wells(energies) for energies in setting]
        gap = min(wells.gap for wells in landscapes)
        spread = min(wells.spread / wells.depth for wells in landscapes)
        depths = [wells.depth for wells in landscapes]
        away = [abs(c / depth - 1) for c in self.cs for depth in depths if c != depth]
        yield kit.assume("Δ over D", gap / depths[0], ">", theory.TRIES, "raise --gap")
        yield kit.assume(
            "difference of both passes over D", spread, ">=", 0.25, "raise --other_pass"
        )
        yield kit.assume("|c/D − 1| of other c than D", min(away), ">", NEAR)

    def predict(self, setting):
        wells = theory.wells(setting[0])
        exponents = [theory.exponent(c, wells.depth, wells.gap) for c in self.cs]
        wrong = self._of_landscapes(setting, theory.two_states, self.first)
        early = len(self.early)
        groups = np.arange(self.groups) % self.seeds
        return kit.law(
            wrong=("seed c k", wrong[..., early:]),
            exponent=("c", exponents),
            met=("draw c early", wrong[groups, :, :early]),
        )

    def _of_landscapes(
        self, setting: Values, chances: Callable[..., Values], *more: float, **options: float
    ) -> Values:
        """Return chances of the wrong well by a theory, ``(landscapes, c, early steps and marks)``."""
        steps = np.append(self.early, self.marks)
        order = np.argsort(steps)
        cs = np.array(self.cs)
        every = [chances(energies, cs, *more, steps[order], **options) for energies in setting]
        return np.stack(every)[..., np.argsort(order)]

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        cs = np.array(self.cs)
        inside = experiment.in_the_wrong_well(self.slope)
        energies = setting[:, None]
        marks = self.marks
        cooled = lambda k: cs / np.log(k)
        start = np.log(self.first)
        worlds = lambda k: np.stack(
            [cs / np.log(k), cs / np.log(HELD), cs * self.first / (k * start)]
        )[:, None]
        fine = experiment.law(energies, cooled, self.first, marks, BLOCK)[..., inside].sum(-1)
        coarse = experiment.law(energies[None], worlds, self.first, marks, 2 * BLOCK)
        changed = coarse[..., inside].sum(-1)
        groups = np.arange(self.groups) % self.seeds
        places = experiment.walk(rng, setting[groups], cs, self.first, self.early, self.walkers)
        return kit.seen(
            wrong=("seed c k", fine),
            coarse=("seed c k", changed[0]),
            held=("seed c k", changed[1]),
            quenched=("seed c k", changed[2]),
            met=("draw c early", inside[places].mean(-1)),
        )

    def run_conditions(self, observed):
        apart = np.abs(observed["coarse"] / observed["wrong"] - 1).max()
        yield kit.assume("change with blocks twice as long", float(apart), "<=", WITHIN / 3)

    def derive(self, law, seen):
        """Return the exponent over the last decade."""
        late = np.log10(seen.wrong.isel(k=-1, drop=True) / seen.wrong.isel(k=-2, drop=True))
        return {"late": late}

    def judge(self, law, seen):
        yield kit.follows(
            "wrong",
            law.wrong,
            seen.wrong,
            WITHIN,
            over="c k",
            each=True,
            label="chance of the wrong well, exact",
        )
        yield kit.follows(
            "exponent",
            law.exponent,
            seen.late,
            0.02,
            absolute=True,
            each=True,
            label="exponent of that chance in k, last decade",
        )
        yield kit.follows(
            "walkers",
            law.met,
            seen.met,
            0.06,
            over="c early",
            absolute=True,
            label="share of walkers in the wrong well",
        )

    def rivals(self, setting, law):
        wells = theory.wells(setting[0])
        early = len(self.early)
        groups = np.arange(self.groups) % self.seeds
        gibbs = self._of_landscapes(setting, theory.equilibrium)
        twice = self._of_landscapes(setting, theory.two_states, self.first, escapes=2.0)
        c = law.c
        yield kit.rival(
            "Gibbs's law at every c",
            "all basins are visited eventually, the notes say",
            id="always",
            wrong=("seed c k", gibbs[..., early:]),
            exponent=-wells.gap / c,
            met=("draw c early", gibbs[groups, :, :early]),
        )
        yield kit.rival(
            "c ≥ D + Δ, the depth of the right well",
            "it suffices by the older theorem, that no well be left too seldom",
            id="deepest",
            exponent=xarray.where(c < wells.depth + wells.gap, 0.0, law.exponent),
        )
        yield kit.rival(
            "k^(−Δ/D) at every c ≥ D",
            "at the least c that works the temperature is lowest",
            exponent=xarray.where(c < wells.depth, 0.0, -wells.gap / wells.depth),
        )
        yield kit.rival(
            "k^(−(D + Δ)/c)",
            "it errs if it has just come back",
            exponent=law.exponent * (1 + wells.depth / wells.gap),
        )
        yield kit.rival(
            "twice as many tries",
            "a well on a ring has two ways out",
            wrong=("seed c k", twice[..., early:]),
            exponent=xarray.where(c == wells.depth, law.exponent * 2, law.exponent),
            met=("draw c early", twice[groups, :, :early]),
        )

    def controls(self, seen):
        yield kit.control(
            f"the temperature of step {HELD:g}, held",
            "the wrong well keeps its weight",
            id="held",
            wrong=seen.held,
        )
        yield kit.control(
            "cooled like 1/k",
            "the sum of all chances to leave is finite at every c",
            wrong=seen.quenched,
        )
        yield kit.control(
            "walkers at another c", "c decides", met=seen.met.roll(c=1, roll_coords=False)
        )

    def figure(self, law, seen, rivals):
        cs = np.array(self.cs)
        yield kit.curves(
            "Below c = 1 a part stays for ever",
            law.wrong.mean("seed"),
            seen.wrong.mean("seed"),
            over="k",
            by="c",
            x="step k",
            y="chance of the wrong well",
            name="c = {}",
            log="xy",
        )
        yield kit.panel(
            "The best c is just above the depth D = 1",
            "c / D",
            "exponent of k in that chance",
            kit.observed_curve(cs, seen.late.mean("seed"), "last decade", kind="points"),
            kit.predicted_curve(cs, law.exponent, "0, −1/4, −Δ/c"),
            kit.rival_curve(cs, rivals["deepest"].exponent, "from D + Δ on"),
            kit.rival_curve(cs, rivals["always"].exponent, "Gibbs at every c"),
            ylim=(-1.05, 0.05),
        )
