"""A seeded sample of the examples, drawn by class: their order in the data decides nothing."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.measurement._context import Context
from steepest.measurement.adapters import Subject, on_rows


class Sample(NamedTuple):
    """Some examples of a subject.

    Attributes:
        subject: the same model and loss on these examples, in one source.
        count: how many they are.
        how: how they were drawn, in words.
    """

    subject: Subject
    count: int
    how: str


def sample(context: Context, most: int) -> Sample:
    """Draw at most ``most`` examples without replacement, from every class as many as its share, but at least one.

    The draw depends on the seed of the measurement and on nothing that was measured before, so that two measurements
    of the same data have the same sample. Without class numbers all examples are equally likely.

    Raises:
        UserError: arrays of different shapes, which cannot be put together.
    """
    targets = context.outputs[1]
    n = len(targets)
    if most >= n:
        return Sample(on_rows(context.subject, np.arange(n)), n, f"all {n} examples")
    rng = np.random.default_rng(context.seed)
    try:
        labels = targets if context.classes > 1 else None
    except UserError:
        labels = None
    if labels is None:
        rows = rng.choice(n, most, replace=False)
        how = f"a random sample of {most} of the {n} examples"
    else:
        rows = stratified(labels, most, rng)
        how = f"a random sample of {most} of the {n} examples, drawn by class"
    rows = np.sort(rows)
    drawn = on_rows(context.subject, rows)
    if labels is not None and not np.array_equal(drawn.outputs()[1], labels[rows]):
        # a loader that shuffles: the examples at these places are others in every pass
        how = f"{most} of the {n} examples, as they came from a loader that shuffles"
    return Sample(drawn, most, how)


def stratified(labels: NDArray, count: int, rng: np.random.Generator) -> NDArray:
    """Draw ``count`` rows, of every class its share; where there are rows enough, at least one of each.

    >>> labels = np.repeat([0, 1, 2], [90, 9, 1])
    >>> rows = stratified(labels, 20, np.random.default_rng(0))
    >>> np.bincount(labels[rows]).tolist()
    [17, 2, 1]
    """
    rows = rng.permutation(len(labels))
    _, kinds, sizes = np.unique(labels[rows], return_inverse=True, return_counts=True)
    # the place of a row within its class, from 0 to 1: the smallest `count` of them are the classes' shares
    place = np.empty(len(rows))
    for kind, size in enumerate(sizes):
        place[kinds == kind] = (np.arange(size) + rng.random()) / size
        if len(sizes) <= count:
            place[np.flatnonzero(kinds == kind)[0]] = -1.0
    return rows[np.argsort(place, kind="stable")[:count]]
