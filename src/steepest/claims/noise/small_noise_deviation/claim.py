"""Noise of temperature 1/β drives descent δ off its path within a time T with chance e^(−βI), I the least action.

The action of a path is ¼∫|ẋ + ∇f|². On a parabola I(δ) = λδ²/(2(1 − e^(−2λT))), and the factor in front is known: how
much likelier it is to have been out some time than to be out at the end.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Values,
    assume,
    compiled,
    equal,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.noise._extrapolate import check_groups, check_sizes, extrapolate
from steepest.claims.noise.small_noise_deviation.experiment import (
    OVERSHOOT,
    euler_chance,
    parabola_chance,
    parabola_rate,
    tail,
    well_chance,
    well_rate,
    well_slope,
)
from steepest.noise import langevin_exits

GROUPS = 16  # of walkers, over which chances have intervals


@dataclass(frozen=True)
class SmallNoiseDeviation(Claim):
    """A parabola, exactly and by walkers, and a double well, where deviations are not Gaussian."""

    curvature: Positive = 1.0  # λ of the parabola [1]
    delta: Positive = 1.0  # δ there [length]
    horizon: Positive = 1.0  # T there [time]
    betas: tuple[Positive, ...] = (16.0, 32.0, 64.0, 128.0)  # β of the exact chances [1]
    scale: Positive = 0.1  # β times the time between two looks at the parabola [1]
    well_scale: Positive = 0.3  # the same in the double well, where it is the step [1]
    well_start: Positive = 1.2  # where the path in the double well starts [length]
    well_delta: Positive = 0.8  # δ there [length]
    well_horizon: Positive = 1.0  # T there [time]
    walk_betas: tuple[Positive, ...] = (3.0, 6.0)  # β of the walkers on the parabola [1]
    step: Positive = 0.02  # their ε [1]
    walkers: Count = 131072  # their number at each β, a multiple of 16 [1]

    kind = "limit"
    statement = (
        r"\lim_{\beta\to\infty}\frac1\beta\log P\Big(\sup_{t\le T}|X^\beta_t-X^\infty_t|>\delta\Big)=-I(\delta)="
        r"-\min\Big\{\tfrac14\int_0^T|\dot x+\nabla f(x)|^2dt:\ \sup_{t\le T}|x-X^\infty|\ge\delta\Big\}"
    )
    source = "Raginsky's talk of 27 January in the notes [@vodrahalli2019], on Freidlin and Wentzell's theory"
    corrections = (
        "The talk says that the probability, normalized by β, goes to zero as β → ∞. So it does, without being "
        "normalized; what theory says is that (1/β) log P tends to −I(δ), which is not zero. (The talk's sentence is "
        "true but weaker; it is not tested.)",
    )
    remarks = (
        "Chances are exact, by killed kernels whose terms are all positive: 1e-20 has ten digits. The rate is "
        "extrapolated from −log P − ½ log β = βI + c₀ + c₁/β + c₂/β² at four temperatures; the ½ log β is that of a "
        "Gaussian tail at the end of the time.",
        "The factor in front is derived here. First exits are u/β before the end, with a density e^(−qu), "
        "q = λ²δ²/(4 sinh² λT); who leaves then is out at the end with chance Φ(−λδ√(u/2)). So it is 2/(1 − tanh λT) "
        "times as likely to be out some time as at the end: 8.4 here, where the reflection of a plain Brownian motion "
        "has 2. So it is where e^(−qu) has fallen before u = βT, at the start of the time: at qTβ = 0.6 for the "
        "smallest β the extrapolated factor was 46.5 for 55.6, which is why 2 is asked for.",
        "The process is looked at every c/β only. A tube seems wider then, by 0.5826 standard deviations of a step "
        "(Broadie, Glasserman and Kou 1997); this is of the order of the factor, not of the rate.",
        "In the double well the path starts at 1.2 and the cheapest way out is against the curvature that weakens "
        "inward: the least action is half of what Gaussian deviations would cost.",
        "Before fresh seeds were run, walkers went from β = 4, 6 and 8 to 3 and 6, as few leave at 8; margins of the "
        "rates became narrower.",
        "That the factor in front goes like 1/√β is so where the cheapest exit is at the end of the time. Where it is "
        "earlier, as for paths that start near the saddle and have long times, the claim is out of range.",
        "Only one dimension is judged. The talk's chance is of the whole vector; on a parabola in more dimensions "
        "the rate is that of the softest direction.",
    )
    headline = ("rate_parabola", "rate_well", "factor")
    full = {
        "betas": (16.0, 32.0, 64.0, 128.0, 256.0),
        "scale": 0.05,
        "well_scale": 0.2,
        "walkers": 1048576,
    }
    tiny = {
        "betas": (12.0, 16.0, 20.0),
        "walk_betas": (2.0, 3.0),
        "walkers": 128,
    }
    out_of_scope = {"betas": (1.0, 2.0, 3.0)}

    def check_fields(self) -> None:
        check_groups(GROUPS, walkers=self.walkers)
        check_sizes("betas", self.betas)

    def hypotheses(self, setting: None) -> list[Hypothesis]:
        least = well_rate(self.well_start, self.well_delta, self.well_horizon)
        return [
            assume(
                "least βI on the parabola",
                min(self.betas) * parabola_rate(self.curvature, self.delta, self.horizon),
                ">=",
                4,
                "the law is of rare events; choose larger --betas",
            ),
            assume("number of β", len(self.betas), ">=", 3, "the rate is extrapolated over them"),
            assume(
                "decay of first exits on the parabola within the time, qTβ",
                min(self.betas) * self.horizon * self.decay,
                ">=",
                2,
                "first exits reach back to the start; choose larger --betas or a shorter --horizon",
            ),
            assume(
                "share of the time at which the cheapest path leaves the well's tube",
                least.latest,
                "==",
                1,
                "the factor in front is that of exits at the end; choose a shorter --well-horizon",
            ),
        ]

    @property
    def decay(self) -> float:
        """Return q = λ²δ²/(4 sinh² λT): first exits u/β before the end have a density e^(−qu)."""
        return (self.curvature * self.delta / (2 * np.sinh(self.curvature * self.horizon))) ** 2

    def predict(self, setting: None) -> Prediction:
        least = well_rate(self.well_start, self.well_delta, self.well_horizon)
        return Prediction(
            rate=parabola_rate(self.curvature, self.delta, self.horizon),
            well_rate=least.rate,
            factor=2 / (1 - np.tanh(self.curvature * self.horizon)),
            overshoot=OVERSHOOT,
            walked=(
                "beta",
                [
                    euler_chance(self.curvature, self.delta, self.horizon, beta, self.step)
                    for beta in self.walk_betas
                ],
            ),
            path=("point", least.path),
            leaves=least.latest,
        )

    def observe(self, setting: None, key: Key) -> Observation:
        parabola = (self.curvature, self.delta, self.horizon)
        well = (self.well_start, self.well_delta, self.well_horizon)
        left = np.asarray(compiled(self.walk)(key), float)
        return Observation(
            chances=("large", [parabola_chance(*parabola, b, self.scale) for b in self.betas]),
            well_chances=("large", [well_chance(*well, b, self.well_scale) for b in self.betas]),
            left=("beta group", left.reshape(len(left), GROUPS, -1).mean(2)),
        )

    def walk(self, key: jax.Array) -> jax.Array:
        """Return which walkers left, ``(betas, walkers)``; from the minimum, where the noiseless path stays."""
        start = jnp.zeros(self.walkers)
        parabola = lambda x: self.curvature * x**2 / 2
        inside = lambda x: jnp.abs(x) <= self.delta
        steps = round(self.horizon / self.step)

        def one(lane: tuple[jax.Array, jax.Array]) -> jax.Array:
            key, beta = lane
            return langevin_exits(parabola, start, self.step, beta, inside, steps, key, 0).left

        seeds = jax.random.split(key, len(self.walk_betas))
        return jax.lax.map(one, (seeds, jnp.array(self.walk_betas)))

    def factors(self, observed: Observation, overshoot: float) -> Values:
        """Return the exact chance over that of being out at the end, on either side, of a tube that seems wider."""
        betas = np.array(self.betas)
        spread = np.sqrt(-np.expm1(-2 * self.curvature * self.horizon) / (self.curvature * betas))
        wider = self.delta + overshoot * np.sqrt(2 * self.scale) / betas
        return observed["chances"] / (2 * tail(wider / spread))

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        betas = np.array(self.betas)
        factors = self.factors(observed, float(predicted["overshoot"]))
        walked = [
            equal(
                f"walked_{i}",
                predicted["walked"][i],
                observed["left"][i],
                0.08,  # two intervals where they are widest
                label=f"chance to leave, walkers, β = {beta:g}",
            )
            for i, beta in enumerate(self.walk_betas)
        ]
        return [
            equal(
                "rate_parabola",
                predicted["rate"],
                _rate(betas, observed["chances"]),
                0.001,  # the extrapolation errs by 2e-4
                label="−(1/β) log P as β → ∞, parabola",
            ),
            equal(
                "rate_well",
                predicted["well_rate"],
                _rate(betas, observed["well_chances"]),
                0.0005,  # it errs by 6e-5
                label="−(1/β) log P as β → ∞, double well",
            ),
            equal(
                "factor",
                predicted["factor"],
                float(extrapolate(1 / betas, factors)),
                0.02,  # looking every c/β is corrected to order √c; the next order is 0.005
                label="chance to leave over chance to be out at the end, as β → ∞",
            ),
            *walked,
        ]

    def rivals(self, setting: None, predicted: Prediction) -> list[Rival]:
        least = well_rate(self.well_start, self.well_delta, self.well_horizon)
        stiff = self.curvature * self.delta**2
        colder = [
            euler_chance(self.curvature, self.delta, self.horizon, 2 * beta, self.step)
            for beta in self.walk_betas
        ]
        at_end = [_at_end(self, beta) for beta in self.walk_betas]
        return [
            Rival(
                "long_time",
                predicted.replace(rate=stiff / 2),
                "the barrier βf(δ) of the stationary law",
                label="I = λδ²/2, at any time",
            ),
            Rival(
                "half_the_noise",
                predicted.replace(
                    rate=2 * predicted["rate"],
                    well_rate=2 * predicted["well_rate"],
                    walked=("beta", colder),
                ),
                "the 2 of 2/β is easily lost",
                label="2I, for noise of variance 1/β",
            ),
            Rival(
                "no_pull",
                predicted.replace(rate=self.delta**2 / (4 * self.horizon)),
                "noise alone, in a short time",
                label="I = δ²/4T, without a gradient",
            ),
            Rival(
                "linearized",
                predicted.replace(well_rate=least.linearized),
                "deviations are small with little noise",
                label="Gaussian deviations in the double well",
            ),
            Rival(
                "reflection",
                predicted.replace(factor=2.0),
                "who was out is out at the end with chance one half",
                label="factor 2, by reflection",
            ),
            Rival(
                "at_the_end",
                predicted.replace(factor=1.0, walked=("beta", at_end)),
                "the end of the time is the likeliest to be out",
                label="the chance to be out at the end",
            ),
            Rival(
                "watched_always",
                predicted.replace(overshoot=0.0),
                "looks are close to each other",
                label="no correction for looks at whole steps",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        betas = np.array(self.betas)
        axis = np.array([0, betas[-1]])
        logs = -np.log(observed["chances"])
        well = -np.log(observed["well_chances"])
        time = np.linspace(0, predicted["leaves"] * self.well_horizon, len(predicted["path"]))
        noiseless = [self.well_start]
        for size in np.diff(time):
            noiseless.append(noiseless[-1] - size * well_slope(noiseless[-1]))
        noiseless = np.array(noiseless)
        walk = np.array(self.walk_betas)
        factors = self.factors(observed, float(predicted["overshoot"]))
        ends = [_at_end(self, beta) for beta in self.walk_betas]
        return (
            panel(
                "The chance falls like e^(−βI)",
                "β",
                "−log P − ½ log β",
                observed_curve(betas, logs - np.log(betas) / 2, "parabola", kind="points"),
                predicted_curve(axis, predicted["rate"] * axis, "I β"),
                rival_curve(axis, axis * self.curvature * self.delta**2 / 2, "λδ²/2 β"),
                observed_curve(
                    betas, well - np.log(betas) / 2, "double well", kind="points", shade=1.0
                ),
                predicted_curve(axis, predicted["well_rate"] * axis, "I β, well", shade=1.0),
            ),
            panel(
                "Out some time over out at the end",
                "1/β",
                "factor",
                observed_curve(1 / betas, factors, "exact", kind="points"),
                predicted_curve([0], [predicted["factor"]], "limit", kind="points"),
                rival_curve([0, 1 / betas[0]], [2, 2], "reflection"),
                ylim=(0, 1.15 * float(predicted["factor"])),
            ),
            panel(
                "The cheapest way out of the double well's tube",
                "time",
                "x",
                predicted_curve(time, predicted["path"], "least action"),
                observed_curve(time, noiseless, "no noise"),
                observed_curve(time, noiseless - self.well_delta, "tube", kind="dashed", shade=1.0),
                observed_curve(time, noiseless + self.well_delta, kind="dashed", shade=1.0),
            ),
            panel(
                f"Walkers on the parabola, ε = {self.step:g}",
                "β",
                "chance to leave",
                observed_curve(walk, observed["left"].mean(1), "walkers", kind="points"),
                predicted_curve(walk, predicted["walked"], "killed kernel"),
                rival_curve(walk, ends, "out at the end"),
                log="y",
            ),
        )


def _at_end(claim: SmallNoiseDeviation, beta: float) -> float:
    """Return the chance to be out at the end of the time on the parabola."""
    spread = np.sqrt(-np.expm1(-2 * claim.curvature * claim.horizon) / (claim.curvature * beta))
    return float(2 * tail(claim.delta / spread))


def _rate(betas: Values, chances: Values) -> float:
    """Return I of ``−log P − ½ log β = βI + c₀ + c₁/β + …`` through all points."""
    heights = -np.log(chances) - np.log(betas) / 2
    return float(extrapolate(1 / betas, heights / betas))
