"""SGD beats exponentiated gradient on dense targets, and loses to it on sparse ones of many inputs.

SGD competes with weights of an ℓ2 ball, exponentiated gradient with weights of an ℓ1 ball. If the label is the majority
of all coordinates, the best weights have a large ℓ1 norm. If it is one of many coordinates, inputs have a large ℓ2
norm. If it is one of few coordinates, SGD is better, although the bounds of both say the opposite.
"""

import numpy as np

from steepest import kit
from steepest.claims.noise._one_pass import OneCoordinate, exponentiated, hinge, sgd, signs
from steepest.nn.types import Values

DENSE = 2.0  # length of the dense target
METHODS = ("sgd", "eg")
TARGETS = ("one of few", "one of many", "majority")
IDS = ("sparse_small", "sparse_large", "dense")
ORDERS = ((0, 1), (1, 0), (0, 1))  # of the risks of METHODS, for each target


@kit.claim
class SparseOrDense(kit.Claim[None]):
    """The hinge loss; labels are one coordinate of inputs ±1, or the majority of all."""

    dimensions: tuple[kit.Count, kit.Count] = kit.param(
        (8, 1024),
        "d where the label is one coordinate: few and many",
        scope=kit.choices((8, 1024), (6, 800), (12, 768)),
    )
    majority: kit.Count = kit.param(
        1025, "d of the dense target, odd", scope=kit.choices(1025, 801, 1201)
    )
    examples: kit.Count = kit.param(
        400,
        "n",
        unit="examples",
        scope=kit.between(300, 600, "fewer leave risks of w = 0 in a thousand dimensions"),
    )
    test: kit.Count = kit.param(1000, "fresh examples for each population risk", unit="examples")
    seeds: kit.Seeds = kit.param(20, "independent samples")

    kind = "empirical law"
    says = {
        "beats exponentiated gradient on dense targets": "dense",
        "loses to it on sparse ones of many inputs": "sparse_large",
        "If it is one of few coordinates, SGD is better": "sparse_small",
    }
    tiny = {"dimensions": (4, 8), "majority": 9, "examples": 20, "test": 20, "seeds": 3}
    full = {"test": 2000, "seeds": 40}
    out_of_scope = {"examples": 4}

    def axes(self):
        return {"target": TARGETS, "learner": METHODS}

    def check_fields(self) -> None:
        if self.majority % 2 == 0:
            raise kit.UserError(
                f"majority must be odd, so that no label is zero; got {self.majority}; "
                f"try {self.majority + 1}"
            )

    def hypotheses(self, setting):
        few = min(self.dimensions)
        yield kit.assume("examples over the few coordinates", self.examples / few, ">=", 5)

    def predict(self, setting):
        return kit.law(order=("target learner", np.array(ORDERS)))

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        sample = OneCoordinate(self.seeds, self.test, 0.0, 1.0)
        learned = [sample.excess(rng, d, self.examples) for d in self.dimensions]
        sparse = [[excess[name][:, 0] for name in METHODS] for excess in learned]
        return kit.seen(risk=("target learner seed", [*sparse, self.dense(rng)]))

    def dense(self, rng: np.random.Generator) -> list[Values]:
        """Return risks of both methods where the label is the majority of all coordinates, ``(seeds,)``."""
        d = self.majority
        x = signs(rng, self.seeds, self.examples, d).astype(float)
        fresh = signs(rng, self.seeds, self.test, d).astype(float)
        labels = np.sign(x.sum(-1))
        right = np.sign(fresh.sum(-1))
        learned = (sgd(x, labels, DENSE), exponentiated(x, labels, DENSE * np.sqrt(d)))
        risk = lambda weights: hinge(right * np.einsum("smd,sd->sm", fresh, weights)).mean(1)
        return [risk(weights) for weights in learned]

    def judge(self, law, seen):
        for id, target in zip(IDS, TARGETS, strict=True):
            yield kit.ranks(
                id,
                law.order.sel(target=target, drop=True),
                seen.risk.sel(target=target, drop=True),
                over="learner",
                label=f"order of the risks of both methods, label is {target}",
            )

    def rivals(self, setting, law):
        d = np.array(self.dimensions)
        # at B = X = 1 and R = √d
        first = np.log(d) > np.log(2 * np.log(2 * d))
        bounds = [[int(worse), int(not worse)] for worse in first]
        yield kit.rival(
            "the method of the smaller bound is better",
            "√(d/n) against √(2 log 2d/n), which cross between d = 4 and 5; √d more for the majority",
            id="bounds",
            order=("target learner", np.array([*bounds, [0, 1]])),
        )
        yield kit.rival(
            "SGD is better everywhere",
            "its steps are the gradient's own",
            order=("target learner", np.array([[0, 1]] * len(TARGETS))),
        )
        yield kit.rival(
            "exponentiated gradient is better in many dimensions",
            "its bound grows like √(log d)",
            order=("target learner", np.array([[0, 1], [1, 0], [1, 0]])),
        )

    def controls(self, seen):
        yield kit.control(
            "the two methods exchanged",
            "each is biased to the other's norm",
            risk=seen.risk.roll(learner=1),
        )

    def figure(self, law, seen, rivals):
        places = np.arange(len(TARGETS))
        mean = seen.risk.mean("seed")
        yield kit.panel(
            "Which method is better: " + ", ".join(TARGETS),
            "target",
            "excess risk",
            *(
                kit.observed_curve(places, mean.sel(learner=name), name, kind="points", shade=i)
                for i, name in enumerate(METHODS)
            ),
            log="y",
        )
