"""The size of Adam's updates on a reader's own gradients: at weights that stay, over batches of its data."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.training.update_size import experiment
from steepest.claims.training.update_size.claim import UpdateSize
from steepest.kit.subjects import Cost, Networks, OnSubject, Plainly
from steepest.measurement.adapters import Subject, gradient_of
from steepest.optimizers import Moments, update_size_of_adam

USUAL = (0.9, 0.999)  # β₁ and β₂ of an optimizer that is not Adam
LEAST = 0.05  # share of the weights that the law must speak of


class Given(NamedTuple):
    """What theory and experiment may both see.

    Attributes:
        betas: β₁ and β₂ of the reader's Adam, or the usual ones.
        moments: of each weight's gradient over the examples, one network a seed, each ``(p,)``.
    """

    betas: tuple[float, float]
    moments: tuple[Moments, ...]


@dataclass(frozen=True)
class SizeOnSubject(OnSubject, UpdateSize):
    """Your network at the weights that your function left; batches of at most so many of your examples."""

    images: kit.Count = kit.param(200, "examples of yours at most, drawn by class", unit="examples")
    batches: tuple[kit.Count, ...] = kit.param((8, 24, 72), "examples of a batch")
    steps: kit.Count = kit.param(600, "steps, of which the last half counts", unit="steps")
    seeds: kit.Seeds = kit.param(3, "networks, if your function takes a seed")

    says = (
        "Adam's update of your network has a root mean square of η√((s² + ρ)/(1 + s²)), with s of your batches: "
        "0.229 η at β₁ = 0.9 where they are noise, and η where they agree."
    )
    headline = ("digits",)
    settable = ("images", "batches", "steps", "seeds")
    left_out = {"adam": "it is of Gaussian gradients", "muon": "it is of Gaussian matrices"}
    notes = (
        "Your weights stay where they are, so that gradients keep their size; in a training that is short or whose "
        "gradients shrink, updates are smaller. `steepest measure` reads the size of your last one.",
        "s comes from the gradients of single examples, all of them. Then Adam's averages run over batches that are "
        "drawn anew, with your β₁ and β₂. Evaluation mode; no step is taken.",
        "The law is to first order in how much second moments vary: weights that few examples reach are left out.",
    )

    plainly = {
        "digits": Plainly("the root mean square of Adam's update, in units of the step size")
    }

    def setting(self, key):
        return self.build_all(most=self.images)

    def prepare(self, networks, key):
        group = next(iter(getattr(networks.built[0].optimizer, "param_groups", [])), {})
        beta1, beta2 = group.get("betas", USUAL)
        moments = tuple(moments_of(subject) for subject in networks.subjects)
        facts = {"given": Given((float(beta1), float(beta2)), moments)}
        return Networks(networks.built, networks.subjects, facts)

    def hypotheses(self, setting):
        given = setting.facts["given"]
        told = [self.told(given, place, batch).mean() for place, batch in self.lanes(given)]
        yield kit.assume(
            "smallest share of your weights whose second moments vary little",
            min(told),
            ">=",
            LEAST,
            "most weights have no gradient in most batches: choose larger --batches",
        )
        yield kit.assume(
            "memory of m, 1/(1 − β₁), over half of the steps",
            2 / (1 - given.betas[0]) / self.steps,
            "<=",
            0.1,
            "m must have forgotten its start: raise --steps",
        )

    def lanes(self, given: Given) -> list[tuple[int, int]]:
        """Return place of the network and size of the batch of each run of Adam."""
        places = range(len(given.moments))
        return [(place, batch) for place in places for batch in self.batches]

    def told(self, given: Given, place: int, batch: int) -> kit.Values:
        """Mark the weights of a network of which the law speaks, ``(p,)``."""
        return experiment.told(given.moments[place], batch, given.betas[1], self.late[0])

    def cost(self, networks):
        count = len(networks)
        examples = sum(count for _, count in networks.subjects[0].batches)
        batches = count * (2 * examples + len(self.batches) * self.steps)
        return Cost(batches=batches, batch=max(self.batches))

    def axes(self):
        return {"batch": self.batches}

    def predict(self, setting):
        given = setting.facts["given"]
        sizes = [self.size(given, place, batch) for place, batch in self.lanes(given)]
        by_network = np.reshape(sizes, (len(given.moments), len(self.batches)))
        return kit.law(digits=("seed batch", self.stacked(list(by_network))))

    def size(self, given: Given, place: int, batch: int) -> float:
        """Return the law for batches of one size, over the weights that count."""
        counts = self.told(given, place, batch)
        moments = Moments(*(values[counts] for values in given.moments[place].of_means(batch)))
        sizes = update_size_of_adam(moments, *given.betas, self.late)
        return float(np.sqrt((sizes**2).mean()))

    def observe(self, setting, key):
        given = setting.facts["given"]
        rng = kit.numpy_generator(key)
        sizes = [
            self.run(setting.subjects[place], given, self.told(given, place, batch), batch, rng)
            for place, batch in self.lanes(given)
        ]
        whole = [
            self.run(subject, given, self.told(given, place, self.batches[0]), 0, rng)
            for place, subject in enumerate(setting.subjects)
        ]
        by_network = np.reshape(sizes, (len(setting), len(self.batches)))
        return kit.seen(
            digits=("seed batch", self.stacked(list(by_network))),
            whole=("seed", self.stacked(whole)),
        )

    def run(
        self,
        subject: Subject,
        given: Given,
        counts: kit.Values,
        batch: int,
        rng: np.random.Generator,
    ) -> float:
        """Return the root mean square of Adam's updates over late steps; all examples at once if ``batch`` is 0."""
        beta1, beta2 = given.betas
        examples = sum(count for _, count in subject.batches)
        steps = self.steps if batch else experiment.FEW
        first = np.zeros(int(counts.sum()))
        second = np.zeros_like(first)
        squares = 0.0
        for step in range(1, steps + 1):
            rows = rng.integers(examples, size=batch) if batch else np.arange(examples)
            gradient = np.asarray(gradient_of(subject, rows), float)[counts]
            first = beta1 * first + (1 - beta1) * gradient
            second = beta2 * second + (1 - beta2) * gradient**2
            if step > steps // 2:
                # averages that began at zero are corrected for it
                root = np.sqrt(second / (1 - beta2**step)) + experiment.EPSILON
                squares += float(((first / (1 - beta1**step) / root) ** 2).mean())
        return float(np.sqrt(squares / (steps - steps // 2)))

    def judge(self, law, seen):
        yield kit.follows(
            "digits",
            law.digits,
            seen.digits,
            0.06,  # the claim's 4 % and as much noise as half of a few hundred steps leave
            over="batch",
            label="on your batches: size of Adam's update over η",
        )

    def rivals(self, setting, law):
        beta1 = setting.facts["given"].betas[0]
        ones = xarray.ones_like(law.digits)
        yield kit.rival(
            "each weight moves by η",
            "its first step is the sign of the gradient",
            id="signs",
            digits=ones,
        )
        yield kit.rival(
            "√ρ η at every s",
            "batches are mostly noise",
            id="noise_alone",
            digits=((1 - beta1) / (1 + beta1)) ** 0.5 * ones,
        )

    def controls(self, seen):
        yield kit.control(
            "all of your examples in every step",
            "all examples at once have no noise",
            id="whole",
            digits=seen.whole.broadcast_like(seen.digits),
        )

    def figure(self, law, seen, rivals):
        yield kit.curves(
            "Your batches: size of Adam's update",
            law.digits.mean("seed"),
            seen.digits,
            over="batch",
            x="examples of a batch",
            y="size of Adam's update / η",
            log="x",
            ylim=(0, 1.05),
        )


def moments_of(subject: Subject) -> Moments:
    """Return the moments of each weight's gradient over single examples, each ``(p,)``, by two passes."""
    examples = sum(count for _, count in subject.batches)
    mean = np.asarray(subject.gradient(), float)
    powers = np.zeros((3, subject.size))
    for row in range(examples):
        away = np.asarray(gradient_of(subject, np.array([row])), float) - mean
        powers += away ** np.array([[2], [3], [4]])
    return Moments(mean, *(powers / examples))
