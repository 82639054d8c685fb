"""Kernels on whatever device JAX chooses: seconds a matrix, and how far entries are from those of another device.

Run it twice on one machine, first with ``JAX_PLATFORMS=cpu`` and ``--save FILE``, then without and with
``--against FILE``. Seconds are those of the clock, medians after a first call that compiles.
"""

import argparse
import json
import statistics
import time

import jax
import numpy as np

from benchmarks.architectures.run import build
from steepest.kernels import gram
from steepest.nn.networks import mlp

LAYERED = [  # case, activation, C_W, side of the images, their number
    ("flatten", "relu", 2.0, 32, 512),
    ("flatten", "tanh", 1.5, 16, 512),
    ("global pooling", "relu", 2.0, 16, 128),
    ("global pooling", "relu", 2.0, 32, 32),
    ("pool, flatten", "relu", 2.0, 32, 128),
    ("wide residual", "relu", 2.0, 32, 64),
]
CONNECTED = [("relu", 3, 8000), ("tanh", 3, 8000)]
CHECKED = 8  # inputs whose kernels are compared


def cases():
    """Yield a name, a limit, and inputs in single precision."""
    rng = np.random.default_rng(0)
    for activation, depth, n in CONNECTED:
        net = mlp((784, *(64,) * depth, 1), activation, parameterized="ntk", c_w=1.5, c_b=0.1)
        x = rng.normal(size=(n, 784)).astype(np.float32)
        yield f"fully connected, {activation}, {depth} layers", net.limit(), x
    for case, activation, c_w, side, n in LAYERED:
        x = rng.normal(size=(n, side, side, 3)).astype(np.float32)
        yield (
            f"{case}, {activation}, {side} × {side}",
            build(case, activation, c_w, side).limit(),
            x,
        )


def distance(one, other):
    """Largest difference, relative to the root of the product of the diagonals."""
    size = np.sqrt(np.outer(np.diag(other), np.diag(other)))
    return float((np.abs(one - other) / size).max())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", help="file for the kernels of a few inputs, in double precision")
    parser.add_argument("--against", help="such a file of another device")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    arguments = parser.parse_args()
    stored = np.load(arguments.against) if arguments.against else {}
    kept = {}
    for name, limit, x in cases():
        if arguments.only not in name:
            continue
        started = time.perf_counter()
        kernels = gram(limit, x)
        first = time.perf_counter() - started
        seconds = []
        for _ in range(arguments.repeats):
            started = time.perf_counter()
            gram(limit, x)
            seconds.append(time.perf_counter() - started)
        kept[name] = gram(limit, x[:CHECKED].astype(float)).ntk
        row = {
            "case": name,
            "n": len(x),
            "device": jax.devices()[0].device_kind,
            "seconds": round(statistics.median(seconds), 4),
            "first call": round(first, 2),
        }
        if name in stored:
            row["float32 from the other's float64"] = distance(
                kernels.ntk[:CHECKED, :CHECKED], stored[name]
            )
            row["float64 from the other's float64"] = distance(kept[name], stored[name])
        print(json.dumps(row, ensure_ascii=False), flush=True)
    if arguments.save:
        np.savez(arguments.save, **kept)


if __name__ == "__main__":
    main()
