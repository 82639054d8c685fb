"""SGD learns a word in a time inversely proportional to the word's frequency, and Adam does not.

Under Adam the time grows like √(1 + (1 − π)/(bπ)), with π the frequency of the word and b the number of words in a
batch. So Adam learns all words at the same time where every batch holds all words. Where most batches hold no rare
word, Adam learns rare words in a time like 1/√π. A word is learned when its successor has half of the probability.
"""

from typing import NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.training.rare_tokens import experiment, theory
from steepest.claims.training.rare_tokens.point import RareTokensPoint


class Setting(NamedTuple):
    """How often words come, and which one follows each."""

    chances: kit.Values  # π, (vocabulary,)
    successors: kit.Values  # a permutation, (vocabulary,)
    places: kit.Values  # of the words that are followed, (words,)


@kit.claim
class RareTokens(kit.Claim[Setting]):
    """Softmax regression from each word to its successor, with words sampled by Zipf's law."""

    vocabulary: kit.Count = kit.param(48, "V", unit="words", scope=kit.between(48, 96))
    alpha: kit.Positive = kit.param(
        1.0, "α in π_k ∝ k^(−α)", scope=kit.between(0.8, 1.2, "beyond it batches miss rare words")
    )
    words: tuple[kit.Count, ...] = kit.param(
        (1, 3, 8, 20, 48),
        "ranks of the words that are followed",
        scope=kit.choices((1, 3, 8, 20, 48), (1, 2, 6, 16, 40), (2, 5, 12, 30)),
    )
    batches: tuple[kit.Count, ...] = kit.param(
        (16, 128, 2048),
        "b, words in a batch",
        unit="words",
        scope=kit.choices((16, 128, 2048), (24, 96, 768), (32, 256)),
    )
    descent_step: kit.Positive = kit.param(
        0.3,
        "η of descent",
        scope=kit.between(0.2, 0.4, "larger ones take frequent words in a leap"),
    )
    adam_step: kit.Positive = kit.param(
        0.0013, "η of Adam", scope=kit.between(0.001, 0.0015, "v must keep up with the gradients")
    )
    beta1: kit.Fraction = kit.param(0.9, "β₁ of Adam", scope=kit.between(0.8, 0.95))
    beta2: kit.Fraction = kit.param(0.99, "β₂ of Adam", scope=kit.between(0.985, 0.992))
    seeds: kit.Seeds = kit.param(24, "trainings of each kind")

    kind = "limit"
    says = {
        "SGD learns a word in a time inversely proportional to the word's frequency": "descent",
        "Under Adam the time grows like √(1 + (1 − π)/(bπ))": "adam",
    }
    tiny = {
        "vocabulary": 6,
        "words": (1, 3, 6),
        "batches": (8, 64),
        "adam_step": 0.004,
        "beta2": 0.97,
        "seeds": 3,
    }
    full = {"seeds": 200, "adam_step": 0.0005}
    out_of_scope = {"batches": (1, 16), "seeds": 3}
    point = RareTokensPoint

    def axes(self):
        return {"batch": self.batches, "word": self.words}

    def setting(self, key):
        rng = kit.numpy_generator(key)
        return Setting(
            theory.frequencies(self.vocabulary, self.alpha),
            rng.permutation(self.vocabulary),
            np.array(self.words) - 1,
        )

    def hypotheses(self, setting):
        rarest = setting.chances[setting.places].min()
        remembered = min(self.batches) * rarest / (1 - self.beta2)
        lost = theory.lag(self.vocabulary, self.beta1, self.beta2)
        steps = np.log(self.vocabulary - 1) / (2 * self.adam_step)
        yield kit.assume("largest rank", max(self.words), "<=", self.vocabulary)
        yield kit.assume(
            "times that the rarest word is in v's memory, bπ/(1 − β₂)",
            float(remembered),
            ">=",
            2.5,
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
        chance = setting.chances[setting.places]
        descent = theory.descent_steps(self.vocabulary, chance, self.descent_step)
        adam = [
            theory.adam_steps(
                self.vocabulary, chance, batch, self.adam_step, self.beta1, self.beta2
            )
            for batch in self.batches
        ]
        return kit.law(
            descent=("batch word", np.tile(descent, (len(self.batches), 1)), "steps"),
            adam=("batch word", np.array(adam), "steps"),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        even = np.full(self.vocabulary, 1 / self.vocabulary)
        worlds = {"": setting.chances, "_even": even}
        steps_of = {}
        for name, chances in worlds.items():
            world = setting._replace(chances=chances)
            steps_of["descent" + name] = self.trainings(world, rng, self.descent_step, None)
            steps_of["adam" + name] = self.trainings(
                world, rng, self.adam_step, (self.beta1, self.beta2)
            )
        return kit.seen(
            **{name: ("seed batch word", steps, "steps") for name, steps in steps_of.items()}
        )

    def trainings(
        self,
        setting: Setting,
        rng: np.random.Generator,
        eta: float,
        betas: tuple[float, float] | None,
    ) -> kit.Values:
        """Return steps to a half, ``(seeds, batches, words)``."""
        steps = [
            experiment.steps_to_half(
                rng,
                setting.chances,
                setting.places,
                setting.successors[setting.places],
                batch,
                eta,
                self.seeds,
                betas,
            )
            for batch in self.batches
        ]
        return np.stack(steps, 1)

    def judge(self, law, seen):
        yield kit.follows(
            "descent",
            law.descent,
            seen.descent,
            0.1,  # whole steps are 1 %; in the smallest batches the interval takes 5 %
            label="steps until a word is learned, descent",
        )
        yield kit.follows(
            "adam",
            law.adam,
            seen.adam,
            0.06,  # what follows the next order is 1 %; the interval takes 2 %
            label="steps until a word is learned, Adam",
        )

    def rivals(self, setting, law):
        chance = setting.chances[setting.places]
        first_pull = theory.descent_steps_at_first_pull(self.vocabulary, chance, self.descent_step)
        alone = np.log(self.vocabulary - 1) / (2 * self.adam_step)
        rare = alone / np.sqrt(np.outer(self.batches, chance))
        yield kit.rival(
            "log(V − 1)/(ηπ)",
            "gradients stay as they are at the start",
            id="first_pull",
            descent=("batch word", np.tile(first_pull, (len(self.batches), 1))),
        )
        yield kit.rival(
            "one time for all words",
            "Adam divides by the size of each gradient, as sign descent does",
            id="all_alike",
            adam=xarray.full_like(law.adam, alone),
        )
        yield kit.rival(
            "1/√(bπ) of that time",
            "the root of the mean square falls like √(π/b)",
            adam=("batch word", rare),
        )
        yield kit.rival(
            "twice Adam's time",
            "the score of the right word has to rise by log(V − 1)",
            adam=2 * law.adam,
        )

    def controls(self, seen):
        yield kit.control(
            "all words equally frequent",
            "then no word is rare",
            descent=seen.descent_even,
            adam=seen.adam_even,
        )
        yield kit.control(
            "Adam in the place of descent, and descent in Adam's",
            "each rule has a time of its own",
            id="exchanged",
            descent=seen.adam,
            adam=seen.descent,
        )

    def figure(self, law, seen, rivals):
        least = {"batch": min(self.batches)}
        in_least = lambda steps: steps.sel(least, drop=True)
        of_descent = {"log(V − 1)/(ηπ)": in_least(rivals["first_pull"].descent)} if rivals else {}
        of_adam = {"one time for all": in_least(rivals["all_alike"].adam)} if rivals else {}
        yield kit.curves(
            f"Descent, batches of {least['batch']}: rare words wait in proportion",
            in_least(law.descent),
            in_least(seen.descent),
            over="word",
            x="rank of the word",
            y="steps until it is learned",
            rivals=of_descent,
            log="xy",
        )
        yield kit.curves(
            "Adam: only large batches make all words alike",
            law.adam,
            seen.adam,
            over="word",
            by="batch",
            x="rank of the word",
            y="steps until it is learned",
            name="b = {}",
            rivals=of_adam,
            log="xy",
        )
