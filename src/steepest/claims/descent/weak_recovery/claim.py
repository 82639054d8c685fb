"""From kd/2 examples on, the best spectral method sees the k directions of a quadratic teacher.

From fewer examples no spectral method sees them. The teacher is a sum of k squares ⟨θ, x⟩² in a large dimension d.
Spectral methods take the matrix Σ T(y)xxᵀ over n examples, with some function T of the label y. The k leading
eigenvectors of this matrix are compared with the span of the teacher's k directions. Below kd/2 examples these
eigenvectors are, as d grows, no better than random for every T. Above kd/2, with T = 1 − 1/y, they hold a share of the
teacher that grows with n/kd by a formula; other T need more examples.
"""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent.weak_recovery import experiment, theory

RULES = ("step", "clipped")
RATIOS = "n/kd"


@kit.claim
class WeakRecovery(kit.Claim[None]):
    """Spectra of labelled second moments of Gaussian inputs; the teacher has k quadratic neurons."""

    d: kit.Count = kit.param(
        400,
        "dimension of the inputs",
        scope=kit.between(400, 500, "in fewer the threshold is blurred"),
    )
    neurons: tuple[kit.Count, ...] = kit.param(
        (1, 2, 4),
        "k of the teacher",
        scope=kit.choices((1, 2, 4), (1, 3), (1, 4), why="more need more dimensions"),
    )
    few: tuple[kit.Positive, ...] = kit.param(
        (0.15, 0.3),
        "examples per weight of the teacher, n/kd, below ½",
        scope=kit.choices((0.15, 0.3), (0.1, 0.25), why="near ½ the threshold is blurred"),
    )
    ratios: tuple[kit.Positive, ...] = kit.param(
        (1.0, 1.5, 2.5),
        "examples per weight of the teacher, n/kd, above ½",
        scope=kit.choices(
            (1.0, 1.5, 2.5), (1.0, 1.6, 3.0), (1.0, 1.8, 2.8), why="near ½ the threshold is blurred"
        ),
    )
    cut: kit.Positive = kit.param(
        2.0, "label from which the step rule counts an example", scope=kit.between(1.5, 2.5)
    )
    cap: kit.Positive = kit.param(
        3.0, "value at which the clipped rule clips a label", scope=kit.between(2.5, 4.0)
    )
    tries: kit.Count = kit.param(45, "functions T in the search, each with examples of its own")
    seeds: kit.Seeds = kit.param(12, "teachers, with examples of their own")

    kind = "limit"
    says = {
        "From kd/2 examples on, the best spectral method sees the k directions of a quadratic teacher": (
            "overlap",
            "half",
            "below",
        ),
        "From fewer examples no spectral method sees them": "search",
    }
    tiny = {"d": 100, "neurons": (1, 2), "ratios": (0.8, 3.0), "tries": 30, "seeds": 3}
    full = {"d": 600, "neurons": (1, 2, 4), "tries": 90, "seeds": 30}
    out_of_scope = {"few": (0.15, 0.6)}

    def axes(self):
        return {"neurons": self.neurons, "few": self.few, "ratio": self.ratios, "rule": RULES}

    def hypotheses(self, setting):
        least = [theory.least_examples(k) / k for k in self.neurons]
        yield kit.assume(f"{RATIOS}, largest of few", max(self.few), "<", min(least))
        yield kit.assume(f"{RATIOS}, least of the others", min(self.ratios), ">", max(least))
        yield kit.assume(
            "examples, fewest",
            round(min(self.few) * min(self.neurons) * self.d),
            ">=",
            10,
            "choose a larger --d",
        )

    def predict(self, setting):
        weights = self.weights()
        return kit.law(
            overlap=("neurons ratio", self.best(self.ratios)),
            half=("neurons", [theory.half_seen(k) for k in self.neurons]),
            below=("neurons few", self.best(self.few)),
            other=(
                "rule neurons",
                [
                    [theory.overlap(*weight, self.ratios[-1] * k, k) for k in self.neurons]
                    for weight in weights.values()
                ],
            ),
        )

    def weights(self) -> dict[str, tuple[theory.Weight, float]]:
        """Return of each rule its r and its largest value."""
        return {
            "step": (theory.step(self.cut), 1.0),
            "clipped": (theory.clipped(self.cap), self.cap),
        }

    def best(self, ratios: tuple[float, ...], stretch: float = 1.0) -> list[list[float]]:
        """Return the overlaps of T = 1 − 1/y at so many times these ratios."""
        return [[theory.best_overlap(stretch * q * k, k) for q in ratios] for k in self.neurons]

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        few = len(self.few)
        rules = {
            "best": experiment.inverse,
            "step": lambda labels: (labels > self.cut).astype(float),
            "clipped": lambda labels: np.minimum(labels, self.cap),
        }
        table = np.empty((self.seeds, len(self.neurons), len(rules), few + len(self.ratios)))
        shuffled = np.empty((self.seeds, len(self.neurons)))
        for seed in range(self.seeds):
            for place, k in enumerate(self.neurons):
                counts = tuple(round(q * k * self.d) for q in (*self.few, *self.ratios))
                teacher = experiment.teacher(rng, self.d, k)
                inputs, labels = experiment.examples(rng, teacher, counts[-1])
                for column, rule in enumerate(rules.values()):
                    used = counts if column == 0 else counts[-1:]
                    shares = experiment.overlaps(inputs, rule(labels), teacher, used)
                    table[seed, place, column, -len(used) :] = shares
                mixed = experiment.inverse(rng.permutation(labels))
                shuffled[seed, place] = experiment.overlaps(
                    inputs, mixed, teacher, counts[few : few + 1]
                )[0]
        return kit.seen(
            half=("seed neurons", self.half(table[:, :, 0, few:])),
            overlap=("seed neurons ratio", table[:, :, 0, few:]),
            below=("seed neurons few", table[:, :, 0, :few]),
            other=("seed rule neurons", np.swapaxes(table[:, :, 1:, -1], 1, 2)),
            search=("attempt", self.search(rng)),
            shuffled=("seed neurons", shuffled),
        )

    def half(self, shares: np.ndarray) -> np.ndarray:
        """Return at which n/d the share of the teacher is ½, or the largest n/d; ratios are the last axis."""
        return experiment.half_seen(np.array(self.ratios), shares) * self.neurons

    def search(self, rng: np.random.Generator) -> list[float]:
        """Return what the spectra of random rules see at the larger of the few numbers of examples."""
        result = []
        for number in range(self.tries):
            k = self.neurons[number % len(self.neurons)]
            teacher = experiment.teacher(rng, self.d, k)
            count = round(max(self.few) * k * self.d)
            inputs, labels = experiment.examples(rng, teacher, count)
            weights = experiment.random_rule(rng, k, smooth=number % 2 == 0)(labels)
            result += experiment.overlaps(inputs, weights, teacher, (count,))
        return result

    def judge(self, law, seen):
        yield kit.follows(
            "overlap",
            law.overlap,
            seen.overlap,
            0.13,  # the interval takes 0.09, the dimension 0.02
            over="neurons ratio",
            absolute=True,
            label="share of the teacher that the spectrum of T = 1 − 1/y sees above kd/2",
        )
        yield kit.follows(
            "half",
            law.half,
            seen.half,
            0.2,  # the interval takes 0.1, the line between two ratios 0.02
            over="neurons",
            label="n/d at which it sees half of the teacher",
        )
        yield kit.follows(
            "below",
            law.below,
            seen.below,
            0.12,  # a finite dimension sees up to 0.08
            over="neurons few",
            absolute=True,
            label="share that it sees below kd/2",
        )
        yield kit.follows(
            "other",
            law.other,
            seen.other,
            0.15,  # the interval takes 0.09, the dimension 0.03
            over="rule neurons",
            absolute=True,
            label=f"share that the spectra of a step and of clipped labels see at {self.ratios[-1]:g} kd",
        )
        yield kit.excluded(
            "search",
            0.7,
            1 - seen.search,
            label=f"search of a T that sees a share of 0.3 at {max(self.few):g} kd: what it does not see",
        )

    def rivals(self, setting, law):
        of_one_neuron = [[theory.best_overlap(q * k, 1) for q in self.ratios] for k in self.neurons]
        of_a_further_one = [
            [theory.best_overlap(q * k * k / (k + 1), k) for q in self.ratios] for k in self.neurons
        ]
        smooth = lambda ratios, like: xarray.zeros_like(like) + ratios / (1 + ratios)
        yield kit.rival(
            "threshold n = kd",
            "as many examples as unknowns",
            id="one_per_weight",
            overlap=("neurons ratio", self.best(self.ratios, 0.5)),
            half=2 * law.half,
        )
        yield kit.rival(
            "threshold n = (k + 1)d/2",
            "most of the paper is on complex signals, for which d is the threshold at k = 1",
            overlap=("neurons ratio", of_a_further_one),
            half=law.half * (law.neurons + 1) / law.neurons,
        )
        yield kit.rival(
            "threshold n = d/2 for every k",
            "neurons share their examples",
            overlap=("neurons ratio", of_one_neuron),
            half=law.half.isel(neurons=0, drop=True),
        )
        yield kit.rival(
            "n/(n + kd)",
            "from every example a little",
            id="no_threshold",
            overlap=smooth(law.ratio, law.overlap),
            below=smooth(law.few, law.below),
        )
        yield kit.rival(
            "the whole teacher from n = kd on",
            "from n = kd on the labels determine the teacher",
            overlap=xarray.ones_like(law.overlap),
        )
        yield kit.rival(
            "a step and clipped labels see as much",
            "large labels count in all three",
            other=law.overlap.isel(ratio=-1, drop=True),
        )

    def controls(self, seen):
        above = seen.overlap.isel(ratio=-1)
        first_ratio = [0] * len(self.few)
        without_labels = np.repeat(seen.shuffled.values[..., None], len(self.ratios), -1)
        yield kit.control(
            "labels in random order",
            "labels say nothing of the inputs",
            overlap=seen.shuffled.broadcast_like(seen.overlap),
            half=(seen.half.dims, self.half(without_labels)),
            other=seen.shuffled.broadcast_like(seen.other),
        )
        yield kit.control(
            f"{self.ratios[0]:g} kd examples in place of few",
            "the threshold is passed",
            id="above",
            below=(seen.below.dims, seen.overlap.values[..., first_ratio]),
            search=("attempt", np.resize(above.values, self.tries)),
        )

    def figure(self, law, seen, rivals):
        fine = np.linspace(min(self.few), max(self.ratios), 60)
        measured = np.concatenate([seen.below.values, seen.overlap.values], 2)
        points = np.array([*self.few, *self.ratios])
        curves = []
        for place, k in enumerate(self.neurons):
            shade = place / len(self.neurons)
            expected = [theory.best_overlap(q * k, k) for q in fine]
            curves.append(kit.predicted_curve(fine, expected, f"k = {k}", shade=shade))
            curves.append(
                kit.observed_curve(points, measured[:, place], "", kind="points", shade=shade)
            )
        k = self.neurons[0]
        rules = [
            kit.predicted_curve(fine, [theory.best_overlap(q * k, k) for q in fine], "1 − 1/y")
        ]
        for rule, weight in self.weights().items():
            expected = [theory.overlap(*weight, q * k, k) for q in fine]
            rules.append(kit.predicted_curve(fine, expected, rule, shade=0.5))
            shares = seen.other.sel(rule=rule).values[:, :1]
            rules.append(kit.observed_curve(points[-1:], shares, "", kind="points", shade=0.5))
        yield kit.panel(
            "The spectrum sees the teacher from half an example per weight on",
            RATIOS,
            "share of the teacher",
            *curves,
            ylim=(0, 1),
        )
        yield kit.panel(
            f"Other functions of the label need more (k = {k})",
            RATIOS,
            "share of the teacher",
            *rules,
            ylim=(0, 1),
        )
