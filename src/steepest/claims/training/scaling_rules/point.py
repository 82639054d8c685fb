"""One point of the diagram of scaling-rules: SGD and Adam at one batch and one exponent of the step."""

from dataclasses import dataclass

import numpy as np

from steepest import kit
from steepest.claims.training.scaling_rules import experiment, theory
from steepest.claims.training.scaling_rules.experiment import Rule
from steepest.kit.points import equal, run_in_numpy

FIRST = 4  # the batch that others are compared with
LARGEST = 1.3  # step of SGD over 1/h, beyond which it is out of range


@dataclass(frozen=True)
class ScalingRulesPoint(kit.Point):
    """Stationary risks over those of batches of four, with steps that grow as a power of the batch."""

    dimension: kit.Count
    least: kit.Fraction
    batches: kit.Count
    powers: kit.NonNegative
    sgd_step: kit.Positive
    adam_step: kit.Positive
    beta1: kit.Fraction
    beta2: kit.Fraction
    steps: kit.Count
    burn_in: kit.Count
    seeds: kit.Seeds

    batched = ("powers",)
    diagram = {"batches": "log:8:128:5", "powers": "linear:0:1.2:7"}
    base = {"steps": 3500}
    diagram_remarks = (
        "The step is that at batches of four, times κ^a, κ being the batch over four and a the exponent, from 0 to "
        "1.2. The risk is over that of batches of four: along its line a larger batch keeps it.",
        "Where the step of SGD exceeds 1.3 over the largest curvature the point is out of range.",
    )

    @property
    def grown(self) -> float:
        """Return κ^a."""
        return (self.batches / FIRST) ** self.powers

    def setting(self, key):
        """Return the variances of the inputs, ``(d,)``."""
        return np.geomspace(1.0, self.least, self.dimension)

    def hypotheses(self, setting):
        step = self.sgd_step * float(setting[0]) * self.grown
        relaxed = self.burn_in * self.sgd_step * float(setting[-1])
        yield kit.assume("step of SGD, over 1/h", step, "<", LARGEST, "choose smaller --powers")
        yield kit.assume("burn-in, over the slowest relaxation 1/ηh", relaxed, ">=", 1.0)

    def predict(self, setting):
        sgd = theory.sgd_risk(setting, self.batches, self.sgd_step * self.grown)
        adam = theory.adam_risk(setting, self.batches, self.adam_step * self.grown, self.beta1)
        stable = self.sgd_step * float(setting[0]) * self.grown < LARGEST
        return kit.Prediction(
            sgd=sgd if stable else np.inf,
            adam=adam,
            first_sgd=theory.sgd_risk(setting, FIRST, self.sgd_step),
            first_adam=theory.adam_risk(setting, FIRST, self.adam_step, self.beta1),
        )

    def observe(self, setting, key):
        def run(
            rng: np.random.Generator, curvatures: kit.Values, power: float
        ) -> dict[str, kit.Values]:
            grown = (self.batches / FIRST) ** power
            rule = Rule(
                adam=np.array([0.0, 1.0]),
                eta=grown * np.array([self.sgd_step, self.adam_step]),
                beta1=np.full(2, self.beta1),
                beta2=np.full(2, self.beta2),
            )
            with np.errstate(over="ignore", invalid="ignore"):  # SGD diverges at large steps
                risks = experiment.late_risks(
                    rng, curvatures, self.batches, rule, self.seeds, self.steps, self.burn_in
                )
            return {"sgd": risks[:, 0], "adam": risks[:, 1]}

        shapes = {"sgd": (self.seeds,), "adam": (self.seeds,)}
        return run_in_numpy(run, shapes, key, setting, self.powers)

    def judge(self, predicted, observed):
        checks = []
        for name, words in (("adam", "Adam"), ("sgd", "SGD")):
            if not np.isfinite(predicted[name]):
                continue
            first = float(predicted[f"first_{name}"])
            checks.append(
                equal(
                    name,
                    float(predicted[name]) / first,
                    observed[name] / first,
                    0.12,  # the claim's; exact for SGD and within 3 % for Adam, and the interval takes 6 %
                    label=f"risk of {words} over that of the first batch",
                )
            )
        return checks

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"batches", "powers"}:
            return ()
        curvatures = np.geomspace(1.0, self.least, self.dimension)
        batches = np.geomspace(FIRST + 1, 200, 30).round()
        kept = np.array([self.keeping_exponents(curvatures, int(batch)) for batch in batches])
        limit = np.log(LARGEST / self.sgd_step) / np.log(batches / FIRST)
        lines = {
            "near 1: SGD keeps its risk": kept[:, 0],
            "near ½: Adam keeps its risk": kept[:, 1],
            "largest step of SGD": np.where(limit < 1.5, limit, np.nan),
        }
        return tuple(
            kit.predicted_curve(*((batches, a) if x == "batches" else (a, batches)), label)
            for label, a in lines.items()
        )

    def keeping_exponents(self, curvatures: kit.Values, batch: int) -> tuple[float, float]:
        """Return the exponents at which SGD and Adam keep the first batch's risk; NaN where no step of SGD does."""

        def sgd(power: float, batch: int = batch) -> float:
            eta = self.sgd_step * (batch / FIRST) ** power
            return theory.sgd_risk(curvatures, batch, min(eta, LARGEST / float(curvatures[0])))

        def adam(power: float, batch: int = batch) -> float:
            eta = self.adam_step * (batch / FIRST) ** power
            return theory.adam_risk(curvatures, batch, eta, self.beta1)

        first_sgd = sgd(0.0, FIRST)
        of_sgd = theory.keeping_exponent(sgd, first_sgd) if sgd(1.0) > first_sgd else float("nan")
        return of_sgd, theory.keeping_exponent(adam, adam(0.0, FIRST))
