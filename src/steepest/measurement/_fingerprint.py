"""Digests of examples, by which reports know whether they are about the same, and which were held out in earnest."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

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


def count_shared(given: Batches, held_out: Batches) -> int:
    """Count the held-out examples, inputs and targets, that are among those given; none where they are no numbers.

    >>> x, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 2])
    >>> count_shared(Batches((x, y)), Batches((x[::-1], np.array([2, 1, 1]))))
    2
    """
    try:
        digests = set(_digests(given))
        return sum(digest in digests for digest in _digests(held_out))
    except NO_NUMBERS:
        return 0


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
