"""Data as a stream of small batches that can be passed over again and again."""

from collections.abc import Generator, Iterable, Iterator
from typing import Any

import numpy as np

from steepest.errors import UserError


class Batches:
    """Examples in batches of bounded size; every pass goes over the same source again.

    Attributes:
        source: a pair of arrays ``(x, y)``, or anything that can be iterated over more than once and gives batches,
            such as a list or a data loader. A batch is a pair ``(inputs, targets)``; only a loss of ``(params, batch)``
            may have others: arrays in a tuple, list or dict.
        size: examples of a batch at most; larger ones are cut, so that memory stays bounded.

    Raises:
        UserError: a generator, which could be passed over once only; arrays of different length; no examples.
    """

    def __init__(self, source: Any, size: int = 1024) -> None:
        if size < 1:
            raise UserError(f"a batch holds at least one example, got micro_batch={size}")
        if isinstance(source, Iterator):
            raise UserError(
                f"data of type {type(source).__name__} can be passed over only once, and curvature needs many passes; "
                "give a list of batches, a data loader or a pair of arrays"
            )
        if not isinstance(source, Iterable):
            raise UserError(f"data are a pair of arrays (x, y) or an iterable of batches, got {type(source).__name__}")
        self.source, self.size = source, size
        self.whole = is_pair_of_arrays(source)

    def __iter__(self) -> Generator[tuple[Any, int], None, None]:
        """Each batch with its number of examples."""
        nothing = True
        for batch in [self.source] if self.whole else self.source:
            count = examples(batch)
            nothing = nothing and not count
            for start in range(0, count, self.size):
                stop = min(start + self.size, count)
                yield (batch if stop - start == count else _cut(batch, slice(start, stop))), stop - start
        if nothing:
            raise UserError("the data hold no examples; check the arrays or the loader")

    def first(self) -> tuple[Any, int]:
        """The first batch; the pass ends there."""
        run = iter(self)
        found = next(run)
        run.close()  # what a pass restores, it restores now
        return found


def is_pair_of_arrays(source: Any) -> bool:
    """Whether this is ``(x, y)``, and not a list of two batches."""
    return isinstance(source, tuple | list) and len(source) == 2 and all(hasattr(each, "shape") for each in source)


def examples(batch: Any) -> int:
    """How many examples a batch has: the common length of its arrays.

    >>> examples({"x": np.zeros((3, 2)), "y": np.zeros(3)})
    3
    """
    lengths = {len(each) for each in leaves(batch) if each.shape}
    if len(lengths) != 1:
        raise UserError(
            f"the arrays of a batch need one length, got {sorted(lengths) or 'no arrays'}; "
            "give pairs (inputs, targets) with one row for each example"
        )
    return lengths.pop()


def leaves(batch: Any) -> list[Any]:
    """The arrays of a batch."""
    if hasattr(batch, "shape"):
        return [batch]
    if isinstance(batch, dict):
        return [leaf for each in batch.values() for leaf in leaves(each)]
    if isinstance(batch, tuple | list):
        return [leaf for each in batch for leaf in leaves(each)]
    return []


def repeated(batch: Any) -> Any:
    """Every example twice.

    >>> repeated((np.array([1, 2]), np.array([3, 4])))[0].tolist()
    [1, 2, 1, 2]
    """
    return _cut(batch, np.tile(np.arange(examples(batch)), 2))


def _cut(batch: Any, rows: slice | np.ndarray) -> Any:
    if hasattr(batch, "shape"):
        return batch[rows] if batch.shape else batch
    if isinstance(batch, dict):
        return {key: _cut(each, rows) for key, each in batch.items()}
    if isinstance(batch, tuple | list):
        return type(batch)(_cut(each, rows) for each in batch)
    return batch


def as_pair(batch: Any) -> tuple[Any, Any]:
    """Inputs and targets of a batch.

    Raises:
        UserError: if it is no pair.
    """
    if not (isinstance(batch, tuple | list) and len(batch) == 2):
        raise UserError(
            f"a batch is a pair (inputs, targets), got {type(batch).__name__}"
            f"{f' of {len(batch)}' if hasattr(batch, '__len__') else ''}; for other batches give a loss(params, batch)"
        )
    return batch[0], batch[1]


def inputs_of(batch: Any) -> Any:
    """The inputs of a batch, one array.

    Raises:
        UserError: if they are several.
    """
    x, _ = as_pair(batch)
    if not hasattr(x, "shape"):
        raise UserError(f"measures of layers and inputs need inputs in one array, these are a {type(x).__name__}")
    return x


def finite(array: np.ndarray) -> bool:
    """Whether no entry is NaN or infinite; whole numbers are finite."""
    return not np.issubdtype(array.dtype, np.inexact) or bool(np.isfinite(array).all())


def joined(parts: list[np.ndarray]) -> np.ndarray:
    """Batches one after the other.

    Raises:
        UserError: batches of different shapes.
    """
    shapes = {each.shape[1:] for each in parts}
    if len(shapes) > 1:
        raise UserError(f"batches of different shapes cannot be put together: {sorted(shapes)}; pad them to one")
    return np.concatenate(parts)


def by_name(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Batches of several arrays, of those that all of them have."""
    return {name: joined([each[name] for each in parts]) for name in parts[0] if all(name in each for each in parts)}
