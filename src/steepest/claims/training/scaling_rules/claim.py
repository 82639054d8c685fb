"""A batch κ times larger allows small steps to be κ times larger in SGD, and √κ times in Adam.

With steps scaled in this way the stationary risk stays the same. The exponents are 1 and ½ while steps are small and
batches are noise. Beyond this range both exponents move by a known amount. SGD's exponent falls as its steps come near
to 2/h, for curvatures h, and Adam's exponent rises as batches begin to agree.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.training.scaling_rules import experiment, theory
from steepest.claims.training.scaling_rules.experiment import Rule
from steepest.claims.training.scaling_rules.point import ScalingRulesPoint

OPTIMIZERS = ("sgd", "adam", "adam, betas scaled")


class Setting(NamedTuple):
    """The variances of the inputs."""

    curvatures: kit.Values  # h, (d,)


@kit.claim
class ScalingRules(kit.Claim[Setting]):
    """Least squares with Gaussian inputs and fresh examples, long after the start."""

    dimension: kit.Count = kit.param(8, "d", scope=kit.between(5, 12))
    least: kit.Fraction = kit.param(
        0.2,
        "least variance of an input; the largest is one",
        scope=kit.between(0.2, 0.5, "below it longer runs are needed"),
    )
    batches: tuple[kit.Count, ...] = kit.param(
        (4, 16, 64), "b", unit="examples", scope=kit.choices((4, 16, 64), (5, 20, 60), (6, 24, 72))
    )
    powers: tuple[kit.NonNegative, ...] = kit.param(
        (0.0, 0.25, 0.5, 0.75, 1.0),
        "a in η κ^a, κ the batch over the first",
        scope=kit.choices((0.0, 0.25, 0.5, 0.75, 1.0), (0.0, 0.3, 0.6, 1.0)),
    )
    sgd_step: kit.Positive = kit.param(
        0.05, "η of SGD at the first batch", scope=kit.between(0.04, 0.06)
    )
    adam_step: kit.Positive = kit.param(
        0.03, "η of Adam there, over the noise of a label", scope=kit.between(0.025, 0.035)
    )
    beta1: kit.Fraction = kit.param(
        0.96,
        "β₁ at the first batch",
        scope=kit.between(0.95, 0.98, "1 − β₁ is multiplied by κ in one of the rules"),
    )
    beta2: kit.Fraction = kit.param(0.9995, "β₂ there", scope=kit.between(0.999, 0.9998))
    steps: kit.Count = kit.param(8000, "steps of each run", unit="steps")
    burn_in: kit.Count = kit.param(1000, "steps before risk is read", unit="steps")
    seeds: kit.Seeds = kit.param(16, "runs of each kind")

    kind = "limit"
    says = {
        "allows small steps to be κ times larger in SGD": ("keeping", "risk"),
        "√κ times in Adam": ("keeping", "risk"),
    }
    tiny = {
        "dimension": 2,
        "batches": (4, 8, 16),
        "powers": (0.0, 0.5, 1.0),
        "steps": 300,
        "burn_in": 100,
        "seeds": 3,
    }
    full = {"steps": 60_000, "seeds": 24}
    out_of_scope = {"sgd_step": 0.5, "steps": 300, "burn_in": 100, "seeds": 3}
    point = ScalingRulesPoint

    def axes(self):
        return {
            "optimizer": OPTIMIZERS,
            "batch": self.batches,
            "power": self.powers,
            "factor": tuple(batch / self.batches[0] for batch in self.batches[1:]),
        }

    def setting(self, key):
        return Setting(np.geomspace(1.0, self.least, self.dimension))

    def hypotheses(self, setting):
        largest = self.batches[-1] / self.batches[0]
        curvature = float(setting.curvatures[0])
        step = self.sgd_step * curvature * largest ** max(self.powers)
        yield kit.assume(
            "κ (1 − β₁)", largest * (1 - self.beta1), "<", 1.0, "choose a larger --beta1"
        )
        yield kit.assume(
            "largest step of SGD, over 1/h", step, "<", 1.3, "choose a smaller --sgd-step"
        )
        yield kit.assume(
            "burn-in, over the slowest relaxation 1/ηh",
            self.burn_in * self.sgd_step * float(setting.curvatures[-1]),
            ">=",
            1.0,
        )

    def predict(self, setting):
        first = self.batches[0]
        risk = np.empty((len(OPTIMIZERS), len(self.batches), len(self.powers)))
        exponent = np.empty((len(OPTIMIZERS), len(self.batches) - 1))
        for row, optimizer in enumerate(OPTIMIZERS):
            wanted = self.theory_of(setting, optimizer, first)(0.0)
            for column, batch in enumerate(self.batches):
                risk_at = self.theory_of(setting, optimizer, batch)
                risk[row, column] = [risk_at(power) for power in self.powers]
                if column:
                    exponent[row, column - 1] = theory.keeping_exponent(risk_at, wanted)
        return kit.law(
            risk=("optimizer batch power", risk), exponent=("optimizer factor", exponent)
        )

    def theory_of(self, setting: Setting, optimizer: str, batch: int) -> Callable[[float], float]:
        """Return the predicted risk of an optimizer at a batch, for an exponent of its step."""
        factor = batch / self.batches[0]
        if optimizer == "sgd":
            return lambda power: theory.sgd_risk(
                setting.curvatures, batch, self.sgd_step * factor**power
            )
        scaled = factor if optimizer.endswith("scaled") else 1.0
        beta1 = 1 - scaled * (1 - self.beta1)
        return lambda power: theory.adam_risk(
            setting.curvatures, batch, self.adam_step * factor**power, beta1
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        run = partial(
            experiment.late_risks, rng, setting.curvatures, runs=self.seeds, burn_in=self.burn_in
        )
        rules = [self.rules(batch / self.batches[0]) for batch in self.batches]
        risks = [
            run(batch, rule, steps=self.steps)
            for batch, rule in zip(self.batches, rules, strict=True)
        ]
        # the same examples again and again: as much noise as in the first batch
        fewer = self.burn_in + (self.steps - self.burn_in) // 4
        repeated = [run(self.batches[0], rule, steps=fewer) for rule in rules]
        shape = (self.seeds, len(self.batches), len(OPTIMIZERS), len(self.powers))
        dims = "seed batch optimizer power"
        return kit.seen(
            risk=(dims, np.stack(risks, 1).reshape(shape)),
            repeated=(dims, np.stack(repeated, 1).reshape(shape)),
        )

    def rules(self, factor: float) -> Rule:
        """Return the three optimizers at every exponent of the step, for a batch that is larger by a factor."""
        powers = len(self.powers)
        grown = factor ** np.array(self.powers)
        scaled = np.array([1.0, 1.0, factor])
        return Rule(
            adam=np.repeat([0.0, 1.0, 1.0], powers),
            eta=np.concatenate(
                [self.sgd_step * grown, self.adam_step * grown, self.adam_step * grown]
            ),
            beta1=np.repeat(1 - scaled * (1 - self.beta1), powers),
            beta2=np.repeat(1 - scaled * (1 - self.beta2), powers),
        )

    def derive(self, law, seen):
        return {"exponent": self.exponents(law, seen.risk)}

    def exponents(self, law: xarray.Dataset, risk: xarray.DataArray) -> xarray.DataArray:
        """Return the exponents at which the risk is that of the first batch, between or beyond those that were run."""
        logs = np.log(risk.transpose("seed", "optimizer", "batch", "power").values)
        powers = np.array(self.powers)
        excess = logs[:, :, 1:] - logs[:, :, :1, :1]
        exponent = np.empty(excess.shape[:-1])
        for place in np.ndindex(exponent.shape):
            # a parabola in the exponent, its nearest three
            nearest = np.sort(np.argsort(np.abs(excess[place]))[:3])
            inverse = np.polyfit(excess[place][nearest], powers[nearest], 2)
            exponent[place] = inverse[-1]
        return xarray.DataArray(
            exponent,
            dims=("seed", "optimizer", "factor"),
            coords={"optimizer": law.optimizer, "factor": law.factor},
        )

    def judge(self, law, seen):
        yield kit.follows(
            "risk",
            law.risk,
            seen.risk,
            0.12,  # exact for SGD and within 3 % for Adam; the interval takes 6 %
            label="stationary risk",
        )
        yield kit.follows(
            "keeping",
            law.exponent,
            seen.exponent,
            0.08,  # half of it is the interval's
            absolute=True,
            label="exponent of the step that keeps the risk",
        )

    def rivals(self, setting, law):
        shape = law.exponent.shape
        linear = ("optimizer factor", np.ones(shape))
        root = ("optimizer factor", np.full(shape, 0.5))
        yield kit.rival("η ∝ b for Adam too", "noise averages out", id="linear", exponent=linear)
        yield kit.rival("η ∝ √b for SGD too", "the noise of a step is η/√b", exponent=root)
        yield kit.rival(
            "exponents 1 and ½ throughout",
            "the rules hold at every batch",
            id="small_steps",
            exponent=(
                "optimizer factor",
                np.array([[1.0], [0.5], [0.5]]) + 0 * law.exponent.values,
            ),
            risk=("optimizer batch power", self.small_step_risks(setting)),
        )

    def small_step_risks(self, setting: Setting) -> kit.Values:
        """Return the risks of small steps at every batch and exponent, ``(optimizers, batches, powers)``."""
        risks = np.empty((len(OPTIMIZERS), len(self.batches), len(self.powers)))
        for column, place in np.ndindex(risks.shape[1:]):
            batch = self.batches[column]
            grown = (batch / self.batches[0]) ** self.powers[place]
            risks[0, column, place] = theory.small_step_risks(
                setting.curvatures, batch, self.sgd_step * grown
            )[0]
            risks[1:, column, place] = theory.small_step_risks(
                setting.curvatures, batch, self.adam_step * grown
            )[1]
        return risks

    def controls(self, seen):
        yield kit.control(
            "each example κ times in the batch",
            "only different examples average out",
            risk=seen.repeated,
        )
        yield kit.control(
            "optimizers exchanged",
            "each optimizer has a rule of its own",
            risk=seen.risk.roll(optimizer=1),
        )

    def figure(self, law, seen, rivals):
        last = {"batch": self.batches[-1]}
        first = law.risk.isel(batch=0, power=0, drop=True)
        over_first = lambda risk: risk.sel(last, drop=True) / first
        limit = rivals["small_steps"].exponent if rivals else None
        yield kit.curves(
            f"A batch {last['batch'] / self.batches[0]:g} times larger: risk / first batch's risk",
            over_first(law.risk),
            over_first(seen.risk),
            over="power",
            by="optimizer",
            x="exponent a of the step η κ^a",
            y="risk / risk of the first batch",
            more=(kit.context_curve(np.array(self.powers), np.ones(len(self.powers)), "kept"),),
            log="y",
        )
        yield kit.curves(
            "The exponent that keeps the risk",
            law.exponent,
            seen.exponent,
            over="factor",
            by="optimizer",
            x="κ, batch over the first",
            y="exponent",
            rivals={} if limit is None else {"½": limit.sel(optimizer="adam", drop=True)},
            log="x",
        )
