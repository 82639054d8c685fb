"""A Gram matrix of 30 000 inputs in tiles on disk: killed, resumed, its memory, and its rate beside the one in memory.

The child process is killed with SIGKILL when a third of the tiles is there; the second run finishes the rest. Its rate
in entries a second is compared with that of `gram` on 8192 of the inputs, in the same run.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from steepest.kernels import gram, tiled_gram
from steepest.nn.networks import mlp

LIMIT = mlp((784, 1, 1, 1, 1), "relu", parameterized="ntk", c_w=2.0, bias=False).limit()


def inputs(n):
    x = np.random.default_rng(0).normal(size=(n, 784)).astype(np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True) * 28


def child(folder, n):
    """Computes what is missing, and prints seconds and peak memory."""
    x = inputs(n)
    started = time.perf_counter()
    finished = []
    tiled_gram(LIMIT, x, folder, watch=lambda stage: finished.append(time.perf_counter()))
    seconds = time.perf_counter() - started
    # from the first finished tile to the last: neither the start nor the check of the tiles that are there
    running = (finished[-1] - finished[0]) * len(finished) / (len(finished) - 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        json.dumps(
            {
                "seconds": seconds,
                "seconds of the tiles": running,
                "peak memory [GB]": round(peak / 1e9, 2),
            }
        )
    )


def tiles_in(folder):
    """Bytes of the tiles that are complete: the inputs and the table are not among them."""
    return sum(path.stat().st_size for path in Path(folder).glob("**/tiles/*.npy"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=30_000)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    n = arguments.n
    if arguments.child:
        child(arguments.child, n)
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--n", str(n), "--child", folder + "/gram"]
        first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wanted = n**2 / 2 * 8 / 3  # two kernels of four bytes
        while first.poll() is None and tiles_in(folder) < wanted:
            time.sleep(0.2)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        there = tiles_in(folder)
        print(f"killed with {there / 1e9:.2f} GB there", flush=True)
        second = json.loads(
            subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
        )
        total = tiles_in(folder)
        x = inputs(8192)
        gram(LIMIT, x)
        started = time.perf_counter()
        for _ in range(3):
            gram(LIMIT, x)
        in_memory = 3 * 8192**2 / (time.perf_counter() - started)
    share = n**2 * (total - there) / total
    rates = {
        f"rate on disk / in memory{name}": round(share / second[key] / in_memory, 2)
        for name, key in (("", "seconds of the tiles"), (", with start and check", "seconds"))
    }
    before = {"share before the kill": round(there / total, 2), "GB": round(total / 1e9, 2)}
    print(json.dumps({**before, **second, **rates}))


if __name__ == "__main__":
    main()
