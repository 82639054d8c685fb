"""Descent at temperature 1/β strays δ from its noiseless path with the chance C e^(−βI)/√β.

This is for large β and a fixed time T. I is the least action of a path that strays so far. The action of a path is ¼∫|ẋ
+ ∇f|². On a parabola of curvature λ, I(δ) = λδ²/(2(1 − e^(−2λT))). There C is known too, from the ratio of two chances:
to be outside at some observation, and to be outside at the end.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.claims.noise._extrapolate import check_groups, check_sizes
from steepest.claims.noise.small_noise_deviation.experiment import (
    FREE,
    OVERSHOOT,
    POINTS,
    end_chance,
    euler_chance,
    exit_factor,
    parabola_chance,
    parabola_rate,
    well_chance,
    well_rate,
    well_slope,
)
from steepest.nn.types import Values
from steepest.noise import langevin_exits
from steepest.statistics import Extrapolation, extrapolate

GROUPS = 16  # of walkers, over which chances have intervals
ORDERS = (1, 2, 3, 4, 5)  # powers of 1/β that are taken out
RATE_MARGIN = 0.001  # the extrapolation errs by 1e-4
FACTOR_MARGIN = 0.02  # it errs by 2e-3


@kit.claim
class SmallNoiseDeviation(kit.Claim[None]):
    """A parabola, exactly and by walkers, and a double well, where deviations are not Gaussian."""

    curvature: kit.Positive = kit.param(
        1.0,
        "λ of the parabola",
        scope=kit.between(0.5, 1.0, "beyond, first exits reach back to the start at the longest T"),
    )
    delta: kit.Positive = kit.param(
        1.0,
        "δ there",
        unit="length",
        scope=kit.between(0.95, 1.05, "few walkers leave a wider tube"),
    )
    horizons: tuple[kit.Positive, ...] = kit.param(
        (0.4, 0.6, 0.8, 1.0),
        "T there; walkers take the last",
        unit="time",
        scope=kit.choices((0.4, 0.6, 0.8, 1.0), (0.5, 0.7, 0.9)),
    )
    betas: tuple[kit.Positive, ...] = kit.param(
        (16.0, 24.0, 32.0, 48.0, 64.0, 96.0),
        "β of the exact chances",
        unit="1/height",
        scope=kit.choices(
            (16.0, 24.0, 32.0, 48.0, 64.0, 96.0), (20.0, 28.0, 40.0, 60.0, 80.0, 120.0)
        ),
    )
    looks: tuple[kit.Positive, ...] = kit.param(
        (0.1, 0.4),
        "β times the time between two looks at the parabola",
        scope=kit.choices((0.1, 0.4), (0.1, 0.2), (0.2, 0.4)),
    )
    well_scale: kit.Positive = kit.param(0.4, "the same in the double well, where it is the step")
    well_start: kit.Positive = kit.param(
        1.2, "where the path in the double well starts", unit="length", scope=kit.between(1.1, 1.3)
    )
    well_deltas: tuple[kit.Positive, ...] = kit.param(
        (0.7, 0.85, 1.0),
        "δ there",
        unit="length",
        scope=kit.choices((0.7, 0.85, 1.0), (0.75, 0.9, 1.1)),
    )
    well_horizon: kit.Positive = kit.param(1.0, "T there", unit="time", scope=kit.choices(0.8, 1.0))
    walk_betas: tuple[kit.Positive, ...] = kit.param(
        (3.0, 6.0),
        "β of the walkers on the parabola",
        unit="1/height",
        scope=kit.choices((3.0, 6.0), (2.0, 5.0)),
    )
    step: kit.Positive = kit.param(0.02, "their ε", unit="time")
    walkers: kit.Count = kit.param(262144, "their number at each β, a multiple of 16")

    kind = "limit"
    says = {
        "with the chance C e^(−βI)/√β": ("rate", "factor", "walked"),
        "I is the least action of a path that strays so far": "well_rate",
    }
    tiny = {
        "betas": (16.0, 24.0, 32.0),
        "horizons": (0.5, 0.75),
        "walk_betas": (2.0, 3.0),
        "walkers": 128,
    }
    full = {"looks": (0.05, 0.1, 0.4), "well_scale": 0.2, "walkers": 1048576}
    out_of_scope = {"betas": (1.0, 2.0, 4.0)}

    @property
    def decay(self) -> float:
        """Return q = λ²δ²/(4 sinh² λT): first exits u/β before the end have a density e^(−qu)."""
        return (
            self.curvature * self.delta / (2 * np.sinh(self.curvature * self.horizons[-1]))
        ) ** 2

    def axes(self):
        return {
            "horizon": self.horizons,
            "look": self.looks,
            "beta": self.betas,
            "well_delta": self.well_deltas,
            "walk_beta": self.walk_betas,
        }

    def check_fields(self) -> None:
        check_groups(GROUPS, walkers=self.walkers)
        check_sizes("betas", self.betas)
        if list(self.horizons) != sorted(set(self.horizons)):
            raise kit.UserError(
                f"--horizons must rise, as the last one is the longest, got {self.horizons}; try 0.4 0.6 0.8"
            )

    def hypotheses(self, setting):
        coldest = min(self.betas)
        longest = self.horizons[-1]
        latest = [well_rate(self.well_start, d, self.well_horizon).latest for d in self.well_deltas]
        times = np.outer(self.horizons, 1 / np.array(self.looks)).ravel()
        numbers = np.outer([*times, self.well_horizon / self.well_scale], self.betas)
        yield kit.assume(
            "least βI on the parabola",
            coldest * parabola_rate(self.curvature, self.delta, max(self.horizons)),
            ">=",
            4,
            "the law is of rare events; choose larger --betas",
        )
        yield kit.assume(
            "number of β", len(self.betas), ">=", 3, "the rate is extrapolated over them"
        )
        yield kit.assume(
            "decay of first exits on the parabola within the time, qTβ",
            coldest * longest * self.decay,
            ">=",
            2,
            "first exits reach back to the start; choose larger --betas or shorter --horizons",
        )
        yield kit.assume(
            "share of the time at which the cheapest path leaves the well's tube",
            min(latest),
            "==",
            1,
            "the factor in front is for exits at the end; choose a shorter --well-horizon",
        )
        yield kit.assume(
            "distance of the numbers of looks from whole ones",
            float(abs(numbers - numbers.round()).max()),
            "<=",
            1e-6,
            "at every β they must be c/β apart: choose Tβ/c whole",
        )

    def predict(self, setting):
        least = [well_rate(self.well_start, d, self.well_horizon) for d in self.well_deltas]
        return kit.law(
            rate=("horizon", [parabola_rate(*self.parabola(T)) for T in self.horizons]),
            factor=("horizon look", self.factors(exit_factor)),
            well_rate=("well_delta", [way.rate for way in least]),
            walked=("walk_beta", self.walked()),
        )

    def parabola(self, horizon: float) -> tuple[float, float, float]:
        """Return λ, δ and T."""
        return self.curvature, self.delta, horizon

    def factors(self, factor: Callable[..., float]) -> Values:
        """Return a function of λ, δ, T and the distance of looks at each T and distance."""
        return np.array(
            [[factor(*self.parabola(T), look) for look in self.looks] for T in self.horizons]
        )

    def walked(self, colder: float = 1.0) -> Values:
        """Return the chances of walkers to leave, at their β or colder ones."""
        parabola = self.parabola(self.horizons[-1])
        return np.array([euler_chance(*parabola, colder * b, self.step) for b in self.walk_betas])

    def observe(self, setting, key):
        def out(curvature: float) -> tuple[Values, Values]:
            """Return the chances to be out at one of the looks, and at the end."""
            at_looks = [
                [
                    [parabola_chance(curvature, self.delta, T, b, look) for b in self.betas]
                    for look in self.looks
                ]
                for T in self.horizons
            ]
            ends = [
                [end_chance(curvature, self.delta, T, b) for b in self.betas] for T in self.horizons
            ]
            return np.array(at_looks), np.array(ends)

        def out_of_well(gaussian: bool) -> Values:
            place = (self.well_horizon, self.well_scale)
            return np.array(
                [
                    [
                        well_chance(self.well_start, d, place[0], b, place[1], gaussian)
                        for b in self.betas
                    ]
                    for d in self.well_deltas
                ]
            )

        at_looks, ends = out(self.curvature)
        free, free_ends = out(FREE)
        left = np.asarray(kit.compiled(self.walk)(key), float)
        return kit.seen(
            chances=("horizon look beta", at_looks),
            ends=("horizon beta", ends),
            free_chances=("horizon look beta", free),
            free_ends=("horizon beta", free_ends),
            well_chances=("well_delta beta", out_of_well(False)),
            gaussian_chances=("well_delta beta", out_of_well(True)),
            left=("walk_beta seed", left.reshape(len(left), GROUPS, -1).mean(2)),
        )

    def walk(self, key: jax.Array) -> jax.Array:
        """Return which walkers left, ``(betas, walkers)``; from the minimum, where the noiseless path stays."""
        start = jnp.zeros(self.walkers)
        parabola = lambda x: self.curvature * x**2 / 2
        inside = lambda x: jnp.abs(x) <= self.delta
        steps = round(self.horizons[-1] / self.step)

        def one(lane: tuple[jax.Array, jax.Array]) -> jax.Array:
            key, beta = lane
            return langevin_exits(parabola, start, self.step, beta, inside, steps, key, 0).left

        seeds = jax.random.split(key, len(self.walk_betas))
        return jax.lax.map(one, (seeds, jnp.array(self.walk_betas)))

    def rate_of(self, chances: Values) -> Extrapolation:
        """Return I of −log P − ½ log β = βI + c₀ + c₁/β + …, chances of shape ``(…, betas)``."""
        betas = np.array(self.betas)
        heights = (-np.log(chances) - np.log(betas) / 2) / betas
        return extrapolate(np.moveaxis(heights, -1, 0), 1 / betas, ORDERS)

    def factor_of(self, chances: Values, ends: Values) -> Extrapolation:
        """Return the limit of the chance to be out some time over that at the end, ``(horizons, looks)``."""
        ratios = chances / ends[:, None]
        return extrapolate(np.moveaxis(ratios, -1, 0), 1 / np.array(self.betas), ORDERS)

    def run_conditions(self, observed):
        rate = self.rate_of(observed["chances"])
        well = self.rate_of(observed["well_chances"])
        factor = self.factor_of(observed["chances"], observed["ends"])
        relative = lambda limit: Extrapolation(1.0, limit.error / limit.value, np.nan)
        yield from kit.converged("the rate on the parabola", relative(rate), RATE_MARGIN)
        yield from kit.converged("the rate in the well", relative(well), RATE_MARGIN)
        yield from kit.converged("the factor in front", relative(factor), FACTOR_MARGIN)

    def derive(self, law, seen):
        """Return limits as β → ∞."""
        factor = self.factor_of(seen.chances.values, seen.ends.values)
        points = seen.chances.isel(beta=0, drop=True)
        deltas = seen.well_chances.isel(beta=0, drop=True)
        return {
            "rate": points.copy(data=self.rate_of(seen.chances.values).value),
            "well_rate": deltas.copy(data=self.rate_of(seen.well_chances.values).value),
            "factor": points.copy(data=factor.value),
        }

    def judge(self, law, seen):
        yield kit.follows(
            "rate",
            law.rate,
            seen.rate,
            RATE_MARGIN,
            over="horizon look",
            label="−(1/β) log P as β → ∞, parabola",
        )
        yield kit.follows(
            "well_rate",
            law.well_rate,
            seen.well_rate,
            RATE_MARGIN,
            label="−(1/β) log P as β → ∞, double well",
        )
        yield kit.follows(
            "factor",
            law.factor,
            seen.factor,
            FACTOR_MARGIN,
            label="chance to be out at some look over that at the end, as β → ∞",
        )
        yield kit.follows(
            "walked",
            law.walked,
            seen.left,
            0.08,  # two intervals where they are widest
            label="chance to leave, walkers",
        )

    def rivals(self, setting, law):
        yield from self.rivals_of_rate(law)
        yield from self.rivals_of_factor(law)

    def rivals_of_rate(self, law):
        """Return wrong theories of the least action."""
        linearized = [
            well_rate(self.well_start, d, self.well_horizon).linearized for d in self.well_deltas
        ]
        yield kit.rival(
            "I = λδ²/2, at any time",
            "the barrier βf(δ) of the stationary law",
            rate=self.curvature * self.delta**2 / 2,
        )
        yield kit.rival(
            "2I, for noise of variance 1/β",
            "the 2 of 2/β is easily lost",
            rate=2 * law.rate,
            well_rate=2 * law.well_rate,
            walked=("walk_beta", self.walked(2.0)),
        )
        yield kit.rival(
            "I = δ²/4T, without a gradient",
            "in a short time only noise counts",
            rate=self.delta**2 / (4 * law.horizon),
        )
        yield kit.rival(
            "Gaussian deviations in the double well",
            "deviations are small with little noise",
            well_rate=("well_delta", linearized),
        )

    def rivals_of_factor(self, law):
        """Return wrong theories of the factor in front."""
        always = 2 / (1 - np.tanh(self.curvature * law.horizon))
        ahead = 2 * law.rate / self.delta
        wider = np.exp(-ahead * OVERSHOOT * np.sqrt(2 * xarray.DataArray(law.look)))
        at_end = [end_chance(*self.parabola(self.horizons[-1]), beta) for beta in self.walk_betas]
        yield kit.rival(
            "the factor of a free motion, 2 if it is looked at always",
            "who was out is out at the end with chance one half",
            id="reflection",
            factor=(
                "horizon look",
                self.factors(lambda curvature, *tube: exit_factor(FREE, *tube)),
            ),
        )
        yield kit.rival(
            "the chance to be out at the end",
            "the end of the time is the likeliest to be out",
            id="at_the_end",
            factor=1.0,
            walked=("walk_beta", at_end),
        )
        yield kit.rival(
            "2/(1 − tanh λT) whatever the distance of looks",
            "looks are close to each other",
            id="watched_always",
            factor=always,
        )
        yield kit.rival(
            "the tube seems wider by 0.5826 standard deviations of a step",
            "Broadie, Glasserman and Kou's correction of barriers",
            id="wider_tube",
            factor=always * wider,
        )

    def controls(self, seen):
        yield kit.control(
            "free motion, without the parabola",
            "nothing pulls it back",
            chances=seen.free_chances,
            ends=seen.free_ends,
        )
        yield kit.control(
            "the double well's slope linearized around its path",
            "its deviations are Gaussian",
            id="linear_well",
            well_chances=seen.gaussian_chances,
        )
        yield kit.control(
            "walkers of the largest β in place of walkers of the smallest, and so on",
            "β sets how many leave",
            id="other_temperature",
            left=(seen.left.dims, seen.left.values[::-1]),
        )

    def figure(self, law, seen, rivals):
        heights = lambda chances: -np.log(chances) - np.log(seen.beta) / 2
        axis = np.array([0, self.betas[-1]])
        delta = self.well_deltas[-1]
        time = np.linspace(0, self.well_horizon, POINTS)
        cheapest = well_rate(self.well_start, delta, self.well_horizon).path
        noiseless = [self.well_start]
        for size in np.diff(time):
            noiseless.append(noiseless[-1] - size * well_slope(noiseless[-1]))
        noiseless = np.array(noiseless)
        chances = heights(seen.chances.isel(horizon=-1, look=0))
        well = heights(seen.well_chances.isel(well_delta=-1))
        wrong = {"reflection": rivals["reflection"].factor} if rivals else {}
        yield kit.panel(
            "The chance falls like e^(−βI)",
            "β",
            "−log P − ½ log β",
            kit.observed_curve(self.betas, chances, "parabola", kind="points"),
            kit.predicted_curve(axis, float(law.rate[-1]) * axis, "I β"),
            kit.rival_curve(axis, axis * self.curvature * self.delta**2 / 2, "λδ²/2 β"),
            kit.observed_curve(self.betas, well, "double well", kind="points", shade=1.0),
            kit.predicted_curve(axis, float(law.well_rate[-1]) * axis, "I β, well", shade=1.0),
        )
        yield kit.curves(
            "Out some time over out at the end",
            law.factor,
            seen.factor,
            over="horizon",
            by="look",
            x="time T",
            y="factor as β → ∞",
            name="looks {}/β apart",
            rivals=wrong,
        )
        yield kit.panel(
            "The cheapest way out of the double well's tube",
            "time",
            "x",
            kit.predicted_curve(time, cheapest, "least action"),
            kit.observed_curve(time, noiseless, "no noise"),
            kit.observed_curve(time, noiseless - delta, "tube", kind="dashed", shade=1.0),
            kit.observed_curve(time, noiseless + delta, kind="dashed", shade=1.0),
        )
        yield kit.curves(
            f"Walkers on the parabola, ε = {self.step:g}",
            law.walked,
            seen.left,
            over="walk_beta",
            x="β",
            y="chance to leave",
            rivals={"out at the end": rivals["at_the_end"].walked} if rivals else {},
            log="y",
        )
