"""Infinite-width Gram matrices, NNGP and NTK together, beside neural-tangents and one product X Xᵀ.

Each repetition times all contestants one after the other, so that a busy neighbour hits all of them; medians of the
ratios are compared. The peer runs in its own process and environment (``requirements.txt``); its first call, which
compiles, is not counted, and neither is ours; ours is shown beside it with the table.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from steepest.kernels import gram, pair_kernels
from steepest.nn.activations import activation
from steepest.nn.networks import mlp

CASES = [  # name, hidden layers, n, C_W, C_b, equal norms
    ("relu", 3, 3000, 2.0, 0.0, True),
    ("relu", 3, 3000, 2.0, 0.0, False),
    ("relu", 3, 3000, 2.0, 0.1, False),
    ("relu", 20, 2000, 2.0, 0.0, False),
    ("erf", 3, 3000, 1.5, 0.1, True),
    ("erf", 3, 3000, 1.5, 0.1, False),
    ("gelu", 3, 3000, 2.0, 0.1, False),
    ("tanh", 3, 500, 1.5, 0.1, True),
    ("tanh", 3, 500, 1.5, 0.1, False),
]
D = 784


def inputs(n, equal, seed=0):
    """Random inputs of mean square one, or with norms over a factor of two, in float32."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, D))
    x /= np.linalg.norm(x, axis=1, keepdims=True) / D**0.5
    return (x if equal else x * rng.uniform(0.7, 1.4, (n, 1))).astype(np.float32)


class Peer:
    """neural-tangents behind a pipe."""

    def __init__(self, python: str):
        self.process = subprocess.Popen(
            [python, str(Path(__file__).with_name("peer.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def seconds(self, **order) -> float:
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["seconds"]


def timed(function) -> float:
    started = time.perf_counter()
    jax.block_until_ready(function())
    return time.perf_counter() - started


def error(kernel, limit, x, count=30):
    """Largest relative error of an NTK among random pairs, against the recursion in float64."""
    rng = np.random.default_rng(1)
    i, j = rng.integers(0, len(x), (2, count))
    wide = x.astype(np.float64)
    squares = np.einsum("nd,nd->n", wide, wide) / D
    cosine = np.einsum("nd,nd->n", wide[i], wide[j]) / D / np.sqrt(squares[i] * squares[j])
    exact = pair_kernels(limit, squares, i, j, np.arccos(np.clip(cosine, -1, 1))).pairs.ntk
    return float(np.max(np.abs(kernel[i, j] / exact - 1)))


def case(peer, folder, repeats, name, depth, n, c_w, c_b, equal):
    x = inputs(n, equal)
    file = str(folder / f"x{n}{equal}.npy")
    np.save(file, x)
    net = mlp(
        (D, *(1,) * depth, 1), activation(name), parameterized="ntk", c_w=c_w, c_b=c_b, bias=c_b > 0
    )
    # the peer trains biases through a factor √C_b, so that they add C_b to the tangent kernel where ours add 1
    layers = tuple(layer._replace(t_b=layer.c_b) for layer in net.limit().layers)
    limit = replace(net.limit(), layers=layers)
    product = jax.jit(lambda x: x @ x.T)
    first = timed(lambda: gram(limit, x))
    order = {"name": name, "depth": depth, "c_w": c_w, "c_b": c_b, "data": file}
    saved = str(folder / "peer.npz")
    peer.seconds(**order, save=saved)
    device = jax.numpy.asarray(x)
    timed(lambda: product(device))
    ours = []
    theirs = []
    bare = []
    for _ in range(repeats):
        ours.append(timed(lambda: gram(limit, x)))
        theirs.append(peer.seconds(**order))
        bare.append(timed(lambda: product(device)))
    ratio = statistics.median(t / o for t, o in zip(theirs, ours, strict=True))
    multiple = statistics.median(o / b for o, b in zip(ours, bare, strict=True))
    return {
        "case": f"{name} {depth} layers, n={n}, {'equal' if equal else 'unequal'} norms{', biases' * (c_b > 0)}",
        "neural-tangents / steepest": round(ratio, 1),
        "steepest / XXᵀ": round(multiple, 2),
        "first call [s]": round(first, 2),
        "seconds": [round(statistics.median(each), 4) for each in (ours, theirs, bare)],
        "error": error(gram(limit, x).ntk, limit, x),
        "error in float64": error(gram(limit, x.astype(np.float64)).ntk, limit, x),
        "error of neural-tangents": error(np.load(saved)["ntk"], limit, x),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", help="the interpreter of the environment with neural-tangents")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    peer = Peer(arguments.peer)
    with tempfile.TemporaryDirectory() as folder:
        for each in CASES:
            print(
                json.dumps(case(peer, Path(folder), arguments.repeats, *each), ensure_ascii=False),
                flush=True,
            )


if __name__ == "__main__":
    main()
