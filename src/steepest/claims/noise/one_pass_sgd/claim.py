"""One pass of SGD over n examples has an excess risk of at most BR/√n over an ℓ2 ball of radius B.

Exponentiated gradient has an excess risk of at most BX √(2 log 2d/n) over an ℓ1 ball. Losses are convex with slopes of
at most one, the n examples are fresh, and w̄ is the average of the iterates from zero. Compare SGD with step size η and
gradients g to fixed weights u: ‖w − u‖² falls by 2η⟨g, w − u⟩ − η²‖g‖² a step. So the mean regret is at most B²/(2ηn) +
ηR²/2 for ‖u‖₂ ≤ B and ‖x‖₂ ≤ R, which is BR/√n at η = B/(R√n). Exponentiated gradient keeps weights on 2d signed
coordinates, whose relative entropy to u is at most log 2d. So its regret is at most BX (log 2d/(ηn) + η/2) for ‖u‖₁ ≤ B
and |x_i| ≤ X, which is the other bound at η = √(2 log 2d/n). Each regret bounds the excess of the population risk,
since every example is new to the weights that meet it; no empirical risk is minimized.
"""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.noise._one_pass import OneCoordinate, increasing, sample_risk
from steepest.claims.noise.one_pass_sgd.experiment import perceptron

REPEATS = 16  # times that an example is shown in a row where examples are not fresh


@kit.claim
class OnePassSgd(kit.Claim[None]):
    """The hinge loss; labels are one coordinate of inputs ±1."""

    dimensions: tuple[kit.Count, ...] = kit.param(
        (8, 64, 256, 1024),
        "d",
        scope=kit.choices((8, 64, 256, 1024), (6, 50, 200, 800), (12, 48, 192, 768)),
    )
    examples: kit.Count = kit.param(
        400,
        "n",
        unit="examples",
        scope=kit.between(300, 600, "fewer leave risks of w = 0 in a thousand dimensions"),
    )
    flipped: kit.Fraction = kit.param(
        0.1, "share of labels flipped, in the noisy half of the runs", scope=kit.between(0.0, 0.2)
    )
    rays: tuple[kit.Count, ...] = kit.param(
        (32, 64, 128, 256, 512),
        "d where n is proportional to d for SGD",
        scope=kit.choices((32, 64, 128, 256, 512), (30, 60, 120, 240, 480)),
    )
    per_dimension: tuple[kit.Positive, ...] = kit.param(
        (1.0, 4.0), "n/d there", scope=kit.choices((1.0, 4.0), (1.0, 3.0))
    )
    log_rays: tuple[kit.Count, ...] = kit.param(
        (16, 64, 256, 1024),
        "d where n is proportional to log 2d for exponentiated gradient",
        scope=kit.choices((16, 64, 256, 1024), (20, 100, 300, 900)),
    )
    per_log: tuple[kit.Positive, ...] = kit.param(
        (10.0, 40.0), "n/log 2d there", scope=kit.choices((10.0, 40.0), (15.0, 30.0))
    )
    test: kit.Count = kit.param(1000, "fresh examples for each population risk", unit="examples")
    scale: kit.Positive = kit.param(1.0, "X, size of the inputs' entries")
    seeds: kit.Seeds = kit.param(20, "independent samples")

    kind = "theorem"
    says = {
        "One pass of SGD over n examples has an excess risk of at most BR/√n": "sgd_bound",
        "at most BX √(2 log 2d/n) over an ℓ1 ball": "eg_bound",
    }
    tiny = {
        "dimensions": (4, 8),
        "examples": 20,
        "rays": (4, 6, 8),
        "log_rays": (4, 6, 8),
        "test": 20,
        "seeds": 3,
    }
    full = {"dimensions": (8, 16, 32, 64, 256, 1024), "test": 2000, "seeds": 40}
    out_of_scope = {"scale": 3.0}

    def axes(self):
        return {
            "dimension": self.dimensions,
            "ray": self.rays,
            "log_ray": self.log_rays,
            "ratio": self.per_dimension,
            "log_ratio": self.per_log,
        }

    def check_fields(self) -> None:
        increasing("dimensions", self.dimensions, 2)
        increasing("rays", self.rays, 3)
        increasing("log_rays", self.log_rays, 3)

    def hypotheses(self, setting):
        yield kit.assume(
            "distance of the inputs' entries |x_i| from X = 1",
            abs(self.scale - 1),
            "==",
            0,
            "step sizes and bounds assume X = 1, R = √d and a w* of hinge loss zero",
        )
        yield kit.assume(
            "share of labels flipped",
            self.flipped,
            "<",
            0.5,
            "with more flips w* is not the best there is",
        )

    def predict(self, setting):
        d = np.array(self.dimensions)
        return kit.law(
            sgd_limit=("dimension", np.sqrt(d / self.examples)),
            eg_limit=("dimension", np.sqrt(2 * np.log(2 * d) / self.examples)),
            sgd_collapse=("ray", np.ones(len(self.rays))),
            eg_collapse=("log_ray", np.ones(len(self.log_rays))),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        sample = OneCoordinate(self.seeds, self.test, self.flipped, self.scale)
        learned = lambda d, **how: sample.excess(rng, d, self.examples, **how)
        both = [learned(d) for d in self.dimensions]
        repeated = [learned(d, repeats=REPEATS) for d in self.dimensions]
        sgd_rays = [
            [sample.excess(rng, d, round(c * d), "sgd")["sgd"][:, 0] for d in self.rays]
            for c in self.per_dimension
        ]
        eg_rays = [
            [
                sample.excess(rng, d, round(c * np.log(2 * d)), "eg")["eg"][:, 0]
                for d in self.log_rays
            ]
            for c in self.per_log
        ]
        middle = both[len(both) // 2]
        x = middle["x"]
        labels = middle["labels"]
        return kit.seen(
            sgd_repeated=("dimension seed flips", [excess["sgd"] for excess in repeated]),
            eg_repeated=("dimension seed flips", [excess["eg"] for excess in repeated]),
            sgd=("dimension seed flips", [excess["sgd"] for excess in both]),
            eg=("dimension seed flips", [excess["eg"] for excess in both]),
            train=("dimension seed", [excess["train"] for excess in both]),
            fitted=("seed", sample_risk(x, labels, perceptron(x, labels))),
            sgd_rays=("ratio ray seed", sgd_rays),
            eg_rays=("log_ratio log_ray seed", eg_rays),
        )

    def judge(self, law, seen):
        place = len(self.dimensions) // 2
        for name, title in (("sgd", "SGD"), ("eg", "exponentiated gradient")):
            yield kit.at_most(
                f"{name}_bound",
                law[f"{name}_limit"],
                seen[name].max("flips"),
                label=f"{title}: excess, the larger of both noises",
            )
        yield from self.judge_rays(law, seen)
        yield kit.at_least(
            "not_erm",
            0.1,  # a mean hinge loss on the sample that no minimizer has, where some weights have none
            seen.train.isel(dimension=place, drop=True),
            label=f"SGD's risk on a sample that some weights fit exactly, d = {self.dimensions[place]}",
        )

    def judge_rays(self, law, seen):
        """Compare the excess where n is proportional to d, and to log 2d."""
        for i, ratio in enumerate(self.per_dimension):
            yield kit.power(
                f"sgd_collapse_{i}",
                law.sgd_collapse,
                seen.sgd_rays.isel(ratio=i, drop=True),
                0.03,  # the interval is ± 0.01
                over="ray",
                label=f"SGD: excess against d at n = {ratio:g} d",
            )
        for i, ratio in enumerate(self.per_log):
            yield kit.power(
                f"eg_collapse_{i}",
                law.eg_collapse,
                seen.eg_rays.isel(log_ratio=i, drop=True),
                0.02,  # the interval is ± 0.007
                over="log_ray",
                label=f"exponentiated gradient: excess against d at n = {ratio:g} log 2d",
            )

    def rivals(self, setting, law):
        n = self.examples
        entropy = np.log(2 * law.log_ray)
        yield kit.rival(
            "the talk's √(‖w‖₂/n)",
            "the talk prints it",
            sgd_limit=np.sqrt(np.sqrt(law.dimension) / n),
            sgd_collapse=law.ray**-0.25,
        )
        yield kit.rival(
            "SGD's excess is B/√n",
            "‖w*‖ = 1, and the inputs' length is forgotten",
            sgd_limit=law.sgd_limit * law.dimension**-0.5,
            sgd_collapse=law.ray**-0.5,
        )
        yield kit.rival(
            "half of each bound",
            "either of the two terms of the regret by itself",
            sgd_limit=law.sgd_limit / 2,
            eg_limit=law.eg_limit / 2,
        )
        yield kit.rival(
            "SGD needs log d examples too", "the target has one coordinate", sgd_limit=law.eg_limit
        )
        yield kit.rival(
            "exponentiated gradient's excess is √(d/n)",
            "so it is for SGD",
            eg_collapse=np.sqrt(law.log_ray / entropy),
        )
        yield kit.rival(
            "exponentiated gradient's excess is BX/√n",
            "‖w*‖₁ = 1 and |x_i| = 1",
            eg_collapse=entropy**-0.5,
        )

    def controls(self, seen):
        yield kit.control(
            "the two methods exchanged",
            "each is biased to the other's norm",
            sgd=seen.eg,
            eg=seen.sgd,
        )
        yield kit.control(
            f"each example {REPEATS} times in a row",
            "an example that was met before says nothing of the population",
            id="repeated",
            sgd=seen.sgd_repeated,
            eg=seen.eg_repeated,
        )
        yield kit.control(
            "weights trained on the same sample until they fit it",
            "its empirical risk is the least there is",
            id="minimizer",
            train=seen.fitted.expand_dims(dimension=seen.dimension),
        )

    def figure(self, law, seen, rivals):
        rays = [
            kit.curves(
                title,
                None,
                excess,
                over=over,
                by=by,
                name=f"n = {{}} {size}",
                x="dimension d",
                y=f"excess risk, n ∝ {size}",
                log="xy",
                ylim=(0.05, 1.0),
            )
            for title, excess, over, by, size in (
                ("SGD needs examples in proportion to d", seen.sgd_rays, "ray", "ratio", "d"),
                (
                    "Exponentiated gradient in proportion to log d",
                    seen.eg_rays,
                    "log_ray",
                    "log_ratio",
                    "log 2d",
                ),
            )
        ]
        yield self.sparse_panel(law, seen)
        yield from rays

    def sparse_panel(self, law: xarray.Dataset, seen: xarray.Dataset) -> kit.Panel:
        """Return the excess of both methods over d where the label is the first coordinate."""
        clean = lambda name: seen[name].isel(flips=0, drop=True)
        return kit.curves(
            f"Label x_1, n = {self.examples}",
            law.sgd_limit,
            clean("sgd"),
            over="dimension",
            x="dimension d",
            y="excess risk",
            more=(
                kit.observed_curve(
                    law.dimension, clean("eg").mean("seed"), "exponentiated", kind="points", shade=1
                ),
                kit.predicted_curve(law.dimension, law.eg_limit, "√(2 log 2d/n)", shade=1),
                kit.rival_curve(
                    law.dimension,
                    np.sqrt(np.sqrt(law.dimension) / self.examples),
                    "√(√d/n), the talk",
                ),
            ),
            log="xy",
        )
