"""One pass of SGD over n examples has an excess risk of at most BR/√n over an ℓ2 ball of radius B.

Exponentiated gradient has an excess risk of at most BX √(2 log 2d/n) over an ℓ1 ball. Some problems need half of these
bounds: their excess risk is at least that large. Losses are convex with slopes of at most one, the n examples are
fresh, and w̄ is the average of the iterates from zero. Compare SGD with step size η and gradients g to fixed weights u:
‖w − u‖² falls by 2η⟨g, w − u⟩ − η²‖g‖² a step. So the mean regret is at most B²/(2ηn) + ηR²/2 for ‖u‖₂ ≤ B and ‖x‖₂ ≤
R, which is BR/√n at η = B/(R√n). Exponentiated gradient keeps weights on 2d signed coordinates, whose relative entropy
to u is at most log 2d. So its regret is at most BX (log 2d/(ηn) + η/2) for ‖u‖₁ ≤ B and |x_i| ≤ X, which is the other
bound at η = √(2 log 2d/n). Each regret bounds the excess of the population risk, since every example is new to the
weights that meet it; no empirical risk is minimized. If labels favour one sign by as little as n examples can tell,
SGD's excess is half of its bound at every n and d, and the excess of exponentiated gradient is more than half of its
own bound.
"""

from collections.abc import Callable

import numpy as np
import xarray

from steepest import kit
from steepest.claims.noise.one_pass_sgd.experiment import (
    SMALL,
    exponentiated,
    hard_for_exponentiated,
    hard_for_sgd,
    hinge,
    perceptron,
    sgd,
)
from steepest.nn.types import Values

DENSE = 2.0  # length of the dense target
REPEATS = 16  # times that an example is shown in a row where examples are not fresh
Problem = Callable[[np.random.Generator, int, int, int, int], Values]


@kit.claim
class OnePassSgd(kit.Claim[None]):
    """The hinge loss; labels are one coordinate of inputs ±1 or the majority of all, or barely favour one sign."""

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
    majority: kit.Count = kit.param(
        1025, "d of the dense target, odd", scope=kit.choices(1025, 801, 1201)
    )
    hard_dimensions: tuple[kit.Count, ...] = kit.param(
        (16, 64, 256),
        "d of the labels that barely lean",
        scope=kit.choices((16, 64, 256), (20, 80, 200)),
    )
    hard_examples: tuple[kit.Count, ...] = kit.param(
        (300, 1000, 3000),
        "n there",
        unit="examples",
        scope=kit.choices((300, 1000, 3000), (400, 1000, 2500)),
    )
    test: kit.Count = kit.param(1000, "fresh examples for each population risk", unit="examples")
    scale: kit.Positive = kit.param(1.0, "X, size of the inputs' entries")
    seeds: kit.Seeds = kit.param(20, "independent samples")
    hard_seeds: kit.Seeds = kit.param(80, "independent samples of labels that barely lean")

    kind = "theorem"
    says = {
        "One pass of SGD over n examples has an excess risk of at most BR/√n": "sgd_bound",
        "at most BX √(2 log 2d/n) over an ℓ1 ball": "eg_bound",
        "Some problems need half of these bounds": ("sgd_taken", "eg_taken", "eg_rate"),
    }
    tiny = {
        "dimensions": (4, 8),
        "examples": 20,
        "rays": (4, 6, 8),
        "log_rays": (4, 6, 8),
        "majority": 9,
        "hard_dimensions": (4, 6),
        "hard_examples": (20, 30, 40),
        "test": 20,
        "seeds": 3,
        "hard_seeds": 3,
    }
    full = {"dimensions": (8, 16, 32, 64, 256, 1024), "test": 2000, "seeds": 40, "hard_seeds": 200}
    out_of_scope = {"scale": 3.0}

    def axes(self):
        return {
            "dimension": self.dimensions,
            "ray": self.rays,
            "log_ray": self.log_rays,
            "ratio": self.per_dimension,
            "log_ratio": self.per_log,
            "d": self.hard_dimensions,
            "n": self.hard_examples,
        }

    def check_fields(self) -> None:
        if self.majority % 2 == 0:
            raise kit.UserError(
                f"majority must be odd, so that no label is zero; got {self.majority}; "
                f"try {self.majority + 1}"
            )
        needed = {
            "dimensions": 2,
            "rays": 3,
            "log_rays": 3,
            "hard_dimensions": 1,
            "hard_examples": 3,
        }
        for name, count in needed.items():
            numbers = getattr(self, name)
            if len(numbers) < count or (np.diff(numbers) <= 0).any():
                raise kit.UserError(
                    f"{name} must be {count} numbers or more in increasing order, to compare their excess risks; "
                    f"got {[*numbers]}; try 8 64 256"
                )

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
        yield kit.assume(
            "largest bias of the labels that barely lean",
            max(
                float(np.sqrt(max(self.hard_dimensions) / min(self.hard_examples))),
                float(np.sqrt(2 * np.log(2 * max(self.hard_dimensions)) / min(self.hard_examples))),
            ),
            "<=",
            1,
            "raise --hard-examples",
        )

    def predict(self, setting):
        d = np.array(self.dimensions)
        hard = np.array(self.hard_dimensions)
        n = np.array(self.hard_examples)
        sgd_bound = SMALL * np.sqrt(hard[:, None] / n)
        eg_bound = SMALL * np.sqrt(2 * np.log(2 * hard[:, None]) / n)
        return kit.law(
            sgd_limit=("dimension", np.sqrt(d / self.examples)),
            eg_limit=("dimension", np.sqrt(2 * np.log(2 * d) / self.examples)),
            sgd_collapse=("ray", np.ones(len(self.rays))),
            eg_collapse=("log_ray", np.ones(len(self.log_rays))),
            # Bδ(1 − (n − 1)/2n) at δ = √(d/n): the mean iterate has come (n − 1)/2n of the way
            sgd_taken=("d n", sgd_bound * (1 + 1 / n) / 2),
            eg_taken=("d n", eg_bound / 2),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        both = [self.sparse(rng, d, self.examples) for d in self.dimensions]
        repeated = [self.sparse(rng, d, self.examples, repeats=REPEATS) for d in self.dimensions]
        sgd_rays = [
            [self.sparse(rng, d, round(c * d), "sgd")["sgd"][:, 0] for d in self.rays]
            for c in self.per_dimension
        ]
        eg_rays = [
            [self.sparse(rng, d, round(c * np.log(2 * d)), "eg")["eg"][:, 0] for d in self.log_rays]
            for c in self.per_log
        ]
        most = max(self.hard_examples)

        def hard(problem: Problem, told_by: int = 0) -> list[list[Values]]:
            """Return excesses for all d and n where so many examples tell how labels lean, n of them if zero."""
            return [
                [problem(rng, self.hard_seeds, n, d, told_by or n) for n in self.hard_examples]
                for d in self.hard_dimensions
            ]

        dense = self.dense(rng)
        return kit.seen(
            sgd_repeated=("dimension seed flips", [excess["sgd"] for excess in repeated]),
            eg_repeated=("dimension seed flips", [excess["eg"] for excess in repeated]),
            sgd=("dimension seed flips", [excess["sgd"] for excess in both]),
            eg=("dimension seed flips", [excess["eg"] for excess in both]),
            train=("dimension seed", [excess["train"] for excess in both]),
            fitted=("seed", both[len(self.dimensions) // 2]["fitted"]),
            sgd_rays=("ratio ray seed", sgd_rays),
            eg_rays=("log_ratio log_ray seed", eg_rays),
            sgd_hard=("d n draw", hard(hard_for_sgd)),
            eg_hard=("d n draw", hard(hard_for_exponentiated)),
            sgd_other=("d n draw", hard(hard_for_sgd, most)),
            eg_other=("d n draw", hard(hard_for_exponentiated, most)),
            sgd_dense=("seed", dense["sgd"]),
            eg_dense=("seed", dense["eg"]),
        )

    def sparse(
        self, rng: np.random.Generator, d: int, n: int, only: str = "", repeats: int = 1
    ) -> dict[str, Values]:
        """Return excess risks where the label is the first coordinate, ``(seeds, flips)``, and SGD's training risk.

        The population risk is a mean over fresh inputs and, exactly, over the flips of their labels.
        """
        signs = lambda *shape: 2 * rng.integers(0, 2, shape, dtype=np.int8) - 1
        rows = np.repeat(signs(self.seeds, -(-n // repeats), d), repeats, axis=1)[:, :n]
        x = self.scale * rows
        clean = np.sign(x[..., 0])
        flips = np.where(rng.random(clean.shape) < self.flipped, -1, 1)[:, ::repeats]
        flips = np.repeat(flips, repeats, axis=1)[:, :n]
        fresh = self.scale * signs(self.seeds, self.test, d)
        right = np.sign(fresh[..., 0])
        out: dict[str, Values] = {}
        for name, learn in (("sgd", sgd), ("eg", exponentiated)):
            if only not in ("", name):
                continue
            columns = []
            for labels, share in ((clean, 0.0), (clean * flips, self.flipped)):
                if only and share:
                    continue
                weights = learn(x, labels, 1.0)
                margins = right * np.einsum("smd,sd->sm", fresh, weights)
                risk = (1 - share) * hinge(margins) + share * hinge(-margins)
                columns.append(risk.mean(1) - 2 * share)
                if name == "sgd" and not share:
                    out["train"] = hinge(labels * np.einsum("snd,sd->sn", x, weights)).mean(1)
                    if not only and d == self.dimensions[len(self.dimensions) // 2]:
                        fit = perceptron(x, labels)
                        out["fitted"] = hinge(labels * np.einsum("snd,sd->sn", x, fit)).mean(1)
            out[name] = np.stack(columns, 1)
        return out

    def dense(self, rng: np.random.Generator) -> dict[str, Values]:
        """Return risks where the label is the majority of all coordinates, ``(seeds,)``."""
        d = self.majority
        signs = lambda *shape: self.scale * (2.0 * rng.integers(0, 2, shape, dtype=np.int8) - 1)
        x = signs(self.seeds, self.examples, d)
        fresh = signs(self.seeds, self.test, d)
        right = np.sign(fresh.sum(-1))
        learned = {
            "sgd": sgd(x, np.sign(x.sum(-1)), DENSE),
            "eg": exponentiated(x, np.sign(x.sum(-1)), DENSE * np.sqrt(d)),
        }
        return {
            name: hinge(right * np.einsum("smd,sd->sm", fresh, weights)).mean(1)
            for name, weights in learned.items()
        }

    def judge(self, law, seen):
        place = len(self.dimensions) // 2
        first = (seen.sgd - seen.eg).isel(flips=0, drop=True)
        bounds = [
            kit.at_most(
                f"{name}_bound",
                law[f"{name}_limit"],
                seen[name].max("flips"),
                label=f"{title}: excess, the larger of both noises",
            )
            for name, title in (("sgd", "SGD"), ("eg", "exponentiated gradient"))
        ]
        yield from bounds
        yield from self.judge_leaning(law, seen)
        yield from self.judge_rays(law, seen)
        yield kit.at_most(
            "sparse_small",
            0.0,
            first.isel(dimension=0, drop=True),
            label=f"sparse target, d = {self.dimensions[0]}: SGD's risk less EG's risk",
        )
        yield kit.at_least(
            "sparse_large",
            0.0,
            first.isel(dimension=-1, drop=True),
            label=f"sparse target, d = {self.dimensions[-1]}: SGD's risk less EG's risk",
        )
        yield kit.at_most(
            "dense",
            0.0,
            seen.sgd_dense - seen.eg_dense,
            label=f"dense target, d = {self.majority}: SGD's risk less EG's risk",
        )
        yield kit.at_least(
            "not_erm",
            0.1,  # a mean hinge loss on the sample that no minimizer has, where some weights have none
            seen.train.isel(dimension=place, drop=True),
            label=f"SGD's risk on a sample that some weights fit exactly, d = {self.dimensions[place]}",
        )

    def judge_leaning(self, law, seen):
        """Compare the excess on labels that barely lean with half of each bound."""
        yield kit.follows(
            "sgd_taken",
            law.sgd_taken,
            seen.sgd_hard,
            0.2,  # 80 samples leave 0.05 at d = 16, nine points at once twice as much
            label="SGD, labels that barely lean: excess",
        )
        yield kit.at_least(
            "eg_taken",
            law.eg_taken,
            seen.eg_hard,
            label="exponentiated gradient, labels that barely lean: excess, half of the bound at least",
        )
        yield kit.power(
            "eg_rate",
            law.eg_taken.mean("d"),
            seen.eg_hard.mean("d"),
            0.06,
            over="n",
            label="exponentiated gradient, labels that barely lean: excess against n",
        )

    def judge_rays(self, law, seen):
        """Compare the excess where n is proportional to d, and to log 2d."""
        sgd_rays = [
            kit.power(
                f"sgd_collapse_{i}",
                law.sgd_collapse,
                seen.sgd_rays.isel(ratio=i, drop=True),
                0.03,  # the interval is ± 0.01
                over="ray",
                label=f"SGD: excess against d at n = {ratio:g} d",
            )
            for i, ratio in enumerate(self.per_dimension)
        ]
        eg_rays = [
            kit.power(
                f"eg_collapse_{i}",
                law.eg_collapse,
                seen.eg_rays.isel(log_ratio=i, drop=True),
                0.02,  # the interval is ± 0.007
                over="log_ray",
                label=f"exponentiated gradient: excess against d at n = {ratio:g} log 2d",
            )
            for i, ratio in enumerate(self.per_log)
        ]
        yield from sgd_rays
        yield from eg_rays

    def rivals(self, setting, law):
        n = self.examples
        entropy = np.log(2 * law.log_ray)
        yield kit.rival(
            "the talk's √(‖w‖₂/n)",
            "the talk prints it",
            sgd_limit=np.sqrt(np.sqrt(law.dimension) / n),
            sgd_collapse=law.ray**-0.25,
            sgd_taken=law.sgd_taken * law.d**-0.25,
        )
        yield kit.rival(
            "SGD's excess is B/√n",
            "‖w*‖ = 1, and the inputs' length is forgotten",
            sgd_limit=law.sgd_limit * law.dimension**-0.5,
            sgd_collapse=law.ray**-0.5,
            sgd_taken=law.sgd_taken * law.d**-0.5,
        )
        yield kit.rival(
            "half of each bound",
            "either of the two terms of the regret by itself",
            sgd_limit=law.sgd_limit / 2,
            eg_limit=law.eg_limit / 2,
        )
        yield kit.rival(
            "the excess of both falls like 1/n",
            "strongly convex losses have it",
            sgd_taken=law.sgd_taken * (law.n / law.n[0]) ** -0.5,
            eg_taken=law.eg_taken * (law.n / law.n[0]) ** -0.5,
        )
        yield kit.rival(
            "SGD's excess is (d/n)^(3/4)",
            "a bound in d/n alone could have another power",
            sgd_taken=law.sgd_taken * (law.d / law.n) ** 0.25,
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
            sgd_dense=seen.eg_dense,
            eg_dense=seen.sgd_dense,
        )
        yield kit.control(
            f"each example {REPEATS} times in a row",
            "an example that was met before says nothing of the population",
            id="repeated",
            sgd=seen.sgd_repeated,
            eg=seen.eg_repeated,
        )
        yield kit.control(
            "labels that lean by the same for all n",
            "few examples do not tell it, so that w = 0 is nearly as good as what is learned",
            sgd_hard=seen.sgd_other,
            eg_hard=seen.eg_other,
        )
        yield kit.control(
            "weights trained on the same sample until they fit it",
            "its empirical risk is the least there is",
            id="minimizer",
            train=seen.fitted.expand_dims(dimension=seen.dimension),
        )

    def figure(self, law, seen, rivals):
        hard = [
            kit.curves(
                title,
                law[f"{name}_taken"] / SMALL,
                seen[f"{name}_hard"] / SMALL,
                over="n",
                by="d",
                name="d = {}",
                x="examples n",
                y="excess risk / B",
                log="xy",
            )
            for name, title in (
                ("sgd", "SGD, labels that barely lean: half of the bound"),
                ("eg", "Exponentiated gradient: more than half"),
            )
        ]
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
        yield from hard
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
