"""What the claims about classes need of a reader's own classifier: its examples, its decay, its training."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from steepest import kit
from steepest.core.errors import UserError
from steepest.kit.subjects import Networks, OnSubject
from steepest.measurement import Built, Context, check_cross_entropy, decays_of
from steepest.measurement.adapters import Subject, in_evaluation

LONGEST = 10_000
"""Steps after which a training that does not end is stopped, unless the reader says how many."""
DECAYED = "its weights are decayed"


class Examples(NamedTuple):
    """A classifier's examples.

    Attributes:
        outputs: logits in double precision.
        labels: class numbers.
    """

    outputs: Float[np.ndarray, "n C"]
    labels: Int[np.ndarray, " n"]

    @property
    def classes(self) -> int:
        """Return the number of outputs, C."""
        return self.outputs.shape[1]

    @property
    def sizes(self) -> Int[np.ndarray, " C"]:
        """Count the examples of each class."""
        return np.bincount(self.labels, minlength=self.classes)

    @property
    def error(self) -> float:
        """Return the share of examples that are classified wrongly."""
        return float((self.outputs.argmax(1) != self.labels).mean())


def examples_of(subject: Subject, *, one_hot: bool = False) -> Examples:
    """Return outputs and class numbers.

    Args:
        subject: the classifier.
        one_hot: whether targets may also be rows with a one and zeros, as the squared loss takes them.

    Raises:
        UserError: no classifier with class numbers as targets; outputs that are not finite.
    """
    context = Context(subject, np.random.default_rng(0))
    outputs, targets = context.outputs
    if one_hot and outputs.ndim == 2 and targets.shape == outputs.shape and is_one_hot(targets):
        labels = targets.argmax(1)
    else:
        _ = context.classes  # which says what a classifier is
        labels = targets
    return finite(Examples(outputs.astype(float), labels), subject)


def is_one_hot(targets: np.ndarray) -> bool:
    """Tell whether every row has a one and zeros.

    >>> is_one_hot(np.eye(3)), is_one_hot(np.eye(3) / 2)
    (True, False)
    """
    return bool(((targets == 0) | (targets == 1)).all() and (targets.sum(1) == 1).all())


def finite(examples: Examples, subject: Subject) -> Examples:
    """Return the examples, if the network has not diverged.

    Raises:
        UserError: outputs that are not finite.
    """
    if not np.isfinite(examples.outputs).all():
        raise UserError(
            f"the outputs of {subject.name} are not finite: its training diverged; try a smaller step size, or "
            "fewer steps"
        )
    return examples


def cross_entropy_examples(subject: Subject) -> Examples:
    """Return outputs and class numbers of a classifier whose loss is the mean cross-entropy.

    Raises:
        UserError: another loss; no classifier with class numbers as targets.
    """
    examples = examples_of(subject)
    check_cross_entropy(subject, examples.outputs, examples.labels)
    return examples


def networks_on(claim: OnSubject, most: int) -> Networks:
    """Build the networks; draw at most so many of their examples by class, and keep the attachments to all beside.

    Returns:
        The networks, with ``facts["whole"]``: the same on all their examples, and ``facts["times"]``: how many times
        those that were drawn these are.
    """
    networks = claim.build_all()
    drawn = [claim.drawn(subject, most) for subject in networks.subjects]
    count = lambda subject: sum(number for _, number in subject.batches)
    times = count(networks.subjects[0]) / count(drawn[0])
    return Networks(networks.built, drawn, {"whole": networks.subjects, "times": times})


def of_classes(examples: Examples, least: int = 2) -> list[kit.Hypothesis]:
    """Assume that there are three classes at least, and examples of each."""
    return [
        kit.assume(
            "classes", examples.classes, ">=", 3, "with two, one pair of means has no angles"
        ),
        kit.assume(
            "fewest examples of a class",
            float(examples.sizes.min()),
            ">=",
            least,
            "give data that have every class of the outputs, or more examples with --n",
        ),
    ]


def decay(networks: Networks) -> list[kit.Hypothesis]:
    """Assume weight decay, as far as the optimizer says what it does."""
    decays = decays_of(networks.built[0].optimizer)
    if decays is None:
        return []
    note = "train with weight_decay: without it the theory does not say this"
    return [kit.assume("largest weight decay of your optimizer", decays[1], ">", 0, note)]


def undecided_decay(networks: Networks) -> tuple[str, ...]:
    """Return what cannot be known of the decay: anything without an optimizer, else whether that of some will do."""
    decays = decays_of(networks.built[0].optimizer)
    if decays is None:
        return (DECAYED,)
    return ("decay of some of its weights is enough",) if decays[0] == 0 < decays[1] else ()


def steps_of(built: Built, steps: int) -> int:
    """Return how many steps of the reader's training are taken at most.

    Args:
        built: what the reader's function returned.
        steps: as the reader asked; 0 for all.

    >>> steps_of(Built(None, None, None, train=lambda: iter(()), length=50), 0)
    50
    """
    if built.train is None:
        return 0
    return min(steps or LONGEST, built.length or steps or LONGEST)


def trained(claim: OnSubject, built: Built, steps: int) -> Any:
    """Train a network to the end, and return the model; without ``train`` it is taken as trained."""
    model = built.model
    if built.train is not None:
        for _, later in claim.path(built, steps_of(built, steps)):
            model = later
    return model


@contextmanager
def looking(model: Any, *subjects: Subject) -> Iterator[tuple[Subject, ...]]:
    """Attach subjects to the model of now, in evaluation mode as long as it is looked at."""
    with in_evaluation(model):
        yield tuple(subject.now(model) for subject in subjects)


def stacked(claim: OnSubject, of_each: list[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """Stack what each network gave, by name, ``(seeds, …)``."""
    return {name: claim.stacked([one[name] for one in of_each]) for name in of_each[0]}
