"""Langevin dynamics tends to the Gibbs distribution exp(−βf), at a rate equal to its spectral gap.

This is the limit of short steps ε of the walk X' = X − ε∇f + √(2ε/β) ξ, which is descent with noise. Gibbs's law is
approached in Wasserstein distance at the same rate.
"""

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.noise._double_well import well
from steepest.claims.noise._double_well_walk import (
    GIBBS,
    MOMENTS,
    ORDERS,
    ExactLaws,
    limit,
    line_expansion,
    line_law,
    relative,
    small_enough,
    trusted,
    well_gap,
)
from steepest.claims.noise._extrapolate import check_groups, check_sizes
from steepest.claims.noise.langevin_gibbs.point import LangevinGibbsPoint
from steepest.claims.noise.langevin_gibbs.transport import (
    AWAY,
    SLOPE,
    parabola_distances,
    well_rate,
)
from steepest.noise import kramers, langevin
from steepest.statistics import extrapolate

GROUPS = 32  # of walkers, over which means have intervals
LEFT = 8.0  # time at which the last of the walkers' readings is made
READINGS = 7  # of the walkers, evenly from time 2 on
SINCE = (0.5, 1.0, 1.5, 2.0)  # times of distances on the parabola, where 1/m is 2
# relative margins of limits as ε → 0: the extrapolations err by a third at most
GAP = 2e-5
TRANSPORT = 1e-4


@kit.claim
class LangevinGibbs(ExactLaws):
    """Exact laws of walks in a double well and on a parabola, and walkers in the double well."""

    beta: kit.Positive = kit.param(
        4.0,
        "β of the walkers in the double well, and on the parabola",
        unit="1/height",
        scope=kit.between(3.5, 4.5, "colder walkers hardly leave; warmer ones forget at once"),
    )
    step: kit.Positive = kit.param(
        0.1, "ε of these walkers", unit="time", scope=kit.choices(0.08, 0.1)
    )
    crowd: kit.Count = kit.param(131072, "number of these walkers, a multiple of 32")

    kind = "limit"
    says = {
        "tends to the Gibbs distribution exp(−βf)": "gibbs",
        "at a rate equal to its spectral gap": ("gap", "crowd_rate"),
        "approached in Wasserstein distance at the same rate": ("distance", "late_rate"),
    }
    tiny = {"crowd": 64, "betas": (2.0, 4.0), "steps": (0.05, 0.025, 0.0125)}
    full = {"crowd": 1048576, "betas": (2.0, 4.0, 8.0, 12.0)}
    out_of_scope = {"step": 0.3}
    point = LangevinGibbsPoint

    @property
    def marks(self) -> kit.Values:
        """Return the steps at which the walkers are read."""
        return np.unique(np.round(np.linspace(2.0, LEFT, READINGS) / self.step).astype(int))

    def axes(self):
        return {"beta": self.betas, "moment": MOMENTS, "step": self.steps, "since": SINCE}

    def check_fields(self) -> None:
        check_groups(GROUPS, crowd=self.crowd)
        check_sizes("steps", self.steps, 3)

    def hypotheses(self, setting):
        yield small_enough(*self.steps, self.step)

    def predict(self, setting):
        crowd = line_law(self.step, self.beta)
        return kit.law(
            gibbs=("beta moment", [line_expansion(beta).gibbs for beta in self.betas]),
            gap=("beta", [well_gap(beta) for beta in self.betas]),
            crowd_rate=crowd.rate,
            crowd_square=crowd.moments[0],
            distance=("since", self.distance_bound(np.array(SINCE))),
        )

    def distance_bound(self, times: kit.Values) -> kit.Values:
        """Return √(2KL/βm) e^(−mt) for a normal law of Gibbs's variance on the parabola, shape of ``times``."""
        force = self.beta * SLOPE
        entropy = force * AWAY**2 / 2
        # Talagrand: W₂² ≤ 2KL/βm, where a shift by a has KL = βma²/2
        return np.sqrt(2 * entropy / force) * np.exp(-SLOPE * times)

    def observe(self, setting, key):
        laws = [[line_law(step, beta) for step in self.steps] for beta in self.betas]
        late = [
            [well_rate(step, beta, law.rate) for step, law in zip(self.steps, of_beta, strict=True)]
            for beta, of_beta in zip(self.betas, laws, strict=True)
        ]
        parabola = lambda narrow: [
            parabola_distances(step, self.beta, SINCE, narrow=narrow) for step in self.steps
        ]
        crowd = kit.compiled(self.double_well)(jax.random.split(key)[1])
        position, square = (np.asarray(crowd[name]) for name in ("position", "square"))
        return kit.seen(
            moments=("beta step moment", [[law.moments for law in row] for row in laws]),
            rates=("beta step", [[law.rate for law in row] for row in laws]),
            ends=("beta step", [[law.end for law in row] for row in laws]),
            late_rates=("beta step", late),
            distances=("step since", parabola(False)),
            narrow_distances=("step since", parabola(True)),
            time=("reading", self.marks * self.step),
            position=("seed reading", position[0].T),
            square=("seed reading", square[0].T),
            cold_position=("seed reading", position[1].T),
            cold_square=("seed reading", square[1].T),
        )

    def double_well(self, key: kit.Key) -> dict[str, jax.Array]:
        """Return means of x and x² over groups of walkers that start at one, ``(β, readings, groups)``.

        The second β is twice the first: a changed world.
        """
        groups = lambda values: values.reshape(GROUPS, -1).mean(1)
        observers = {"position": groups, "square": lambda x: groups(x**2)}
        marks = self.marks
        start = jnp.ones(self.crowd)

        def walk(lane: tuple[jax.Array, jax.Array]) -> dict[str, jax.Array]:
            key, beta = lane
            last = int(marks[-1])
            return langevin(
                well, start, self.step, beta, last, key, record=marks, observe=observers
            ).observed

        return jax.lax.map(walk, (jax.random.split(key), self.beta * jnp.array([1.0, 2.0])))

    def run_conditions(self, observed):
        distances = extrapolate(observed["distances"], self.steps, ORDERS)
        yield from trusted(observed["ends"], observed["moments"], self.steps)
        for name, measured, within in (
            ("rates on the line", limit(observed["rates"], self.steps), GAP),
            ("distances on the parabola", distances, TRANSPORT),
            ("late rates of distances", limit(observed["late_rates"], self.steps), TRANSPORT),
        ):
            yield from kit.converged(name, relative(measured), within)

    def derive(self, law, seen):
        """Return limits as ε → 0, and what walkers come to."""
        time = seen.time.values
        # the mean may be at or below zero in another world
        fall = np.maximum(seen.position[:, 0] / seen.position[:, -1], 1e-3)
        distances = extrapolate(seen.distances.values, self.steps, ORDERS)
        return {
            "gibbs": law.gibbs.copy(data=limit(seen.moments, self.steps).value),
            "gap": law.gap.copy(data=limit(seen.rates, self.steps).value),
            "late_rate": law.gap.copy(data=limit(seen.late_rates, self.steps).value),
            "distance": law.distance.copy(data=distances.value),
            "crowd_rate": np.log(fall) / (time[-1] - time[0]),
            "crowd_square": seen.square.isel(reading=time >= LEFT / 2).mean("reading"),
        }

    def judge(self, law, seen):
        yield kit.follows(
            "gibbs", law.gibbs, seen.gibbs, GIBBS, label="E x² and E x⁴ as ε → 0, against exp(−βf)"
        )
        yield kit.follows(
            "gap",
            law.gap,
            seen.gap,
            GAP,  # the generator's grid errs by 1e-6
            label="rate of the walk as ε → 0, against the spectral gap",
        )
        yield kit.follows(
            "distance",
            law.distance,
            seen.distance,
            TRANSPORT,
            label="parabola: W₂ from exp(−βf) as ε → 0, against the bound",
        )
        yield kit.follows(
            "late_rate",
            law.gap,
            seen.late_rate,
            TRANSPORT,
            label="double well: late rate of W₂ as ε → 0, against the spectral gap",
        )
        yield kit.follows(
            "crowd_rate",
            law.crowd_rate,
            seen.crowd_rate,
            0.05,  # twice the interval, a third of the distance to Kramers' rate
            label=f"rate of E x(t), walkers, ε = {self.step:g}",
        )
        yield kit.follows(
            "crowd_square",
            law.crowd_square,
            seen.crowd_square,
            0.006,  # twice the interval, a quarter of the bias
            label=f"E x², walkers, ε = {self.step:g}",
        )

    def rivals(self, setting, law):
        hop = kramers(well, -1.0, 0.0, self.beta)
        colder = line_law(self.step, 2 * self.beta)
        crowd = line_expansion(self.beta)
        hops = 2 / hop.prefactor * np.exp(-hop.barrier * np.array([*self.betas, self.beta]))
        yield kit.rival(
            "noise of variance ε/β samples exp(−βf)",
            "the 2 of √(2ε/β) is easily lost",
            id="half_the_noise",
            gibbs=("beta moment", [line_expansion(2 * beta).gibbs for beta in self.betas]),
            gap=("beta", [well_gap(2 * beta) for beta in self.betas]),
            crowd_rate=colder.rate,
            crowd_square=colder.moments[0],
        )
        yield kit.rival(
            "the walk samples exp(−βf) at any step size",
            "it is the law that the steps were made for",
            id="unbiased",
            crowd_square=crowd.gibbs[0],
        )
        yield kit.rival(
            "twice the bias",
            "on a parabola it is the bias of 1/(1 − ελ), and 1 − ελ is the factor of a step",
            crowd_square=crowd.gibbs[0] + 2 * self.step * crowd.bias[0],
        )
        yield kit.rival(
            "Kramers' rate in place of the gap",
            "the gap is the rate of hops over the barrier as β → ∞",
            gap=("beta", hops[:-1]),
            crowd_rate=hops[-1],
        )
        yield kit.rival(
            "W₂ falls like e^(−2mt)",
            "the relative entropy falls at twice the rate",
            distance=law.distance * np.exp(-SLOPE * law.since),
        )
        yield kit.rival(
            "√(KL/2βm) in place of √(2KL/βm)",
            "Pinsker's inequality has KL/2",
            distance=law.distance / 2,
        )

    def controls(self, seen):
        turned = lambda array: array.roll(beta=1, roll_coords=False)
        yield kit.control(
            "walks at another β",
            "β sets the law and the gap",
            moments=turned(seen.moments),
            rates=turned(seen.rates),
            late_rates=turned(seen.late_rates),
        )
        yield kit.control(
            "walkers in the double well at twice β",
            "they hop less and stay closer to a minimum",
            position=seen.cold_position,
            square=seen.cold_square,
        )
        yield kit.control(
            "a narrower start on the parabola, of the same relative entropy",
            "of all starts of this entropy a shift is the farthest",
            id="narrow_start",
            distances=seen.narrow_distances,
        )

    def figure(self, law, seen, rivals):
        time = seen.time.values
        start = float(seen.position[:, 0].mean())
        decay = lambda rate: start * np.exp(-float(rate) * (time - time[0]))
        kramers_rate = rivals["kramers_rate_in_place_of_the_gap"].crowd_rate
        yield kit.panel(
            "Walkers forget their start at the gap",
            "time",
            "E x(t)",
            kit.observed_curve(time, seen.position, "walkers"),
            kit.predicted_curve(time, decay(law.crowd_rate), "rate of the chain"),
            kit.rival_curve(time, decay(kramers_rate), "Kramers' rate"),
            log="y",
        )
