"""Windows that slide over positions: which inputs an output reads, in convolutions and pooling."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError, nearest

Padding = Literal["zero", "circular", "none"]
PADDINGS = ("zero", "circular", "none")


def one_or_several(size: int | Sequence[int]) -> int | tuple[int, ...]:
    """Return one number, or a tuple of one for each dimension of space."""
    return int(np.asarray(size)) if np.ndim(size) == 0 else tuple(map(int, np.asarray(size)))


class Window(NamedTuple):
    """One window for each dimension of space.

    Attributes:
        size: positions that an output reads, in each dimension.
        stride: positions from one output to the next, in each dimension.
        padding: what is read beyond the edge: zeros, the other side, or nothing, so that outputs are fewer.
        transposed: whether inputs lie ``stride`` apart among zeros, so that outputs are more; the window then moves by
            one.
    """

    size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: Padding
    transposed: bool = False

    @property
    def volume(self) -> int:
        """Count the positions that an output reads, those beyond the edge included."""
        return int(np.prod(self.size))

    def outputs(self, space: tuple[int, ...]) -> tuple[int, ...]:
        """Count the outputs in each dimension.

        Raises:
            UserError: when the window is larger than the space and nothing is padded.
        """
        if self.transposed:
            beyond = self.padding == "none"  # windows that begin at the last input
            return tuple(
                n * r + beyond * max(size - r, 0)
                for n, r, size in zip(space, self.stride, self.size, strict=True)
            )
        if self.padding != "none":
            return tuple(-(-n // r) for n, r in zip(space, self.stride, strict=True))
        if any(size > n for size, n in zip(self.size, space, strict=True)):
            raise UserError(
                f"a window of {times(self.size)} does not fit into {times(space)} positions; try padding='zero'"
            )
        return tuple(
            (n - size) // r + 1 for n, size, r in zip(space, self.size, self.stride, strict=True)
        )

    def starts(self, space: tuple[int, ...]) -> tuple[int, ...]:
        """Return the first position that output 0 reads, ≤ 0, in each dimension; odd paddings have more at the end."""
        if self.transposed:
            return tuple(
                -self._before(size, r) for size, r in zip(self.size, self.stride, strict=True)
            )
        if self.padding == "none":
            return (0,) * len(space)
        missing = (
            max((out - 1) * r + size - n, 0)
            for n, size, r, out in zip(
                space, self.size, self.stride, self.outputs(space), strict=True
            )
        )
        return tuple(-(total // 2) for total in missing)

    def _before(self, size: int, stride: int) -> int:
        """Count the zeros before the first input of a transposed window."""
        if self.padding == "none" or stride > size - 1:
            return size - 1
        return -(-(size + stride - 2) // 2)

    @property
    def steps(self) -> tuple[int, ...]:
        """The positions from one output to the next, among zeros if it is transposed."""
        return (1,) * len(self.stride) if self.transposed else self.stride

    def edges(self, space: tuple[int, ...]) -> list[tuple[int, int]]:
        """Return how many positions are missing before and after the space, in each dimension.

        Of a transposed window the space is that of inputs among zeros.
        """
        outputs = self.outputs(space)
        if self.transposed:
            space = tuple(n * r for n, r in zip(space, self.stride, strict=True))
        sides = zip(space, self.size, self.steps, outputs, self.starts(space), strict=True)
        return [
            (-start, max((out - 1) * r + size + start - n, 0)) for n, size, r, out, start in sides
        ]

    def taps(self, space: tuple[int, ...]) -> list[NDArray[np.int64]]:
        """Return the positions that outputs read, shape ``(outputs, size)`` in each dimension; −1 stands for a zero.

        >>> Window((3,), (1,), "zero").taps((4,))[0].tolist()
        [[-1, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, -1]]
        """
        tables = []
        for n, size, r, out, start in zip(
            space, self.size, self.stride, self.outputs(space), self.starts(space), strict=True
        ):
            step = 1 if self.transposed else r
            table = np.arange(out)[:, None] * step + start + np.arange(size)
            among = n * r if self.transposed else n
            inside = (table >= 0) & (table < among)
            if self.padding == "circular":
                table = table % among
                inside = np.ones_like(inside)
            if self.transposed:
                inside &= table % r == 0
                table = table // r
            tables.append(np.where(inside, table, -1))
        return tables


def window_of(
    size: int | Sequence[int],
    stride: int | Sequence[int],
    padding: str,
    rank: int,
    *,
    transposed: bool = False,
) -> Window:
    """Return a checked window over so many dimensions of space; one number stands for all of them.

    Raises:
        UserError: numbers that are not whole and positive, a wrong number of them, an unknown padding.

    >>> window_of(3, 2, "zero", 2)
    Window(size=(3, 3), stride=(2, 2), padding='zero', transposed=False)
    """
    sides = checked_padding(padding)
    return Window(_each("window", size, rank), _each("stride", stride, rank), sides, transposed)


def checked_padding(padding: str) -> Padding:
    """Return a padding that there is.

    Raises:
        UserError: another one.
    """
    if padding not in PADDINGS:
        raise UserError(f"there is no padding {padding!r}; {nearest(padding, PADDINGS)}")
    return padding


def _each(name: str, numbers: int | Sequence[int], rank: int) -> tuple[int, ...]:
    several = tuple(numbers) if isinstance(numbers, Sequence) else (numbers,) * rank
    if len(several) != rank:
        raise UserError(
            f"{name} needs one number, or one for each of {rank} dimensions, got {numbers}"
        )
    if not all(isinstance(n, (int, np.integer)) and n >= 1 for n in several):
        raise UserError(f"{name} needs whole numbers from one on, got {numbers}")
    return tuple(int(n) for n in several)


def times(numbers: Sequence[int]) -> str:
    """Write a shape in words.

    >>> times((3, 3))
    '3 × 3'
    """
    return " × ".join(map(str, numbers))
