"""With small shares of the best step size, SGD's critical batch is the mean noise scale of training.

S is the number of steps that SGD needs to reach a given risk, and E = bS the number of examples. As the batch size b
varies, they obey (S/S_min − 1)(E/E_min − 1) = 1, and E_min/S_min is the critical batch. The noise scale is tr HΣ/gᵀHg,
with the Hessian H, the gradient g and the covariance Σ of its noise. The mean is taken over a training without noise.
With whole best steps the critical batch is different: here it is a sixth to one and a half times this mean.
"""

from typing import NamedTuple

import numpy as np

from steepest import kit
from steepest.claims.training.critical_batch import experiment, theory


class Setting(NamedTuple):
    """Quadratics and where training on them starts."""

    curvatures: kit.Values  # (d,)
    squares: kit.Values  # of errors, at a risk of ½, (starts, d)


@kit.claim
class CriticalBatch(kit.Claim[Setting]):
    """Quadratics with a power law of curvatures and noise as in least squares; many runs at a time."""

    batches: tuple[kit.Count, ...] = kit.param(
        (32, 128, 512, 2048, 8192),
        "b",
        unit="examples",
        scope=kit.choices((32, 128, 512, 2048, 8192), (40, 200, 1000, 5000), (64, 512, 4096)),
    )
    starts: tuple[kit.NonNegative, ...] = kit.param(
        (0.0, 0.5, 1.0),
        "power of i by which squares of errors fall at the start",
        scope=kit.choices((0.0, 0.5, 1.0), (0.2, 0.6), (0.25, 0.5, 0.75)),
    )
    decay: kit.Positive = kit.param(
        1.0,
        "power of i by which curvatures fall",
        scope=kit.between(0.75, 1.25, "next to steeper ones shares have to be smaller"),
    )
    dimension: kit.Count = kit.param(50, "d", scope=kit.between(30, 60))
    noise: kit.Positive = kit.param(
        1.0, "σ² of an example's gradient, over the curvature", scope=kit.between(0.7, 1.2)
    )
    target: kit.Fraction = kit.param(
        0.1, "risk to come to, over the starting risk", scope=kit.between(0.08, 0.15)
    )
    share: kit.Fraction = kit.param(
        0.02,
        "φ, of the best step",
        scope=kit.between(0.015, 0.025, "the law is the limit of small shares"),
    )
    runs: kit.Count = kit.param(16, "runs of a group, that take steps of one size", unit="runs")
    seeds: kit.Seeds = kit.param(12, "groups of runs")

    kind = "limit"
    says = {
        "(S/S_min − 1)(E/E_min − 1) = 1": "steps",
        "SGD's critical batch is the mean noise scale of training": "critical",
    }
    tiny = {
        "batches": (32, 512),
        "starts": (0.5, 1.0),
        "dimension": 12,
        "target": 0.3,
        "runs": 4,
        "seeds": 3,
    }
    full = {"runs": 256}
    out_of_scope = {"share": 0.5}

    def axes(self):
        return {"batch": self.batches, "start": self.starts}

    def setting(self, key):
        place = np.arange(1.0, self.dimension + 1)
        curvatures = place**-self.decay
        squares = np.array([place**-power for power in self.starts])
        return Setting(curvatures, squares / (squares @ curvatures)[:, None])

    def hypotheses(self, setting):
        yield kit.assume(
            "φ, share of the best step",
            self.share,
            "<=",
            0.05,
            "the law is the limit of small shares: choose a smaller --share",
        )
        yield kit.assume(
            "largest batch over the critical one",
            max(self.batches) / max(need.examples / need.steps for need in self.needs(setting)),
            ">=",
            0.5,
            "S_min has to be seen for a fit: raise --batches",
        )

    def predict(self, setting):
        needs = self.needs(setting)
        counts = [[need.steps + need.examples / b for b in self.batches] for need in needs]
        return kit.law(
            steps=("start batch", counts),
            critical=("start", [need.examples / need.steps for need in needs]),
        )

    def needs(self, setting: Setting) -> list[theory.Needs]:
        """Return what gradient flow says from each start."""
        return [
            theory.needs(setting.curvatures, squares, self.noise, self.target, self.share)
            for squares in setting.squares
        ]

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        batches = np.array(self.batches, float)
        counts = self.counts(setting, rng, self.share)
        whole = self.counts(setting, rng, 1.0)
        constant = np.array(
            [
                [
                    experiment.constant_steps(
                        setting.curvatures, squares, self.noise, b, self.target
                    )
                    for b in batches
                ]
                for squares in setting.squares
            ]
        )
        return kit.seen(
            steps=("seed start batch", counts),
            critical=("seed start", experiment.critical(batches, counts)),
            fading=("seed start batch", self.counts(setting, rng, self.share, fading=True)),
            whole=("seed start", experiment.critical(batches, whole)),
            constant=("start", experiment.critical(batches, constant)),
        )

    def counts(
        self, setting: Setting, rng: np.random.Generator, share: float, *, fading: bool = False
    ) -> kit.Values:
        """Return steps to the target, ``(seeds, starts, batches)``."""
        counts = np.empty((self.seeds, len(self.starts), len(self.batches)))
        for row, column in np.ndindex(counts.shape[1:]):
            counts[:, row, column] = experiment.steps(
                rng,
                setting.curvatures,
                setting.squares[row],
                self.noise,
                self.batches[column],
                share,
                self.target,
                (self.seeds, self.runs),
                fading=fading,
            )
        return counts

    def judge(self, law, seen):
        yield kit.follows(
            "steps",
            law.steps,
            seen.steps,
            0.04,  # the next order in φ takes up to 2 %, the interval 1 %
            over="start batch",
            label="steps to the risk",
        )
        yield kit.follows(
            "critical",
            law.critical,
            seen.critical,
            0.08,  # the next order in φ takes 2 to 4 %, the interval 2 %
            over="start",
            label="critical batch, as fitted to steps",
        )

    def rivals(self, setting, law):
        needs = self.needs(setting)
        counts = lambda rule: (
            "start batch",
            [[rule(need, b) for b in self.batches] for need in needs],
        )
        yield kit.rival(
            "the larger of S_min and E_min/b",
            "batches help in proportion up to the critical one, and not beyond",
            id="kink",
            steps=counts(lambda need, b: max(need.steps, need.examples / b)),
        )
        yield kit.rival(
            "√(S_min² + (E_min/b)²)",
            "two independent limits add in squares",
            steps=counts(lambda need, b: float(np.hypot(need.steps, need.examples / b))),
        )
        yield kit.rival(
            "noise scale at the start",
            "the noise scale is measured once",
            id="early",
            steps=counts(lambda need, b: need.steps * (1 + need.early / b)),
            critical=("start", [need.early for need in needs]),
        )
        yield kit.rival(
            "mean of tr Σ/‖g‖²",
            "all curvatures are alike",
            id="simple",
            steps=counts(lambda need, b: need.steps * (1 + need.simple / b)),
            critical=("start", [need.simple for need in needs]),
        )

    def controls(self, seen):
        yield kit.control(
            "noise that fades with the risk", "the noise scale does not grow", steps=seen.fading
        )
        yield kit.control(
            "whole best steps", "trainings with other batches go other ways", critical=seen.whole
        )
        yield kit.control(
            "the best of constant steps",
            "steps do not fall as gradients do",
            critical=seen.constant.broadcast_like(seen.critical),
        )

    def figure(self, law, seen, rivals):
        starts = np.array(self.starts)
        in_the_middle = lambda steps: steps.isel(start=len(starts) // 2, drop=True)
        kink = {}
        scales = {}
        if rivals:
            kink = {f"kink, from {starts[len(starts) // 2]:g}": in_the_middle(rivals["kink"].steps)}
            scales = {
                "at the start": rivals["early"].critical,
                "curvatures alike": rivals["simple"].critical,
            }
        yield kit.curves(
            "Larger batches save steps, up to a point, and without a kink",
            law.steps,
            seen.steps,
            over="batch",
            by="start",
            x="batch b",
            y="steps to the risk",
            name="start {}",
            rivals=kink,
            log="xy",
        )
        yield kit.curves(
            "The critical batch is a mean noise scale; whole steps have another one",
            law.critical,
            seen.critical,
            over="start",
            x="power by which errors fall at the start",
            y="critical batch",
            rivals=scales,
            more=(kit.context_curve(starts, seen.whole.mean("seed").values, "whole best steps"),),
            log="y",
        )
