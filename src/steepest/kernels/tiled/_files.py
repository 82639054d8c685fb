"""A way to a network's kernels and the inputs, in a folder: workers evaluate them without the network's functions.

``table.npz`` holds a table. Few layers with closed forms over unequal norms need none: the manifest's description of
the network, its activation by name, is enough.
"""

import hashlib
import json
import os
import platform
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import IO

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.kernels._direct import Direct
from steepest.kernels._gram import blocks, evaluator
from steepest.kernels._table import Factors, Table
from steepest.kernels._tabulated import Tabulated
from steepest.kernels.wide import Positions
from steepest.nn.activations import Activation, activation
from steepest.nn.networks import LayerLimit, Limit

MANIFEST = "manifest.json"
TABLE = "table.npz"
PROBES = np.linspace(-3.0, 3.0, 25)  # where two activations are compared
ROWS = 4096  # of the inputs, at a time


def describe(limit: Limit) -> dict:
    """Describe a network in words and numbers, for JSON."""
    return {
        "activation": limit.activation.name,
        "kinks": list(limit.activation.kinks),
        "layers": [list(layer) for layer in limit.layers],
        "skip": limit.skip,
        "normalized": limit.normalized,
    }


def probes(σ: Activation) -> list[float]:
    """Evaluate an activation at fixed points: two may share a name."""
    with jax.enable_x64(True):
        return np.asarray(σ(jnp.asarray(PROBES)), float).tolist()


def alike(values: list[float], others: list[float]) -> bool:
    """Tell whether two activations are one, up to the rounding of machines."""
    return np.allclose(values, others, rtol=1e-9, atol=1e-9, equal_nan=True)


def storable(
    limit: Limit, x: NDArray, other: NDArray | None, tolerance: float
) -> Tabulated | Direct:
    """Choose the faster way to these kernels; a table where the activation cannot be found by its name.

    Raises:
        UserError: the tolerance cannot be met.
    """
    way = evaluator(limit, x, other, tolerance)
    assert not isinstance(way, Positions)  # tiled_gram takes no networks of layers
    if isinstance(way, Direct) and not _named(limit.activation):
        return Tabulated.of(limit, x, other, tolerance)
    return way


def _named(σ: Activation) -> bool:
    try:
        return alike(probes(activation(σ.name)), probes(σ))
    except UserError:
        return False


def save_way(folder: Path, way: Tabulated | Direct, kernels: tuple[str, ...]) -> None:
    """Store what the manifest does not say: the table, without the tangent kernel if that is not kept."""
    if isinstance(way, Direct):
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


def load_way(folder: Path) -> Tabulated | Direct:
    """Load the stored way, to the last bit.

    Raises:
        OSError, ValueError, KeyError, zipfile.BadZipFile: it is missing or damaged.
    """
    manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    if manifest["way"] == "direct":
        network = manifest["network"]
        layers = tuple(LayerLimit(*layer) for layer in network["layers"])
        limit = Limit(
            activation(network["activation"]), layers, network["skip"], network["normalized"]
        )
        return Direct.of(limit, np.empty(0, manifest["dtype"]))
    with np.load(folder / TABLE, allow_pickle=False) as stored:
        nngp = Factors(stored["nngp_norms"], stored["nngp_angles"])
        ntk = Factors(stored["ntk_norms"], stored["ntk_angles"]) if "ntk_norms" in stored else None
        low, high, error = (float(stored[name]) for name in ("low", "high", "error"))
        return Tabulated(Table(low, high, nngp, ntk, stored["diagonal"], error))


def way_trouble(folder: Path) -> str | None:
    """Say why the stored way cannot be used: ``""`` where there is none; None if it can."""
    try:
        load_way(folder)
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as trouble:
        return str(trouble)
    return None


def inputs_trouble(path: Path, wanted: NDArray) -> str | None:
    """Say the same of a file that should hold these inputs."""
    try:
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        return ""
    except (ValueError, EOFError) as trouble:
        return str(trouble)
    return None if digest(stored) == digest(wanted) else "its checksum is another"


def digest(x: NDArray) -> str:
    """Return a checksum of the entries, which may be memory-mapped."""
    checksum = hashlib.sha256(repr((x.shape, x.dtype.str)).encode())
    for part in blocks(len(x), ROWS):
        checksum.update(np.ascontiguousarray(x[part]).data)
    return checksum.hexdigest()


@contextmanager
def written(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that appears under its name once it is whole."""
    temporary = path.with_name(
        f".new-{path.name}-{platform.node()}-{os.getpid()}-{threading.get_ident()}"
    )
    try:
        with temporary.open("wb") as file:
            yield file
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
