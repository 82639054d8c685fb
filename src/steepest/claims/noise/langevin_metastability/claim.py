"""The mean exit time of Langevin dynamics from a basin tends to the Eyring–Kramers formula.

It does so as the temperature goes to zero. The exit time has a nearly exponential distribution. The barrier is in the
exponent, and curvatures are in front: the square root of the curvatures across the path at the saddle, divided by the
curvatures at the minimum and by the curvature along the path at the saddle. At temperatures that can be simulated the
formula is 9 to 25 % off. At lower temperatures it is off by a constant times the temperature, and the constant is known
on the line. On the line the exact mean is an integral at every temperature; with further, fast directions the integral
holds for an effective potential.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray
from scipy.optimize import brentq

from steepest import kit
from steepest.claims.noise._double_well import well
from steepest.claims.noise._extrapolate import check_groups, check_sizes
from steepest.claims.noise.langevin_metastability.experiment import (
    BARRIER,
    START,
    TARGET,
    LangevinMetastabilityPoint,
    chain_times,
    effective_time,
    leave_chance,
    leave_rate,
    line_time,
    plane_chain_mean,
    plane_formula,
    plane_time,
    stiffness,
)
from steepest.core.errors import UserError
from steepest.nn.types import Values
from steepest.noise import kramers, langevin_exits
from steepest.statistics import Extrapolation, extrapolate

GROUPS = 16  # of walkers, over which means have intervals
CAP = 60  # multiples of the formula's time after which walkers are given up
FASTER = 8.0  # by which the second direction is stiffer where the effective potential is judged
EFFECTIVE = 8.0  # β there
LINE = 4.0  # by which β → ∞ is nearer on the line, where times are integrals
HALVED = 7  # step sizes ε, ε/2, … of the chains whose limit is the diffusion
ORDERS = (1, 2, 3, 4, 5, 6)  # powers of √ε, or of 1/β, that are taken out
LIMIT = 0.003  # margin of limits β → ∞, thrice what extrapolation may err
DIFFUSION = 1e-4  # margin of the limit of chains
STIFF = 20.0  # the effective potential errs by 0.085 over the stiffness, and its margin is 0.005
INSIDE = 0.1  # standard deviations by which the least ball is larger than √d
COLD = 32.0  # β at which the law is judged to be exponential
RADII = np.linspace(1.5, 7.0, 111)  # of balls, in standard deviations


@kit.claim
class LangevinMetastability(kit.Claim[None]):
    """A double well on the line, the same well with a second direction of changing stiffness, a parabola in a ball."""

    betas: tuple[kit.Positive, ...] = kit.param(
        (2.0, 4.0, 6.0, 8.0),
        "β of the walkers on the line",
        unit="1/height",
        scope=kit.choices(
            (2.0, 4.0, 6.0, 8.0), (2.0, 5.0, 8.0), why="colder walkers take too long"
        ),
    )
    step: kit.Positive = kit.param(0.05, "their ε", unit="time", scope=kit.between(0.04, 0.06))
    walkers: kit.Count = kit.param(6144, "their number at each β, a multiple of 16")
    ratios: tuple[kit.Positive, ...] = kit.param(
        (4.0, 0.25),
        "stiffness of the second direction at the saddle over that far from it",
        scope=kit.choices((4.0, 0.25), (5.0, 0.3), (3.0, 0.5)),
    )
    stiffness: kit.Positive = kit.param(
        4.0,
        "geometric mean of these two stiffnesses",
        unit="curvature",
        scope=kit.between(3.0, 5.0, "an effective potential needs a stiff second direction"),
    )
    plane_beta: kit.Positive = kit.param(
        4.0, "β of the walkers in the plane", unit="1/height", scope=kit.between(3.0, 4.0)
    )
    plane_step: kit.Positive = kit.param(0.03, "their ε", unit="time")
    plane_walkers: kit.Count = kit.param(2048, "their number at each ratio, a multiple of 16")
    large_betas: tuple[kit.Positive, ...] = kit.param(
        (30.0, 50.0, 80.0, 130.0, 200.0),
        "β from which β → ∞ is extrapolated",
        unit="1/height",
        scope=kit.choices(
            (30.0, 50.0, 80.0, 130.0, 200.0),
            (40.0, 60.0, 90.0, 140.0, 220.0),
            why="warmer ones are too far from the limit",
        ),
    )
    dimensions: tuple[kit.Count, ...] = kit.param(
        (1, 2, 5), "d of the balls", scope=kit.choices((1, 2, 5), (1, 3, 8))
    )
    horizon: kit.Positive = kit.param(
        50.0,
        "T over the time of relaxation, for which a walker is to stay in the ball",
        scope=kit.between(20.0, 200.0),
    )
    risk: kit.Fraction = kit.param(
        0.3, "δ, the chance to leave that is allowed", scope=kit.between(0.1, 0.4)
    )

    kind = "limit"
    says = {
        "The exit time has a nearly exponential distribution": ("variation", "exponential"),
        "mean exit time of Langevin dynamics from a basin tends to the Eyring–Kramers formula": (
            "mean",
            "line_limit",
            "plane_limit",
        ),
    }
    tiny = {
        "betas": (2.0, 3.0),
        "walkers": 64,
        "plane_walkers": 32,
        "plane_beta": 2.0,
        "plane_step": 0.04,
    }
    full = {"walkers": 32768, "plane_walkers": 16384, "betas": (2.0, 4.0, 6.0, 8.0, 10.0)}
    out_of_scope = {"large_betas": (1.0, 1.5, 2.0, 3.0)}
    point = LangevinMetastabilityPoint

    @property
    def finer(self) -> Values:
        """Return the step sizes of the chains whose limit is the diffusion."""
        return self.step / 2.0 ** np.arange(HALVED)

    def axes(self):
        return {
            "beta": self.betas,
            "ratio": self.ratios,
            "large": self.large_betas,
            "dimension": self.dimensions,
            "radius": tuple(RADII),
        }

    def check_fields(self) -> None:
        check_groups(GROUPS, walkers=self.walkers, plane_walkers=self.plane_walkers)
        check_sizes("betas", self.betas)
        check_sizes("large-betas", self.large_betas)
        # a ball of the size of the law itself, which has to be left too often for a larger one to be sought
        rates = [leave_rate(d**0.5 + INSIDE, d) for d in self.dimensions]
        if min(rates) * self.horizon <= self.risk:
            raise UserError(
                f"expected a horizon above {self.risk / min(rates):.3g}, in which more than the risk of "
                f"{self.risk:g} leaves a ball of the size of the stationary law, got {self.horizon:g}"
            )

    def hypotheses(self, setting):
        fastest = max(self.stiffness * max(ratio, 1 / ratio) ** 0.5 for ratio in self.ratios)
        yield kit.assume(
            "smallest barrier βΔf of the limits",
            min(self.large_betas) * BARRIER,
            ">=",
            4,
            "the formula is for high barriers; choose larger --large-betas",
        )
        yield kit.assume(
            "stiffness where the effective potential is judged",
            FASTER * self.stiffness,
            ">=",
            STIFF,
            "the effective potential is for fast second directions; choose a larger --stiffness",
        )
        yield kit.assume(
            "largest ε of walkers",
            max(self.step, self.plane_step),
            "<=",
            0.25,
            "the walk runs away from where a step overshoots; choose a smaller --step",
        )
        yield kit.assume(
            "largest εκ in the plane",
            self.plane_step * fastest,
            "<=",
            0.4,
            "steps overshoot across; choose a smaller --plane-step",
        )

    def predict(self, setting):
        chains = [chain_times(self.step, beta) for beta in self.betas]
        means = np.array([chain.mean for chain in chains])
        line = kramers(well, START, 0.0, 1.0)
        place = (self.plane_step, self.plane_beta)
        stiff = FASTER * self.stiffness
        return kit.law(
            line_mean=("beta", means),
            line_variation=("beta", [chain.variation for chain in chains]),
            slope=self.slope(means),
            integral=("beta", [line_time(beta) for beta in self.betas]),
            prefactor=line.prefactor,
            barrier=line.barrier,
            correction=line.correction,
            exponential=1.0,
            plane_prefactor=("ratio", [plane_formula(r, self.stiffness)[0] for r in self.ratios]),
            plane_mean=(
                "ratio",
                [plane_chain_mean(*place, r, self.stiffness) for r in self.ratios],
            ),
            effective=("ratio", [effective_time(EFFECTIVE, r, stiff) for r in self.ratios]),
            stay_radius=("dimension", [self.radius(d) for d in self.dimensions]),
        )

    def slope(self, means: Values) -> Any:
        """Return the slope of the logarithms of means in β, which are along the first axis."""
        return np.polyfit(self.betas, np.log(means), 1)[0]

    def radius(self, dimension: int) -> float:
        """Return a = ε√(βm) at which T times the rate to leave is δ."""
        excess = lambda a: leave_rate(a, dimension) * self.horizon - self.risk
        root: Any = brentq(excess, np.sqrt(dimension) + INSIDE, 60.0)
        return float(root)

    def observe(self, setting, key):
        (line, line_left), (plane, plane_left) = kit.compiled(self.walks)(key)
        chains = [[chain_times(step, beta).mean for step in self.finer] for beta in self.betas]
        cold = chain_times(self.step, COLD)
        plane_times = [
            [plane_time(beta, ratio, self.stiffness) for beta in self.large_betas]
            for ratio in self.ratios
        ]
        stiffer = [plane_time(EFFECTIVE, r, FASTER * self.stiffness) for r in self.ratios]
        chances = [[leave_chance(a, d, self.horizon) for a in RADII] for d in self.dimensions]
        colder = [LINE * beta for beta in self.large_betas]
        return kit.seen(
            times=("beta seed walker", self.step * _groups(line)),
            plane_times=("ratio seed plane_walker", self.plane_step * _groups(plane)),
            left=np.mean([np.mean(line_left), np.mean(plane_left)]),
            chains=("beta size", chains),
            line_exact=("large", [line_time(beta) for beta in colder]),
            line_to_saddle=("large", [line_time(beta, 0.0) for beta in colder]),
            cold_variation=cold.variation,
            saddle_variation=cold.variation_saddle,
            plane_exact=("ratio large", plane_times),
            stiffer=("ratio", stiffer),
            chances=("dimension radius", chances),
        )

    def walks(self, key: kit.Key) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
        """Return exits on the line and in the plane; one program."""
        for_line, for_plane = jax.random.split(key)
        return self.walk_on_line(for_line), self.walk_in_plane(for_plane)

    def walk_on_line(self, key: kit.Key) -> tuple[jax.Array, jax.Array]:
        """Return the steps to the target, ``(betas, walkers)``, and whether it was reached."""
        longest = CAP * float(np.sqrt(2) * np.pi * np.exp(BARRIER * max(self.betas)))
        start = jnp.full(self.walkers, START)
        cap = int(longest / self.step)
        inside = lambda x: x < TARGET

        def exits_at(lane: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            key, beta = lane
            exits = langevin_exits(well, start, self.step, beta, inside, cap, key)
            return exits.steps, exits.left

        seeds = jax.random.split(key, len(self.betas))
        return jax.lax.map(exits_at, (seeds, jnp.array(self.betas)))

    def walk_in_plane(self, key: kit.Key) -> tuple[jax.Array, jax.Array]:
        """Return the same in the plane, ``(ratios, walkers)``."""
        slowest = max(max(self.ratios), 1.0) ** 0.5
        longest = CAP * slowest * float(np.sqrt(2) * np.pi * np.exp(BARRIER * self.plane_beta))
        start = jnp.tile(jnp.array([START, 0.0]), (self.plane_walkers, 1))
        cap = int(longest / self.plane_step)
        inside = lambda place: place[0] < TARGET

        def exits_at(lane: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            key, ratio = lane

            def potential(place: jax.Array) -> jax.Array:
                kappa = stiffness(place[0], ratio, self.stiffness, jnp.exp)
                return well(place[0]) + kappa * place[1] ** 2 / 2

            exits = langevin_exits(
                potential, start, self.plane_step, self.plane_beta, inside, cap, key
            )
            return exits.steps, exits.left

        seeds = jax.random.split(key, len(self.ratios))
        return jax.lax.map(exits_at, (seeds, jnp.array(self.ratios)))

    def diffusion(self, chains: Values) -> Extrapolation:
        """Return the limit ε → 0 of mean exit times at each β, ``(betas,)``."""
        return extrapolate(np.transpose(chains), np.sqrt(self.finer), ORDERS)

    def line_limit(self, times: Values, prefactor: float, barrier: float) -> Extrapolation:
        """Return the limit β → ∞ of (time over Kramers' − 1) β on the line."""
        large = LINE * np.array(self.large_betas)
        values = (times / (prefactor * np.exp(barrier * large)) - 1) * large
        return extrapolate(values, 1 / large, ORDERS)

    def plane_limit(self, times: Values, barrier: float) -> Extrapolation:
        """Return the limit β → ∞ of the time in the plane over e^{βΔf} at each ratio."""
        large = np.array(self.large_betas)
        return extrapolate((times / np.exp(barrier * large)).T, 1 / large, ORDERS)

    def run_conditions(self, observed):
        relative = lambda limit: Extrapolation(1.0, limit.error / limit.value, limit.ratio)
        line = kramers(well, START, 0.0, 1.0)
        on_line = self.line_limit(observed["line_exact"], line.prefactor, line.barrier)
        in_plane = relative(self.plane_limit(observed["plane_exact"], line.barrier))
        diffusion = relative(self.diffusion(observed["chains"]))
        yield kit.assume(
            "share of walkers that left",
            float(observed["left"]),
            "==",
            1,
            "others are counted with the cap; lower the largest β",
        )
        yield from kit.converged("the limit β → ∞ on the line", on_line, LIMIT)
        yield from kit.converged("the limit β → ∞ in the plane", in_plane, LIMIT)
        yield from kit.converged("the limit ε → 0 of chains", diffusion, DIFFUSION)

    def derive(self, law, seen):
        """Return means and variations of groups of walkers, limits, and chances to leave balls."""
        means = seen.times.mean("walker")
        line = self.line_limit(seen.line_exact.values, float(law.prefactor), float(law.barrier))
        plane = self.plane_limit(seen.plane_exact.values, float(law.barrier))
        logs = np.log(np.maximum(seen.chances.values, 1e-300))
        stays = [
            np.interp(a, RADII, row) for a, row in zip(law.stay_radius.values, logs, strict=True)
        ]
        return {
            "line_mean": means,
            "line_variation": seen.times.std("walker", ddof=1) / means,
            "slope": xarray.DataArray(self.slope(means.values), dims="seed"),
            "plane_mean": seen.plane_times.mean("plane_walker"),
            "integral": law.integral.copy(data=self.diffusion(seen.chains.values).value),
            "line_limit": xarray.DataArray(line.value),
            "plane_prefactor": law.plane_prefactor.copy(data=plane.value),
            "stay": law.stay_radius.copy(data=np.exp(stays)),
        }

    def judge(self, law, seen):
        yield from self.judge_line(law, seen)
        yield from self.judge_plane(law, seen)
        yield kit.at_most(
            "stay",
            self.risk,
            seen.stay,
            over="dimension",
            label="chance to leave the ball at the temperature that theory allows",
        )

    def judge_line(self, law, seen):
        """Compare times on the line: of walkers, of chains, and in their limits."""
        yield kit.follows(
            "mean",
            law.line_mean,
            seen.line_mean,
            0.07,  # two intervals
            label="mean exit time of walkers",
        )
        yield kit.follows(
            "slope",
            law.slope,
            seen.slope,
            0.015,
            absolute=True,
            label="slope of log mean exit time in β, walkers",
        )
        yield kit.follows(
            "variation",
            law.line_variation,
            seen.line_variation,
            0.08,  # two intervals, half of the distance to the exponential law at β = 2
            label="standard deviation over mean of exit times, walkers",
        )
        yield kit.follows(
            "integral",
            law.integral,
            seen.integral,
            DIFFUSION,
            label="mean exit time as ε → 0, against the exact integral",
        )
        yield kit.follows(
            "line_limit",
            law.correction,
            seen.line_limit,
            LIMIT,
            absolute=True,
            label="(exact time over Kramers' − 1) β as β → ∞",
        )
        yield kit.follows(
            "exponential",
            law.exponential,
            seen.cold_variation,
            0.01,
            label=f"standard deviation over mean at β = {COLD:g}",
        )

    def judge_plane(self, law, seen):
        """Compare times in the plane: of walkers, in their limit, and in the effective potential."""
        yield kit.follows(
            "plane_mean",
            law.plane_mean,
            seen.plane_mean,
            0.12,  # two intervals
            label="mean exit time of walkers in the plane",
        )
        yield kit.follows(
            "plane_limit",
            law.plane_prefactor,
            seen.plane_prefactor,
            LIMIT,
            label="exact time over e^(βΔf) in the plane as β → ∞",
        )
        yield kit.follows(
            "effective",
            law.effective,
            seen.stiffer,
            0.005,  # one over the stiffness: 0.003
            label="exact time in the plane against the effective potential",
        )

    def rivals(self, setting, law):
        d = np.array(self.dimensions)
        yield from self.rivals_of_line(law)
        yield from self.rivals_of_plane(law)
        yield kit.rival(
            "β = (d/ε²)(1 + log(T/δ))",
            "as the talk says",
            stay_radius=("dimension", np.sqrt(d * (1 + np.log(self.horizon / self.risk)))),
        )

    def rivals_of_line(self, law):
        """Return wrong theories of times on the line."""
        formula = law.prefactor * np.exp(law.barrier * law.beta)
        colder = np.array([chain_times(self.step, 2 * beta).mean for beta in self.betas])
        yield kit.rival(
            "Kramers' formula at every β, slope ¼",
            "the theorem prints it",
            id="formula_at_every_beta",
            line_mean=formula,
            integral=formula,
            slope=self.slope(formula.values),
            correction=0.0,
        )
        yield kit.rival(
            "c = ¾ in place of 3/2",
            "fluctuations of the barrier only; fluctuations of the well are forgotten",
            correction=0.75,
        )
        yield kit.rival(
            "barrier 2Δf, for noise of variance 1/β",
            "the 2 of 2/β is easily lost",
            line_mean=("beta", colder),
            slope=self.slope(colder),
            integral=("beta", [line_time(2 * beta) for beta in self.betas]),
            barrier=2 * law.barrier,
        )
        yield kit.rival(
            "exponential times at every β",
            "the talk, which puts it under large deviations, names no temperature",
            line_variation=1.0,
        )
        yield kit.rival(
            "the standard deviation over mean of β = 8, 0.93",
            "the law would stop changing at temperatures that walkers can have",
            exponential=chain_times(self.step, 8.0).variation,
        )

    def rivals_of_plane(self, law):
        """Return wrong theories of the second direction."""
        ratios = law.ratio
        at_minimum = stiffness(START, ratios, self.stiffness)
        at_saddle = self.stiffness * ratios**0.5
        yield kit.rival(
            "the time of the line in the plane",
            "the barrier and the path are the same",
            plane_prefactor=float(law.prefactor),
            plane_mean=chain_times(self.plane_step, self.plane_beta).mean,
            effective=line_time(EFFECTIVE),
        )
        yield kit.rival(
            "the ratio of stiffnesses inverted",
            "a wide saddle has more room",
            plane_prefactor=float(law.prefactor) * np.sqrt(at_minimum / at_saddle),
            plane_mean=("ratio", law.plane_mean.values[::-1]),
            effective=("ratio", law.effective.values[::-1]),
        )
        yield kit.rival(
            "stiffness far away in place of that at the minimum",
            "the ratio of the two stiffnesses that one wrote down",
            id="far_stiffness",
            plane_prefactor=float(law.prefactor) * np.sqrt(ratios),
        )

    def controls(self, seen):
        turned = lambda array: (array.dims, array.values[::-1])
        yield kit.control(
            "walkers that start at the saddle",
            "half of these walkers leave at once",
            cold_variation=seen.saddle_variation,
        )
        yield kit.control(
            "walkers and chains with the order of the β reversed",
            "β sets how long they stay",
            id="other_temperature",
            times=turned(seen.times),
            chains=turned(seen.chains),
        )
        yield kit.control(
            "walkers that leave two such basins, one after the other",
            "a sum of two exponential times is not exponential",
            id="two_in_a_row",
            times=seen.times + seen.times.roll(walker=1, roll_coords=False),
        )
        yield kit.control(
            "stiffnesses exchanged",
            "the saddle is wide where it was narrow",
            plane_times=turned(seen.plane_times),
            plane_exact=turned(seen.plane_exact),
            stiffer=turned(seen.stiffer),
        )
        yield kit.control(
            "the time to the saddle", "from there half turn back", line_exact=seen.line_to_saddle
        )

    def figure(self, law, seen, rivals):
        survival = []
        shares = np.logspace(0, -3, 80)
        for i in (0, len(self.betas) - 1):
            times = seen.times.values[i].ravel()
            ages = np.quantile(times, 1 - shares) / times.mean()
            label = f"walkers, β = {self.betas[i]:g}"
            survival.append(kit.observed_curve(ages, shares, label, shade=float(i > 0)))
        ages = np.array([0.0, 7.0])
        betas = np.array(self.betas)
        line = np.linspace(betas[0], betas[-1], 40)
        formula = float(law.prefactor) * np.exp(float(law.barrier) * line)
        yield kit.panel(
            "Exit times become exponential",
            "time over its mean",
            "share still in the basin",
            *survival,
            kit.predicted_curve(ages, np.exp(-ages), "limit"),
            log="y",
            ylim=(1e-3, 1.2),
        )
        yield kit.panel(
            "Mean exit time on the line",
            "β",
            "time",
            kit.observed_curve(betas, seen.line_mean.mean("seed"), "walkers", kind="points"),
            kit.predicted_curve(line, [line_time(beta) for beta in line], "exact integral"),
            kit.rival_curve(line, formula, "Kramers' formula"),
            kit.rival_curve(
                betas, float(law.prefactor) * np.exp(2 * BARRIER * betas), "barrier 2Δf", shade=1.0
            ),
            log="y",
        )
        yield self.limit_panel(law, seen)
        yield self.ball_panel(law, seen)

    def limit_panel(self, law: xarray.Dataset, seen: xarray.Dataset) -> kit.Panel:
        """Return exact times over the formula against 1/β."""
        large = np.array(self.large_betas)
        growth = np.exp(float(law.barrier) * large)
        axis = np.append(0, 1 / large)
        nearer = np.array([line_time(beta) for beta in large])
        planes = [
            kit.observed_curve(
                1 / large,
                seen.plane_exact[i] / float(law.plane_prefactor[i]) / growth,
                f"plane, ratio {ratio:g}",
                shade=(i + 1) / len(self.ratios),
            )
            for i, ratio in enumerate(self.ratios)
        ]
        return kit.panel(
            "Kramers' formula is a limit",
            "1/β",
            "exact time over the formula",
            kit.observed_curve(1 / large, nearer / float(law.prefactor) / growth, "line"),
            *planes,
            kit.predicted_curve(axis, 1 + float(law.correction) * axis, "1 + 3/2β"),
            xlim=(0, None),
        )

    def ball_panel(self, law: xarray.Dataset, seen: xarray.Dataset) -> kit.Panel:
        """Return chances to leave balls over their size."""
        balls = []
        for i, d in enumerate(self.dimensions):
            shade = i / max(1, len(self.dimensions) - 1)
            chances = seen.chances[i].values
            chances = np.where(chances > 1e-6, chances, np.nan)
            balls.append(kit.observed_curve(RADII**2, chances, f"d = {d}", shade=shade))
        risks = np.full(len(self.dimensions), self.risk)
        talk = np.array(self.dimensions) * (1 + np.log(self.horizon / self.risk))
        enough = law.stay_radius.values**2
        return kit.panel(
            f"Staying in a ball for T = {self.horizon:g}",
            "βmε²",
            "chance to leave",
            *balls,
            kit.predicted_curve(enough, risks, "enough by theory", kind="points"),
            kit.rival_curve(talk, 0.8 * risks, "enough by the talk", kind="points"),
            log="y",
            ylim=(1e-3, 1.5),
        )


def _groups(steps: jax.Array) -> Values:
    """Return steps of walkers by groups, ``(lanes, groups, walkers)``."""
    values = np.asarray(steps, float)
    return values.reshape(len(values), GROUPS, -1)
