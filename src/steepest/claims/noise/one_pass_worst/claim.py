"""On some problems, one pass over n examples has half of the excess risk that its bound allows.

Over an ℓ2 ball of radius B, the excess of SGD is at most BR/√n for inputs of length R. Over an ℓ1 ball, the excess of
exponentiated gradient is at most BX √(2 log 2d/n) for inputs of d entries of size X. If labels favour one sign by as
little as n examples can tell, SGD's excess is half of its bound at every n and d, and the excess of exponentiated
gradient is more than half of its own bound.
"""

from collections.abc import Callable

import numpy as np

from steepest import kit
from steepest.claims.noise._one_pass import increasing
from steepest.claims.noise.one_pass_worst.experiment import (
    SMALL,
    hard_for_exponentiated,
    hard_for_sgd,
)
from steepest.nn.types import Values

Problem = Callable[[np.random.Generator, int, int, int, int], Values]


@kit.claim
class OnePassWorst(kit.Claim[None]):
    """The hinge loss, with labels that barely favour one sign."""

    dimensions: tuple[kit.Count, ...] = kit.param(
        (16, 64, 256), "d", scope=kit.choices((16, 64, 256), (20, 80, 200))
    )
    examples: tuple[kit.Count, ...] = kit.param(
        (300, 1000, 3000),
        "n",
        unit="examples",
        scope=kit.choices((300, 1000, 3000), (400, 1000, 2500)),
    )
    seeds: kit.Seeds = kit.param(80, "independent samples")

    kind = "theorem"
    says = {
        "has half of the excess risk that its bound allows": ("sgd_taken", "eg_taken", "eg_rate")
    }
    tiny = {"dimensions": (4, 6), "examples": (20, 30, 40), "seeds": 3}
    full = {"seeds": 200}
    out_of_scope = {"examples": (3, 30, 300)}

    def axes(self):
        return {"d": self.dimensions, "n": self.examples}

    def check_fields(self) -> None:
        increasing("dimensions", self.dimensions, 1)
        increasing("examples", self.examples, 3)

    def hypotheses(self, setting):
        most = max(self.dimensions)
        least = min(self.examples)
        bias = float(np.sqrt(max(most, 2 * np.log(2 * most)) / least))
        yield kit.assume("largest bias of the labels", bias, "<=", 1, "raise --examples")

    def predict(self, setting):
        d = np.array(self.dimensions)[:, None]
        n = np.array(self.examples)
        sgd_bound = SMALL * np.sqrt(d / n)
        eg_bound = SMALL * np.sqrt(2 * np.log(2 * d) / n)
        return kit.law(
            # Bδ(1 − (n − 1)/2n) at δ = √(d/n): the mean iterate has come (n − 1)/2n of the way
            sgd_taken=("d n", sgd_bound * (1 + 1 / n) / 2),
            eg_taken=("d n", eg_bound / 2),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        most = max(self.examples)

        def excesses(problem: Problem, told_by: int = 0) -> list[list[Values]]:
            """Return excesses for all d and n where so many examples tell how labels lean, n of them if zero."""
            return [
                [problem(rng, self.seeds, n, d, told_by or n) for n in self.examples]
                for d in self.dimensions
            ]

        return kit.seen(
            sgd_hard=("d n draw", excesses(hard_for_sgd)),
            eg_hard=("d n draw", excesses(hard_for_exponentiated)),
            sgd_other=("d n draw", excesses(hard_for_sgd, most)),
            eg_other=("d n draw", excesses(hard_for_exponentiated, most)),
        )

    def judge(self, law, seen):
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

    def rivals(self, setting, law):
        yield kit.rival(
            "the talk's √(‖w‖₂/n)",
            "the talk prints it",
            sgd_taken=law.sgd_taken * law.d**-0.25,
        )
        yield kit.rival(
            "SGD's excess is B/√n",
            "‖w*‖ = 1, and the inputs' length is forgotten",
            sgd_taken=law.sgd_taken * law.d**-0.5,
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

    def controls(self, seen):
        yield kit.control(
            "labels that lean by the same for all n",
            "few examples do not tell it, so that w = 0 is nearly as good as what is learned",
            sgd_hard=seen.sgd_other,
            eg_hard=seen.eg_other,
        )

    def figure(self, law, seen, rivals):
        for name, title in (
            ("sgd", "SGD, labels that barely lean: half of the bound"),
            ("eg", "Exponentiated gradient: more than half"),
        ):
            yield kit.curves(
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
