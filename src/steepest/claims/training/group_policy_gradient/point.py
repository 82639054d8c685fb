"""One point of the diagram of group-policy-gradient: one first chance and one size of groups."""

from dataclasses import dataclass

import numpy as np

from steepest import kit
from steepest.claims.training.group_policy_gradient import experiment, theory
from steepest.claims.training.group_policy_gradient.experiment import Lanes
from steepest.kit.points import Arrays, equal, run_in_numpy

RULES = {"mean": experiment.MEAN, "deviation": experiment.DEVIATION}


@dataclass(frozen=True)
class GroupPolicyGradientPoint(kit.Point):
    """Times until the right answer has the chance one half, of both rules, over p₀ and G."""

    groups: kit.Count
    starts: kit.Fraction
    answers: kit.Count
    lr: kit.Positive
    questions: kit.Count
    seeds: kit.Seeds

    batched = ("starts",)
    diagram = {"starts": "log:0.006:0.4:10", "groups": "log:2:256:8"}
    base = {"questions": 20}
    labels = {"gain": "times that division by the deviation is faster"}
    diagram_remarks = (
        "Right of the line p₀G = 1 most groups hold a right answer, and division by the deviation makes the time "
        "∝ p₀^(−½); left of it most agree that all is wrong, and the time is ∝ 1/p₀ by either rule.",
    )

    def hypotheses(self, setting):
        yield kit.assume("p₀", self.starts, "<", 0.5, "choose smaller --starts")
        yield kit.assume("η", self.lr, "<=", 0.5, "the law is of small steps: lower --lr")

    def predict(self, setting):
        start = float(self.starts)
        drifts = [theory.mean_of_group(self.groups), theory.deviation_of_group(self.groups)]
        mean, deviation = theory.times(drifts, (start,), self.answers)[:, 0]
        return kit.Prediction(mean=mean, deviation=deviation)

    def observe(self, setting, key):
        def run(rng: np.random.Generator, start: float) -> dict[str, kit.Values]:
            lanes = self.seeds * self.questions
            count = lanes * len(RULES)
            side_by_side = Lanes(
                rule=np.repeat(list(RULES.values()), lanes),
                group=np.full(count, self.groups),
                start=np.full(count, start),
                informed=np.full(count, True),
            )
            # six over p₀ is more than the slowest takes
            arrived = experiment.learn(rng, side_by_side, self.answers, self.lr, 6 / start)
            times = arrived.reshape(len(RULES), self.seeds, self.questions).mean(-1)
            return dict(zip(RULES, times, strict=True))

        return run_in_numpy(run, dict.fromkeys(RULES, (self.seeds,)), key, self.starts)

    def judge(self, predicted, observed):
        labels = {
            "mean": "time to ½, the reward less its mean",
            "deviation": "time to ½, divided by the deviation",
        }
        return [
            equal(
                rule,
                float(predicted[rule]),
                observed[rule],
                0.045,  # the claim's; the interval takes 2 %, the step 1 %
                label=label,
            )
            for rule, label in labels.items()
        ]

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {"gain": float(observed["mean"].mean() / observed["deviation"].mean())}

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"starts", "groups"}:
            return ()
        groups = np.geomspace(2, 256, 20)
        ends = (1 / groups, groups) if x == "starts" else (groups, 1 / groups)
        return (kit.predicted_curve(*ends, "p₀G = 1"),)
