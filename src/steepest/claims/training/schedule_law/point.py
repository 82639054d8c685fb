"""One point of the diagram of schedule-law: two schedules of one sum, at one largest step and one noise."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from steepest import kit
from steepest.claims.training.schedule_law import experiment, theory
from steepest.kit.points import Arrays, equal, run_in_numpy

LAST = 0.05  # step at the end of the cosine, over the largest


@dataclass(frozen=True)
class ScheduleLawPoint(kit.Point):
    """The risk after a cosine, and after a level step of the same sum, over the largest step and the noise."""

    dimension: kit.Count
    a: kit.Positive
    b: kit.Positive
    noise: kit.Positive
    batch: kit.Count
    lr: kit.Positive
    steps: kit.Count
    runs: kit.Count
    seeds: kit.Seeds

    precision = "float32"
    batched = ("lr",)
    diagram = {"lr": "log:0.05:0.6:10", "noise": "log:0.01:3:6"}
    base = {"dimension": 20, "runs": 400}
    labels = {"gain": "risk after the level step over that after the cosine"}
    diagram_remarks = (
        "Both schedules have the same sum of steps: a cosine from the largest step to a twentieth of it, and a little "
        "more than half of the largest step throughout. If the sum decided, their risks would be the same everywhere.",
        "Out of range is where η Σλ exceeds one: there rare runs carry the mean, and few runs do not tell it.",
    )

    def problem(self) -> theory.Problem:
        """Return what is to be learned."""
        return theory.power_laws(self.dimension, self.a, self.b, self.noise, self.batch)

    def hypotheses(self, setting):
        trace = float(self.problem().variances.sum())
        size = self.lr * trace / 2 / self.batch
        yield kit.assume("η Σλ/(2B)", size, "<=", 0.5, "lower --lr")

    def predict(self, setting):
        problem = self.problem()
        cosine, level = (
            theory.mean_risk(problem, row)[-1] for row in two_schedules(self.lr, self.steps)
        )
        return kit.Prediction(cosine=cosine, level=level)

    def observe(self, setting, key):
        problem = self.problem()

        def run(rng: np.random.Generator, lr: float) -> dict[str, kit.Values]:
            schedules = two_schedules(lr, self.steps)
            groups = [
                experiment.run(rng, problem, schedules, self.runs, (self.steps,))[:, 0]
                for _ in range(self.seeds)
            ]
            risks = np.array(groups)
            return {"cosine": risks[:, 0], "level": risks[:, 1]}

        shapes = {"cosine": (self.seeds,), "level": (self.seeds,)}
        return run_in_numpy(run, shapes, key, self.lr)

    def judge(self, predicted, observed):
        names = {"cosine": "risk after a cosine", "level": "risk after a level step of its sum"}
        return [
            equal(
                name,
                float(predicted[name]),
                observed[name],
                0.04,  # the claim's; exact in the mean, and the interval takes 2 to 3 %
                label=label,
            )
            for name, label in names.items()
        ]

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {"gain": float(observed["level"].mean() / observed["cosine"].mean())}

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"lr", "noise"}:
            return ()
        noises = np.geomspace(1e-3, 10, 25)
        limit = self.batch / float(self.problem().variances.sum())
        best = np.array([self.best_step(noise, limit) for noise in noises])
        lines = {
            "best step of a cosine": best,
            "η Σλ = B (edge of the claim)": np.full(len(noises), limit),
        }
        return tuple(
            kit.predicted_curve(*((steps, noises) if x == "lr" else (noises, steps)), label)
            for label, steps in lines.items()
        )

    def best_step(self, noise: float, limit: float) -> float:
        """Return the largest step of the cosine that ends at the least risk, at most the limit."""
        problem = self.problem()._replace(noise=noise)

        def risk(log_step: float) -> float:
            cosine = two_schedules(float(np.exp(log_step)), self.steps)[0]
            return float(np.log(theory.mean_risk(problem, cosine)[-1]))

        ends = (np.log(1e-3), np.log(limit))
        least: Any = minimize_scalar(risk, bounds=ends, method="bounded", options={"xatol": 0.01})
        return float(np.exp(least.x))


def two_schedules(lr: float, steps: int) -> kit.Values:
    """Return the steps of a cosine and of a level schedule of the same sum, ``(2, steps)``."""
    # at middles of equal parts the cosines add up to zero, so that both have the mean (1 + LAST)/2
    part = (np.arange(steps) + 0.5) / steps
    cosine = LAST + (1 - LAST) * (1 + np.cos(np.pi * part)) / 2
    return lr * np.stack([cosine, np.full(steps, (1 + LAST) / 2)])
