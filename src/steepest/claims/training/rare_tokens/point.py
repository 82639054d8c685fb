"""One point of the diagram of rare-tokens: the commonest and the rarest word of one vocabulary."""

from dataclasses import dataclass

import numpy as np

from steepest import kit
from steepest.claims.training.rare_tokens import experiment, theory
from steepest.kit.points import Arrays, equal, run_in_numpy

REMEMBERED = 2.5  # times that a word must be in Adam's memory


@dataclass(frozen=True)
class RareTokensPoint(kit.Point):
    """Steps until the rarest word is learned, over Zipf's exponent and the size of the vocabulary."""

    vocabulary: kit.Count
    alpha: kit.Positive
    batches: kit.Count
    descent_step: kit.Positive
    adam_step: kit.Positive
    beta1: kit.Fraction
    beta2: kit.Fraction
    seeds: kit.Seeds

    batched = ("alpha",)
    diagram = {"alpha": "linear:0.2:1.7:7", "vocabulary": "log:8:64:5"}
    base = {"batches": (16,), "seeds": 24}
    labels = {
        "log_descent_wait": "log₁₀ of the rarest word's steps over the commonest's, descent",
        "log_adam_wait": "log₁₀ of the rarest word's steps over the commonest's, Adam",
    }
    diagram_remarks = (
        "Batches of 16 words. Left of the first line each batch holds the rarest word, and Adam learns all words at "
        "one time. Right of the second Adam forgets it in between, and points are out of range.",
    )

    def hypotheses(self, setting):
        chance = float(theory.frequencies(self.vocabulary, self.alpha)[-1])
        lost = theory.lag(self.vocabulary, self.beta1, self.beta2)
        steps = np.log(self.vocabulary - 1) / (2 * self.adam_step)
        yield kit.assume(
            "times that the rarest word is in v's memory, bπ/(1 − β₂)",
            self.batches * chance / (1 - self.beta2),
            ">=",
            REMEMBERED,
            "choose larger --batches",
        )
        yield kit.assume(
            "steps that Adam's averages lag, over all steps",
            float(lost / steps),
            "<=",
            0.07,
            "choose a smaller --adam-step",
        )

    def predict(self, setting):
        chance = theory.frequencies(self.vocabulary, self.alpha)[-1:]
        adam = theory.adam_steps(
            self.vocabulary, chance, self.batches, self.adam_step, self.beta1, self.beta2
        )
        descent = theory.descent_steps(self.vocabulary, chance, self.descent_step)
        return kit.Prediction(descent=descent[0], adam=adam[0])

    def observe(self, setting, key):
        words = np.array([0, self.vocabulary - 1])

        def run(rng: np.random.Generator, alpha: float) -> dict[str, kit.Values]:
            sizes = np.arange(1, self.vocabulary + 1) ** -alpha
            chances = sizes / sizes.sum()
            steps_of = {}
            for name, eta, betas in (
                ("descent", self.descent_step, None),
                ("adam", self.adam_step, (self.beta1, self.beta2)),
            ):
                # each word is followed by itself: which one follows makes no difference
                steps_of[name] = experiment.steps_to_half(
                    rng, chances, words, words, self.batches, eta, self.seeds, betas
                )
            return steps_of

        shape = (self.seeds, len(words))
        return run_in_numpy(run, {"descent": shape, "adam": shape}, key, self.alpha)

    def judge(self, predicted, observed):
        yield equal(
            "descent",
            float(predicted["descent"]),
            observed["descent"][:, 1],
            0.1,  # the claim's; whole steps are 1 %, and in small batches the interval takes 5 %
            label="steps until the rarest word is learned, descent",
        )
        yield equal(
            "adam",
            float(predicted["adam"]),
            observed["adam"][:, 1],
            0.06,  # the claim's; what follows the next order is 1 %, and the interval takes 2 %
            label="steps until the rarest word is learned, Adam",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        waits = {}
        for name in ("descent", "adam"):
            commonest, rarest = observed[name].mean(0)
            waits[f"log_{name}_wait"] = float(np.log10(rarest / commonest))
        return waits

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"alpha", "vocabulary"}:
            return ()
        alphas = np.linspace(0.1, 1.8, 60)
        lines = {
            "lower: the rarest is once in a batch": 1 / self.batches,
            "upper: Adam forgets it": REMEMBERED * (1 - self.beta2) / self.batches,
        }
        curves = []
        for label, chance in lines.items():
            sizes = np.array([vocabulary_of(alpha, chance) for alpha in alphas])
            ends = (alphas, sizes) if x == "alpha" else (sizes, alphas)
            curves.append(kit.predicted_curve(*ends, label))
        return tuple(curves)


def vocabulary_of(alpha: float, chance: float) -> float:
    """Return the size of the vocabulary whose rarest word has a chance, interpolated; NaN above a thousand words."""
    sizes = np.arange(1, 1001) ** -alpha
    rarest = sizes / np.cumsum(sizes)
    if rarest[-1] > chance:
        return float("nan")
    return float(np.interp(-np.log(chance), -np.log(rarest), np.arange(1, 1001)))
