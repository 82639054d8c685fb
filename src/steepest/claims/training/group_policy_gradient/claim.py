"""In GRPO, dividing by the group's standard deviation speeds up the learning of hard questions.

The speed-up is larger the more answers a group has. The chance p of the right answer starts at p₀, and G answers are
sampled in a step. The time until p is one half is an integral over the drift. If the advantage is the reward less the
group's mean, the drift is p(1 − p)(1 − 1/G). In GRPO this advantage is divided by the group's standard deviation. The
drift is then E √(q(1 − q)), where q is the share of right answers in the group. As p₀ falls, the time without this
division tends to ∝ 1/p₀, and GRPO's time to ∝ p₀^(−½) as long as p₀ ≫ 1/G. For p₀ below 1/G most groups agree and teach
nothing, so GRPO's time tends to ∝ 1/p₀ again.
"""

from typing import Any

import numpy as np
import xarray

from steepest import kit
from steepest.claims.training.group_policy_gradient import experiment, theory
from steepest.claims.training.group_policy_gradient.experiment import Lanes
from steepest.claims.training.group_policy_gradient.point import GroupPolicyGradientPoint

RULES = ("mean", "deviation")


@kit.claim
class GroupPolicyGradient(kit.Claim[None]):
    """Softmax policies over a few answers to single questions, taught by sampled groups with verifiable rewards."""

    groups: tuple[kit.Count, ...] = kit.param(
        (8, 64),
        "G, answers sampled in a step",
        scope=kit.choices((8, 64), (6, 64), (8, 100), why="nearer ones tell nothing of G"),
    )
    starts: tuple[kit.Fraction, ...] = kit.param(
        (0.2, 0.05, 0.015),
        "p₀",
        scope=kit.choices((0.2, 0.05, 0.015), (0.15, 0.06, 0.02), (0.1, 0.04, 0.012)),
    )
    answers: kit.Count = kit.param(4, "K", scope=kit.between(3, 8))
    lr: kit.Positive = kit.param(0.05, "η", scope=kit.between(0.03, 0.06))
    questions: kit.Count = kit.param(72, "questions of each kind, a seed", unit="questions")
    seeds: kit.Seeds = kit.param(8, "groups of questions")

    kind = "theorem"
    says = {
        "speeds up the learning of hard questions": ("time", "slope"),
        "The speed-up is larger the more answers a group has": "slope",
    }
    tiny = {"groups": (4, 8), "starts": (0.3, 0.2), "lr": 0.2, "questions": 6, "seeds": 3}
    full = {"questions": 1000, "lr": 0.02}
    out_of_scope = {"starts": (0.6, 0.1)}
    point = GroupPolicyGradientPoint

    def axes(self):
        return {"rule": RULES, "group": self.groups, "start": self.starts}

    def setting(self, key):
        return None

    def hypotheses(self, setting):
        yield kit.assume("largest p₀", max(self.starts), "<", 0.5, "choose smaller --starts")
        yield kit.assume("η", self.lr, "<=", 0.5, "the law is of small steps: lower --lr")

    def predict(self, setting):
        of_groups = [
            self.times([theory.mean_of_group(group), theory.deviation_of_group(group)])
            for group in self.groups
        ]
        times = np.stack(of_groups, 1)
        return kit.law(
            time=("rule group start", times), slope=("rule group", theory.slope(times, self.starts))
        )

    def times(self, drifts: list[theory.Drift]) -> kit.Values:
        """Return times of some rules from each start, ``(rules, starts)``."""
        return theory.times(drifts, self.starts, self.answers)

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)

        def times(rules: tuple[int, ...], told: bool) -> tuple[str, kit.Values]:
            axes = (np.arange(self.seeds), rules, self.groups, self.starts, np.ones(self.questions))
            grid = np.meshgrid(*axes, indexing="ij")
            _, rule, group, start, _ = map(np.ravel, grid)
            lanes = Lanes(rule, group.astype(int), start, np.full(start.shape, told))
            # four over p₀ is more than the slowest takes; what says nothing is waited for no longer than a fourth
            longest = (4 if told else 1) / min(self.starts)
            arrived = experiment.learn(rng, lanes, self.answers, self.lr, longest)
            arrived = arrived.reshape(grid[0].shape).mean(-1)
            return "seed rule group start", np.repeat(arrived, len(RULES) // len(rules), 1)

        return kit.seen(
            time=times((experiment.MEAN, experiment.DEVIATION), told=True),
            raw=times((experiment.RAW,), told=True),
            tossed=times((experiment.MEAN,), told=False),
        )

    def derive(self, law, seen):
        """Return slopes of times between the smallest two starts."""
        times = seen.time.transpose(..., "start")
        slopes = xarray.zeros_like(times.isel(start=0, drop=True))
        return {"slope": slopes + theory.slope(times.values, self.starts)}

    def judge(self, law, seen):
        yield kit.follows(
            "time",
            law.time,
            seen.time,
            0.045,  # the interval takes 2 %, the step 1 %
            label="time until the right answer has the chance ½",
        )
        yield kit.follows(
            "slope",
            law.slope,
            seen.slope,
            0.09,  # the interval of both times over the logarithm of their starts' ratio takes 0.05
            absolute=True,
            label="exponent of the time in p₀, at the smallest two",
        )

    def rivals(self, setting, law):
        def of(mean: theory.Drift, deviation: theory.Drift) -> dict[str, Any]:
            times = self.times([mean, deviation])
            of_groups = np.repeat(times[:, None], len(self.groups), 1)
            slopes = theory.slope(of_groups, self.starts)
            return {"time": ("rule group start", of_groups), "slope": ("rule group", slopes)}

        exact = law.time.values
        unbiased = np.sqrt(law.group / (law.group - 1))
        yield kit.rival(
            "p(1 − p) and √(p(1 − p)) for every G",
            "the share of right answers in a group is p",
            id="large_groups",
            **of(theory.mean_of_group(np.inf), theory.large_group),
        )
        yield kit.rival(
            "the deviation with G − 1 in its denominator",
            "libraries divide by G − 1",
            time=("rule group start", np.stack([exact[0], exact[1] * unbiased.values[:, None]])),
        )
        yield kit.rival(
            "T ∝ p₀^(−½) at every G",
            "division by the deviation makes hard questions easy",
            slope=law.slope.copy(data=np.stack([law.slope.values[0], 0 * exact[1, :, 0] - 0.5])),
        )
        yield kit.rival(
            "T ∝ log(1/p₀)",
            "the right answer is raised each time it is seen",
            **of(theory.imitation, theory.imitation),
        )
        yield kit.rival(
            "both rules have the same slope",
            "dividing by a number is a step size",
            slope=law.slope.copy(data=np.repeat(law.slope.values[:1], 2, 0)),
        )

    def controls(self, seen):
        yield kit.control(
            "rewards by tossing coins", "rewards say nothing of the answer", time=seen.tossed
        )
        yield kit.control(
            "rewards without their mean, in place of both rules",
            "the group's mean holds each answer's own reward",
            id="raw",
            time=seen.raw,
        )

    def figure(self, law, seen, rivals):
        starts = np.geomspace(min(self.starts), max(self.starts), 20)
        times = [theory.time_to_half(theory.imitation, start, self.answers) for start in starts]
        copied = kit.context_curve(starts, times, "imitation")
        panels = []
        for rule, title in (
            ("mean", "The reward less its mean: time ∝ 1/p₀"),
            ("deviation", "Divided by the deviation: faster, while p₀ ≫ 1/G"),
        ):
            wrong = (
                {"G = ∞": rivals["large_groups"].time.isel(group=0).sel(rule=rule)}
                if rivals
                else {}
            )
            panels.append(
                kit.curves(
                    title,
                    law.time.sel(rule=rule, drop=True),
                    seen.time.sel(rule=rule, drop=True),
                    over="start",
                    by="group",
                    x="p₀, chance of the right answer at first",
                    y="time to ½",
                    name="G = {}",
                    rivals=wrong,
                    more=(copied,),
                    log="xy",
                )
            )
        return tuple(panels)
