"""Rare classes of a reader's own classifier: after how many steps of its own training each is learned."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from steepest import kit
from steepest.claims.curvature._on_classifiers import (
    cross_entropy_examples,
    examples_of,
    looking,
    steps_of,
)
from steepest.claims.training.rare_tokens import theory
from steepest.claims.training.rare_tokens.claim import RareTokens
from steepest.core.errors import UserError
from steepest.dynamics import logarithmic
from steepest.kit.subjects import Cost, Networks, OnSubject, Plainly
from steepest.measurement import Built
from steepest.measurement.adapters import Subject

LOOKS = 150  # on a logarithmic scale: 7 % apart in 10 000 steps, and times are interpolated
OURS = 2000  # steps of the other rule at most
FALL = 0.01  # of the risk in its first step
SPREAD = 4.0  # largest frequency over the smallest, at least
WITHIN = 0.15  # of the exponent: less than a third of the way to the next rule's, half a power off
SHORTEST = 10.0  # steps of the most frequent class, at least: whole steps are a tenth of it
MEMORY = 2.5  # times that the rarest class comes in Adam's memory, at least


class Learned(NamedTuple):
    """When classes were learned.

    Attributes:
        steps: until the mean loss of each class was half of what it was at the start, ``(classes,)``; all that were
            taken, where it never was.
        reached: whether it was, ``(classes,)``.
    """

    steps: NDArray
    reached: NDArray


@dataclass(frozen=True)
class RareOnSubject(OnSubject, RareTokens):
    """Your training, with the loss of each class followed."""

    words: tuple[kit.Count, ...] = kit.param((64, 32, 16), "examples of each class in your data")
    batches: tuple[kit.Count, ...] = kit.param((), "b, where your optimizer is Adam")
    seeds: kit.Seeds = kit.param(4, "networks, if your function takes a seed")
    examples: kit.Count = kit.param(
        2000, "examples of yours at most, on which losses are looked at"
    )
    steps: Annotated[int, kit.Within(0)] = kit.param(
        0, "steps of your training; 0 takes all of it, 10000 at most", unit="steps"
    )

    says = (
        "Your network learns a class in a time inverse to its frequency π by SGD, and in one that grows like "
        "√(1 + (1 − π)/(bπ)) by Adam."
    )
    headline = ("slope",)
    settable = ("seeds", "examples", "steps")
    needs = {
        "train": "as classes are learned in training",
        "optimizer": "as SGD and Adam have laws of their own",
    }
    left_out = {"descent, adam": "they are numbers of steps of a softmax regression of ours"}
    unchecked = (
        "its classes are told apart by weights of their own",
        "its batches are random draws of your data",
        "its step size stays the same until the last class is learned",
    )
    notes = (
        "A class is learned when its mean cross-entropy is half of what it was at the start, in evaluation mode. Times "
        "are judged relative to that of the most frequent class.",
        "What is judged is the exponent of these times in the number of examples, beside that of the law. "
        "Momentum shortens all times alike, but for the 1/(1 − β) steps in which it comes up; the averages of Adam lag "
        "nearly alike.",
        "Where classes share features or hidden layers, frequent ones first push rare ones out, and times depend on "
        "frequency more steeply: on small networks like π to −1.1 to −1.4 by SGD, and to −0.4 to −0.7 by Adam where "
        "the law has −0.1. The claim does not hold there.",
        "The same judge must refuse the other rule on your network and data, with all examples at once: descent on "
        "signs of gradients where you have SGD, plain descent where you have Adam.",
    )

    plainly = {
        "descent": Plainly("the number of steps of SGD until a class is learned"),
        "adam": Plainly("the number of steps of Adam until a class is learned"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        # a law that hardly depends on frequency cannot be told from one that does not
        flat = abs(exponent(self.words, self.delay()))
        reason = "your batches hold every class, and Adam learns all at nearly one time"
        kinds = [
            kind for kind, apart in (("flat", flat), ("reversed", 2 * flat)) if apart < 2 * WITHIN
        ]
        object.__setattr__(self, "not_told", {f"delay.count.{kind}": reason for kind in kinds})

    @property
    def adam(self) -> bool:
        """Whether the optimizer is Adam, for which the size of batches counts."""
        return bool(self.batches)

    def setting(self, key):
        networks = self.build_all()
        sizes = cross_entropy_examples(networks.subjects[0]).sizes
        order = np.argsort(-sizes, kind="stable")
        classes = order[sizes[order] > 0]
        facts = {"classes": classes, "sizes": sizes[classes], "beta2": beta2_of(networks.built[0])}
        drawn = [self.drawn(subject, self.examples) for subject in networks.subjects]
        return Networks(networks.built, drawn, facts)

    def read(self, networks):
        adam = networks.facts["beta2"] is not None
        return {
            "words": tuple(networks.facts["sizes"].tolist()),
            "batches": (batch_of(networks.built[0]),) if adam else (),
        }

    def axes(self):
        return {"count": self.words}

    def chances(self) -> NDArray:
        """Return the frequencies of the classes, most frequent first, ``(classes,)``."""
        return np.array(self.words, float) / sum(self.words)

    def delay(self) -> NDArray:
        """Return the law: times relative to that of the most frequent class, ``(classes,)``."""
        chances = self.chances()
        rate = theory.update(self.batches[0], chances) if self.adam else chances
        return rate[0] / rate

    def hypotheses(self, setting):
        sizes = setting.facts["sizes"]
        assumed = [
            kit.assume("classes with examples", len(sizes), ">=", 3, "a power needs three points"),
            kit.assume(
                "largest frequency over the smallest",
                float(sizes[0] / sizes[-1]),
                ">=",
                SPREAD,
                "classes of like size have no rare one among them",
            ),
        ]
        if self.adam:
            forgets = 1 - setting.facts["beta2"]
            assumed.append(
                kit.assume(
                    "times that the rarest class is in v's memory, bπ/(1 − β₂)",
                    float(self.batches[0] * self.chances()[-1] / forgets),
                    ">=",
                    MEMORY,
                    "Adam forgets it in between: choose larger batches",
                )
            )
        return assumed

    def cost(self, networks):
        count = len(networks)
        ours = count * (OURS if self.adam else 1 / FALL)
        looks = count * LOOKS
        steps = count * steps_of(networks.built[0], self.steps)
        return Cost(steps=steps, passes=2 * looks, gradients=ours)

    def predict(self, setting):
        return kit.law(delay=("count", self.delay()))

    def observe(self, setting, key):
        classes = setting.facts["classes"]
        theirs = [
            self.training(built, subject, classes)
            for built, subject in zip(setting.built, setting.subjects, strict=True)
        ]
        ours = [other_rule(subject, classes, signs=not self.adam) for subject in setting.subjects]
        steps = self.stacked([learned.steps for learned in theirs])
        exchanged = self.stacked([learned.steps for learned in ours])
        missed = self.stacked([(~learned.reached).sum() for learned in theirs])
        return kit.seen(
            steps=("seed count", steps, "steps"),
            delay=("seed count", steps / steps[:, :1]),
            delay_exchanged=("seed count", exchanged / exchanged[:, :1]),
            missed=("seed", missed),
        )

    def training(self, built: Built, subject: Subject, classes: NDArray) -> Learned:
        """Train one network by the reader's own training until all classes are learned, or to its end."""
        most = steps_of(built, self.steps)
        marks = set(logarithmic(most, LOOKS).tolist())
        looks: list[NDArray] = []
        when: list[int] = []
        for taken, model in self.path(built, most):
            if taken not in marks:
                continue
            with looking(model, subject) as (now,):
                looks.append(class_losses(now, classes))
            when.append(taken)
            if are_learned(looks):
                break
        return half_times(np.array(when, float), np.array(looks))

    def run_conditions(self, observed):
        yield kit.assume(
            "classes that never came to half of their loss",
            float(observed["missed"].max()),
            "<=",
            0,
            "train longer, or raise --steps",
        )
        yield kit.assume(
            "steps until the most frequent class is learned",
            float(observed["steps"][:, 0].min()),
            ">=",
            SHORTEST,
            "choose a smaller step size, so that whole steps do not count",
        )

    def judge(self, law, seen):
        yield kit.power(
            "slope",
            law.delay,
            seen.delay,
            WITHIN,
            over="count",
            label="power of the examples of a class that its time goes with",
        )

    def rivals(self, setting, law):
        rarer = law["count"][0] / law["count"]
        powers = {
            "all_alike": (0.0, "each class is learned at its own pace", "one time for all classes"),
            "root": (0.5, "the root of the mean square falls like √π", "1/√π"),
            "inverse": (1.0, "a class is learned from a number of its examples", "1/π"),
        }
        of_law = exponent(self.words, law.delay.values)
        return [
            kit.rival(label, because, id=id, delay=rarer**power)
            for id, (power, because, label) in powers.items()
            if abs(of_law + power) > 2 * WITHIN  # nearer ones say the same here
        ]

    def controls(self, seen):
        rule = "plain descent" if self.adam else "descent on signs"
        yield kit.control(
            f"{rule} in the place of your optimizer",
            "each rule has times of its own",
            id="exchanged",
            delay=seen.delay_exchanged,
        )

    def figure(self, law, seen, rivals):
        counts = np.array(self.words, float)
        first = float(seen.steps.values[:, 0].mean())
        ours = first * seen.delay_exchanged.values.mean(0)
        yield kit.panel(
            "When your network learns its classes",
            "examples of the class",
            "steps until its loss is half",
            kit.observed_curve(counts, seen.steps.values, "your training"),
            kit.predicted_curve(counts, first * law.delay.values, "law"),
            kit.context_curve(counts, ours, "the other rule, in its own steps"),
            log="xy",
        )


def exponent(counts: tuple[int, ...], delay: NDArray) -> float:
    """Return the power of counts that a law goes with, by its own fit; 0 where all counts are alike.

    >>> round(exponent((8, 4, 2), np.array([1.0, 2.0, 4.0])), 6)
    -1.0
    """
    x = np.log(np.array(counts, float))
    return float(np.polyfit(x, np.log(delay), 1)[0]) if np.ptp(x) else 0.0


def beta2_of(built: Built) -> float | None:
    """Return β₂ of Adam, or None of descent.

    Raises:
        UserError: another optimizer, of which no law is known here.
    """
    kind = type(built.optimizer).__name__
    if kind not in ("SGD", "Adam", "AdamW"):
        raise UserError(
            f"rare-tokens is of torch's SGD, Adam and AdamW, got {kind}: give your optimizer among the parts"
        )
    return None if kind == "SGD" else float(built.optimizer.param_groups[0]["betas"][1])


def batch_of(built: Built) -> int:
    """Return how many examples a batch has.

    Raises:
        UserError: it is not said.
    """
    if built.batch is None:
        raise UserError(
            "rare-tokens needs 'batch' among the parts for Adam: how many examples your train takes in a step"
        )
    return int(built.batch)


def class_losses(subject: Subject, classes: NDArray) -> NDArray:
    """Return the mean cross-entropy of each class, ``(classes,)``."""
    examples = examples_of(subject)
    rows = np.arange(len(examples.labels))
    losses = logsumexp(examples.outputs, axis=1) - examples.outputs[rows, examples.labels]
    totals = np.bincount(examples.labels, losses, minlength=examples.classes)
    return totals[classes] / examples.sizes[classes]


def are_learned(looks: list[NDArray]) -> bool:
    """Whether each class has come to half of its first loss in one of the looks."""
    return bool((np.min(looks, axis=0) <= looks[0] / 2).all())


def half_times(marks: NDArray, losses: NDArray) -> Learned:
    """Return when the losses first are half of what they were at the first mark, interpolated between marks.

    Args:
        marks: steps at which they were looked at, increasing, ``(looks,)``.
        losses: ``(looks, classes)``.
    """
    half = losses[0] / 2
    below = losses <= half
    reached = below.any(0)
    steps = np.full(len(half), marks[-1])
    for place in np.flatnonzero(reached):
        after = int(below[:, place].argmax())
        before = max(after - 1, 0)
        fall = losses[before, place] - losses[after, place]
        part = (losses[before, place] - half[place]) / fall if fall else 1.0
        steps[place] = marks[before] + part * (marks[after] - marks[before])
    return Learned(steps, reached)


def other_rule(subject: Subject, classes: NDArray, signs: bool) -> Learned:
    """Descend from the start on all examples at once, on the gradient or on its signs, until all are learned."""
    marks = set(logarithmic(OURS, LOOKS).tolist())
    values = subject.values().astype(float)
    slope = np.asarray(subject.gradient(), float)
    # to first order the first step lowers the risk by η‖g‖₁ or η‖g‖²
    eta = (
        FALL * subject.risk() / max(float(np.abs(slope).sum() if signs else slope @ slope), 1e-300)
    )
    now = subject
    looks: list[NDArray] = []
    when: list[int] = []
    for taken in range(OURS + 1):
        if taken in marks:
            looks.append(class_losses(now, classes))
            when.append(taken)
            if are_learned(looks):
                break
        slope = np.asarray(now.gradient(), float)
        values = values - eta * (np.sign(slope) if signs else slope)
        now = subject.at(values.astype(subject.dtype))
    return half_times(np.array(when, float), np.array(looks))
