"""A digest of the examples, so that two reports know whether they are about the same."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steepest.measurement.adapters import Batches

SIZE = 16  # bytes of a digest


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
    total = 0
    try:
        for batch, count in batches:
            arrays = _arrays(batch)
            for row in range(count):
                one = hashlib.blake2b(digest_size=SIZE)
                for array in arrays:
                    one.update(array[row].tobytes() if array.ndim else array.tobytes())
                total += int.from_bytes(one.digest(), "big")
    except (TypeError, ValueError, RuntimeError, IndexError, AttributeError):
        return ""
    return f"{total % 256**SIZE:0{2 * SIZE}x}"


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
