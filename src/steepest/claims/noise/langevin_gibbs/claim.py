"""Langevin dynamics tends to the Gibbs distribution exp(−βf), at a rate equal to its spectral gap.

This is the limit of short steps ε. The walk X' = X − ε∇f + √(2ε/β) ξ is descent with noise. Its own stationary law is
not Gibbs's: on a parabola of curvature λ the variance is too large by the factor 1/(1 − ελ/2). To first order in ε, its
log density is shifted by ε(β|∇f|²/4 − Δf/2), up to a constant, and the mean of an observable is shifted by ε times its
covariance with β|∇f|²/4 − Δf/2.

Gibbs's law is approached in Wasserstein distance at the same rate. How this rate depends on the dimension is set by the
potential: independent wells have the gap of one well, and wells that are tied together have a gap that falls
exponentially.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.claims.noise._double_well import well
from steepest.claims.noise._extrapolate import check_groups, check_sizes
from steepest.claims.noise.langevin_gibbs.experiment import (
    PLACES,
    LangevinGibbsPoint,
    LineLaw,
    line_expansion,
    line_law,
    line_shift,
    plane_expansion,
    plane_moments,
    rugged_bound,
    rugged_excess,
    rugged_second,
)
from steepest.claims.noise.langevin_gibbs.transport import (
    AWAY,
    SLOPE,
    SPRING,
    WARM,
    parabola_distances,
    tied_gap,
    well_rate,
    wells_gap,
)
from steepest.nn.data import breast_cancer
from steepest.nn.types import Values
from steepest.noise import kramers, langevin, spectral_gap
from steepest.statistics import Extrapolation, extrapolate

GROUPS = 32  # of walkers, over which means have intervals
LEFT = 8.0  # time at which the last of the walkers' readings is made
READINGS = 7  # of the walkers in the double well, evenly from time 2 on
COLD = 20.0  # β on the rugged parabola from which the excess is expanded
ORDERS = (1, 2, 3, 4)  # powers of ε that are taken out
MOMENTS = ("x²", "x⁴")
OBSERVABLES = ("x²", "y²", "x²y²")
SINCE = (0.5, 1.0, 1.5, 2.0)  # times of distances on the parabola, where 1/m is 2
DIMENSIONS = (1, 2, 3)
TIES = ("apart", "tied")  # of as many wells
# relative margins of limits as ε → 0: the extrapolations err by a third at most
GIBBS = 1e-5
GAP = 2e-5
SHIFT = 5e-5
LINE = 1e-4
PLANE = 0.01
TRANSPORT = 1e-4
# the next order is 1/k²: of βΣu⁴/4 with u² of 1/βk the part that depends on x̄ is 0.6 % of a rate at k = 10
WELLS = 0.01


class Setting(NamedTuple):
    """The ridge risk of the real data, in numbers, and walkers sampled from its posterior.

    Attributes:
        curvatures: λ, eigenvalues of the Hessian, increasing, shape ``(30,)``.
        directions: its eigenvectors in columns, ``(30, 30)``.
        best: the minimum, ``(30,)``.
        start: walkers from exp(−βf), ``(walkers, 30)``.
    """

    curvatures: Values
    directions: Values
    best: Values
    start: Values


@kit.claim
class LangevinGibbs(kit.Claim[Setting]):
    """A real posterior, a double well on the line, a potential in the plane, a rugged parabola."""

    multiples: tuple[kit.Positive, ...] = kit.param(
        (0.27, 0.67, 1.34),
        "ελ_max on the posterior of the real data",
        scope=kit.choices((0.27, 0.67, 1.34), (0.4, 0.9, 1.5), why="at 2 the walk runs away"),
    )
    ridge: kit.Positive = kit.param(
        0.1, "μ, weight of ‖w‖²/2 in the risk of the real data", scope=kit.between(0.05, 0.3)
    )
    posterior_beta: kit.Positive = kit.param(
        100.0, "β on the real data", unit="1/height", scope=kit.between(10.0, 1000.0)
    )
    walkers: kit.Count = kit.param(1024, "walkers on the real data, a multiple of 32")
    burn: kit.Count = kit.param(
        60, "steps before the readings there, which are as many", unit="steps"
    )
    betas: tuple[kit.Positive, ...] = kit.param(
        (2.0, 4.0, 8.0),
        "β of the exact laws in the double well",
        unit="1/height",
        scope=kit.choices((2.0, 4.0, 8.0), (3.0, 5.0, 9.0)),
    )
    steps: tuple[kit.Positive, ...] = kit.param(
        (0.05, 0.025, 0.0125, 0.00625, 0.003125),
        "ε of the exact laws in the double well, from which ε → 0 is extrapolated",
        unit="time",
    )
    plane_steps: tuple[kit.Positive, ...] = kit.param(
        (0.06, 0.04, 0.025, 0.015), "ε of the exact laws in the plane", unit="time"
    )
    beta: kit.Positive = kit.param(
        4.0,
        "β of the walkers in the double well",
        unit="1/height",
        scope=kit.between(3.5, 4.5, "colder walkers hardly leave; warmer ones forget at once"),
    )
    step: kit.Positive = kit.param(
        0.1, "ε of these walkers", unit="time", scope=kit.choices(0.08, 0.1)
    )
    crowd: kit.Count = kit.param(131072, "number of these walkers, a multiple of 32")
    rugged_betas: tuple[kit.Positive, ...] = kit.param(
        (2.0, 5.0, 20.0, 40.0, 100.0),
        "β on the rugged parabola",
        unit="1/height",
        scope=kit.choices((2.0, 5.0, 20.0, 40.0, 100.0), (1.0, 4.0, 25.0, 60.0, 200.0)),
    )

    kind = "limit"
    says = {
        "tends to the Gibbs distribution exp(−βf)": "gibbs",
        "at a rate equal to its spectral gap": "gap",
        "its log density is shifted by ε(β|∇f|²/4 − Δf/2)": (
            "log_density",
            "bias_line",
            "bias_plane",
            "posterior_top",
        ),
    }
    tiny = {
        "walkers": 32,
        "burn": 3,
        "crowd": 64,
        "betas": (2.0, 4.0),
        "steps": (0.05, 0.025, 0.0125),
        "plane_steps": (0.16, 0.12, 0.08),
    }
    full = {
        "walkers": 4096,
        "crowd": 1048576,
        "betas": (2.0, 4.0, 8.0, 12.0),
        "plane_steps": (0.08, 0.04, 0.02, 0.01),
    }
    out_of_scope = {"multiples": (2.5,)}
    point = LangevinGibbsPoint

    @property
    def marks(self) -> Values:
        """Return the steps at which the walkers in the double well are read."""
        return np.unique(np.round(np.linspace(2.0, LEFT, READINGS) / self.step).astype(int))

    def axes(self):
        return {
            "multiple": self.multiples,
            "direction": tuple(range(1, breast_cancer().x.shape[1] + 1)),
            "beta": self.betas,
            "moment": MOMENTS,
            "place": tuple(PLACES),
            "step": self.steps,
            "plane_step": self.plane_steps,
            "observable": OBSERVABLES,
            "rugged": self.rugged_betas,
            "since": SINCE,
            "ties": TIES,
            "dimension": DIMENSIONS,
        }

    def check_fields(self) -> None:
        check_groups(GROUPS, walkers=self.walkers, crowd=self.crowd)
        check_sizes("steps", self.steps, 3)
        check_sizes("plane-steps", self.plane_steps, 3)

    def setting(self, key):
        data = breast_cancer()
        x = np.asarray(data.x, float)
        y = np.asarray(data.y, float).ravel()
        hessian = x.T @ x / len(x) + self.ridge * np.eye(x.shape[1])
        best = np.linalg.solve(hessian, x.T @ y / len(x))
        curvatures, directions = np.linalg.eigh(hessian)
        noise = kit.numpy_generator(key).standard_normal((self.walkers, len(best)))
        start = best + noise / np.sqrt(self.posterior_beta * curvatures) @ directions.T
        return Setting(curvatures, directions, best, start)

    def hypotheses(self, setting):
        yield kit.assume(
            "largest ελ_max",
            max(self.multiples),
            "<",
            2,
            "beyond the walk has no stationary law; choose smaller --multiples",
        )
        yield kit.assume(
            "largest ε in the double well",
            max(*self.steps, self.step),
            "<=",
            0.25,
            "the walk runs away from where a step overshoots; choose smaller --steps",
        )
        yield kit.assume(
            "largest β on the rugged parabola",
            max(self.rugged_betas),
            ">=",
            COLD,
            "the excess is expanded in 1/β; raise --rugged-betas",
        )

    def predict(self, setting):
        theory = [line_expansion(beta) for beta in self.betas]
        shifts = [line_shift(beta) for beta in self.betas]
        plane = plane_expansion()
        crowd = line_law(self.step, self.beta)
        betas = np.array(self.rugged_betas)
        fractions = self.fractions(setting)
        return kit.law(
            # x' = (1 − ελ)x + √(2ε/β)ξ has the variance 1/(1 − ελ/2) at rest, in units of 1/βλ
            variance=("multiple direction", self.over_time(fractions, 1 / (1 - fractions / 2))),
            gibbs=("beta moment", [expansion.gibbs for expansion in theory]),
            bias=("beta moment", [expansion.bias for expansion in theory]),
            logs=("beta place", [expansion.logs for expansion in shifts]),
            log_shift=("beta place", [expansion.shift for expansion in shifts]),
            gap=("beta", [_gap(beta) for beta in self.betas]),
            order=("step", self.steps),
            plane_gibbs=("observable", plane.gibbs),
            plane_bias=("observable", plane.bias),
            crowd_rate=crowd.rate,
            crowd_square=crowd.moments[0],
            excess=("rugged", 1 / (2 * betas) + rugged_second() / betas**2),
            excess_bound=("rugged", rugged_bound(betas)),
            distance=("since", self.distance_bound(np.array(SINCE))),
            wells=("ties dimension", self.wells_theory()),
        )

    def distance_bound(self, times: Values) -> Values:
        """Return √(2KL/βm) e^(−mt) for a normal law of Gibbs's variance on the parabola, shape of ``times``."""
        force = self.beta * SLOPE
        entropy = force * AWAY**2 / 2
        # Talagrand: W₂² ≤ 2KL/βm, where a shift by a has KL = βma²/2
        return np.sqrt(2 * entropy / force) * np.exp(-SLOPE * times)

    def wells_theory(self) -> Values:
        """Return gaps of independent wells, and of wells with springs, ``(ties, dimensions)``."""
        tied = [tied_gap(dimension, SPRING) for dimension in DIMENSIONS]
        return np.array([np.full(len(DIMENSIONS), _gap(WARM)), tied])

    def fractions(self, setting: Setting) -> Values:
        """Return ελ on the real data, ``(multiples, 30)``."""
        return np.outer(self.multiples, setting.curvatures / setting.curvatures[-1])

    def over_time(self, fractions: Values, end: Values) -> Values:
        """Return the mean over the readings of a variance that starts at one and tends to ``end``."""
        times = np.arange(self.burn + 1, 2 * self.burn + 1)[:, None, None]
        # the distance from the variance at rest falls by (1 − ελ)² a step
        return (end + (1 - end) * (1 - fractions) ** (2 * times)).mean(0)

    def observe(self, setting, key):
        for_posterior, for_crowd = jax.random.split(key)
        lines = [[line_law(step, beta) for step in self.steps] for beta in self.betas]
        variances = kit.compiled(self.posterior)(for_posterior, *setting)
        crowd = kit.compiled(self.double_well)(for_crowd)
        position, square = (np.asarray(crowd[name]) for name in ("position", "square"))
        along = ((setting.start - setting.best) @ setting.directions) ** 2
        along *= self.posterior_beta * setting.curvatures
        return kit.seen(
            # over those of exp(−βf)
            variance=("multiple seed direction", variances),
            start_variance=("seed direction", along.reshape(GROUPS, -1, along.shape[1]).mean(1)),
            moments=("beta step moment", [[law.moments for law in row] for row in lines]),
            logs=("beta step place", [[law.logs for law in row] for row in lines]),
            rates=("beta step", [[law.rate for law in row] for row in lines]),
            ends=("beta step", [[law.end for law in row] for row in lines]),
            plane=("plane_step observable", [plane_moments(step) for step in self.plane_steps]),
            time=("reading", self.marks * self.step),
            position=("seed reading", position[0].T),
            square=("seed reading", square[0].T),
            cold_position=("seed reading", position[1].T),
            cold_square=("seed reading", square[1].T),
            excess=("rugged", [rugged_excess(beta) for beta in self.rugged_betas]),
            smooth_excess=("rugged", [rugged_excess(beta, 0.0) for beta in self.rugged_betas]),
            **self.transport(lines),
        )

    def transport(self, laws: list[list[LineLaw]]) -> dict[str, tuple[str, object]]:
        """Return distances on the parabola, their late rates in the double well, and gaps of several wells.

        Args:
            laws: of the walk in the double well at each β and step, whose rates say when it is late.
        """
        springs = {"wells": (0.0, SPRING), "looser_wells": (SPRING / 10, SPRING / 2)}
        on_parabola = lambda narrow: [
            parabola_distances(step, self.beta, SINCE, narrow=narrow) for step in self.steps
        ]
        late = [
            [well_rate(step, beta, law.rate) for step, law in zip(self.steps, of_beta, strict=True)]
            for beta, of_beta in zip(self.betas, laws, strict=True)
        ]
        return {
            "distances": ("step since", on_parabola(False)),
            "narrow_distances": ("step since", on_parabola(True)),
            "late_rates": ("beta step", late),
            **{
                name: (
                    "ties dimension",
                    [[wells_gap(d, spring) for d in DIMENSIONS] for spring in pair],
                )
                for name, pair in springs.items()
            },
        }

    def posterior(
        self,
        key: kit.Key,
        curvatures: jax.Array,
        directions: jax.Array,
        best: jax.Array,
        start: jax.Array,
    ) -> jax.Array:
        """Return mean squares along eigenvectors over the posterior's, ``(multiples, groups, 30)``."""
        hessian = (directions * curvatures) @ directions.T

        def risk(w: jax.Array) -> jax.Array:
            return (w - best) @ hessian @ (w - best) / 2

        def squares(w: jax.Array) -> jax.Array:
            along = ((w - best) @ directions) ** 2 * (self.posterior_beta * curvatures)
            return along.reshape(GROUPS, -1, len(best)).mean(1)

        def walk(key: kit.Key, multiple: jax.Array) -> jax.Array:
            path = langevin(
                risk,
                start,
                multiple / curvatures[-1],
                self.posterior_beta,
                2 * self.burn,
                key,
                record=np.arange(self.burn + 1, 2 * self.burn + 1),
                observe={"squares": squares},
            )
            return path.observed["squares"].mean(0)

        seeds = jax.random.split(key, len(self.multiples))
        return jax.vmap(walk)(seeds, jnp.array(self.multiples))

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
            path = langevin(
                well, start, self.step, beta, last, key, record=marks, observe=observers
            )
            return path.observed

        return jax.lax.map(walk, (jax.random.split(key), self.beta * jnp.array([1.0, 2.0])))

    def limit(self, values: xarray.DataArray | Values) -> Extrapolation:
        """Return the limit as ε → 0 of values at each β, step and what else there is."""
        return extrapolate(np.moveaxis(np.asarray(values), 1, 0), self.steps, ORDERS)

    def distance(self, values: xarray.DataArray | Values) -> Extrapolation:
        """Return the limit as ε → 0 of distances on the parabola."""
        return extrapolate(np.asarray(values), self.steps, ORDERS)

    def run_conditions(self, observed):
        moments = self.limit(observed["moments"])
        rates = self.limit(observed["rates"])
        plane = extrapolate(observed["plane"], self.plane_steps, ORDERS)
        relative = lambda limit: Extrapolation(1.0, limit.error / limit.value, np.nan)
        yield kit.assume(
            "mass at the ends of the grids",
            float(observed["ends"].max()),
            "<",
            1e-9,
            "the walk is thrown off; choose smaller --steps",
        )
        yield from kit.converged("moments on the line", relative(moments), GIBBS)
        yield from kit.converged("rates on the line", relative(rates), GAP)
        yield from kit.converged("moments in the plane", relative(plane), PLANE)
        yield from kit.converged(
            "distances on the parabola", relative(self.distance(observed["distances"])), TRANSPORT
        )
        yield from kit.converged(
            "late rates of distances", relative(self.limit(observed["late_rates"])), TRANSPORT
        )

    def derive(self, law, seen):
        """Return limits as ε → 0, and what walkers come to."""
        biases = (seen.moments - law.gibbs).transpose(*seen.moments.dims) / seen.step
        shifts = (seen.logs - law.logs).transpose(*seen.logs.dims) / seen.step
        plane = extrapolate(
            ((seen.plane - law.plane_gibbs) / seen.plane_step).values, self.plane_steps, ORDERS
        )
        time = seen.time.values
        # the mean may be at or below zero in another world
        fall = np.maximum(seen.position[:, 0] / seen.position[:, -1], 1e-3)
        return {
            "gibbs": law.gibbs.copy(data=self.limit(seen.moments).value),
            "biases": biases,
            "bias": law.bias.copy(data=self.limit(biases).value),
            "log_shift": law.log_shift.copy(data=self.limit(shifts).value),
            "gap": law.gap.copy(data=self.limit(seen.rates).value),
            "distance": law.distance.copy(data=self.distance(seen.distances).value),
            "late_rate": law.gap.copy(data=self.limit(seen.late_rates).value),
            "plane_bias": law.plane_bias.copy(data=plane.value),
            "crowd_rate": np.log(fall) / (time[-1] - time[0]),
            "crowd_square": seen.square.isel(reading=time >= LEFT / 2).mean("reading"),
        }

    def judge(self, law, seen):
        yield from self.exact_checks(law, seen)
        yield from self.transport_checks(law, seen)
        yield from self.rugged_checks(law, seen)
        yield from self.walkers_checks(law, seen)

    def exact_checks(self, law, seen):
        """Yield the checks of exact laws of the walk."""
        largest = float(abs(law.log_shift).max())
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
            "log_density",
            law.log_shift,
            seen.log_shift,
            SHIFT * largest,
            absolute=True,
            label=f"log(π_ε/π)/ε as ε → 0 on |x| ≤ {PLACES[-1]:g}",
        )
        yield kit.follows(
            "bias_line", law.bias, seen.bias, LINE, label="bias of E x² and E x⁴ over ε as ε → 0"
        )
        yield kit.follows(
            "bias_plane",
            law.plane_bias,
            seen.plane_bias,
            PLANE,
            label="the same of x², y² and x²y² in the plane",
        )
        yield kit.power(
            "order",
            law.order,
            abs(seen.biases.isel(beta=0, moment=0) * seen.step),
            0.1,
            over="step",
            label=f"bias of E x² against ε, β = {self.betas[0]:g}",
        )

    def transport_checks(self, law, seen):
        """Yield the checks of Wasserstein distances, and of gaps in several dimensions."""
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
            "wells", law.wells, seen.wells, WELLS, label="spectral gap of several wells"
        )

    def rugged_checks(self, law, seen):
        """Yield the checks of the excess on the rugged parabola."""
        cold = np.flatnonzero(np.array(self.rugged_betas) >= COLD)
        yield kit.follows(
            "excess",
            law.excess.isel(rugged=cold),
            seen.excess.isel(rugged=cold),
            0.005,  # the next order is 0.002 at β = 20
            label="rugged parabola: excess E f − f*",
        )
        yield kit.at_most(
            "excess_bound",
            law.excess_bound,
            seen.excess,
            label="rugged parabola: excess against the paper's bound",
        )

    def walkers_checks(self, law, seen):
        """Yield the checks of walkers."""
        yield kit.follows(
            "posterior_top",
            law.variance.isel(direction=-1),
            seen.variance.isel(direction=-1),
            0.06,  # two intervals
            over="multiple",
            label="variance over Gibbs's in the steepest direction",
        )
        yield kit.follows(
            "posterior_all",
            law.variance.mean("direction"),
            seen.variance.mean("direction"),
            0.04,  # three intervals
            label="variances over Gibbs's, mean over directions",
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
        crowd_colder = line_law(self.step, 2 * self.beta)
        hop = kramers(well, -1.0, 0.0, self.beta)
        hops = 2 / hop.prefactor * np.exp(-hop.barrier * np.array([*self.betas, self.beta]))
        yield from self.rivals_of_bias(setting, law)
        yield kit.rival(
            "noise of variance ε/β samples exp(−βf)",
            "the 2 of √(2ε/β) is easily lost",
            id="half_the_noise",
            variance=law.variance / 2,
            gibbs=("beta moment", [line_expansion(2 * beta).gibbs for beta in self.betas]),
            gap=("beta", [_gap(2 * beta) for beta in self.betas]),
            crowd_rate=crowd_colder.rate,
            crowd_square=crowd_colder.moments[0],
        )
        yield kit.rival(
            "Kramers' rate in place of the gap",
            "the gap is the rate of hops over the barrier as β → ∞",
            gap=("beta", hops[:-1]),
            crowd_rate=hops[-1],
        )
        yield kit.rival(
            "the bias is of order ε²",
            "so it is for schemes that average two successive noises",
            order=law.order**2,
        )
        yield from self.rivals_of_excess(law)
        yield from self.rivals_of_transport(law)

    def rivals_of_bias(self, setting, law):
        """Return wrong theories of what steps do to the law."""
        fractions = self.fractions(setting)
        shifts = [line_shift(beta) for beta in self.betas]
        crowd = line_expansion(self.beta)
        with np.errstate(divide="ignore"):
            doubled = 1 / (1 - fractions)
        yield kit.rival(
            "the walk samples exp(−βf) at any step size",
            "it is the law that the steps were made for",
            id="unbiased",
            variance=1.0,
            bias=1e-12,
            log_shift=0.0,
            plane_bias=1e-12,
            crowd_square=crowd.gibbs[0],
        )
        yield kit.rival(
            "1/(1 − ελ), twice the bias",
            "1 − ελ is the factor of a step",
            variance=("multiple direction", self.over_time(fractions, doubled)),
            bias=2 * law.bias,
            log_shift=2 * law.log_shift,
            plane_bias=2 * law.plane_bias,
            crowd_square=crowd.gibbs[0] + 2 * self.step * crowd.bias[0],
        )
        yield kit.rival(
            "log density off by εβ|∇f|²/4, without Δf",
            "it is the same on parabolas, where Δf is constant",
            id="gradients_alone",
            bias=("beta moment", [line_expansion(beta).slopes_only for beta in self.betas]),
            log_shift=("beta place", [shift.slopes_only for shift in shifts]),
            plane_bias=("observable", plane_expansion().slopes_only),
        )

    def rivals_of_excess(self, law):
        """Return wrong theories of the excess on the rugged parabola."""
        betas = law.rugged
        yield kit.rival(
            "E f − f* is (d/β) log(β/d)", "as the talk says", excess=np.log(betas) / betas
        )
        yield kit.rival(
            "E f − f* is d/2β",
            "it is the leading order for large β",
            excess=1 / (2 * betas),
            excess_bound=1 / (2 * betas),
        )

    def rivals_of_transport(self, law):
        """Return wrong theories of distances and of gaps in several dimensions."""
        dims = "ties dimension"
        exponential = np.array([_gap(WARM * dimension) for dimension in DIMENSIONS])
        independent, tied = law.wells.values
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
        yield kit.rival(
            "gaps fall exponentially with the dimension in any case",
            "as the talk says",
            id="generically_exponential",
            wells=(dims, np.array([exponential, tied])),
        )
        yield kit.rival(
            "gaps never depend on the dimension",
            "the constant of a product is that of one factor",
            wells=(dims, np.array([independent, independent])),
        )
        yield kit.rival(
            "tied wells have one well's gap at dβ",
            "all move as one",
            wells=(dims, np.array([independent, exponential])),
        )

    def controls(self, seen):
        turned = lambda array: array.roll(beta=1, roll_coords=False)
        exchanged = [OBSERVABLES.index(name) for name in ("y²", "x²", "x²y²")]
        yield kit.control(
            "walks at another β",
            "β sets the law, its shift and the gap",
            moments=turned(seen.moments),
            logs=turned(seen.logs),
            rates=turned(seen.rates),
            late_rates=turned(seen.late_rates),
        )
        yield kit.control(
            "the potential in the plane with x and y exchanged",
            "x and y are not alike",
            id="turned_plane",
            plane=(seen.plane.dims, seen.plane.values[:, exchanged]),
        )
        yield kit.control(
            "walkers on the real data where they start",
            "they have Gibbs's law",
            variance=seen.start_variance,
        )
        yield kit.control(
            "walkers in the double well at twice β",
            "they hop less and stay closer to a minimum",
            position=seen.cold_position,
            square=seen.cold_square,
        )
        yield kit.control(
            "the parabola without its ripples", "its excess is d/2β", excess=seen.smooth_excess
        )
        yield kit.control(
            "a narrower start on the parabola, of the same relative entropy",
            "of all starts of this entropy a shift is the farthest",
            id="narrow_start",
            distances=seen.narrow_distances,
        )
        yield kit.control(
            "a tenth of the spring for none, and half of it",
            "the wells of the first set have springs, and those of the second hang together less",
            wells=seen.looser_wells,
        )

    def figure(self, law, seen, rivals):
        middle = {"beta": len(self.betas) // 2, "moment": 0}
        steps = np.append(self.steps, 0)
        gibbs_mean = float(law.gibbs.isel(middle))
        bias = float(law.bias.isel(middle))
        time = seen.time.values
        start = float(seen.position[:, 0].mean())
        decay = start * np.exp(-float(law.crowd_rate) * (time - time[0]))
        hops = np.sqrt(2) / np.pi * np.exp(-self.beta / 4)
        betas = np.array(self.rugged_betas)
        yield self.posterior_panel(seen)
        yield kit.panel(
            f"Double well, β = {self.betas[middle['beta']]:g}: bias of order ε",
            "ε",
            "E x²",
            kit.observed_curve(
                self.steps, seen.moments.isel(middle), "exact law of the walk", kind="points"
            ),
            kit.predicted_curve(steps, gibbs_mean + steps * bias, "Gibbs + ε Cov"),
            kit.rival_curve(steps, gibbs_mean + 0 * steps, "Gibbs"),
        )
        yield kit.panel(
            "Walkers forget their start at the gap",
            "time",
            "E x(t)",
            kit.observed_curve(time, seen.position, "walkers"),
            kit.predicted_curve(time, decay, "rate of the chain"),
            kit.rival_curve(time, start * np.exp(-hops * (time - time[0])), "Kramers' rate"),
            log="y",
        )
        yield kit.panel(
            "Rugged parabola: E f − f*",
            "β",
            "excess",
            kit.observed_curve(betas, seen.excess, "under exp(−βf)", kind="points"),
            kit.predicted_curve(betas, law.excess_bound, "bound"),
            kit.predicted_curve(betas, law.excess, "d/2β + a/β²", shade=1.0),
            kit.rival_curve(betas, np.log(betas) / betas, "(d/β) log(β/d)"),
            log="xy",
        )

    def posterior_panel(self, seen: xarray.Dataset) -> kit.Panel:
        """Return variances on the real data over ελ."""
        top = 1.05 * max(self.multiples)
        line = np.linspace(0, min(top, 1.5), 80)
        printed = line[line < 0.75]
        points = [
            kit.observed_curve(
                multiple * self.relative_curvatures(),
                seen.variance[i].mean("seed"),
                f"ε λ_max = {multiple:g}",
                kind="points",
                shade=i / max(1, len(self.multiples) - 1),
            )
            for i, multiple in enumerate(self.multiples)
        ]
        return kit.panel(
            "A real posterior: variances too large",
            "ελ",
            "variance over Gibbs's",
            *points,
            kit.predicted_curve(line, 1 / (1 - line / 2), "1/(1 − ελ/2)"),
            kit.rival_curve(printed, 1 / (1 - printed), "1/(1 − ελ)"),
            kit.rival_curve(line, 1 + 0 * line, "unbiased", shade=1.0),
        )

    def relative_curvatures(self) -> Values:
        """Return λ/λ_max of the real data, ``(30,)``."""
        x = np.asarray(breast_cancer().x, float)
        curvatures = np.linalg.eigvalsh(x.T @ x / len(x)) + self.ridge
        return curvatures / curvatures[-1]


def _gap(beta: float) -> float:
    """Return the spectral gap of the double well, to 1e-6."""
    return spectral_gap(well, beta, np.linspace(-3.5, 3.5, 6001))
