"""The tangent kernel of a finite convolutional network and of a transformer beside neural-tangents' three ways.

    python -m benchmarks.empirical_ntk.architectures PYTHON

with the interpreter of an environment with ``requirements-neural-tangents.txt``. Parameters, inputs and precision
(float32) are the same. Every contestant has a process of its own, so that its memory is its own, and is compiled
before; each repetition times all of them one after the other, so that a busy neighbour hits all. CPU-seconds are
compared, by the medians of their ratios within a repetition; the peer's best way is the one with the least median.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.kernels import empirical_ntk
from steepest.nn.layers import (
    add,
    attention,
    conv,
    dense,
    global_pool,
    identity,
    layer_norm,
    network,
    serial,
)

HERE = Path(__file__).parent
WAYS = {"Jacobian contraction": 1, "vector products": 2, "structured derivatives": 3}


class Case(NamedTuple):
    """A network and its inputs: a transformer where there are heads.

    Attributes:
        shape: of one input.
        width: channels of each layer.
        heads: of attention; 0 for a convolutional network.
        outputs: how many there are.
        take: which of their kernels, as in ``empirical_ntk``.
        n: inputs.
    """

    shape: tuple[int, ...]
    width: int
    heads: int
    outputs: int
    take: str
    n: int

    @property
    def name(self) -> str:
        """Return what tables call it."""
        kind = "transformer" if self.heads else "CNN"
        size = " × ".join(map(str, self.shape))
        return f"{kind}, {size}, width {self.width}, {self.outputs} outputs ({self.take})"


CASES = (
    Case((8, 8, 3), 16, 0, 1, "trace", 64),
    Case((16, 16, 3), 32, 0, 1, "trace", 32),
    Case((16, 16, 3), 32, 0, 10, "trace", 16),
    Case((16, 16, 3), 32, 0, 10, "all", 16),
    Case((8, 8, 3), 128, 0, 1, "trace", 64),
    Case((32, 32, 3), 16, 0, 1, "trace", 16),
    Case((16, 8), 32, 4, 1, "trace", 64),
    Case((16, 8), 64, 4, 10, "trace", 16),
    Case((16, 8), 64, 4, 10, "all", 16),
    Case((64, 8), 32, 4, 1, "trace", 32),
    Case((8, 8), 128, 8, 1, "trace", 64),
)


def build(case: Case):
    """Return the network."""
    w = case.width
    if not case.heads:
        layers = [layer for _ in range(3) for layer in (conv(w), "relu")]
        return network(*layers, global_pool(), dense(case.outputs), shape=case.shape, c_w=2.0)
    mixing = attention(w, heads=case.heads, key=w // case.heads, scale="1/sqrt(d)", tied=False)
    block = (
        add(identity, serial(layer_norm(), mixing)),
        add(identity, serial(layer_norm(), dense(4 * w), "gelu", dense(w))),
    )
    layers = [dense(w), *block, *block, global_pool(), dense(case.outputs)]
    return network(*layers, shape=case.shape, c_w=2.0)


def for_the_peer(case: Case, params: Any) -> list[Any]:
    """Return the parameters as the peer's functions read them."""
    weighted = [layer for layer in params if layer]
    if not case.heads:
        return weighted
    first, *branches, last = weighted
    blocks = []
    for (_, mixing), (_, wide) in zip(branches[::2], branches[1::2], strict=True):
        blocks.append({"attention": mixing[1], "up": wide[1], "down": wide[3]})
    return [first, *blocks, last]


class Contestant:
    """A process that computes a kernel whenever it is told to, and answers with CPU-seconds and peak memory."""

    def __init__(self, command: list[str], order: Mapping[str, Any]):
        self.process = subprocess.Popen(
            [*command, json.dumps(order)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True,
        )  # fmt: skip
        self.temporary = self.hear() / 2**20
        self.seconds: list[float] = []
        self.peak = 0.0

    def hear(self) -> Any:
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"it ended early, with code {self.process.wait()}")
        return json.loads(line)

    def run(self) -> None:
        print(file=self.process.stdin, flush=True)
        seconds, self.peak = self.hear()
        self.seconds.append(seconds)

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def serve(order: Mapping[str, Any]) -> None:
    """Compute our kernel whenever a line arrives."""
    case = Case(*order["case"])
    case = case._replace(shape=tuple(case.shape))
    net = build(case)
    arrays = np.load(order["problem"])
    structure = jax.tree.structure(net.init(jax.random.key(0)))
    params = jax.tree.unflatten(
        structure, [jnp.asarray(arrays[f"p{i}"]) for i in range(structure.num_leaves)]
    )
    x = jnp.asarray(arrays["x"])
    kernel = jax.jit(
        lambda x, p: empirical_ntk(net, p, x, outputs=case.take, method=order["method"])
    )
    compiled = kernel.lower(x, params).compile()
    np.save(order["save"], np.asarray(compiled(x, params)))
    print(json.dumps(compiled.memory_analysis().temp_size_in_bytes), flush=True)
    for _ in sys.stdin:
        started = time.process_time()
        compiled(x, params).block_until_ready()
        seconds = time.process_time() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps([seconds, peak]), flush=True)


def problem(case: Case, folder: Path) -> tuple[Path, Any]:
    """Save parameters and inputs; return the file, and the peer's tree with the arrays' names for leaves."""
    params = build(case).init(jax.random.key(0))
    leaves, structure = jax.tree.flatten(params)
    x = np.random.default_rng(0).normal(size=(case.n, *case.shape)).astype(np.float32)
    file = folder / "problem.npz"
    np.savez(file, x=x, **{f"p{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)})
    names = jax.tree.unflatten(structure, [f"p{i}" for i in range(len(leaves))])
    return file, for_the_peer(case, names)


def started(case: Case, peer: str, methods: list[str], folder: Path) -> dict[str, Contestant]:
    """Start all contestants, one after the other."""
    file, names = problem(case, folder)
    ours = [sys.executable, "-m", "benchmarks.empirical_ntk.architectures", "--serve"]
    theirs = [peer, str(HERE / "architectures_peer.py")]
    contestants = {}
    for method in methods:
        order = {
            "case": case,
            "problem": str(file),
            "method": method,
            "save": str(folder / f"steepest {method}.npy"),
        }
        contestants[f"steepest {method}"] = Contestant(ours, order)
    for way, number in WAYS.items():
        order = {
            "problem": str(file),
            "names": names,
            "heads": case.heads,
            "outputs": case.take,
            "implementation": number,
            "save": str(folder / f"{way}.npy"),
        }
        contestants[way] = Contestant(theirs, order)
    return contestants


def distance(case: Case, folder: Path, way: str, ours: str) -> float:
    """Return the relative distance of the peer's kernel from ours; it has a mean over outputs, and other axes."""
    theirs = np.load(folder / f"{way}.npy")
    kernel = np.load(folder / f"{ours}.npy")
    theirs = case.outputs * theirs if case.take == "trace" else theirs.transpose(0, 2, 1, 3)
    return float(np.linalg.norm(theirs - kernel) / np.linalg.norm(kernel))


def compare(case: Case, peer: str, methods: list[str], repeats: int) -> dict[str, Any]:
    """Time one case."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        contestants = started(case, peer, methods, folder)
        for contestant in contestants.values():
            contestant.run()
            contestant.seconds.clear()
        for _ in range(repeats):
            for contestant in contestants.values():
                contestant.run()
        for contestant in contestants.values():
            contestant.end()
        medians = {way: statistics.median(c.seconds) for way, c in contestants.items()}
        best = min(WAYS, key=medians.__getitem__)
        ours = f"steepest {methods[0]}"
        pairs = zip(contestants[best].seconds, contestants[ours].seconds, strict=True)
        return {
            "case": case.name,
            "n": case.n,
            "neural-tangents / steepest": round(statistics.median(t / o for t, o in pairs), 2),
            "best way there": best,
            "CPU-ms": {way: round(1e3 * s, 2) for way, s in medians.items()},
            "temporary MiB": {way: round(c.temporary, 1) for way, c in contestants.items()},
            "peak GiB": {way: round(c.peak, 3) for way, c in contestants.items()},
            "distance": distance(case, folder, best, ours),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "peer", nargs="?", help="the interpreter of the environment with neural-tangents"
    )
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--cases", type=int, nargs="*", help="their numbers; all by default")
    parser.add_argument(
        "--methods", nargs="*", default=["auto"], help="ours, the first of which is compared"
    )
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(json.loads(arguments.serve))
        return
    chosen = range(len(CASES)) if arguments.cases is None else arguments.cases
    for index in chosen:
        row = compare(CASES[index], arguments.peer, arguments.methods, arguments.repeats)
        print(json.dumps(row, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
