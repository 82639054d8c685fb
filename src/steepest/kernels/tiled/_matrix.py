"""Gram matrices that lie on disk in tiles: what the folder holds, and products with it.

``manifest.json`` says which Gram it is, ``x.npy``, ``other.npy`` and ``table.npz`` what it is computed from, and
``tiles/<i>-<j>.npy`` holds the kernels of block i of the rows with block j of the columns, shape ``(kernels, p, q)``;
with one set of inputs only i ≤ j. Four bytes behind the array hold its checksum. Every file appears whole or not at
all, and none is a pickle.
"""

import os
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.core.reading import DAMAGE, check_regular
from steepest.kernels._gram import blocks
from steepest.kernels.tiled._files import MANIFEST, load_way, read_manifest, written

TILES = "tiles"
ARRAYS = ("x", "other", "mask", "other_mask")
"""What may lie beside the tiles: inputs, and which of their positions exist."""
CHECKSUM = 4  # bytes behind a tile


@dataclass(frozen=True)
class TiledGram:
    """The kernels of all pairs of inputs, on disk; ``.nngp`` and ``.ntk`` are matrices, as in ``Gram``.

    Attributes:
        folder: where it lies.
        shape: rows and columns.
        dtype: of its entries.
        kernels: which of ``"nngp"`` and ``"ntk"`` there are.
        symmetric: whether rows and columns are the same inputs.
        size: rows of the largest tile.
        arrays: which of ``ARRAYS`` lie beside the tiles.
    """

    folder: Path
    shape: tuple[int, int]
    dtype: np.dtype
    kernels: tuple[str, ...]
    symmetric: bool
    size: int
    arrays: tuple[str, ...]

    @property
    def nngp(self) -> "TiledMatrix":
        """Return the covariance of the outputs at initialization."""
        return TiledMatrix(self, "nngp")

    @property
    def ntk(self) -> "TiledMatrix":
        """Return the tangent kernel."""
        return TiledMatrix(self, "ntk")

    @property
    def error(self) -> float:
        """Return the largest error of the way to the kernels, relative to √(K_αα K_ββ); see ``Gram``.

        Raises:
            UserError: what says it is missing or damaged.
        """
        try:
            return load_way(self.folder).error
        except DAMAGE as trouble:
            raise UserError(
                f"the way to the kernels in {self.folder} is damaged ({trouble}); call tiled_gram again to repair it"
            ) from None

    @property
    def rows(self) -> list[slice]:
        """Return the blocks of rows."""
        return blocks(self.shape[0], self.size)

    @property
    def columns(self) -> list[slice]:
        """Return the blocks of columns."""
        return blocks(self.shape[1], self.size)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Return the indices of the tiles that are stored."""
        across = range(len(self.columns))
        return [
            (i, j) for i in range(len(self.rows)) for j in across if not self.symmetric or i <= j
        ]

    @property
    def missing(self) -> list[tuple[int, int]]:
        """Return the indices of the tiles that have not been computed yet."""
        stored = {path.name for path in (self.folder / TILES).glob("*.npy")}
        return [pair for pair in self.pairs if self.path(*pair).name not in stored]

    @property
    def complete(self) -> bool:
        """Return whether no tile is missing."""
        return not self.missing

    def damaged(self) -> list[tuple[int, int]]:
        """List the tiles that exist but have another shape, length or checksum; this reads them all."""
        return [
            pair
            for pair in self.pairs
            if os.path.lexists(self.path(*pair)) and not self._sound(*pair)
        ]

    def path(self, i: int, j: int) -> Path:
        """Return the file of a tile."""
        return self.folder / TILES / f"{i:05d}-{j:05d}.npy"

    def write(self, i: int, j: int, values: NDArray) -> None:
        """Store a tile, shape ``(kernels, p, q)``."""
        with written(self.path(i, j)) as file:
            np.lib.format.write_array(file, values, allow_pickle=False)
            file.write(zlib.crc32(values.data).to_bytes(CHECKSUM, "little"))

    def read(self, i: int, j: int) -> NDArray:
        """Return a stored tile, shape ``(kernels, p, q)``, memory-mapped.

        The checksum is compared when a file is read for the first time in this process.

        Raises:
            UserError: it is missing, or its shape, type, length or checksum is wrong.
        """
        path = self.path(i, j)
        again = "call tiled_gram again to compute it"
        try:
            check_regular(path)
            values = np.load(path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError:
            raise UserError(
                f"tile ({i}, {j}) of the Gram matrix in {self.folder} is missing; {again}"
            ) from None
        except DAMAGE as trouble:
            raise UserError(f"the tile {path} is damaged ({trouble}); {again}") from None
        shape = (
            len(self.kernels),
            *(len(range(block.start, block.stop)) for block in (self.rows[i], self.columns[j])),
        )
        state = path.stat()
        length = values.offset + values.nbytes + CHECKSUM
        whole = values.flags.c_contiguous and state.st_size == length
        if (values.shape, values.dtype) != (shape, self.dtype) or not whole:
            raise UserError(
                f"the tile {path} is damaged (not {shape} of {self.dtype} and a checksum); {again}"
            )
        if not _matched_once(path, values.offset, state.st_ino, state.st_mtime_ns):
            raise UserError(f"the tile {path} is damaged (it does not match its checksum); {again}")
        return values

    def _sound(self, i: int, j: int) -> bool:
        try:
            values = self.read(i, j)
        except UserError:
            return False
        return _matches(
            self.path(i, j),
            values.offset,  # pyright: ignore
        )  # also what has decayed since it was read first


@lru_cache(maxsize=2**16)
def _matched_once(path: Path, offset: int, inode: int, time: int) -> bool:
    """Compare the checksum of a file that may be read again and again."""
    return _matches(path, offset)


def _matches(path: Path, offset: int) -> bool:
    """Tell whether the four bytes behind a tile's array, which begins at an offset, are its checksum."""
    array = np.memmap(path, np.uint8, "r", offset)
    return zlib.crc32(array[:-CHECKSUM]) == int.from_bytes(array[-CHECKSUM:].tobytes(), "little")  # pyright: ignore


@dataclass(frozen=True)
class TiledMatrix:
    """One kernel of a ``TiledGram``, as ``solve`` takes it; a product reads each stored tile once.

    Attributes:
        gram: the tiles.
        kernel: ``"nngp"`` or ``"ntk"``.
    """

    gram: TiledGram
    kernel: str

    def __post_init__(self) -> None:
        if self.kernel not in self.gram.kernels:
            raise UserError(
                f"the folder {self.gram.folder} holds {' and '.join(self.gram.kernels)}, not {self.kernel}"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of rows and columns."""
        return self.gram.shape

    @property
    def dtype(self) -> np.dtype:
        """Return the dtype of the entries."""
        return self.gram.dtype

    @property
    def symmetric(self) -> bool:
        """Return whether rows and columns are the same inputs."""
        return self.gram.symmetric

    def tile(self, i: int, j: int) -> Float[np.ndarray, "p q"]:
        """Return block i of the rows with block j of the columns, memory-mapped and read-only."""
        turned = self.symmetric and i > j
        values = self.gram.read(*((j, i) if turned else (i, j)))[
            self.gram.kernels.index(self.kernel)
        ]
        return values.T if turned else values

    def tiles(self, dtype: Any = None) -> Iterator[tuple[slice, slice, NDArray]]:
        """Yield rows, columns and entries of every stored tile, in memory; the next one is read meanwhile."""
        rows = self.gram.rows
        columns = self.gram.columns
        dtype = dtype or self.dtype
        with ThreadPoolExecutor(1) as reader:
            waiting = None
            for i, j in self.gram.pairs:
                started = reader.submit(lambda i, j: np.array(self.tile(i, j), dtype), i, j)
                if waiting is not None:
                    yield *waiting[:2], waiting[2].result()
                waiting = rows[i], columns[j], started
            if waiting is not None:
                yield *waiting[:2], waiting[2].result()

    def matvec(self, v: Float[np.ndarray, "m *k"]) -> Float[np.ndarray, "n *k"]:
        """Multiply by a vector or by several columns.

        Tiles are multiplied in the wider of the two dtypes, and the products summed in float64: with a float64 v the
        result is that of the stored entries to rounding, with a float32 v of a float32 matrix it is quicker.
        """
        v = np.asarray(v)
        if v.ndim not in (1, 2) or len(v) != self.shape[1]:
            raise UserError(
                f"the matrix has {self.shape[1]} columns, the vector has shape {v.shape}"
            )
        work = np.result_type(self.dtype, v.dtype)
        v = v.astype(work, copy=False)
        out = np.zeros((self.shape[0], *v.shape[1:]))
        for rows, columns, values in self.tiles(work):
            out[rows] += values @ v[columns]
            if self.symmetric and rows != columns:
                out[columns] += values.T @ v[rows]
        return out.astype(work, copy=False)

    def diagonal(self) -> Float[np.ndarray, " n"]:
        """Return K(x, x) of every input."""
        if not self.symmetric:
            raise UserError("a Gram matrix of two sets of inputs has no diagonal")
        return np.concatenate([np.diagonal(self.tile(i, i)) for i in range(len(self.gram.rows))])

    def rows(self, indices: Sequence[int] | NDArray) -> Float[np.ndarray, "k m"]:
        """Return some rows; ask for all that are needed at once, for each call opens all their tiles."""
        indices = np.arange(self.shape[0])[np.asarray(indices, int)]
        out = np.empty((len(indices), self.shape[1]), self.dtype)
        for i, rows in enumerate(self.gram.rows):
            wanted = np.flatnonzero((rows.start <= indices) & (indices < rows.stop))
            for j, columns in enumerate(self.gram.columns if len(wanted) else ()):
                out[wanted, columns] = self.tile(i, j)[indices[wanted] - rows.start]
        return out

    def toarray(self) -> Float[np.ndarray, "n m"]:
        """Return the whole matrix in memory."""
        out = np.empty(self.shape, self.dtype)
        for rows, columns, values in self.tiles():
            out[rows, columns] = values
            if self.symmetric:
                out[columns, rows] = values.T
        return out


def open_tiled(folder: str | os.PathLike) -> TiledGram:
    """Open the Gram matrix in a folder that ``tiled_gram`` filled, or began to; nothing is computed.

    Raises:
        UserError: the folder holds none.
    """
    folder = Path(folder).absolute()
    try:
        manifest = read_manifest(folder)
        shape = tuple(manifest["shape"])
        dtype = np.dtype(manifest["dtype"])
        sizes = (*shape, manifest["tile"])
        if len(shape) != 2 or not all(type(size) is int and size > 0 for size in sizes):
            raise ValueError(f"it speaks of {shape} entries in tiles of {manifest['tile']}")
        if dtype.kind != "f" or not {*manifest["kernels"]} <= {"nngp", "ntk"}:
            raise ValueError(f"it speaks of {manifest['kernels']} in {dtype}")
        return TiledGram(
            folder,
            shape,
            dtype,
            tuple(manifest["kernels"]),
            "other" not in manifest,
            manifest["tile"],
            tuple(name for name in ARRAYS if name in manifest),
        )
    except FileNotFoundError:
        raise UserError(
            f"{folder} holds no Gram matrix here (no {MANIFEST}); make one with tiled_gram"
        ) from None
    except DAMAGE as trouble:
        raise UserError(
            f"{folder / MANIFEST} is not readable ({trouble}); delete the folder and start again"
        ) from None
