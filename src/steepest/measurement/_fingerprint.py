"""Digests of examples, by which reports know whether they are about the same, and which were held out in earnest."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.measurement.adapters import Batches

SIZE = 16  # bytes of a digest
NO_NUMBERS = (TypeError, ValueError, RuntimeError, IndexError, AttributeError)
"""What examples of something else than numbers raise."""


def digest_of(batches: Batches) -> str:
    """Return a digest of the examples, whatever their order, batches, framework and precision.

    The digests of all examples are added up: a loader that shuffles gives the same sum. Real numbers count in single
    precision, whole ones as they are. Empty where the examples hold something else than numbers.

    >>> x, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 2])
    >>> digest_of(Batches((x, y))) == digest_of(Batches([(x[1:], y[1:]), (x[:1], y[:1])]))
    True
    >>> digest_of(Batches((x, y))) == digest_of(Batches((x, y[::-1])))
    False
    """
    try:
        total = sum(int.from_bytes(digest, "big") for digest in _digests(batches))
    except NO_NUMBERS:
        return ""
    return f"{total % 256**SIZE:0{2 * SIZE}x}"


class Shared(NamedTuple):
    """How many examples, inputs and targets, stand twice."""

    held_out: int
    """Held-out ones that are among those given."""
    of_held_out: int
    given: int
    """Given ones that are among the others given."""
    of_given: int

    @property
    def is_natural(self) -> bool:
        """Tell whether a new example meets one of those given as often as these meet each other, to 3 deviations."""
        share = (self.held_out + self.given) / (self.of_held_out + self.of_given)
        spread = share * (1 - share) * (1 / self.of_held_out + 1 / self.of_given)
        more = self.held_out / self.of_held_out - self.given / self.of_given
        return more <= 3 * np.sqrt(spread)


def count_shared(given: Batches, held_out: Batches) -> Shared | None:
    """Count the examples, inputs and targets, that stand twice; None where they are no numbers.

    >>> x, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 2])
    >>> count_shared(Batches((x, y)), Batches((x[::-1], np.array([2, 1, 1]))))
    Shared(held_out=2, of_held_out=3, given=0, of_given=3)
    """
    try:
        counts = Counter(_digests(given))
        others = [counts[digest] > 0 for digest in _digests(held_out)]
    except NO_NUMBERS:
        return None
    twice = sum(count for count in counts.values() if count > 1)
    return Shared(sum(others), len(others), twice, counts.total())


def _digests(batches: Batches) -> Iterator[bytes]:
    """Yield the digest of each example."""
    for batch, count in batches:
        arrays = _arrays(batch)
        for row in range(count):
            example = hashlib.blake2b(digest_size=SIZE)
            for array in arrays:
                example.update(array[row].tobytes() if array.ndim else array.tobytes())
            yield example.digest()


def _arrays(batch: Any) -> list[NDArray]:
    """Return the arrays of a batch as NumPy has them, of one precision."""
    if isinstance(batch, Mapping):
        return [array for name in sorted(batch) for array in _arrays(batch[name])]
    if isinstance(batch, tuple | list):
        return [array for part in batch for array in _arrays(part)]
    detached = batch.detach().cpu() if hasattr(batch, "detach") else batch
    array = np.asarray(detached)
    if np.issubdtype(array.dtype, np.floating):
        return [np.ascontiguousarray(array, np.float32)]
    if np.issubdtype(array.dtype, np.integer) or array.dtype == bool:
        return [np.ascontiguousarray(array, np.int64)]
    raise TypeError(f"{array.dtype} is no kind of number")
