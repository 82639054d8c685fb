"""A recursion over step sizes predicts the risk of one-pass SGD, and the sum of step sizes does not.

On least squares with Gaussian inputs, the recursion gives the exact mean risk after any schedule, with one number for
each direction. Schedules with the same sum of step sizes (cosine, linear, and half of the step size throughout) end at
different risks. So do schedules that end at the same step size.
"""

from typing import NamedTuple

import numpy as np

from steepest import kit
from steepest.claims.training.schedule_law import experiment, theory
from steepest.claims.training.schedule_law.point import ScheduleLawPoint
from steepest.claims.training.schedule_law.theory import Problem

SCHEDULES = ("constant", "half", "cosine", "linear", "warm-up, stable, decay")
WARM = 0.1  # share of the steps of the last schedule that warm up
DECAY = 0.2  # share of its steps that decay
LAST = 0.05  # step at the end of schedules that decay, over the largest


class Setting(NamedTuple):
    """What is to be learned."""

    problem: Problem


@kit.claim
class ScheduleLaw(kit.Claim[Setting]):
    """SGD on least squares with power laws of inputs and weights, each example seen once, under five schedules."""

    dimension: kit.Count = kit.param(30, "d", scope=kit.between(20, 40))
    a: kit.Positive = kit.param(
        1.5, "exponent of the inputs' variances i^(−a)", scope=kit.between(1.3, 1.6)
    )
    b: kit.Positive = kit.param(
        1.75, "exponent of the risks i^(−b) at the start", scope=kit.between(1.5, 2.0)
    )
    noise: kit.Positive = kit.param(0.2, "σ² of the labels", scope=kit.between(0.1, 0.3))
    batch: kit.Count = kit.param(
        1,
        "B",
        unit="examples",
        scope=kit.choices(1, why="in larger ones fourth moments hardly count"),
    )
    lr: kit.Positive = kit.param(
        0.25,
        "largest step size",
        scope=kit.between(0.24, 0.3, "beyond it runs vary more, below it they tell less"),
    )
    steps: kit.Count = kit.param(240, "T", unit="steps", scope=kit.between(200, 300))
    runs: kit.Count = kit.param(2000, "runs of a seed", unit="runs")
    seeds: kit.Seeds = kit.param(10, "groups of runs")

    kind = "theorem"
    says = {
        "A recursion over step sizes predicts the risk of one-pass SGD": "risk",
        "the sum of step sizes does not": "risk",
    }
    tiny = {"dimension": 6, "steps": 20, "runs": 20, "seeds": 3}
    full = {"runs": 20_000, "dimension": 100}
    out_of_scope = {"lr": 1.5}
    precision = "float32"
    point = ScheduleLawPoint

    @property
    def marks(self) -> tuple[int, ...]:
        """Return the numbers of steps after which risks are read."""
        return (self.steps // 3, 2 * self.steps // 3, self.steps)

    def axes(self):
        return {"schedule": SCHEDULES, "time": self.marks}

    def schedules(self) -> kit.Values:
        """Return the step sizes of all schedules, ``(schedules, steps)``."""
        part = (np.arange(self.steps) + 0.5) / self.steps
        cosine = LAST + (1 - LAST) * (1 + np.cos(np.pi * part)) / 2
        linear = 1 - (1 - LAST) * part
        level = np.full(self.steps, (1 + LAST) / 2)
        stable = np.minimum(part / WARM, 1) * np.minimum(1, LAST + (1 - LAST) * (1 - part) / DECAY)
        return self.lr * np.stack([np.ones(self.steps), level, cosine, linear, stable])

    def setting(self, key):
        return Setting(theory.power_laws(self.dimension, self.a, self.b, self.noise, self.batch))

    def hypotheses(self, setting):
        trace = float(setting.problem.variances.sum())
        yield kit.assume(
            "η Σλ/(2B)",
            self.lr * trace / 2 / self.batch,
            "<=",
            0.5,
            "the mean square must be stable with room: lower --lr",
        )

    def predict(self, setting):
        return kit.law(risk=("schedule time", self.risks(setting)))

    def risks(self, setting: Setting, **factors: float) -> kit.Values:
        """Return risks of the recursion, or of one that lacks a part of it, ``(schedules, times)``."""
        paths = [theory.mean_risk(setting.problem, steps, **factors) for steps in self.schedules()]
        return np.array(paths)[:, list(self.marks)]

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        schedules = self.schedules()
        reversed_ = schedules[:, ::-1]
        risks = lambda schedules, draw: np.stack(
            [
                experiment.run(rng, setting.problem, schedules, self.runs, self.marks, draw)
                for _ in range(self.seeds)
            ]
        )
        axes = "seed schedule time"
        return kit.seen(
            risk=(axes, risks(schedules, experiment.normals)),
            signs=(axes, risks(schedules, experiment.signs)),
            backwards=(axes, risks(reversed_, experiment.normals)),
        )

    def judge(self, law, seen):
        yield kit.follows(
            "risk",
            law.risk,
            seen.risk,
            0.04,  # exact in the mean; the interval takes 2.5 %
            label="risk less the truth's risk",
        )

    def rivals(self, setting, law):
        schedules = self.schedules()
        # a constant step with the same sum up to each time
        sums = np.cumsum(schedules, 1)[:, [mark - 1 for mark in self.marks]]
        level = lambda sum_, mark: theory.mean_risk(setting.problem, np.full(mark, sum_ / mark))[-1]
        of_sums = [
            [level(sum_, mark) for sum_, mark in zip(row, self.marks, strict=True)] for row in sums
        ]
        dims = "schedule time"
        yield kit.rival(
            "the risk of a constant step with the same sum",
            "along the flow that is the time that has passed",
            risk=(dims, of_sums),
        )
        yield kit.rival(
            "the recursion without η²λ²/B",
            "the covariance of inputs decides",
            risk=(dims, self.risks(setting, fourth=0.0)),
        )
        yield kit.rival(
            "the risk of full gradients",
            "batches are right in the mean",
            risk=(dims, self.risks(setting, stochastic=0.0)),
        )

    def controls(self, seen):
        yield kit.control(
            "inputs that are signs, of the same covariance",
            "their fourth moments are others",
            id="signs",
            risk=seen.signs,
        )
        yield kit.control(
            "the same step sizes in reverse",
            "what was learned early is forgotten by noise that comes late",
            risk=seen.backwards,
        )

    def figure(self, law, seen, rivals):
        steps = np.arange(self.steps)
        shades = np.linspace(0, 1, len(SCHEDULES))
        curves = [
            kit.context_curve(steps, row, name)
            for row, name in zip(self.schedules(), SCHEDULES, strict=True)
        ]
        ends = [
            kit.observed_curve(
                self.marks,
                seen.risk.mean("seed").values[i],
                name,
                kind="points",
                shade=float(shade),
            )
            for i, (name, shade) in enumerate(zip(SCHEDULES, shades, strict=True))
        ]
        paths = [kit.predicted_curve(self.marks, row) for row in law.risk.values]
        yield kit.panel("Five schedules", "step", "η", *curves)
        yield kit.panel(
            "Where they end: cosine, linear and half have the same sum",
            "step",
            "risk less the truth's risk",
            *ends,
            *paths,
            log="y",
        )
