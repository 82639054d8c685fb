"""The three levels of the Gauss–Newton matrix of a reader's own classifier, once it is trained."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from jaxtyping import Float

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
from steepest.claims.curvature._trained import TOLERANCE
from steepest.claims.curvature.three_level_hessian.claim import AXES, ThreeLevelHessian
from steepest.claims.curvature.three_level_hessian.experiment import (
    CLASS_PART,
    LEVELS,
    PROBES,
    REMOVED,
)
from steepest.kit.subjects import Cost, Networks, OnSubject, Plainly, retitled
from steepest.linalg import row_by_row, top_eigenpairs
from steepest.measurement.adapters import Subject
from steepest.measurement.quantities import Parts, level_forms, level_maps

PER_PAIR = (
    4  # products with a matrix for each eigenpair that is found, as seen on networks of digits
)
LARGEST = 1e9  # numbers of the Krylov space and its images: 4 GB in single precision


@dataclass(frozen=True)
class ThreeLevelOnSubject(OnSubject, ThreeLevelHessian):
    """Your trained classifier with cross-entropy, on at most n of its examples, drawn by class."""

    classes: kit.Count = kit.param(10, "C")
    seeds: kit.Seeds = kit.param(5, "independent networks, if your function takes a seed")
    n: kit.Count = kit.param(300, "examples of yours at most, drawn by class")
    steps: Annotated[int, kit.Within(0)] = kit.param(
        0,
        "steps of your training, if your function returns one; 0 takes all of it, 10000 at most",
        unit="steps",
    )

    says = (
        "The outliers of your network's Gauss–Newton matrix come from its classes and "
        "pairs of classes."
    )
    settable = ("seeds", "n", "steps")
    unchecked = (DECAYED,)
    notes = (
        "With 'train' every network is trained by your own steps first; without it, it is taken as it is built.",
        "Eigenvalues are those of the Gauss–Newton matrix on the examples drawn, in evaluation mode: dropout is off "
        "and batch normalization keeps its statistics. The training error is that of all your examples.",
        "The claim was found on ReLU networks whose weights are all decayed. Without decay, and for tanh networks, it "
        "did not hold there.",
        "The check of the sum of the parts compares two ways to each part here, along the same products.",
    )

    plainly = {
        "outliers": Plainly("the number of outliers of the Gauss–Newton matrix"),
        "left": Plainly("the number of outliers that stay when a part is taken away"),
        "class_share": Plainly(
            "the share of the class part, beside the cross-class part, in the outliers"
        ),
    }

    def setting(self, key):
        networks = networks_on(self, self.n)
        examples = cross_entropy_examples(networks.subjects[0])
        return Networks(networks.built, networks.subjects, {**networks.facts, "examples": examples})

    def read(self, networks):
        examples = networks.facts["examples"]
        return {"classes": examples.classes, "n": len(examples.labels)}

    def hypotheses(self, setting):
        size = setting.subjects[0].size
        yield from of_classes(setting.facts["examples"])
        yield from decay(setting)
        yield kit.assume(
            "weights", size, ">", self.most, "there are fewer eigenvalues than are asked for"
        )
        yield kit.assume(
            "numbers that the search for eigenvectors keeps",
            2 * (2 * self.most + 1) * size,
            "<=",
            LARGEST,
            "the weights or the classes are too many for the memory of most machines",
        )

    def assumed(self, networks):
        return undecided_decay(networks)

    def predict(self, setting):
        return kit.law(**self.of_levels())

    def judge(self, law, seen):
        """Judge the levels alone: dense matrices are for small networks."""
        return self.judge_levels(law, seen)

    def rivals(self, setting, law):
        return self.rivals_of_levels(law)

    @property
    def most(self) -> int:
        """Return how many eigenvalues of the Gauss–Newton matrix are found."""
        return 2 * self.classes + 1

    def cost(self, networks):
        seeds = len(networks)
        steps = seeds * steps_of(networks.built[0], self.steps)
        # each eigenvalue takes about PER_PAIR products with the matrix, which are a jvp and a vjp each; either takes
        # about half as long as a product with the Hessian
        pairs = self.most + (2 * len(REMOVED) + 1) * (self.classes + 2)
        products = seeds * (0.5 * (PROBES + self.most) + PER_PAIR * pairs)
        return Cost(products=products, passes=seeds * (1 + networks.facts["times"]), steps=steps)

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        spectra = []
        wholes = setting.facts["whole"]
        for built, drawn, whole in zip(setting.built, setting.subjects, wholes, strict=True):
            model = trained(self, built, self.steps)
            with looking(model, drawn, whole) as (now, all_of_them):
                error = examples_of(all_of_them).error
                spectra.append({"error": error, **self.spectra_of(now, rng)})
        arrays = stacked(self, spectra)
        return kit.seen(**{name: (f"seed{axes}", arrays[name]) for name, axes in AXES.items()})

    def figure(self, law, seen, rivals):
        titles = (
            "The largest eigenvalues, whole and without parts",
            "What the class part has of class and cross-class parts",
        )
        return retitled(super().figure(law, seen, rivals), *titles)

    def spectra_of(self, now: Subject, rng: np.random.Generator) -> dict[str, Any]:
        """Return spectra of G and of what is left of it, for one network: with its classes and random groups.

        Raises:
            UserError: the loss is no longer the cross-entropy.
        """
        outputs, labels = cross_entropy_examples(now)
        groups = rng.permutation(labels)
        jvp = lambda v: np.asarray(now.jvp(v), float)
        start = rng.choice([-1.0, 1.0], now.size).astype(now.dtype)

        solved = []

        def top(maps: Parts, parts: tuple[str, ...], count: int) -> Any:
            """Eigenpairs of G less some of its parts."""
            less = lambda moved: maps.all(moved) - sum(getattr(maps, part)(moved) for part in parts)
            product = lambda v: now.vjp(less(jvp(v)))  # Jᵀ A J v
            pairs = top_eigenpairs(row_by_row(product), start, count, tolerance=TOLERANCE)
            solved.append(pairs)
            return pairs

        moved = [jvp(rng.choice([-1.0, 1.0], now.size)) for _ in range(PROBES)]
        few = self.classes + 2
        spectrum = top(level_maps(outputs, labels), (), self.most)
        along = [jvp(vector) for vector in spectrum.vectors]
        measured = {
            "eigenvalues": spectrum.values,
            "left_of_class_part": top(level_maps(outputs, labels), CLASS_PART, few).values,
            "deviation": [deviation(change, outputs, labels) for change in moved],
        }
        for prefix, split in (("", labels), ("random_", groups)):
            maps = level_maps(outputs, split)
            class_part = np.array([form(maps.classes, change) for change in along])
            both_parts = class_part + [form(maps.cross, change) for change in along]
            forms = [level_forms(change, outputs, split) for change in moved]
            measured |= {
                f"{prefix}carried": class_part / spectrum.values,
                f"{prefix}class_share": (class_part / both_parts)[: self.classes - 1],
                f"{prefix}left": [top(maps, parts, few).values for parts in REMOVED.values()],
                f"{prefix}trace": [
                    np.mean([of_probe[name] for of_probe in forms]) for name in LEVELS
                ],
            }
        residual = max(pairs.residuals.max() for pairs in solved)
        return {**measured, "residual": residual / spectrum.values[0]}


def form(product: Callable[[np.ndarray], np.ndarray], moved: Float[np.ndarray, "n C"]) -> float:
    """Return ``vᵀ A v`` of a part that maps the outputs' change along v."""
    return float((moved * product(moved)).sum())


def deviation(
    moved: Float[np.ndarray, "n C"], outputs: Float[np.ndarray, "n C"], labels: np.ndarray
) -> float:
    """Return how far the parts, each by its definition, are from G and from the maps that were used, relative to G."""
    maps = level_maps(outputs, labels)
    forms = level_forms(moved, outputs, labels)
    whole = form(maps.all, moved)
    off = [abs(value - form(getattr(maps, name), moved)) for name, value in forms.items()]
    return max(abs(sum(forms.values()) - whole), *off) / whole
