"""A way to a network's kernels and the inputs, in a folder: workers evaluate them without the network's functions.

``table.npz`` holds a table. Few layers with closed forms over unequal norms, and networks of layers, need none: the
manifest's description of the network, with activations by their names, is enough.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.core.reading import DAMAGE, check_regular, read_text
from steepest.core.records import canonical_digest
from steepest.core.writing import remove, temporary
from steepest.kernels._gram import blocks, evaluator
from steepest.kernels.connected._direct import Direct
from steepest.kernels.connected._table import Factors, Table
from steepest.kernels.connected._tabulated import Norms, Tabulated
from steepest.kernels.tiled._networks import (
    activations_of,
    describe_duals,
    duals_of,
    limit_of,
    named,
)
from steepest.kernels.wide import Positions, plan_of
from steepest.nn.layers import WideLimit
from steepest.nn.layers._beside import ALONE, Besides
from steepest.nn.networks import Limit

MANIFEST = "manifest.json"
TABLE = "table.npz"
ROWS = 4096  # of the inputs, at a time


Way = Tabulated | Direct | Positions
"""How a folder's kernels are computed."""


def storable(
    limit: Limit | WideLimit,
    x: NDArray,
    other: NDArray | None,
    tolerance: float,
    besides: Besides = ALONE,
) -> Way:
    """Choose the faster way to these kernels; a table where the activation cannot be found by its name.

    Raises:
        UserError: the tolerance cannot be met; a network of layers with an activation of the user's own.
    """
    way = evaluator(limit, x, other, tolerance, besides)
    own = [σ.name for σ in activations_of(limit) if not named(σ)]
    if own and isinstance(limit, WideLimit):
        raise UserError(
            f"workers find activations by their names, and the library has no {own[0]} that gives these values; "
            "compute the kernel in memory with gram, or take an activation of the library"
        )
    if own and isinstance(way, Direct):
        assert isinstance(limit, Limit)
        return Tabulated.of(limit, Norms.of(x, other), x.dtype, tolerance)
    return way


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write what a folder holds, with a checksum."""
    whole = json.loads(json.dumps(manifest))
    with written(folder / MANIFEST) as file:
        file.write(json.dumps({**whole, "digest": _digest_of(whole)}, indent=1).encode())


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read it; one of an earlier version has no checksum.

    Raises:
        one of ``DAMAGE``: it is missing or damaged.
    """
    manifest = json.loads(read_text(folder / MANIFEST))
    digest = manifest.pop("digest", None)
    if digest is not None and digest != _digest_of(manifest):
        raise ValueError("it does not match its checksum")
    return manifest


def _digest_of(manifest: dict[str, Any]) -> str:
    """Return a checksum of all but the version, of which another sentence speaks."""
    return canonical_digest({key: value for key, value in manifest.items() if key != "version"})


def way_in_words(way: Way) -> dict[str, Any]:
    """Describe the way for the manifest, which is all that is stored of it unless it is a table."""
    if isinstance(way, Positions):
        return {"way": "positions", "duals": describe_duals(way.duals), "error": way.error}
    return {"way": "direct" if isinstance(way, Direct) else "table"}


def save_way(folder: Path, way: Way, kernels: tuple[str, ...]) -> None:
    """Store what the manifest does not say: the table, without the tangent kernel if that is not kept."""
    if not isinstance(way, Tabulated):
        return
    table = way.table if "ntk" in kernels else replace(way.table, ntk=None)
    arrays = {}
    for field in fields(Table):
        value = getattr(table, field.name)
        if isinstance(value, Factors):
            arrays |= {f"{field.name}_norms": value.norms, f"{field.name}_angles": value.angles}
        elif value is not None:
            arrays[field.name] = value
    with written(folder / TABLE) as file:
        np.savez(file, **arrays)


def load_way(folder: Path) -> Way:
    """Load the stored way, to the last bit.

    Raises:
        OSError, ValueError, KeyError, zipfile.BadZipFile: it is missing or damaged.
    """
    manifest = read_manifest(folder)
    if manifest["way"] == "positions":
        limit = limit_of(manifest["network"])
        assert isinstance(limit, WideLimit)
        plan = plan_of(limit, masked="mask" in manifest)
        return Positions(plan, duals_of(manifest["duals"]), manifest["error"])
    if manifest["way"] == "direct":
        limit = limit_of(manifest["network"])
        assert isinstance(limit, Limit)
        return Direct.of(limit, np.empty(0, manifest["dtype"]))
    check_regular(folder / TABLE)
    with np.load(folder / TABLE, allow_pickle=False) as stored:
        nngp = Factors(stored["nngp_norms"], stored["nngp_angles"])
        ntk = Factors(stored["ntk_norms"], stored["ntk_angles"]) if "ntk_norms" in stored else None
        low, high, error = (float(stored[name]) for name in ("low", "high", "error"))
        zero, at_zero = (stored.get(name) for name in ("zero", "at_zero"))
        return Tabulated(Table(low, high, nngp, ntk, stored["diagonal"], error, zero, at_zero))


def way_trouble(folder: Path) -> str | None:
    """Say why the stored way cannot be used: ``""`` where there is none; None if it can."""
    try:
        load_way(folder)
    except FileNotFoundError:
        return ""
    except DAMAGE as trouble:
        return str(trouble) or type(trouble).__name__
    return None


def inputs_trouble(path: Path, wanted: NDArray) -> str | None:
    """Say the same of a file that should hold these inputs."""
    try:
        check_regular(path)
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
        same = digest(stored) == digest(wanted)
    except FileNotFoundError:
        return ""
    except DAMAGE as trouble:
        return str(trouble) or type(trouble).__name__
    return None if same else "its checksum is another"


def digest(x: NDArray) -> str:
    """Return a checksum of the entries, which may be memory-mapped."""
    checksum = hashlib.sha256(repr((x.shape, x.dtype.str)).encode())
    for part in blocks(len(x), ROWS):
        checksum.update(np.ascontiguousarray(x[part]).data)
    return checksum.hexdigest()


@contextmanager
def written(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that appears under its name once it is whole."""
    with temporary(path) as fresh:
        with fresh.open("wb") as file:
            yield file
        if path.is_dir() and not path.is_symlink():  # nothing of ours, where a file of ours belongs
            remove(path)
        os.replace(fresh, path)
