"""Data as a stream of small batches that can be passed over again and again."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from steepest.core.errors import UserError
from steepest.measurement.adapters._generators import (
    held_by,
    of_the_process,
    set_states,
    states_of,
)

NO_EXAMPLES = "the data hold no examples; check the arrays or the loader"


class Batches:
    """Examples in batches of bounded size; every pass goes over the same source again.

    Attributes:
        source: a pair of arrays ``(x, y)``, of which one may be several arrays, or anything that can be iterated over
            more than once and gives batches, such as a list or a data loader. A batch is a pair ``(inputs, targets)``;
            only a loss of ``(params, batch)`` or the model's own may have others: arrays in a tuple, list or
            dictionary. A dictionary of arrays is one batch.
        size: examples of a batch at most; larger ones are cut, so that memory stays bounded.
        entire: whether batches are examples that are normalized together: then arrays alone are cut, and a last batch
            of less than half of the first one is left out, as its statistics would be those of too few.
        position: of the batch that a pass has given last, counted from 0.
        start: states of random numbers with which each pass over entire batches begins, so that these hold the same
            examples in every pass; None where a pass begins with the states of the moment.
        together: whether the examples of a batch belong together, as model or loss compare them, or the model reads all
            or none: then parts of a batch say nothing.
        factors: by what each part of a pass counts more in its mean than its number of examples; empty where none does.

    Raises:
        UserError: a generator, which could be passed over once only; arrays of different length; no examples.
    """

    def __init__(self, source: Any, size: int = 1024, entire: bool = False) -> None:
        if size < 1:
            raise UserError(f"a batch holds at least one example, got micro_batch={size}")
        if isinstance(source, Iterator):
            raise UserError(
                f"data of type {type(source).__name__} can be passed over only once, and curvature needs many passes; "
                "give a list of batches, a data loader or a pair of arrays"
            )
        if not isinstance(source, Iterable):
            raise UserError(
                f"data are a pair of arrays (x, y) or an iterable of batches, got {type(source).__name__}"
            )
        self.source = [source] if isinstance(source, Mapping) else source
        self.size = size
        self.entire = entire
        self.position = 0
        self.whole = is_pair_of_arrays(self.source)
        self.together = False
        self.factors: Sequence[float] = ()
        self.start = states_of(self._generators()) if entire else None

    def as_given(self) -> Generator[Any, None, None]:
        """Yield the batches before they are cut.

        A source draws from states of the pass's own. Whenever a batch is out the reader's generators are as they were,
        so that a pass that is left half way has nothing to put back, whenever that is noticed.
        """
        if self.whole or type(self.source) in (list, tuple):
            yield from [self.source] if self.whole else self.source
            return
        generators = self._generators()
        own = self.start or states_of(generators)
        batches: Iterator[Any] | None = None
        while True:
            readers = states_of(generators)
            set_states(own)
            try:
                batches = iter(self.source) if batches is None else batches
                batch = next(batches)
            except StopIteration:
                return
            finally:
                own = states_of(generators)
                set_states(readers)
            yield batch

    def _generators(self) -> list[Any]:
        """List the generators that may order or change the examples."""
        return [*of_the_process(), *held_by(self.source)]

    def __iter__(self) -> Generator[tuple[Any, int], None, None]:
        """Yield each batch with its number of examples."""
        is_cut = self.whole or not self.entire
        typical = 0  # examples of the first batch
        self.position = -1
        with closing(self.as_given()) as batches:
            for batch in batches:
                count = examples(batch)
                size = min(count, self.size) if is_cut else count
                for start in range(0, count, size or 1):
                    stop = min(start + size, count)
                    typical = typical or size
                    if self.entire and 2 * (stop - start) < typical:
                        continue
                    self.position += 1
                    part = batch if stop - start == count else _cut(batch, slice(start, stop))
                    yield part, stop - start
        if not typical:
            raise UserError(NO_EXAMPLES)

    def factor(self) -> float:
        """Return by what the batch that a pass has given last counts more than its number of examples."""
        return self.factors[self.position] if self.factors else 1.0

    def sizes(self) -> list[int]:
        """Return the numbers of examples of the batches as they are given, before they are cut."""
        return [examples(batch) for batch in self.as_given()]

    def first(self) -> tuple[Any, int]:
        """Return the first batch; the pass ends there."""
        with closing(iter(self)) as batches:
            return next(batches)

    def given(self) -> int:
        """Return the number of examples in the source's first batch, before it is cut; the pass ends there."""
        return examples(self.first_as_given())

    def first_as_given(self) -> Any:
        """Return the source's first batch, before it is cut; the pass ends there.

        Raises:
            UserError: there is none.
        """
        with closing(self.as_given()) as batches:
            for batch in batches:
                return batch
        raise UserError(NO_EXAMPLES)


def is_pair_of_arrays(source: Any) -> bool:
    """Tell whether this is ``(x, y)``, and not a list of two batches.

    One of them may be several arrays, as no batch is an array: ``((x, z), y)``. Both may be where one is a dictionary
    and the other is none, as batches are of one kind: ``((x, z), {"class": y})``.

    >>> x = np.ones(3)
    >>> is_pair_of_arrays(((x, x), x)), is_pair_of_arrays([(x, x), (x, x)])
    (True, False)
    """
    if not (isinstance(source, tuple | list) and len(source) == 2 and all(map(leaves, source))):
        return False
    is_mapping = [isinstance(part, Mapping) for part in source]
    return any(hasattr(part, "shape") for part in source) or is_mapping in (
        [True, False],
        [False, True],
    )


def examples(batch: Any) -> int:
    """Count the examples of a batch: the common length of its arrays.

    >>> examples({"x": np.zeros((3, 2)), "y": np.zeros(3)})
    3
    """
    lengths = {len(leaf) for leaf in leaves(batch) if leaf.shape}
    if len(lengths) != 1:
        raise UserError(
            f"the arrays of a batch need one length, got {sorted(lengths) or 'no arrays'}; "
            "give pairs (inputs, targets) with one row for each example"
        )
    return lengths.pop()


def leaves(batch: Any) -> list[Any]:
    """Return the arrays of a batch."""
    if hasattr(batch, "shape"):
        return [batch]
    if isinstance(batch, Mapping):  # a BatchEncoding of transformers is one, and no dict
        return [leaf for part in batch.values() for leaf in leaves(part)]
    if isinstance(batch, tuple | list):
        return [leaf for part in batch for leaf in leaves(part)]
    return []


def repeated(batch: Any) -> Any:
    """Repeat every example twice.

    >>> repeated((np.array([1, 2]), np.array([3, 4])))[0].tolist()
    [1, 2, 1, 2]
    """
    return _cut(batch, np.tile(np.arange(examples(batch)), 2))


def picked(batches: Batches, rows: np.ndarray) -> Any:
    """Return one batch of some examples, by their increasing places in a pass over the data.

    Raises:
        UserError: examples of different shapes.
    """
    parts = []
    start = 0
    for batch, count in batches:
        inside = rows[(rows >= start) & (rows < start + count)] - start
        if len(inside):
            parts.append(_cut(batch, inside))
        start += count
    return stacked(parts)


def taken(batch: Any, rows: slice | np.ndarray) -> Any:
    """Return some examples of one batch, by their places in it.

    >>> taken((np.array([1, 2, 3]), np.array([4, 5, 6])), np.array([0, 2]))[1].tolist()
    [4, 6]
    """
    return _cut(batch, rows)


def batch_of_one(example: Any) -> Any:
    """Return the arrays of one example with an axis of length one before their own.

    >>> batch_of_one((np.zeros(3), np.array(1.0)))[1].shape
    (1,)
    """
    if hasattr(example, "shape"):
        return example[None]
    if isinstance(example, Mapping):
        return {key: batch_of_one(part) for key, part in example.items()}
    if isinstance(example, tuple | list):
        return type(example)(batch_of_one(part) for part in example)
    return example


def stacked(parts: Sequence[Any]) -> Any:
    """Join batches of one structure, array by array; what is no array is that of the first."""
    first = parts[0]
    if len(parts) == 1 or (hasattr(first, "shape") and not first.shape):
        return first
    if hasattr(first, "shape"):
        if len({tuple(part.shape[1:]) for part in parts}) > 1:
            return joined([np.asarray(part) for part in parts])  # which says the shapes
        if hasattr(first, "detach"):
            import torch

            return torch.cat(list(parts))
        return np.concatenate([np.asarray(part) for part in parts])
    if isinstance(first, Mapping):
        return {key: stacked([part[key] for part in parts]) for key in first}
    if isinstance(first, tuple | list):
        return type(first)(stacked([part[i] for part in parts]) for i in range(len(first)))
    return first


def _cut(batch: Any, rows: slice | np.ndarray) -> Any:
    if hasattr(batch, "shape"):
        return batch[rows] if batch.shape else batch
    if isinstance(batch, Mapping):
        return {key: _cut(part, rows) for key, part in batch.items()}
    if isinstance(batch, tuple | list):
        return type(batch)(_cut(part, rows) for part in batch)
    return batch


def as_pair(batch: Any) -> tuple[Any, Any]:
    """Return inputs and targets of a batch.

    Raises:
        UserError: if it is no pair.
    """
    if not (isinstance(batch, tuple | list) and len(batch) == 2):
        raise UserError(
            f"a batch is a pair (inputs, targets), got {type(batch).__name__}"
            f"{f' of {len(batch)}' if hasattr(batch, '__len__') else ''}; for other batches give a loss(params, batch)"
        )
    return batch[0], batch[1]


def one_number(values: Any) -> Any:
    """Return the number that a function of outputs and targets gave for a single example.

    Raises:
        UserError: it gave another shape than ``(1,)``.
    """
    shape = getattr(values, "shape", None)
    if shape is None or tuple(shape) != (1,):
        got = type(values).__name__ if shape is None else f"shape {tuple(shape)} for one example"
        raise UserError(
            f"a model output is one number of each example, shape (b,), got {got}; return for example outputs[:, 0]"
        )
    return values[0]


def inputs_of(batch: Any) -> Any:
    """Return the inputs of a batch, one array.

    Raises:
        UserError: if they are several.
    """
    x, _ = as_pair(batch)
    if not hasattr(x, "shape"):
        raise UserError(
            f"measures of layers and inputs need inputs in one array, these are a {type(x).__name__}"
        )
    return x


def finite(array: np.ndarray) -> bool:
    """Tell whether no entry is NaN or infinite; whole numbers are finite."""
    return not np.issubdtype(array.dtype, np.inexact) or bool(np.isfinite(array).all())


def joined(parts: list[np.ndarray]) -> np.ndarray:
    """Join batches one after the other; the list is empty afterwards, so that memory holds them once.

    Raises:
        UserError: batches of different shapes.
    """
    shapes = {part.shape[1:] for part in parts}
    if len(shapes) > 1:
        raise UserError(
            f"batches of different shapes cannot be put together: {sorted(shapes)}; pad them to one"
        )
    if len(parts) == 1:
        return parts.pop()
    stop = sum(map(len, parts))
    whole = np.empty((stop, *shapes.pop()), np.result_type(*parts))
    while parts:
        part = parts.pop()
        whole[stop - len(part) : stop] = part
        stop -= len(part)
    return whole


def by_name(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Join batches of several arrays, of those that all of them have."""
    return {
        name: joined([part[name] for part in parts])
        for name in parts[0]
        if all(name in part for part in parts)
    }
