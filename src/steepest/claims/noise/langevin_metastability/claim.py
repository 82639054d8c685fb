"""Langevin dynamics leaves a basin after a nearly exponential time, whose mean tends to Eyring and Kramers' formula.

The barrier is in the exponent, curvatures are in front: those across the path at the saddle over those at the minimum.
At the temperatures that one can simulate the formula is off by a constant times the temperature, which is known on the
line, and the exact mean is an integral. In an effective potential it holds beside directions that are fast.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Fraction,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Values,
    agreement,
    assume,
    bound,
    compiled,
    equal,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.noise._double_well import well
from steepest.claims.noise._extrapolate import check_groups, check_sizes, extrapolate
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
from steepest.noise import kramers, langevin_exits

GROUPS = 16  # of walkers, over which means have intervals
CAP = 60  # multiples of the formula's time after which walkers are given up
FASTER = 8.0  # by which the second direction is stiffer where the effective potential is judged
LINE = 4.0  # by which β → ∞ is nearer on the line, where times are integrals
LIMIT = 5  # step sizes ε, ε/2, … of the chains whose limit is the diffusion
CONVERGED = 0.001  # by which the last two orders of a limit may differ, a third of the margins
STIFF = 20.0  # the effective potential errs by 0.085 over the stiffness, and its margin is 0.005
INSIDE = 0.1  # standard deviations by which the least ball is larger than √d
COLD = 32.0  # β at which the law is judged to be exponential
RADII = np.linspace(1.5, 7.0, 111)  # of balls, in standard deviations


@dataclass(frozen=True)
class LangevinMetastability(Claim):
    """A double well on the line, the same beside a second direction of changing stiffness, a parabola in a ball."""

    betas: tuple[Positive, ...] = (2.0, 4.0, 6.0, 8.0)  # β of the walkers on the line [1]
    step: Positive = 0.05  # their ε [1]
    walkers: Count = 6144  # their number at each β, a multiple of 16 [1]
    # stiffness of the second direction at the saddle over that far from it [1]
    ratios: tuple[Positive, ...] = (4.0, 0.25)
    stiffness: Positive = 4.0  # geometric mean of these two stiffnesses [1]
    plane_beta: Positive = 4.0  # β of the walkers in the plane [1]
    plane_step: Positive = 0.02  # their ε [1]
    plane_walkers: Count = 2048  # their number at each ratio, a multiple of 16 [1]
    # β from which β → ∞ is extrapolated [1]
    large_betas: tuple[Positive, ...] = (30.0, 60.0, 120.0, 200.0)
    dimensions: tuple[Count, ...] = (1, 2, 5)  # d of the balls [1]
    horizon: Positive = (
        50.0  # T over the time of relaxation, for which a walker is to stay in the ball [1]
    )
    risk: Fraction = 0.3  # δ, the chance to leave that is allowed [1]

    kind = "limit"
    # 1 extrapolated from β = 20 … 80, where two orders differed by 0.002, two thirds of the margin of the plane: colder
    # ones were out of reach of its solver, which lost a factor e^(β/4) of precision and returned negative times
    version = 2
    statement = (
        r"\mathbb E\,\tau\simeq\frac{2\pi}{|\lambda_-|}\sqrt{\frac{|\det\nabla^2f(s)|}{\det\nabla^2f(a)}}\;"
        r"e^{\beta(f(s)-f(a))},\qquad \tau/\mathbb E\,\tau\to\mathrm{Exp}(1)\qquad(\beta\to\infty)"
    )
    source = (
        "Raginsky's talk of 27 January in the notes [@vodrahalli2019]: times of escape are exponential once divided "
        "by their mean. The prefactor is from outside: [@kramers1940]; [@bovier2004]"
    )
    corrections = (
        "The talk's condition β ≥ (d/ε²)(1 + log(T/δ)) for staying within ε of a minimum for a time T with probability "
        "1 − δ lacks the least curvature m, and with the constant one it is not enough in low dimension. With "
        "a = ε√(βm) a parabola is left at the rate m a^d e^(−a²/2) 2^(1−d/2)/Γ(d/2), and T times that must be below δ.",
    )
    remarks = (
        "The mean time from −1 to 1 is β ∫ e^{βf(y)} ∫_{z<y} e^{−βf(z)} dz dy on the line. Chains of steps ε have the "
        "exit moments of their killed kernels; they tend to the integral in powers of √ε, since walkers are looked at "
        "only after whole steps.",
        "Kramers' formula is above the exact time at β = 2, and up to 20 % below it where walkers can go (β = 4 to 8). "
        "It is a limit, judged by its first correction 1 + c/β on the line, c = 3/2 here, and by extrapolation in the "
        "plane.",
        "The exponential law is a limit too: the standard deviation is 0.86 of the mean at β = 2 and 0.93 at β = 8.",
        "In the plane the exact mean solves Lτ = −1 on cells, by the elimination without subtraction of Grassmann, "
        "Taksar and Heyman, which keeps its precision at any barrier; tests compare it with the integral where the "
        "stiffness does not change. The stiffness at the minimum is κ(−1), not that far away: for κ from 2 to 8 it is "
        "2.8, and the time is multiplied by √(8/2.8) in the limit.",
        "The effective potential f + log κ/2β is for fast second directions: its error falls like one over their "
        "stiffness, and is judged where they are eight times as stiff as for the walkers.",
        "Before fresh seeds were run, walkers in the plane went from β = 6 to 4 to be quick, and the limit on the line "
        "from β = 20 … 80 to 80 … 320, since the extrapolation from there had erred by 0.04. Since version 2 they go "
        "to β = 30 … 200 in the plane and 120 … 800 on the line, and a limit whose last two orders differ by more than "
        "0.001 is not judged.",
        "The time in the ball is exact, of an Ornstein–Uhlenbeck process from its stationary law in the ball, by its "
        "eight slowest radial modes; no walkers.",
    )
    # the coldest walkers, where Kramers' formula and the exact time differ most, by a fifth at β = 8
    headline = ("mean_coldest", "line_limit", "plane_limit", "variation", "exponential")
    full = {"walkers": 32768, "plane_walkers": 16384, "betas": (2.0, 4.0, 6.0, 8.0, 10.0)}
    tiny = {
        "betas": (2.0, 3.0),
        "walkers": 64,
        "plane_walkers": 32,
        "plane_beta": 2.0,
        "plane_step": 0.04,
    }
    out_of_scope = {"large_betas": (1.0, 1.5, 2.0, 3.0)}
    point = LangevinMetastabilityPoint

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

    def hypotheses(self, setting: None) -> list[Hypothesis]:
        fastest = max(self.stiffness * max(ratio, 1 / ratio) ** 0.5 for ratio in self.ratios)
        return [
            assume(
                "smallest barrier βΔf of the limits",
                min(self.large_betas) * BARRIER,
                ">=",
                4,
                "the formula is for high barriers; choose larger --large-betas",
            ),
            assume(
                "stiffness where the effective potential is judged",
                FASTER * self.stiffness,
                ">=",
                STIFF,
                "the effective potential is for fast second directions; choose a larger --stiffness",
            ),
            assume(
                "largest ε of walkers",
                max(self.step, self.plane_step),
                "<=",
                0.25,
                "the walk runs away from where a step overshoots; choose a smaller --step",
            ),
            assume(
                "largest εκ in the plane",
                self.plane_step * fastest,
                "<=",
                0.4,
                "steps overshoot across; choose a smaller --plane-step",
            ),
        ]

    def predict(self, setting: None) -> Prediction:
        chains = [chain_times(self.step, beta) for beta in self.betas]
        means = np.array([one.mean for one in chains])
        line = kramers(well, START, 0.0, 1.0)
        formulas = np.array([plane_formula(ratio, self.stiffness) for ratio in self.ratios])
        return Prediction(
            mean=("beta", means),
            variation=("beta", [one.variation for one in chains]),
            slope=np.polyfit(self.betas, np.log(means), 1)[0],
            integral=("beta", [line_time(beta) for beta in self.betas]),
            prefactor=line.prefactor,
            barrier=line.barrier,
            correction=line.correction,
            exponential=1.0,
            plane_prefactor=("ratio", formulas[:, 0]),
            plane_mean=(
                "ratio",
                [
                    plane_chain_mean(self.plane_step, self.plane_beta, ratio, self.stiffness)
                    for ratio in self.ratios
                ],
            ),
            effective=(
                "ratio",
                [effective_time(8.0, ratio, FASTER * self.stiffness) for ratio in self.ratios],
            ),
            stay_radius=("dimension", [self.radius(d) for d in self.dimensions]),
        )

    def radius(self, dimension: int) -> float:
        """Return a = ε√(βm) at which T times the rate to leave is δ."""
        excess = lambda a: leave_rate(a, dimension) * self.horizon - self.risk
        root: Any = brentq(excess, np.sqrt(dimension) + INSIDE, 60.0)
        return float(root)

    def observe(self, setting: None, key: Key) -> Observation:
        (line, line_left), (plane, plane_left) = compiled(self.walks)(key)
        steps = self.step / 2.0 ** np.arange(LIMIT)
        chains = [[chain_times(step, beta).mean for step in steps] for beta in self.betas]
        cold = chain_times(self.step, COLD)
        plane_times = [
            [plane_time(beta, ratio, self.stiffness) for beta in self.large_betas]
            for ratio in self.ratios
        ]
        stiffer = [plane_time(8.0, ratio, FASTER * self.stiffness) for ratio in self.ratios]
        chances = [[leave_chance(a, d, self.horizon) for a in RADII] for d in self.dimensions]
        return Observation(
            times=("beta group walker", self.step * _groups(line)),
            plane_times=("ratio group walker", self.plane_step * _groups(plane)),
            left=np.mean([np.mean(line_left), np.mean(plane_left)]),
            chains=("beta size", chains),
            line_exact=("large", [line_time(LINE * beta) for beta in self.large_betas]),
            variation=cold.variation,
            variation_saddle=cold.variation_saddle,
            plane_exact=("ratio large", plane_times),
            stiffer=("ratio", stiffer),
            chances=("dimension radius", chances),
        )

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        line = kramers(well, START, 0.0, 1.0)
        formulas = np.array([plane_formula(ratio, self.stiffness)[0] for ratio in self.ratios])
        steps = [
            np.max(np.abs(self.limit(values) - self.limit(values, without_warmest=True)))
            for values in self.to_the_limit(observed, line.prefactor, line.barrier, formulas)
        ]
        return [
            assume(
                "share of walkers that left",
                float(observed["left"]),
                "==",
                1,
                "others are counted with the cap; lower the largest β",
            ),
            *self.converged(steps),
        ]

    def converged(self, steps: list[float]) -> list[Hypothesis]:
        """Return that the last two orders of both limits agree."""
        return [
            assume(
                f"difference of the last two orders of the limit {where}",
                float(step),
                "<=",
                CONVERGED,
                "β → ∞ is too far to be extrapolated; choose more or larger --large-betas",
            )
            for where, step in zip(("on the line", "in the plane"), steps, strict=True)
        ]

    def to_the_limit(
        self, observed: Observation, prefactor: float, barrier: float, plane_prefactor: Values
    ) -> tuple[Values, Values]:
        """Return (time over Kramers' − 1) β on the line and time over Kramers' in the plane, at large β."""
        large = np.array(self.large_betas)
        line = observed["line_exact"] / (prefactor * np.exp(LINE * barrier * large))
        planes = observed["plane_exact"] / (plane_prefactor[:, None] * np.exp(barrier * large))
        return (line - 1) * LINE * large, planes

    def limit(self, values: Values, without_warmest: bool = False) -> Values:
        """Return the limit β → ∞ of values at large β, which are along the last axis."""
        large = np.sort(self.large_betas)
        values = values[..., np.argsort(self.large_betas)]
        first = int(without_warmest)
        return extrapolate(1 / large[first:], values[..., first:], -1)

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        means = observed["times"].mean(2)
        spreads = observed["times"].std(2, ddof=1) / means
        slopes = [np.polyfit(self.betas, logs, 1)[0] for logs in np.log(means).T]
        sizes = np.sqrt(self.step / 2.0 ** np.arange(LIMIT))
        limits = extrapolate(sizes, observed["chains"], -1)
        line, planes = self.to_the_limit(
            observed,
            float(predicted["prefactor"]),
            float(predicted["barrier"]),
            predicted["plane_prefactor"],
        )
        logs = np.log(np.maximum(observed["chances"], 1e-300))
        stays = [
            np.interp(a, RADII, row) for a, row in zip(predicted["stay_radius"], logs, strict=True)
        ]
        coldest = int(np.argmax(self.betas))
        checks = [
            equal(
                "mean_coldest" if i == coldest else f"mean_{i}",
                predicted["mean"][i],
                means[i],
                0.06,  # two and a half intervals
                label=f"mean exit time of walkers, β = {beta:g}",
            )
            for i, beta in enumerate(self.betas)
        ]
        return [
            *checks,
            equal(
                "slope",
                predicted["slope"],
                slopes,
                0.015,
                absolute=True,
                label="slope of log mean exit time in β, walkers",
            ),
            equal(
                "variation",
                1.0,
                (spreads / predicted["variation"][:, None]).mean(0),
                0.04,  # three intervals, a third of the distance to the exponential law
                label="standard deviation over mean, walkers over theory, mean over β",
            ),
            agreement(
                "integral",
                np.abs(limits / predicted["integral"] - 1).max(),
                1e-4,
                label="mean exit time as ε → 0 against the exact integral, relative",
            ),
            equal(
                "line_limit",
                predicted["correction"],
                float(self.limit(line)),
                0.003,  # thrice the error that the extrapolation may have
                absolute=True,
                label="(exact time over Kramers' − 1) β as β → ∞",
            ),
            equal(
                "exponential",
                predicted["exponential"],
                float(observed["variation"]),
                0.01,
                label=f"standard deviation over mean at β = {COLD:g}",
            ),
            *[
                equal(
                    f"plane_mean_{i}",
                    predicted["plane_mean"][i],
                    observed["plane_times"][i].mean(1),
                    0.1,  # two and a half intervals
                    label=f"mean exit time of walkers in the plane, ratio {ratio:g}",
                )
                for i, ratio in enumerate(self.ratios)
            ],
            agreement(
                "plane_limit",
                np.abs(self.limit(planes) - 1).max(),
                0.003,  # thrice the error that the extrapolation may have
                label="exact time over Kramers' in the plane as β → ∞, off one",
            ),
            agreement(
                "effective",
                np.abs(observed["stiffer"] / predicted["effective"] - 1).max(),
                0.005,  # one over the stiffness: 0.003
                label="exact time in the plane against the effective potential, relative",
            ),
            bound(
                "stay",
                float(np.max(np.exp(stays))),
                at_most=self.risk,
                label="chance to leave the ball at the temperature that theory allows, largest over d",
            ),
        ]

    def rivals(self, setting: None, predicted: Prediction) -> list[Rival]:
        betas = np.array(self.betas)
        line = float(predicted["prefactor"])
        ratios = np.array(self.ratios)
        at_minimum = np.array([stiffness(START, r, self.stiffness) for r in ratios])
        at_saddle = self.stiffness * ratios**0.5
        formula = predicted["prefactor"] * np.exp(predicted["barrier"] * betas)
        colder_means = np.array([chain_times(self.step, 2 * beta).mean for beta in self.betas])
        flat_mean = chain_times(self.plane_step, self.plane_beta).mean
        d = np.array(self.dimensions)
        across = ("ratio", np.full(len(ratios), flat_mean))
        flat = ("ratio", np.full(len(ratios), line_time(8.0)))
        return [
            Rival(
                "formula_at_every_beta",
                predicted.replace(
                    mean=("beta", formula),
                    integral=("beta", formula),
                    slope=np.polyfit(betas, np.log(formula), 1)[0],
                    correction=0.0,
                ),
                "it is what the theorem prints",
                label="Kramers' formula at every β, slope ¼",
            ),
            Rival(
                "saddle_alone",
                predicted.replace(correction=0.75),
                "fluctuations of the barrier, those of the well forgotten",
                label="c = ¾ in place of 3/2",
            ),
            Rival(
                "half_the_noise",
                predicted.replace(
                    mean=("beta", colder_means),
                    slope=np.polyfit(betas, np.log(colder_means), 1)[0],
                    integral=("beta", [line_time(2 * beta) for beta in self.betas]),
                    barrier=2 * BARRIER,
                ),
                "the 2 of 2/β is easily lost",
                label="barrier 2Δf, for noise of variance 1/β",
            ),
            Rival(
                "exponential_at_once",
                predicted.replace(variation=("beta", np.ones(len(betas)))),
                "the talk, which puts it under large deviations, names no temperature",
                label="exponential times at every β",
            ),
            Rival(
                "exponential_as_at_8",
                predicted.replace(exponential=chain_times(self.step, 8.0).variation),
                "the law would stop changing at temperatures that walkers can have",
                label="the standard deviation over mean of β = 8, 0.93",
            ),
            Rival(
                "no_transverse_factor",
                predicted.replace(
                    plane_prefactor=("ratio", np.full(len(ratios), line)),
                    plane_mean=across,
                    effective=flat,
                ),
                "the barrier and the path are the same",
                label="the time of the line in the plane",
            ),
            Rival(
                "inverted",
                predicted.replace(
                    plane_prefactor=("ratio", line * np.sqrt(at_minimum / at_saddle)),
                    plane_mean=("ratio", predicted["plane_mean"][::-1]),
                    effective=("ratio", predicted["effective"][::-1]),
                ),
                "a wide saddle has more room",
                label="√(det at the minimum / det at the saddle)",
            ),
            Rival(
                "far_stiffness",
                predicted.replace(plane_prefactor=("ratio", line * np.sqrt(ratios))),
                "the ratio of the two stiffnesses that one wrote down",
                label="stiffness far away in place of that at the minimum",
            ),
            Rival(
                "talk_stays",
                predicted.replace(
                    stay_radius=("dimension", np.sqrt(d * (1 + np.log(self.horizon / self.risk))))
                ),
                "as the talk says",
                label="β = (d/ε²)(1 + log(T/δ))",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        return [
            Control(
                "from_the_saddle",
                observed.replace(variation=float(observed["variation_saddle"])),
                "half of its walkers leave at once",
                label="walkers that start at the saddle",
            )
        ]

    def walks(self, key: jax.Array) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
        """Return exits on the line and in the plane; one program."""
        for_line, for_plane = jax.random.split(key)
        return self.walk_on_line(for_line), self.walk_in_plane(for_plane)

    def walk_on_line(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the steps to the target, ``(betas, walkers)``, and whether it was reached."""
        longest = CAP * float(np.sqrt(2) * np.pi * np.exp(BARRIER * max(self.betas)))
        start = jnp.full(self.walkers, START)
        cap = int(longest / self.step)
        inside = lambda x: x < TARGET

        def one(lane: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            key, beta = lane
            exits = langevin_exits(well, start, self.step, beta, inside, cap, key)
            return exits.steps, exits.left

        seeds = jax.random.split(key, len(self.betas))
        return jax.lax.map(one, (seeds, jnp.array(self.betas)))

    def walk_in_plane(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the same in the plane, ``(ratios, walkers)``."""
        slowest = max(max(self.ratios), 1.0) ** 0.5
        longest = CAP * slowest * float(np.sqrt(2) * np.pi * np.exp(BARRIER * self.plane_beta))
        start = jnp.tile(jnp.array([START, 0.0]), (self.plane_walkers, 1))
        cap = int(longest / self.plane_step)
        inside = lambda place: place[0] < TARGET

        def one(lane: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            key, ratio = lane

            def potential(place: jax.Array) -> jax.Array:
                kappa = stiffness(place[0], ratio, self.stiffness, jnp.exp)
                return well(place[0]) + kappa * place[1] ** 2 / 2

            exits = langevin_exits(
                potential, start, self.plane_step, self.plane_beta, inside, cap, key
            )
            return exits.steps, exits.left

        seeds = jax.random.split(key, len(self.ratios))
        return jax.lax.map(one, (seeds, jnp.array(self.ratios)))

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        survival = []
        shares = np.logspace(0, -3, 80)
        for i in (0, len(self.betas) - 1):
            times = observed["times"][i].ravel()
            ages = np.quantile(times, 1 - shares) / times.mean()
            label = f"walkers, β = {self.betas[i]:g}"
            survival.append(observed_curve(ages, shares, label, shade=float(i > 0)))
        ages = np.array([0.0, 7.0])
        betas = np.array(self.betas)
        line = np.linspace(betas[0], betas[-1], 40)
        formula = np.exp(predicted["barrier"] * line)
        exact = [line_time(beta) for beta in line]
        large = np.array(self.large_betas)
        growth = np.exp(predicted["barrier"] * large)
        axis = np.append(0, 1 / large)
        nearer = np.array([line_time(beta) for beta in large])
        planes = [
            observed_curve(
                1 / large,
                observed["plane_exact"][i] / predicted["plane_prefactor"][i] / growth,
                f"plane, ratio {ratio:g}",
                shade=(i + 1) / len(self.ratios),
            )
            for i, ratio in enumerate(self.ratios)
        ]
        balls = []
        for i, d in enumerate(self.dimensions):
            shade = i / max(1, len(self.dimensions) - 1)
            chances = np.where(observed["chances"][i] > 1e-6, observed["chances"][i], np.nan)
            balls.append(observed_curve(RADII**2, chances, f"d = {d}", shade=shade))
        risks = np.full(len(self.dimensions), self.risk)
        talk = np.array(self.dimensions) * (1 + np.log(self.horizon / self.risk))
        return (
            panel(
                "Exit times become exponential",
                "time over its mean",
                "share still in the basin",
                *survival,
                predicted_curve(ages, np.exp(-ages), "limit"),
                log="y",
                ylim=(1e-3, 1.2),
            ),
            panel(
                "Mean exit time on the line",
                "β",
                "time",
                observed_curve(betas, observed["times"].mean((1, 2)), "walkers", kind="points"),
                predicted_curve(line, exact, "exact integral"),
                rival_curve(line, predicted["prefactor"] * formula, "Kramers' formula"),
                rival_curve(
                    betas,
                    predicted["prefactor"] * np.exp(2 * BARRIER * betas),
                    "barrier 2Δf",
                    shade=1.0,
                ),
                log="y",
            ),
            panel(
                "Kramers' formula is a limit",
                "1/β",
                "exact time over the formula",
                observed_curve(1 / large, nearer / predicted["prefactor"] / growth, "line"),
                *planes,
                predicted_curve(axis, 1 + predicted["correction"] * axis, "1 + 3/2β"),
                xlim=(0, None),
            ),
            panel(
                f"Staying in a ball for T = {self.horizon:g}",
                "βmε²",
                "chance to leave",
                *balls,
                predicted_curve(
                    predicted["stay_radius"] ** 2, risks, "enough by theory", kind="points"
                ),
                rival_curve(talk, 0.8 * risks, "enough by the talk", kind="points"),
                log="y",
                ylim=(1e-3, 1.5),
            ),
        )


def _groups(steps: jax.Array) -> Values:
    """Return steps of walkers by groups, ``(lanes, groups, walkers)``."""
    values = np.asarray(steps, float)
    return values.reshape(len(values), GROUPS, -1)
