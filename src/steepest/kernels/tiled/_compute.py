"""Gram matrices larger than memory: computed in tiles on disk, by this process or by many, resumable after a kill."""

import hashlib
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from steepest import __version__
from steepest.core.errors import UserError
from steepest.core.reading import check_regular, read_bytes
from steepest.core.writing import remove_leftovers
from steepest.kernels._gram import checked_inputs, fill, rows_of
from steepest.kernels.connected._tabulated import TOLERANCE
from steepest.kernels.tiled._files import (
    MANIFEST,
    TABLE,
    Way,
    digest,
    inputs_trouble,
    load_way,
    read_manifest,
    save_way,
    storable,
    way_in_words,
    way_trouble,
    write_manifest,
    written,
)
from steepest.kernels.tiled._matrix import ARRAYS, TILES, TiledGram, open_tiled
from steepest.kernels.tiled._networks import alike, describe, jumping, probes
from steepest.nn.layers import WideLimit
from steepest.nn.layers._beside import Beside
from steepest.nn.networks import Limit

TILE = 2048  # rows of a tile
IN_FLIGHT = 256  # tiles that wait or run at an executor at a time
KERNELS = ("nngp", "ntk")


class DamagedTile(UserWarning):
    """A stored file could not be trusted and is made again."""


def tiled_gram(
    limit: Limit | WideLimit,
    x: Float[np.ndarray, "n ..."],
    folder: str | os.PathLike,
    other: Float[np.ndarray, "m ..."] | None = None,
    *,
    mask: Bool[np.ndarray, "n ..."] | None = None,
    other_mask: Bool[np.ndarray, "m ..."] | None = None,
    tile: int = TILE,
    kernels: Sequence[str] = KERNELS,
    submit: Callable[..., Any] | None = None,
    devices: Sequence[jax.Device] | None = None,
    tolerance: float | None = None,
    watch: Callable[[str], None] = lambda stage: None,
) -> TiledGram:
    """Compute NNGP and NTK as ``gram`` does, in a folder instead of in memory.

    Memory holds a few tiles and the blocks of inputs that belong to them; of a network of layers at the start also what
    pairs need of all inputs at their positions. Tiles already in the folder are checked and
    kept: after a kill call it again, with the same arguments. Use ``open_tiled`` to read without that check.

    With ``submit``, tiles are computed elsewhere: ``submit(function, *arguments)`` must return a future with
    ``result()``, as that of an executor of ``concurrent.futures`` or of a ``dask.distributed.Client`` does. Workers
    get the path of the folder and two indices, so they must see its disk, and import steepest. Start processes by
    spawn, not fork: ``ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"))``.

    Args:
        limit: of ``mlp(...).limit()``, or of ``network(...).limit()`` of ``steepest.nn.layers``.
        x: inputs, one a row; may be memory-mapped.
        folder: where the tiles go: empty, new, or the one of an interrupted call.
        other: a second set; without it only the tiles on and above the diagonal are computed.
        mask: of a network of layers: which positions exist, as for ``gram``; it is stored beside the inputs.
        other_mask: that of the second set.
        tile: rows of the square tiles.
        kernels: which to keep; ``("nngp",)`` alone takes half the disk, and with a table half the time.
        submit: where tiles are computed; None for this process, which writes one while it computes the next.
        devices: of this process, each of which computes a tile at a time, as ``jax.devices()``; the tiles are the same
            whichever device computes them. None for JAX's own choice.
        tolerance: of the table, relative to √(K_αα K_ββ).
        watch: called with a sentence after every tile.

    Raises:
        UserError: inputs as for ``gram``; the folder holds something else, or cannot be written; the tangent
            kernel of a σ that jumps.

    >>> from tempfile import TemporaryDirectory
    >>> from steepest.nn.networks import mlp
    >>> net = mlp((2, 100, 100, 1), "relu", parameterized="ntk", c_w=2.0, bias=False)
    >>> with TemporaryDirectory() as folder:
    ...     tiled = tiled_gram(net.limit(), np.array([[1.0, 1.0], [1.0, -1.0]]), folder, tile=1)
    ...     tiled.ntk.toarray().round(4).tolist(), tiled.complete
    ([[6.0, 1.3714], [1.3714, 6.0]], True)
    """
    if devices is not None and (submit is not None or not len(devices)):
        raise UserError(
            "devices are those of this process, at least one of them, and workers choose their own: "
            "give either submit or devices"
        )
    if isinstance(limit, WideLimit) and limit.graphs:
        raise UserError(
            "tiled_gram stores no graphs beside inputs; take gram with graphs, for parts of the inputs if need be"
        )
    besides = (Beside(mask), Beside(other_mask))
    x, other, besides = checked_inputs(limit, x, other, besides)
    other = None if other is None else other.astype(x.dtype, copy=False)
    tolerance = tolerance or TOLERANCE[x.dtype.itemsize]
    given = dict(zip(ARRAYS, (x, other, *(beside.mask for beside in besides)), strict=True))
    arrays = {name: array for name, array in given.items() if array is not None}
    way = lambda: storable(limit, x, other, tolerance, besides)
    manifest = _manifest(limit, arrays, tile, tuple(kernels), tolerance)
    _begin(Path(folder).absolute(), manifest, lambda: way_in_words(way()))
    gram = open_tiled(folder)
    todo = _todo(gram)
    with _writable(gram.folder):
        if todo or way_trouble(gram.folder) is not None:
            _provide(gram, arrays, way)
        if todo:
            _fill(gram, todo, submit, devices, watch)
    return gram


def compute(folder: str, identity: str, i: int, j: int) -> None:
    """Compute one tile and store it; workers call this."""
    files = sorted(
        (path.name, path.stat().st_ino, path.stat().st_mtime_ns)
        for path in Path(folder).glob("*.np?")
    )
    source = _source(folder, identity, tuple(files))  # read again if the files have been replaced
    source.gram.write(i, j, source.values(i, j))


class _Source:
    """The folder as a worker reads it: the table, and the inputs block by block."""

    def __init__(self, gram: TiledGram):
        self.gram = gram
        self.way = load_way(gram.folder)
        self.x = self._stored("x")
        self.other = self.x if gram.symmetric else self._stored("other")
        self.mask = self._stored("mask")
        self.other_mask = self.mask if gram.symmetric else self._stored("other_mask")
        self.block = lru_cache(maxsize=4)(self._block)

    def _stored(self, name: str) -> NDArray | None:
        """Open inputs or a mask; None where the folder has none."""
        if name not in self.gram.arrays:
            return None
        path = self.gram.folder / f"{name}.npy"
        check_regular(path)
        return np.load(path, mmap_mode="r", allow_pickle=False)

    def _block(self, down: bool, index: int) -> tuple[NDArray, ...]:
        part = (self.gram.rows if down else self.gram.columns)[index]
        x = self.x if down else self.other
        mask = self.mask if down else self.other_mask
        assert x is not None
        beside = Beside(None if mask is None else np.asarray(mask[part]))
        return rows_of(self.way, np.asarray(x[part]), beside)

    def values(self, i: int, j: int, device: jax.Device | None = None) -> NDArray:
        """Compute the kernels of a tile, shape ``(kernels, p, q)``, in blocks that stay in the processor's cache."""
        across = self.gram.symmetric
        rows = self.block(True, i)
        columns = self.block(across, j)
        same = across and i == j
        shape = (len(self.gram.kernels), rows[0].shape[-2], columns[0].shape[-2])
        out = np.empty(shape, self.gram.dtype)
        kernels = [KERNELS.index(kernel) for kernel in self.gram.kernels]
        fill(
            out,
            self.way,
            rows,
            columns,
            symmetric=same,
            kernels=kernels,
            device=device,
        )
        return out


@lru_cache(maxsize=2)
def _source(folder: str, identity: str, files: tuple) -> _Source:
    gram = open_tiled(folder)
    if _identity(gram.folder) != identity:
        raise UserError(
            f"{folder} is another folder on this machine; workers and master need one on a shared disk"
        )
    return _Source(gram)


def _identity(folder: Path) -> str:
    return hashlib.sha256(read_bytes(folder / MANIFEST)).hexdigest()


def _fill(
    gram: TiledGram,
    todo: list[tuple[int, int]],
    submit: Callable | None,
    devices: Sequence[jax.Device] | None,
    watch: Callable[[str], None],
) -> None:
    """Compute tiles here or elsewhere, with a bounded number on their way."""
    writer = ThreadPoolExecutor(len(devices) if devices else 1)
    if devices:
        source = _Source(gram)
        free: SimpleQueue[jax.Device] = SimpleQueue()
        for device in devices:
            free.put(device)
        room = 2 * len(devices)

        def compute_on_a_free_one(i: int, j: int) -> None:
            device = free.get()
            try:
                gram.write(i, j, source.values(i, j, device))
            finally:
                free.put(device)

        start = lambda i, j: writer.submit(compute_on_a_free_one, i, j)
    elif submit is None:
        source = _Source(gram)
        room = 2
        start = lambda i, j: writer.submit(gram.write, i, j, source.values(i, j))
    else:
        folder = str(gram.folder)
        identity = _identity(gram.folder)
        room = IN_FLIGHT
        start = lambda i, j: submit(compute, folder, identity, i, j)
    waiting = deque()
    done = count(1)

    def finish() -> None:
        waiting.popleft().result()
        watch(f"tile {next(done)} of {len(todo)}")

    try:
        for pair in todo:
            if len(waiting) == room:
                finish()
            waiting.append(start(*pair))
        while waiting:
            finish()
    finally:
        for future in waiting:  # none are left unless something failed
            future.cancel()
        writer.shutdown()
    if gram.missing:
        raise UserError(
            f"the workers' tiles are not in {gram.folder}: they must write to the same disk"
        )


def _todo(gram: TiledGram) -> list[tuple[int, int]]:
    """List the tiles to compute: the missing ones, and those that are damaged, which are reported."""
    for folder in (gram.folder, gram.folder / TILES):
        remove_leftovers(folder)
    damaged = gram.damaged()
    for pair in damaged:
        warnings.warn(
            f"the tile {gram.path(*pair)} is damaged; it is computed again",
            DamagedTile,
            stacklevel=3,
        )
    return sorted({*gram.missing, *damaged})


def _manifest(
    limit: Limit | WideLimit,
    arrays: Mapping[str, NDArray],
    tile: int,
    kernels: tuple,
    tolerance: float,
) -> dict:
    """Describe which Gram it is: network, inputs, masks, tiles, kernels, tolerance, version."""
    x = arrays["x"]
    other = arrays.get("other")
    if tile < 1 or int(tile) != tile:
        raise UserError(f"a tile has at least one row and a whole number of them, got tile={tile}")
    if not kernels or len(set(kernels)) < len(kernels) or not set(kernels) <= set(KERNELS):
        raise UserError(f"kernels are one or both of {KERNELS}, got {kernels}")
    if other is not None and other.shape[1] != x.shape[1]:
        raise UserError(
            f"both sets of inputs need the same dimension, got {x.shape[1]} and {other.shape[1]}"
        )
    jumps = jumping(limit)
    if "ntk" in kernels and jumps is not None:
        raise UserError(f"{jumps.name} jumps and has no tangent kernel; choose kernels=('nngp',)")
    return {
        "version": __version__,
        "network": describe(limit),
        "activation": probes(limit),
        "shape": [len(x), len(x if other is None else other)],
        "dtype": x.dtype.str,
        **{name: digest(array) for name, array in arrays.items()},
        "tile": int(tile),
        "kernels": list(kernels),
        "tolerance": tolerance,
    }


def _begin(folder: Path, manifest: dict, choose: Callable[[], dict]) -> None:
    """Make the folder, with the way to the kernels chosen, or see that it is that of this Gram."""
    try:
        if not (folder / MANIFEST).exists():
            way = choose()  # before anything is written: it may turn out that there is none
            folder.mkdir(parents=True, exist_ok=True)
            if any(not path.name.startswith(".new-") for path in folder.iterdir()):
                raise UserError(
                    f"{folder} has files but no {MANIFEST} of a Gram matrix; choose an empty folder"
                )
            write_manifest(folder, manifest | way)
        (folder / TILES).mkdir(exist_ok=True)
        open_tiled(folder)
        stored = read_manifest(folder)
    except OSError as trouble:
        raise UserError(
            f"cannot write to the folder {folder} ({trouble.strerror or trouble})"
        ) from None
    wrong = [key for key in manifest if key != "activation" and manifest[key] != stored.get(key)]
    if not alike(manifest["activation"], stored.get("activation", [])):
        wrong.append("activation")
    wrong += [name for name in ARRAYS if name in stored and name not in manifest]
    if wrong:
        what = " and ".join(wrong)
        raise UserError(
            f"{folder} holds another Gram matrix (of another {what}); choose another folder"
        )


def _provide(gram: TiledGram, arrays: Mapping[str, NDArray], way: Callable[[], Way]) -> None:
    """See that inputs, masks and the way to their kernels lie in the folder, undamaged."""
    for name, wanted in arrays.items():
        path = gram.folder / f"{name}.npy"
        if (trouble := inputs_trouble(path, wanted)) is not None:
            _report(path, trouble)
            with written(path) as file:
                np.save(file, wanted, allow_pickle=False)
    if (trouble := way_trouble(gram.folder)) is not None:
        _report(gram.folder / TABLE, trouble)
        save_way(gram.folder, way(), gram.kernels)


@contextmanager
def _writable(folder: Path) -> Iterator[None]:
    """Say in a sentence what a disk cannot do; what a line to workers cannot is left as it is."""
    try:
        yield
    except OSError as trouble:
        if trouble.errno is None or isinstance(trouble, ConnectionError | TimeoutError):
            raise
        raise UserError(
            f"cannot write to the folder {folder} ({trouble.strerror or trouble}); tiles that are finished are kept, "
            "make room and call tiled_gram again"
        ) from None


def _report(path: Path, trouble: str) -> None:
    """Warn of damage; absence is not reported."""
    if trouble:
        warnings.warn(f"{path} is damaged ({trouble}); it is made again", DamagedTile, stacklevel=4)
