"""Neural collapse of a reader's own classifier along its own training."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from steepest import kit
from steepest.claims.curvature._on_classifiers import (
    DECAYED,
    Examples,
    decay,
    examples_of,
    looking,
    of_classes,
    stacked,
    steps_of,
    undecided_decay,
)
from steepest.claims.curvature.neural_collapse.claim import FALL, NeuralCollapse
from steepest.claims.curvature.neural_collapse.experiment import RECORDS, seen_of
from steepest.core.errors import UserError
from steepest.dynamics import logarithmic
from steepest.kit.subjects import Cost, Networks, OnSubject, Plainly, retitled
from steepest.measurement import Built, check_cross_entropy, last_layer
from steepest.measurement.adapters import Subject

BALANCED = 1.5  # largest class over the smallest: theory is for equal classes
MANY = 100  # classes: the random means of the control have their square in cosines


def _factor(log_beyond: float) -> float:
    """Return by which factor NC1 fell, of the logarithm by how much more than ``FALL``."""
    return FALL * math.exp(log_beyond)


@dataclass(frozen=True)
class CollapseOnSubject(OnSubject, NeuralCollapse):
    """Your classifier along your own training, on at most n of its examples, drawn by class."""

    classes: kit.Count = kit.param(5, "C")
    seeds: kit.Seeds = kit.param(6, "independent networks, if your function takes a seed")
    n: kit.Count = kit.param(5000, "examples of yours at most, drawn by class")
    width: kit.Count = kit.param(32, "dimension p of the features")
    net_steps: Annotated[int, kit.Within(0)] = kit.param(
        0, "steps of your training; 0 takes all of it, 10000 at most", unit="steps"
    )

    says = (
        "Past zero error your features collapse onto class means, which form a simplex "
        "with the classifier's rows."
    )
    settable = ("seeds", "n", "net_steps")
    needs = {"train": "as collapse is a matter of training past zero error"}
    unchecked = (DECAYED,)
    notes = (
        "Your own training runs as it is; features, classifier and error are looked at in evaluation mode, at about 60 "
        "steps. Zero error is that of the examples drawn, without augmentation.",
        "The loss must be the mean cross-entropy, or a multiple of the squared distance from one-hot targets. With "
        "cross-entropy the spread within the classes (NC1) stopped short of collapse on networks of ours: there the "
        "claim does not hold.",
        "Independent random class means are nearer to a simplex the more features there are, so that wide last layers "
        "must do better to pass.",
    )

    plainly = {
        "variability_falls": Plainly(
            "the factor by which variation within the classes has shrunk since zero error", _factor
        ),
        "angles": Plainly(
            "the mean distance of cosines between class means from those of a simplex"
        ),
        "norm_spread": Plainly("the spread of the lengths of the class means over their mean"),
        "duality": Plainly(
            "the distance of the classifier's rows from the class means, both scaled to one length,"
        ),
        "nearest_mean": Plainly(
            "the share of examples that the nearest class mean decides otherwise"
        ),
        "rank": Plainly("the number of dimensions that the class means span"),
    }

    def setting(self, key):
        networks = self.build_all(most=self.n)
        first = networks.subjects[0]
        examples = examples_of(first, one_hot=True)
        loss = loss_of(first, examples)
        layer = last_layer(first, examples.outputs)
        facts = {"examples": examples, "loss": loss, "width": layer.features.shape[1]}
        return Networks(networks.built, networks.subjects, facts)

    def read(self, networks):
        facts = networks.facts
        return {
            "classes": facts["examples"].classes,
            "loss": facts["loss"],
            "width": facts["width"],
        }

    def hypotheses(self, setting):
        examples = setting.facts["examples"]
        sizes = examples.sizes
        yield from of_classes(examples)
        yield kit.assume(
            "classes at most", examples.classes, "<=", MANY, "the control takes too much memory"
        )
        yield kit.assume(
            "largest class over the smallest",
            sizes.max() / max(1, sizes.min()),
            "<=",
            BALANCED,
            "give as many examples of each class",
        )
        yield kit.assume(
            "dimension p of the features",
            self.width,
            ">=",
            self.classes - 1,
            "a simplex of C means has C − 1 dimensions",
        )
        yield from decay(setting)

    def assumed(self, networks):
        return undecided_decay(networks)

    def cost(self, networks):
        steps = steps_of(networks.built[0], self.net_steps)
        looks = len(logarithmic(steps, RECORDS))
        # one for the outputs and one for the features
        return Cost(passes=len(networks) * looks * 2, steps=len(networks) * steps)

    def observe(self, setting, key):
        paths = [
            self.path_of(built, subject)
            for built, subject in zip(setting.built, setting.subjects, strict=True)
        ]
        longest = max(paths, key=lambda path: path["step"][-1])
        records = max(len(path["step"]) for path in paths)
        # a training that ends earlier stays where it ended
        last = lambda values: [*values, *[values[-1]] * (records - len(values))]
        names = [name for name in paths[0] if name != "step"]
        arrays = stacked(self, [{name: last(path[name]) for name in names} for path in paths])
        return kit.seen(**self.along(np.array(last(longest["step"])), arrays, key))

    def path_of(self, built: Built, subject: Subject) -> dict[str, list]:
        """Train one network, and return what was seen at the marks and at the end, by name."""
        most = steps_of(built, self.net_steps)
        marks = set(logarithmic(most, RECORDS).tolist())
        looks = []
        model = built.model
        taken = 0
        for taken, model in self.path(built, most):
            if taken in marks:
                looks.append(look(model, subject, taken))
        if looks[-1]["step"] != taken:
            looks.append(look(model, subject, taken))
        return {name: [moment[name] for moment in looks] for name in looks[0]}

    def figure(self, law, seen, rivals):
        titles = (
            "The spread within classes, over that between them",
            "Cosines of the centred class means",
            "How far the classifier is from the class means",
        )
        return retitled(NeuralCollapse.figure(self, law, seen, rivals), *titles)


def look(model: Any, subject: Subject, step: int) -> dict[str, Any]:
    """Return collapse and training error of the model of now."""
    with looking(model, subject) as (now,):
        examples = examples_of(now, one_hot=True)
        features, matrix, bias = last_layer(now, examples.outputs)
    state = seen_of(features, examples.labels, matrix, bias)
    return {"step": step, "error": examples.error, **state}


def loss_of(subject: Subject, examples: Examples) -> str:
    """Tell by its value which of the claim's losses the risk is.

    Raises:
        UserError: neither.
    """
    try:
        check_cross_entropy(subject, examples.outputs, examples.labels)
    except UserError as trouble:
        if is_squared(subject, examples):
            return "squared"
        raise UserError(
            f"neural-collapse is asked of the mean cross-entropy, or of the mean squared distance from one-hot "
            f"targets, {distance(examples):.6g} here, of half of it, or of these over the number of outputs; {trouble}"
        ) from trouble
    return "cross-entropy"


def distance(examples: Examples) -> float:
    """Return the mean squared distance of the outputs from one-hot targets."""
    return float(
        ((examples.outputs - np.eye(examples.classes)[examples.labels]) ** 2).sum(1).mean()
    )


def is_squared(subject: Subject, examples: Examples) -> bool:
    """Tell by its value whether the risk is that distance, half of it, or these over the number of outputs."""
    risk = subject.risk()
    near = 1e4 * np.finfo(subject.dtype).eps * (1 + abs(risk))
    factors = (0.5, 1.0, 0.5 / examples.classes, 1 / examples.classes)
    return any(abs(risk - factor * distance(examples)) <= near for factor in factors)
