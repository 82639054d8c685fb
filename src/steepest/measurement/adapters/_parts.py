"""Parts of a subject: groups of its examples, blocks of its weights."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from steepest.core.errors import UserError, nearest
from steepest.krylov import Operator
from steepest.measurement.adapters._batches import picked, taken
from steepest.measurement.adapters._subject import Kind, Subject


def forms_by_group(
    subject: Subject,
    vectors: Float[np.ndarray, "k p"],
    groups: int,
    rng: np.random.Generator,
    kind: Kind = "hessian",
) -> tuple[Float[np.ndarray, "g k"], Float[np.ndarray, " g"]]:
    """Return ``vᵀ H_g v`` of the mean loss of each group g of examples, and the groups' shares of all examples.

    Their mean, weighted with the shares, is ``vᵀ H v``. One pass over the data for each vector.

    Args:
        subject: model, loss and data.
        vectors: shape ``(k, p)``.
        groups: their number at least, if there are so many examples. Arrays are shuffled first, as they may be sorted
            by class; batches of a loader are taken as they come, and cut where they are too large. Batches whose
            examples belong together, or are normalized together, are the groups.
        rng: shuffles.
        kind: which curvature.
    """
    count = sum(number for _, number in subject.batches)
    as_they_are = subject.normalizes or subject.batches.together
    small = subject if as_they_are else _in_groups(subject, groups, count, rng)
    subject.passes += len(vectors)
    by_batch = [
        (np.einsum("kp,kp->k", vectors, small._products(kind, b, vectors)), n)
        for b, n in small.batches
    ]
    forms, numbers = zip(*by_batch, strict=True)
    return np.array(forms, float), np.array(numbers) / count


def _in_groups(subject: Subject, groups: int, count: int, rng: np.random.Generator) -> Subject:
    """Return the subject with its examples in this many batches at least."""
    source = subject.batches.source
    if subject.batches.whole:
        order = rng.permutation(count)
        source = taken(source, order)
    small = subject.at(subject.values())
    small.batches = type(subject.batches)(
        source, max(1, min(subject.batches.size, count // groups))
    )
    return small


def rescaled_products(
    subject: Subject, scale: Float[np.ndarray, " p"], decay: float = 0.0, kind: Kind = "hessian"
) -> Operator:
    """Return products with ``D^(−½)(H + λ)D^(−½)``: the curvature in the coordinates in which Adam descends.

    Args:
        subject: model, loss and data.
        scale: the diagonal of D, positive, ``(p,)``: what each weight's step is divided by.
        decay: λ.
        kind: which curvature H is.
    """
    root = np.asarray(scale**-0.5, subject.dtype)

    def products(v: np.ndarray) -> np.ndarray:
        scaled = root * v
        return root * (subject.products(scaled, kind) + decay * scaled)

    return products


def random_batches(
    subject: Subject, size: int, batches: int, rng: np.random.Generator
) -> Iterator[Any]:
    """Yield random batches, each drawn without replacement from all examples.

    One pass over the data collects the examples of all of them.

    Args:
        subject: whose data are drawn from.
        size: examples in a batch.
        batches: their number.
        rng: draws.
    """
    examples = sum(count for _, count in subject.batches)
    yield from gathered(
        subject, [rng.choice(examples, size, replace=False) for _ in range(batches)]
    )


def gathered(subject: Subject, groups: Sequence[Int[np.ndarray, " b"]]) -> Iterator[Any]:
    """Yield groups of examples as batches.

    One pass over the data collects them, so that a loader that shuffles has the same examples in the same places for
    all groups.

    Args:
        subject: whose data they are from.
        groups: each the places of some examples in a pass over the data.
    """
    rows = np.unique(np.concatenate(groups))
    pool = picked(subject.batches, rows)
    for members in groups:
        yield taken(pool, np.searchsorted(rows, np.sort(members)))


def on_batches(subject: Subject, source: Any, size: int) -> Subject:
    """Return the same subject on other examples; where it normalizes by the batch, by each of these batches.

    Args:
        subject: model and loss.
        source: a pair of arrays or batches, as of ``Batches``.
        size: examples that are evaluated at once.
    """
    other = subject.at(subject.values())
    other.batches = type(subject.batches)(source, size, entire=subject.normalizes)
    return other


def batch_forms(
    subject: Subject,
    size: int,
    batches: int,
    rng: np.random.Generator,
    gradient: Float[np.ndarray, " p"],
    decay: float = 0.0,
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Return ``gᵀHg``, ``gᵀg`` and ``|g − ∇L|²`` with gradient g and Hessian H of random batches.

    One pass over the data collects the examples of all batches.

    Args:
        subject: model, loss and data.
        size: examples in a batch, drawn without replacement from all.
        batches: their number, k.
        rng: draws.
        gradient: ∇L of all examples, shape ``(p,)``.
        decay: λ of a weight decay that is added to every gradient as λw, and to every Hessian.
    """
    examples = sum(count for _, count in subject.batches)
    weights = decay * subject.values() if decay else 0.0
    numbers = []
    for batch in random_batches(subject, size, batches, rng):
        slope = subject._gradient(batch) + weights
        curved = subject._products("hessian", batch, slope[None])[0] + decay * slope
        away = slope - gradient
        numbers.append((slope @ curved, slope @ slope, away @ away))
    subject.passes += -(-2 * size * batches // examples)
    forms, squares, deviations = np.array(numbers, float).T
    return forms, squares, deviations


def batch_gradient(
    subject: Subject, size: int, rng: np.random.Generator
) -> Float[np.ndarray, " p"]:
    """Return the gradient of the mean loss of a random batch, drawn without replacement, shape ``(p,)``.

    Args:
        subject: model, loss and data.
        size: examples in the batch.
        rng: draws.
    """
    examples = sum(count for _, count in subject.batches)
    return gradient_of(subject, rng.choice(examples, size, replace=False))


def gradient_of(subject: Subject, rows: Int[np.ndarray, " b"]) -> Float[np.ndarray, " p"]:
    """Return the gradient of the mean loss of some examples, shape ``(p,)``.

    Args:
        subject: model, loss and data.
        rows: their places in a pass over the data; one that is there twice counts twice.
    """
    return subject._gradient(picked(subject.batches, np.sort(rows)))


def block(subject: Subject, names: Sequence[str], kind: Kind = "hessian") -> tuple[Operator, int]:
    """Return products with the block of a curvature matrix of some of the weights, and the size of the block.

    Args:
        subject: model, loss and data.
        names: of the arrays of weights.
        kind: which curvature.

    Raises:
        UserError: an unknown name.
    """
    weights = {weight.name: weight for weight in subject.weights}
    for name in names:
        if name not in weights:
            raise UserError(f"{subject.name} has no weights {name!r}; {nearest(name, weights)}")
    places = [np.arange(subject.size)[weights[name].place] for name in names]
    inside = np.concatenate([np.zeros(0, int), *places])

    def products(vectors: Float[np.ndarray, "*k q"]) -> Float[np.ndarray, "*k q"]:
        vectors = np.asarray(vectors)
        padded = np.zeros((*vectors.shape[:-1], subject.size), subject.dtype)
        padded[..., inside] = vectors
        return subject.products(padded, kind)[..., inside]

    return products, len(inside)
