"""One point of the diagram of in-context-regression: one length of prompts, and one length of training."""

from dataclasses import dataclass

import numpy as np

from steepest import kit
from steepest.claims.training.in_context_regression import experiment, theory
from steepest.claims.training.in_context_regression.experiment import Sizes
from steepest.kit.points import Arrays, equal, run_in_numpy

SMALL = 2.0  # what σ²‖Γ‖√d must stay below


@dataclass(frozen=True)
class InContextRegressionPoint(kit.Point):
    """Weights and risk of trained layers, over the length of prompts and the steps of training."""

    variances: tuple[kit.Positive, ...]
    lengths: kit.Count
    scale: kit.Positive
    lr: kit.Positive
    steps: kit.Count
    examples: kit.Count
    prompts: kit.Count
    seeds: kit.Seeds

    batched = ("steps",)
    diagram = {"lengths": "log:2:64:6", "steps": "log:20:1500:8"}
    base = {"seeds": 6}
    labels = {"share_of_newton": "share of Newton's step that it takes along the least variance"}
    diagram_remarks = (
        "Weights along the largest and the least of the variances 1.6, 1, 0.6 and 0.4, and the risk, after steps of "
        "Adam that fall from 0.015 to zero. The weight along the least variance is the last to arrive.",
        "Below the line steps of such sizes are too short together to reach it. Two or three times as "
        "many are enough.",
    )

    def hypotheses(self, setting):
        variances = np.array(self.variances)
        largest = theory.gammas(variances, self.lengths).max()
        size = float(self.scale**2 * largest * len(variances) ** 0.5)
        yield kit.assume("σ²‖Γ‖√d", size, "<", SMALL, "choose a smaller --scale")

    def predict(self, setting):
        variances = np.array(self.variances)
        weights = 1 / theory.gammas(variances, self.lengths)
        return kit.Prediction(
            largest=weights[np.argmax(variances)],
            least=weights[np.argmin(variances)],
            risk=theory.risk(variances, self.lengths, weights),
        )

    def observe(self, setting, key):
        variances = np.array(self.variances)
        sizes = Sizes(self.seeds, self.examples // self.lengths, self.lengths)

        def run(rng: np.random.Generator, steps: int) -> dict[str, kit.Values]:
            first = experiment.start(rng, self.seeds, len(variances), self.scale)
            last = experiment.train(rng, variances, sizes, first, self.lr, steps, heavy=False).last
            weights = np.diagonal(experiment.preconditioner(last), axis1=1, axis2=2)
            of_risk = sizes._replace(batch=self.prompts)
            return {
                "largest": weights[:, np.argmax(variances)],
                "least": weights[:, np.argmin(variances)],
                "risk": experiment.risk(rng, variances, of_risk, last, heavy=False),
            }

        shapes = {name: (self.seeds,) for name in ("largest", "least", "risk")}
        return run_in_numpy(run, shapes, key, self.steps)

    def judge(self, predicted, observed):
        checks = {
            # the claim's margins; exact in the limit, and the interval takes half
            "risk": (0.08, "risk on fresh prompts"),
            "largest": (0.06, "weight along the largest variance"),
            "least": (0.06, "weight along the least variance"),
        }
        return [
            equal(name, float(predicted[name]), observed[name], within, label=label)
            for name, (within, label) in checks.items()
        ]

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {"share_of_newton": float(observed["least"].mean() * min(self.variances))}

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"lengths", "steps"}:
            return ()
        lengths = np.geomspace(1.5, 90, 40)
        least = min(self.variances)
        weight = 1 / ((1 + 1 / lengths) * least + sum(self.variances) / lengths)
        # both factors of the weight start at most at σ, and a step of Adam moves each by at most its size, about
        steps = 2 * (np.sqrt(weight) - self.scale) / self.lr
        ends = (lengths, steps) if x == "lengths" else (steps, lengths)
        return (kit.predicted_curve(*ends, "fewest steps that reach Γ⁻¹"),)
