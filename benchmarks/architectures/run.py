"""Kernels of convolutional networks, NNGP and NTK together, beside neural-tangents.

Each repetition times both one after the other, so that a busy neighbour hits both; medians of the ratios of CPU-seconds
per entry are compared, after a first call of each that compiles. The peer gets as many images as memory and patience
allow, ours as many as fill its blocks; where n differs the ratio is that of n² entries each.
"""

import argparse
import json
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from steepest.kernels import gram
from steepest.nn.layers import (
    add,
    aggregate,
    attention,
    conv,
    dense,
    flatten,
    global_pool,
    identity,
    network,
    pool,
    serial,
)

CASES = [  # case, activation, C_W, side of the images, their number here, their number there, goal
    ("flatten", "relu", 2.0, 16, 100, 100, 8),
    ("flatten", "relu", 2.0, 16, 400, 400, 8),
    ("flatten", "relu", 2.0, 32, 100, 100, 8),
    ("global pooling", "relu", 2.0, 16, 96, 10, 50),
    ("global pooling", "relu", 2.0, 32, 32, 2, 40),
    ("pool, flatten", "relu", 2.0, 16, 96, 4, 500),
    ("wide residual", "relu", 2.0, 16, 48, 6, 250),
    ("flatten", "tanh", 1.5, 16, 96, 20, 200),
    ("attention", "relu", 2.0, 4, 192, 192, 5),
    ("graph", "relu", 2.0, 4, 192, 192, 5),
]
IN_LINE = ("attention", "graph")  # whose positions are a sequence, or the vertices of a graph
CHECKED = 4  # images whose kernels are compared with those in float64


def ring(vertices):
    """Each vertex reads itself and both neighbours."""
    shifts = (np.roll(np.eye(vertices), by, 0) for by in (-1, 0, 1))
    return sum(shifts, np.zeros((vertices, vertices))) / 3


def build(case, activation, c_w, side):
    shape = (side * side, 3) if case in IN_LINE else (side, side, 3)
    if case == "attention":
        heads = attention(1, heads=1, key=1)
        layers = [dense(1), activation, heads, activation, dense(1), activation, global_pool()]
    elif case == "graph":
        neighbours = aggregate(ring(side * side))
        layers = [*[dense(1), neighbours, activation] * 2, global_pool()]
    elif case == "wide residual":
        blocks = [block(stride, True) for stride in (1, 2, 2)]
        layers = [conv(1), *blocks, global_pool()]
    else:
        layers = [layer for _ in range(5) for layer in (conv(1), activation)]
        last = {"flatten": [], "global pooling": [global_pool()], "pool, flatten": [pool(2)]}[case]
        layers += last if case == "global pooling" else [*last, flatten()]
    return network(*layers, dense(1), shape=shape, parameterized="ntk", c_w=c_w, bias=False)


def block(stride, project):
    body = serial("relu", conv(1, stride=stride), "relu", conv(1))
    return add(body, conv(1, stride=stride) if project else identity)


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

    def run(self, **order) -> dict:
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def worst(kernels, exact):
    """Largest error of an NTK, relative to the root of the product of the diagonals."""
    size = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    return float((np.abs(kernels - exact) / size).max())


def compare(peer, folder, repeats, case, activation, c_w, side, n, n_peer, goal):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, side, side, 3)).astype(np.float32)
    x = x.reshape(n, -1, 3) if case in IN_LINE else x
    files = {count: str(folder / f"x{side}-{count}.npy") for count in (CHECKED, n_peer)}
    for count, file in files.items():
        np.save(file, x[:count])
    limit = build(case, activation, c_w, side).limit()
    order = {"case": case, "activation": activation, "c_w": c_w}
    saved = str(folder / "peer.npz")
    checked = min(CHECKED, n_peer)
    first_there = peer.run(**order, data=files[n_peer], save=saved)["seconds"]
    started = time.process_time()
    single = gram(limit, x)
    first = time.process_time() - started
    exact = gram(limit, x[:checked].astype(np.float64)).ntk
    ours = []
    theirs = []
    for _ in range(repeats):
        started = time.process_time()
        gram(limit, x)
        ours.append((time.process_time() - started) / n**2)
        answer = peer.run(**order, data=files[n_peer])
        theirs.append(answer["seconds"] / n_peer**2)
    ratio = statistics.median(t / o for t, o in zip(theirs, ours, strict=True))
    return {
        "case": f"{case}, {activation}, {side} × {side}",
        "n here, there": [n, n_peer],
        "goal": goal,
        "neural-tangents / steepest": round(ratio, 1),
        "ms per entry": [round(1e3 * statistics.median(each), 5) for each in (ours, theirs)],
        "first call [CPU-s]": [round(seconds, 1) for seconds in (first, first_there)],
        "error": worst(single.ntk[:checked, :checked], exact),
        "bound": single.error,
        "error there": worst(np.load(saved)["ntk"][:checked, :checked], exact),
        "peak GB": [
            round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
            round(answer["peak"], 2),
        ],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", help="the interpreter of the environment with neural-tangents")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cases", type=int, nargs="*", help="their numbers; all by default")
    arguments = parser.parse_args()
    peer = Peer(arguments.peer)
    chosen = range(len(CASES)) if arguments.cases is None else arguments.cases
    with tempfile.TemporaryDirectory() as folder:
        for index in chosen:
            row = compare(peer, Path(folder), arguments.repeats, *CASES[index])
            print(json.dumps(row, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
