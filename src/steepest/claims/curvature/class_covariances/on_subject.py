"""Covariances of features and of backpropagated errors of a reader's own classifier, once it is trained."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from steepest import kit
from steepest.claims.curvature._on_classifiers import (
    DECAYED,
    cross_entropy_examples,
    decay,
    examples_of,
    looking,
    networks_on,
    of_classes,
    stacked,
    steps_of,
    trained,
    undecided_decay,
)
from steepest.claims.curvature.class_covariances.claim import KINDS, ClassCovariances
from steepest.core.errors import UserError
from steepest.kit.subjects import Cost, Networks, OnSubject, Plainly, kept_rivals, retitled
from steepest.measurement.adapters import Subject
from steepest.measurement.quantities import error_rows, explained_of_rows, feature_rows, softmax

LARGEST = 5e8  # numbers that the errors of all layers have together: 2 GB in single precision


@dataclass(frozen=True)
class CovariancesOnSubject(OnSubject, ClassCovariances):
    """Your trained classifier with cross-entropy, on at most n of its examples, drawn by class."""

    classes: kit.Count = kit.param(10, "C")
    seeds: kit.Seeds = kit.param(6, "independent networks, if your function takes a seed")
    n: kit.Count = kit.param(300, "examples of yours at most, drawn by class")
    depth: kit.Count = kit.param(4, "hidden layers that can be compared", unit="layers")
    steps: Annotated[int, kit.Within(0)] = kit.param(
        0,
        "steps of your training, if your function returns one; 0 takes all of it, 10000 at most",
        unit="steps",
    )

    says = "Class means make the outliers of your network's features and errors; of features, more so with depth."
    headline = ("last_layer", "features_by_depth")
    settable = ("seeds", "n", "steps")
    unchecked = (DECAYED,)
    notes = (
        "A hidden layer is a linear or convolutional one, in the order in which they are first reached: its errors are "
        "those in what it writes, its features what the next such layer reads, after activation, normalization and "
        "pooling. Both are taken whole, all places of an image together.",
        "With 'train' every network is trained by your own steps first. Without it, it is taken as it is built, and "
        "the comparison with the start is left out: learned, the rival 'given', the control 'start'.",
        "Everything is measured in evaluation mode. The training error is that of all your examples.",
    )

    plainly = {
        "last_layer": Plainly("the share of the class means in the outliers of the last layer"),
        "features_by_depth": Plainly(
            "what that share of the features gains in the layer that gains least"
        ),
        "errors_by_depth": Plainly(
            "what that share of the errors gains in the layer that gains least"
        ),
        "learned": Plainly("what that share gains by training, in the layer that gains least"),
    }

    def setting(self, key):
        networks = networks_on(self, self.n)
        first = networks.subjects[0]
        examples = cross_entropy_examples(first)
        sizes = hidden(first.layers(), len(examples.labels))
        if len(sizes) < 2:
            raise UserError(
                f"class-covariances compares hidden layers, and {first.name} has {len(sizes)} that can be seen; it "
                "needs three linear or convolutional layers, the last of which gives the outputs"
            )
        facts = {**networks.facts, "examples": examples, "sizes": sizes}
        return Networks(networks.built, networks.subjects, facts)

    def read(self, networks):
        examples = networks.facts["examples"]
        depth = len(networks.facts["sizes"])
        return {"classes": examples.classes, "n": len(examples.labels), "depth": depth}

    def hypotheses(self, setting):
        sizes = list(setting.facts["sizes"].values())
        return [
            *of_classes(setting.facts["examples"]),
            *decay(setting),
            kit.assume(
                "numbers of the narrowest hidden layer for an example",
                min(sizes),
                ">=",
                self.classes,
                "a layer narrower than C has no eigenvalues beside the C − 1 that are compared",
            ),
            kit.assume(
                "numbers of the errors of all layers and labels",
                self.n * self.classes * sum(sizes),
                "<=",
                LARGEST,
                "choose a smaller --n",
            ),
        ]

    def assumed(self, networks):
        return undecided_decay(networks)

    def cost(self, networks):
        seeds = len(networks)
        built = networks.built[0]
        moments = 1 if built.train is None else 2
        return Cost(
            gradients=seeds * moments * self.classes,  # one vjp a label
            passes=seeds * (2 * moments + networks.facts["times"]),
            steps=seeds * steps_of(built, self.steps),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        measured = []
        wholes = setting.facts["whole"]
        for built, drawn, whole in zip(setting.built, setting.subjects, wholes, strict=True):
            start = {}
            if built.train is not None:
                with looking(built.model, drawn) as (now,):
                    start = {"start": self.shares_of(now, [examples_of(now).labels])[0]}
            model = trained(self, built, self.steps)
            with looking(model, drawn, whole) as (now, all_of_them):
                labels = examples_of(now).labels
                end, random = self.shares_of(now, [labels, rng.permutation(labels)])
                spectra = self.last_layer(now)
                error = examples_of(all_of_them).error
            measured.append({"error": error, "end": end, "random": random, **start, **spectra})
        arrays = stacked(self, measured)
        # the axis of features and errors comes before that of the seeds
        shares = {
            name: arrays.pop(name).swapaxes(0, 1)
            for name in ("start", "end", "random")
            if name in arrays
        }
        return kit.seen(
            error=("seed", arrays["error"]),
            **{name: ("what seed layer", values) for name, values in shares.items()},
            spectrum=("seed rank", arrays["spectrum"]),
            of_means=("seed rank", arrays["of_means"]),
        )

    def shares_of(self, now: Subject, groupings: list[NDArray]) -> list[NDArray]:
        """Return shares of the outliers that means carry, ``(features and errors, layer)``, for each grouping.

        Args:
            now: the network.
            groupings: of the examples, such as their classes.

        Raises:
            UserError: the loss is no longer the cross-entropy.
        """
        outputs, _ = cross_entropy_examples(now)
        p = softmax(outputs)
        features = list(next_reads(now.reads()).values())
        errors = extended_errors(now, p)
        shares = np.empty((len(groupings), len(KINDS), len(features)))
        for k in range(len(features)):
            read = flat(features[k])
            sent = flat(errors.pop(0), 2)
            for j, groups in enumerate(groupings):
                rows = (
                    feature_rows(read, groups, self.classes),
                    error_rows(sent, p / len(p), groups),
                )
                shares[j, :, k] = [explained_of_rows(part, self.classes - 1) for part in rows]
        return list(shares)

    def last_layer(self, now: Subject) -> dict[str, NDArray]:
        """Return the 2C largest eigenvalues of the last features' covariance, and those of the class means'."""
        rows = feature_rows(
            flat(list(now.reads().values())[-1]), examples_of(now).labels, self.classes
        )
        count = 2 * self.classes

        def largest(x: NDArray) -> NDArray:
            """Return the largest eigenvalues of ``xᵀx``, with zeros where it has no more."""
            # eigenvalues of xᵀx are squared singular values of x
            values = np.linalg.svd(x, compute_uv=False)[:count] ** 2
            return np.pad(values, (0, count - len(values)))

        return {"spectrum": largest(rows.all), "of_means": largest(rows.all[: rows.first])}

    def rivals(self, setting, law):
        every = super().rivals(setting, law)
        if setting.built[0].train is not None:
            return every
        return kept_rivals(every, "any_grouping", "early_layers")

    def controls(self, seen):
        if "start" in seen:
            return super().controls(seen)
        backwards = kit.control(
            "the network's layers, the last first",
            "its first layer has the least of the classes",
            id="backwards",
            end=(seen.end.dims, seen.end.values[..., ::-1]),
        )
        return [self.random_classes(seen), backwards]

    def figure(self, law, seen, rivals):
        titles = (
            "Class means in the outliers of features",
            "Class means in the outliers of errors",
            "Features, last layer",
        )
        return retitled(super().figure(law, seen, rivals), *titles)


def hidden(written: Mapping[str, NDArray], count: int) -> dict[str, int]:
    """Return how many numbers each hidden layer writes for an example, by name; the last layer gives the outputs."""
    sizes = {name: int(rows[0].size) for name, rows in written.items() if len(rows) == count}
    return dict(list(sizes.items())[:-1])


def next_reads(read: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """Return the features after each hidden layer: what the next layer reads, by the name of that layer."""
    return dict(list(read.items())[1:])


def extended_errors(now: Subject, p: NDArray) -> list[NDArray]:
    """Return ``δ_{i,c'}`` in what each hidden layer writes, ``(n, C, …)``: what example i sends back if labelled c'."""
    # the cross-entropy of label c' has the slope p − e_c' in the outputs, pulled back to each layer
    of_labels = [
        list(now.layer_vjp(p - np.eye(p.shape[1])[label]).values())[:-1]
        for label in range(p.shape[1])
    ]
    return [np.stack(of_layer, 1) for of_layer in zip(*of_labels, strict=True)]


def flat(array: NDArray, kept: int = 1) -> NDArray:
    """Flatten all but the first axes, in double precision."""
    return np.asarray(array, float).reshape(*array.shape[:kept], -1)
