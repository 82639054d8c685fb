"""Parts of a subject: groups of its examples, blocks of its weights."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from steepest.curvature import Products
from steepest.errors import UserError, nearest
from steepest.subject._subject import Kind, Subject


def forms_by_group(
    subject: Subject,
    vectors: Float[np.ndarray, "k p"],
    groups: int,
    rng: np.random.Generator,
    kind: Kind = "hessian",
) -> tuple[Float[np.ndarray, "g k"], Float[np.ndarray, " g"]]:
    """``vᵀ H_g v`` of the mean loss of each group g of examples, and the groups' shares of all examples.

    Their mean, weighted with the shares, is ``vᵀ H v``. One pass over the data for each vector.

    Args:
        subject: model, loss and data.
        vectors: shape ``(k, p)``.
        groups: their number at least, if there are so many examples. Arrays are shuffled first, as they may be sorted
            by class; batches of a loader are taken as they come, and cut where they are too large.
        rng: shuffles.
        kind: which curvature.
    """
    source, count = subject.batches.source, sum(number for _, number in subject.batches)
    if subject.batches.whole:
        order = rng.permutation(count)
        source = tuple(each[order] for each in source)
    small = subject.at(subject.values())
    small.batches = type(subject.batches)(source, max(1, min(subject.batches.size, count // groups)))
    subject.passes += len(vectors)
    found = [(np.einsum("kp,kp->k", vectors, small._products(kind, b, vectors)), n) for b, n in small.batches]
    forms, numbers = zip(*found, strict=True)
    return np.array(forms, float), np.array(numbers) / count


def block(subject: Subject, names: Sequence[str], kind: Kind = "hessian") -> tuple[Products, int]:
    """Products with the block of a curvature matrix that belongs to some of the weights, and the size of the block.

    Args:
        subject: model, loss and data.
        names: of the arrays of weights.
        kind: which curvature.

    Raises:
        UserError: an unknown name.
    """
    known = {each.name: each for each in subject.weights}
    for name in names:
        if name not in known:
            raise UserError(f"{subject.name} has no weights {name!r}; {nearest(name, known)}")
    places = [np.arange(subject.size)[known[name].place] for name in names]
    inside = np.concatenate([np.zeros(0, int), *places])

    def products(vectors: Float[np.ndarray, "*k q"]) -> Float[np.ndarray, "*k q"]:
        vectors = np.asarray(vectors)
        padded = np.zeros((*vectors.shape[:-1], subject.size), subject.dtype)
        padded[..., inside] = vectors
        return subject.products(padded, kind)[..., inside]

    return products, len(inside)
